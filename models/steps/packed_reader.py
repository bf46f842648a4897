"""Trains and measures the split reader from a pack, on a GPU.

The result is written to a workspace, from which `winnow models assemble` makes a bundle.
"""

import copy
import time
from dataclasses import asdict, dataclass
from pathlib import Path

import torch
from torch import Tensor

from models.data import DEVELOPMENT
from models.mining.document_files import CLOZES, PEOPLE, RULES
from models.network.architecture import interpolate_weights
from models.network.split_reader import SplitReader
from models.packed import mining
from models.packed.arrays import (
    CHANGED,
    CHANGED_IN_DOCUMENTS,
    CHANGED_SOURCES,
    TRAINING,
    write_figures_json,
)
from models.packed.encoding import encode_questions
from models.packed.loaded import LoadedPack
from models.packed.mined import MinedQuestions
from models.packed.networks import load_encoder, load_reader, load_split_reader, word_weight
from models.packed.reader_training import PackedReadingPlan, PackedReadingTask
from models.packed.reading_figures import (
    LONG_SPAN,
    Choices,
    Figures,
    Pairs,
    Readings,
    chosen_figures,
    fit_choice,
    gold_figures,
    read_pairs,
    refusal_figures,
)
from models.packed.search import Candidates, SearchDepth, join_candidates
from models.packed.supervision import MAX_SPAN
from models.steps.packed import FIGURES, MEAN, NETWORKS, Report, save_run
from models.training.loop import Schedule
from models.training.timed import train_until
from models.workspace import Workspace

BEFORE, AFTER = "before", "after"
"""Names of readers in the figures; the third one is `MEAN`."""
SHARES = {
    "squadshifts-amazon_reviews": 0.3,
    "squadshifts-reddit": 0.3,
    "qamr-wiki-devtest": 0.3,
    "squad-train-sentences": 0.7,
    PEOPLE: 5.0,
    RULES: 0.6,
    CLOZES: 0.5,
    CHANGED: 0.7,
    CHANGED_IN_DOCUMENTS: 0.4,
}
"""Relative chances of a source's questions in training; 1 for other sources."""
UNTAUGHT = (PEOPLE, RULES, CLOZES)
"""Sources whose spans the teacher does not teach, because it cuts them short."""
COUNTS = (1, 2, 5, 10)
"""Numbers of passages at which exact match is measured."""
_DEPTH = SearchDepth(nearest=100, by_words=100, kept=COUNTS[-1])
_MAX_HELD_OUT = 500
"""Maximum number of held-out questions of a source."""
WIKIPEDIA_SOURCES = tuple(name for name in CHANGED_SOURCES if name not in UNTAUGHT)
_REFUSALS = {
    "Wikipedia": (WIKIPEDIA_SOURCES, (CHANGED,)),
    "documents": ((PEOPLE, RULES), (CHANGED_IN_DOCUMENTS,)),
    "people's questions": ((PEOPLE,), (PEOPLE,)),
}
"""Sources with and without an answer that are compared, by title."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReaderTrainingBudget:
    """Seconds for each stage of a reader's training, and the share of its result."""

    mining: float = 45.0
    """Time to search candidates. Confirming answers takes up to 0.7 times as long in addition."""
    training: float = 380.0
    share: float = 0.75
    """Weight of the trained reader in its mean with the reader of the pack."""


class ReaderTraining:
    """Trains the split reader of a pack, and measures it before and after."""

    def __init__(
        self, pack: Path, out: Path, device: str, split_layers: int, *, report: Report
    ) -> None:
        """Loads a pack onto a device. Makes the directory `out`."""
        self._networks, self._out, self._report = pack / NETWORKS, Workspace(out).create(), report
        self._split_layers = split_layers
        self._pack = LoadedPack.open(pack, torch.device(device), word_weight(self._networks))

    def run(self, schedule: Schedule, budget: ReaderTrainingBudget) -> None:
        """Trains the reader, and saves its mean with the reader of the pack. Measures all three."""
        training = self._mine(budget.mining)
        before = load_split_reader(self._networks, self._pack.device, self._split_layers)
        after = copy.deepcopy(before)
        plan = PackedReadingPlan(questions=64 // self._pack.batch_divisor)
        self._train(after, training, plan, schedule, budget.training)
        mean = copy.deepcopy(before)
        state = interpolate_weights(before.state_dict(), after.state_dict(), budget.share)
        mean.load_state_dict(state)
        settings = {**asdict(plan), **asdict(schedule), **asdict(budget), "shares": SHARES}
        path = self._out.split_run_checkpoint_path(self._split_layers)
        save_run(path, mean, settings, {})
        for name, reader in ((BEFORE, before), (AFTER, after), (MEAN, mean)):
            self._measure(name, reader.eval())

    def _mine(self, seconds: float) -> MinedQuestions:
        """Returns mined training questions. Keeps held-out ones and candidates for measuring."""
        pack = self._pack
        encoder = load_encoder(self._networks, pack.device)
        vectors = pack.encode(encoder)
        self._report("passages encoded")
        self._candidates = {}
        for name in DEVELOPMENT:
            numbers = torch.arange(len(pack.gold(name)), device=pack.device)
            asked = numbers, encode_questions(encoder.body, pack.questions[name], numbers)
            index = pack.index("small", vectors)
            self._candidates[name] = pack.search(index, pack.questions[name], asked, _DEPTH)
        teacher = load_reader(self._networks, pack.device)
        mined, yields = mining.mine_candidates(pack, encoder, teacher, vectors, seconds)
        self._record("mined", {name: asdict(each) for name, each in yields.items()})
        pack.forget_indexes()
        training, self._held_out = mining.split_held_out(pack, mined)
        return training

    def _train(
        self,
        reader: SplitReader,
        mined: MinedQuestions,
        plan: PackedReadingPlan,
        schedule: Schedule,
        seconds: float,
    ) -> None:
        """Trains `reader` in place. The teacher of spans is a copy of it."""
        torch.manual_seed(schedule.seed)
        pack, deadline = self._pack, time.monotonic() + seconds
        every = torch.arange(len(pack.gold(TRAINING)), device=pack.device)
        task = PackedReadingTask(
            reader=reader,
            teachers=(copy.deepcopy(reader),),
            passages=pack.passages,
            questions=pack.questions[TRAINING],
            mined=mined,
            weights=pack.shares(mined.numbers, SHARES),
            plan=plan,
            is_taught=pack.shares(every, dict.fromkeys(UNTAUGHT, 0.0)) > 0,
        )
        train_until(reader, task.steps(), schedule, deadline, report=self._report, body=reader.body)

    def _measure(self, name: str, reader: SplitReader) -> None:
        """Measures a reader on the development sets and on held-out questions."""
        pack, figures = self._pack, self._held_out_figures(reader)
        held_out = self._choices_of_held_out(reader)
        half = torch.arange(len(held_out.right), device=pack.device) % 2 == 0
        weights = fit_choice(held_out.take(half))
        figures["held-out retrieved"] = {
            **chosen_figures(held_out.take(~half), weights, COUNTS),
            "weights of span, relevance, retrieval": weights.tolist(),
        }
        weights = fit_choice(held_out)
        for each in DEVELOPMENT:
            gold = pack.gold(each)
            numbers = torch.arange(len(gold), device=pack.device)
            read = Pairs(questions=pack.questions[each], numbers=numbers, rows=gold)
            figures[f"{each} gold"] = gold_figures(read_pairs(reader, pack, read))
            choices = self._choices(reader, each, numbers, self._candidates[each])
            figures[f"{each} retrieved"] = chosen_figures(choices, weights, COUNTS)
        self._record(name, figures)

    def _held_out_figures(self, reader: SplitReader) -> Figures:
        """Returns figures of held-out questions by source, and of refusals."""
        figures: Figures = {}
        readings: dict[tuple[str, bool], Readings] = {}
        for name in self._pack.source_names:
            longest = LONG_SPAN if name in UNTAUGHT else MAX_SPAN
            for is_answered in (True, False):
                part = self._held_out_of(name, is_answered=is_answered)
                if not len(part):
                    continue
                read = Pairs(
                    questions=self._pack.questions[TRAINING],
                    numbers=part.numbers,
                    rows=part.gold,
                    spans=part.spans,
                )
                readings[name, is_answered] = read_pairs(reader, self._pack, read, longest)
                if is_answered:
                    figures[f"held-out {name}"] = gold_figures(readings[name, is_answered])
        for title, (answered, unanswered) in _REFUSALS.items():
            sides = [
                [readings[name, is_answered] for name in names if (name, is_answered) in readings]
                for names, is_answered in ((answered, True), (unanswered, False))
            ]
            if all(sides):
                figures[f"refused, {title}"] = refusal_figures(*map(Readings.join, sides))
        return figures

    def _held_out_of(self, source: str, *, is_answered: bool) -> MinedQuestions:
        """Returns held-out questions of a source, at most `_MAX_HELD_OUT`."""
        held, place = self._held_out, self._pack.source_names.index(source)
        chosen = (self._pack.source_numbers(held.numbers) == place) & (
            held.is_answered == is_answered
        )
        return held.take(chosen.nonzero().squeeze(1)[:_MAX_HELD_OUT])

    def _choices_of_held_out(self, reader: SplitReader) -> Choices:
        """Reads the candidates of held-out questions with a paragraph of Wikipedia."""
        sources = [name for name in WIKIPEDIA_SOURCES if name in self._pack.source_names]
        parts = [self._held_out_of(name, is_answered=True) for name in sources]
        numbers = torch.cat([part.numbers for part in parts])
        candidates = join_candidates([part.first_candidates(COUNTS[-1]) for part in parts])
        return self._choices(reader, TRAINING, numbers, candidates)

    def _choices(
        self, reader: SplitReader, name: str, numbers: Tensor, candidates: Candidates
    ) -> Choices:
        """Reads the candidates of questions `numbers` of the set `name`."""
        rows = candidates.rows
        read = Pairs(
            questions=self._pack.questions[name],
            numbers=numbers.repeat_interleave(rows.shape[1]),
            rows=rows.clamp(min=0).flatten(),
        )
        readings = read_pairs(reader, self._pack, read)
        nearness = self._pack.word_weight * candidates.words - candidates.distances
        features = torch.cat([readings.features.view(*rows.shape, 2), nearness[..., None]], -1)
        return Choices(features, readings.exact.view(rows.shape) & (rows >= 0))

    def _record(self, name: str, figures: object) -> None:
        write_figures_json(self._out.root / FIGURES, {name: figures})
        self._report(f"{name}: written to {FIGURES}")
