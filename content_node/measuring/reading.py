"""Costs of reading a passage, by its length."""

from dataclasses import dataclass, replace
from functools import partial
from statistics import median

from winnow.bundle import Bundle
from winnow.content_node.reader import open_reader
from winnow.content_node.reader.lower_layers import LowerLayers, open_lower_layers
from winnow.content_node.reader.reader import Reader
from winnow.content_node.shard.store import StoredPassage
from winnow.content_node.states.passage_states import packed_size
from winnow.domain.passage import Hit, Passage
from winnow.inference.runtime import InferenceOptions
from winnow.sizing.timing import parallel_run_ms, relative_spread, time_runs
from winnow.sizing.units import LengthCost, StatesUnits
from winnow.text.tokenizer import SpecialTokens, Tokenizer, Tokens

LENGTHS = (32, 64, 96, 128, 160, 192, 256, 320)
"""Tokens of question, title and text together."""
QUESTION = 10
"""Tokens of these that are the question's."""
USUAL = 128
_REPETITIONS = 60
_WORD = 1_000
"""A token that every vocabulary has."""


@dataclass(frozen=True, slots=True)
class Reads:
    """The costs of reading."""

    by_length: tuple[LengthCost, ...]
    spread: tuple[float, ...]
    together: float
    states: StatesUnits | None


def measure(bundle: Bundle, threads: int, repetitions: int = _REPETITIONS) -> Reads:
    """Reads made-up passages: first in one thread, then in every thread."""
    special, options = Tokenizer(bundle.tokenizer).special, InferenceOptions(runs=threads)
    reader = open_reader(bundle, special, options)
    passages = [_made_up(length) for length in LENGTHS]
    times = [time_runs(partial(_read, reader, each), repetitions) for each in passages]
    usual = LENGTHS.index(USUAL)
    crowded = parallel_run_ms(partial(_read, reader, passages[usual]), threads, repetitions)
    return Reads(
        _costs(times),
        relative_spread(times),
        round(median(times[usual]) / crowded, 4),
        _states(bundle, reader, special, options, passages, repetitions),
    )


def _states(
    bundle: Bundle,
    reader: Reader,
    special: SpecialTokens,
    options: InferenceOptions,
    passages: list[StoredPassage],
    repetitions: int,
) -> StatesUnits | None:
    """The same reads with precomputed states; None if the reader is not a split reader."""
    if bundle.manifest.reader.apart is None:
        return None
    lower = open_lower_layers(bundle, special, options)
    kept = [replace(each, states=lower.passage_states(each)) for each in passages]
    times = [time_runs(partial(_read, reader, each), repetitions) for each in kept]
    usual = LENGTHS.index(USUAL)
    crowded = parallel_run_ms(partial(_read, reader, kept[usual]), options.runs, repetitions)
    spent = parallel_run_ms(partial(_compute, lower, passages[usual]), options.runs, repetitions)
    asked = time_runs(partial(_ask, lower), repetitions)
    return StatesUnits(
        read=_costs(times),
        together=round(median(times[usual]) / crowded, 4),
        question=LengthCost(tokens=QUESTION, ms=round(median(asked), 4)),
        compute=LengthCost(tokens=lower.count_tokens(passages[usual]), ms=round(spent, 4)),
        bytes_a_token=packed_size(1, lower.width) - packed_size(0, lower.width),
    )


def _compute(lower: LowerLayers, stored: StoredPassage) -> None:
    lower.passage_states(stored)


def _ask(lower: LowerLayers) -> None:
    lower.question_states((_WORD,) * QUESTION)


def _costs(times: list[list[float]]) -> tuple[LengthCost, ...]:
    return tuple(
        LengthCost(tokens=tokens, ms=round(median(own), 4))
        for tokens, own in zip(LENGTHS, times, strict=True)
    )


def _made_up(tokens: int) -> StoredPassage:
    length = tokens - QUESTION
    text = Tokens((_WORD,) * length, tuple((place, place + 1) for place in range(length)))
    return StoredPassage(Passage("", "", "." * length), (), text)


def _read(reader: Reader, stored: StoredPassage) -> None:
    reader.read(
        (_WORD,) * QUESTION,
        stored,
        Hit(row=0, passage_id="", distance=0.0, hybrid_distance=0.0),
        10,
    )
