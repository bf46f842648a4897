"""Measures the costs of reading a passage by its length."""

from dataclasses import dataclass, replace
from functools import partial
from statistics import median

from winnow.bundle import Bundle
from winnow.inference.options import InferenceOptions
from winnow.reading import open_reader
from winnow.reading.lower_layers import open_lower_layers
from winnow.reading.passage_states import packed_size
from winnow.reading.reader import Reader
from winnow.reading.stored_passage import StoredPassage
from winnow.reading.warmup import TOKEN, read_synthetic, synthetic_passage
from winnow.sizing.timing import parallel_run_ms, relative_spread, time_runs
from winnow.sizing.units import LengthCost, StatesUnits
from winnow.text.tokenizer import SpecialTokens, Tokenizer

LENGTHS = (32, 64, 96, 128, 160, 192, 256, 320)
"""Tokens of question, title and text together."""
QUESTION_TOKENS = 10
"""Tokens of the question, included in `LENGTHS`."""
_TYPICAL = LENGTHS.index(128)
_REPETITIONS = 60


@dataclass(frozen=True, slots=True)
class ReadCosts:
    """Costs of reading a passage, in the units of `NodeUnits`."""

    by_length: tuple[LengthCost, ...]
    """Time of a read, for each of `LENGTHS`."""
    spread: tuple[float, ...]
    """Spread of the times of reads of the same length."""
    together: float
    """Speed of a core while all cores read, divided by its speed while the others are idle."""
    states: StatesUnits | None
    """Costs with precomputed states; None if the reader is not a split reader."""


def measure_reads(bundle: Bundle, threads: int, repetitions: int = _REPETITIONS) -> ReadCosts:
    """Measures reading synthetic passages, in one thread and in all threads."""
    special, options = Tokenizer(bundle.tokenizer).special, InferenceOptions(runs=threads)
    reader = open_reader(bundle, special, options)
    passages = [synthetic_passage(length - QUESTION_TOKENS) for length in LENGTHS]
    times = [time_runs(partial(_read_passage, reader, each), repetitions) for each in passages]
    parallel_ms = parallel_run_ms(
        partial(_read_passage, reader, passages[_TYPICAL]), threads, repetitions
    )
    return ReadCosts(
        _length_costs(times),
        relative_spread(times),
        round(median(times[_TYPICAL]) / parallel_ms, 4),
        _measure_states(bundle, reader, special, options, passages, repetitions),
    )


def _measure_states(
    bundle: Bundle,
    reader: Reader,
    special: SpecialTokens,
    options: InferenceOptions,
    passages: list[StoredPassage],
    repetitions: int,
) -> StatesUnits | None:
    """Measures reading with precomputed states; None if the reader is not a split reader."""
    if bundle.manifest.reader.apart is None:
        return None
    lower, threads = open_lower_layers(bundle, special, options), options.runs
    with_states = [replace(each, states=lower.passage_states(each)) for each in passages]
    times = [time_runs(partial(_read_passage, reader, each), repetitions) for each in with_states]
    typical = passages[_TYPICAL]
    parallel_ms = parallel_run_ms(
        partial(_read_passage, reader, with_states[_TYPICAL]), threads, repetitions
    )
    compute_ms = parallel_run_ms(partial(lower.passage_states, typical), threads, repetitions)
    question = (TOKEN,) * QUESTION_TOKENS
    question_times = time_runs(partial(lower.question_states, question), repetitions)
    return StatesUnits(
        read=_length_costs(times),
        together=round(median(times[_TYPICAL]) / parallel_ms, 4),
        question=LengthCost(tokens=QUESTION_TOKENS, ms=round(median(question_times), 4)),
        compute=LengthCost(tokens=lower.count_tokens(typical), ms=round(compute_ms, 4)),
        bytes_a_token=packed_size(1, lower.width) - packed_size(0, lower.width),
    )


def _length_costs(times: list[list[float]]) -> tuple[LengthCost, ...]:
    return tuple(
        LengthCost(tokens=tokens, ms=round(median(own), 4))
        for tokens, own in zip(LENGTHS, times, strict=True)
    )


def _read_passage(reader: Reader, passage: StoredPassage) -> None:
    read_synthetic(reader, passage, QUESTION_TOKENS)
