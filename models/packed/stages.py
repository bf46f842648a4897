"""Stages of training on a GPU, each with its own time, and the figures that they write."""

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from models.data import DEVELOPMENT
from models.network.architecture import Encoder, Reader, interpolate_weights
from models.network.late_interaction import LateInteraction
from models.packed.arrays import (
    CLOZE,
    NONE,
    TRAINING,
    PackedPassages,
    PackedQuestions,
    load_passages,
    load_questions,
    write_figures,
)
from models.packed.encoder_training import LargeBatchTask
from models.packed.late_training import CombinedScore, LateTask
from models.packed.mined import MinedQuestions
from models.packed.networks import load_encoder, load_reader, load_split_reader, save_state
from models.packed.ordering import LateScores, RankedSet, fit_weights, gold_among
from models.packed.reader_training import PackedReadingPlan, PackedReadingTask
from models.packed.running import encode_passages, encode_questions
from models.packed.search import Candidates, ExactIndex, join
from models.packed.supervision import confirm
from models.packed.tokens import PassageTokens, QuestionTokens
from models.training.loop import Schedule
from models.training.timed import train_until

WORD_WEIGHT = 0.03066
"""Squared distance that one unit of BM25 is worth in the default bundle."""
MINED, LATE = "mined.pt", "late.pt"
"""Names of results."""
PROJECTIONS = (((6,), (8, 16, 32, 64)), ((4, 6), (16, 32)))
"""Projections that are trained: layers of the encoder, and values a token."""
_BITS = (8, 4)
_MEASURED = (100, 100, 200)
"""Nearest passages, best by words, and how many of both are ordered when measuring."""
_MINED = (64, 64, 64)
_SEARCHED = 256
"""Questions that are searched together."""
_CONFIRMING = 0.7
"""Time to confirm passages, as a share of the time to search them."""
_MAX_HELD_OUT = 400
"""Maximum number of held-out questions of a source on which weights are fitted."""
_WEAK_SOURCES = (
    "squadshifts-amazon_reviews",
    "squadshifts-reddit",
    "qamr-wiki-devtest",
    "squad-train-sentences",
)
"""Sources whose questions are seldom meaningful without their passage, or lack a whole one."""
_SHARES = {
    "squadshifts-amazon_reviews": 0.3,
    "squadshifts-reddit": 0.3,
    "qamr-wiki-devtest": 0.3,
    "squad-train-sentences": 0.7,
}
"""Chances of questions in the training of a reader, beside 1 of all others."""

Report = Callable[[str], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Budget:
    """Seconds of each stage."""

    mining: float = 60.0
    late: float = 90.0
    encoder: float = 60.0
    """Each of two rounds."""
    new_late: float = 40.0
    reader: float = 180.0


@dataclass(slots=True, kw_only=True)
class Bench:
    """Everything that the stages of retrieval share."""

    networks: Path
    out: Path
    device: torch.device
    report: Report
    packed: PackedPassages
    asked: dict[str, PackedQuestions]
    passages: PassageTokens
    questions: dict[str, QuestionTokens]
    held_out: Tensor
    """Whether each passage is held out from training."""
    scale: int = 1
    """Divides the sizes of batches, for devices with little memory."""
    indexes: dict[str, ExactIndex] = field(default_factory=dict)

    @classmethod
    def open(
        cls, pack: Path, networks: Path, out: Path, device: torch.device, report: Report
    ) -> "Bench":
        """Loads a pack onto a device."""
        out.mkdir(parents=True, exist_ok=True)
        packed = load_passages(pack)
        asked = {name: load_questions(pack, name) for name in (TRAINING, *DEVELOPMENT)}
        return cls(
            networks=networks,
            out=out,
            device=device,
            report=report,
            packed=packed,
            asked=asked,
            passages=PassageTokens(packed, device),
            questions={
                name: QuestionTokens(each, packed.special, device) for name, each in asked.items()
            },
            held_out=torch.from_numpy(packed.held_out).to(device),
            scale=1 if device.type == "cuda" else 16,
        )

    def rows(self, index: str) -> Tensor:
        """Returns the passages of the index `small`, `large` or `mined`."""
        return torch.from_numpy(getattr(self.packed, index)).to(self.device).long()

    def encode(self, encoder: Encoder) -> Tensor:
        """Returns the vectors of all passages."""
        every = torch.arange(len(self.packed), device=self.device)
        return encode_passages(encoder.body, self.passages, every)

    def index(self, name: str, vectors: Tensor) -> ExactIndex:
        """Returns an index with these vectors, which are those of all passages."""
        rows = self.rows(name)
        if name not in self.indexes:
            self.indexes[name] = ExactIndex(self.passages, rows, vectors[rows])
        self.indexes[name].replace_vectors(vectors[rows])
        return self.indexes[name]

    def search(
        self,
        index: ExactIndex,
        name: str,
        numbers: Tensor,
        vectors: Tensor,
        *,
        counts: tuple[int, int, int],
        deadline: float = float("inf"),
    ) -> Candidates:
        """Returns candidates of questions, of as many as are searched before `deadline`."""
        parts: list[Candidates] = []
        for part, of_part in zip(numbers.split(_SEARCHED), vectors.split(_SEARCHED), strict=True):
            if parts and time.monotonic() > deadline:
                break
            questions = self.questions[name]
            parts.append(index.search(questions, part, of_part, counts, WORD_WEIGHT))
        return join(parts)

    def numbers(self, name: str) -> Tensor:
        """Returns the numbers of all questions of a set."""
        return torch.arange(len(self.asked[name]), device=self.device)

    def gold(self, name: str) -> Tensor:
        """Returns the known gold passages of a set."""
        return torch.from_numpy(self.asked[name].gold).to(self.device).long()


def mine(bench: Bench, encoder: Encoder, teacher: Reader, vectors: Tensor, seconds: float) -> None:
    """Finds candidates of training questions and confirms their passages; saves `MINED`."""
    deadline = time.monotonic() + seconds
    questions, gold = bench.questions[TRAINING], bench.gold(TRAINING)
    spans = torch.from_numpy(bench.asked[TRAINING].spans).to(bench.device).long()
    generator = torch.Generator().manual_seed(1)
    order = torch.randperm(len(gold), generator=generator).to(bench.device)
    # people's questions with a known passage come first: time may not suffice for all
    order = order[(spans[order, 0] < 0).int().argsort(dim=0, stable=True)]
    sought = encode_questions(encoder.body, questions, order)
    index = bench.index("mined", vectors)
    found = bench.search(index, TRAINING, order, sought, counts=_MINED, deadline=deadline)
    numbers = order[: len(found.rows)]
    bench.report(f"{len(numbers)} of {len(order)} training questions searched")
    gold, spans = gold[numbers], spans[numbers]
    unknown = (spans[:, 0] < 0).nonzero().squeeze(1)
    deadline += _CONFIRMING * seconds
    for part in unknown.split(512):
        if time.monotonic() > deadline:
            gold[part] = NONE
            continue
        # a cloze question's own passage is the last resort
        own = gold[part][:, None]
        others = torch.where(found.rows[part] == own, NONE, found.rows[part])
        rows = torch.cat([others, own], 1)
        gold[part], spans[part] = confirm(teacher, bench.passages, questions, numbers[part], rows)
    known = gold >= 0
    mined = MinedQuestions.of(
        bench.passages,
        questions,
        (numbers[known], gold[known], spans[known]),
        Candidates(found.rows[known], found.distances[known], found.words[known]),
    )
    names = bench.asked[TRAINING].names
    sources = torch.from_numpy(bench.asked[TRAINING].sources).to(bench.device).long()
    counts = {
        str(name): [
            int((sources[numbers] == place).sum()),
            int((sources[mined.numbers] == place).sum()),
            round(
                float((mined.candidates == mined.gold[:, None]).any(1)[sources[mined.numbers] == place].float().mean()),
                3,
            ),
        ]
        for place, name in enumerate(names)
        if (sources[mined.numbers] == place).any()
    }
    write_figures(bench.out / "figures.json", {"mined": counts})
    mined.save(bench.out / MINED)


def split_mined(bench: Bench, mined: MinedQuestions) -> tuple[MinedQuestions, MinedQuestions]:
    """Returns the questions for training and the held-out questions."""
    held = bench.held_out[mined.gold]
    return mined.take(~held), mined.take(held)


def ranked_sets(
    bench: Bench, encoder: Encoder, vectors: Tensor, held: MinedQuestions
) -> dict[str, RankedSet]:
    """Returns the candidates of development sets in both indexes, and of held-out questions."""
    held = _sample(bench, held)
    sets = {}
    sought = encode_questions(encoder.body, bench.questions[TRAINING], held.numbers)
    found = bench.search(
        bench.index("mined", vectors), TRAINING, held.numbers, sought, counts=_MEASURED
    )
    sets["held-out"] = RankedSet(held.numbers, held.gold, found)
    for name in DEVELOPMENT:
        numbers = bench.numbers(name)
        sought = encode_questions(encoder.body, bench.questions[name], numbers)
        for size in ("small", "large"):
            found = bench.search(
                bench.index(size, vectors), name, numbers, sought, counts=_MEASURED
            )
            sets[f"{name} {size}"] = RankedSet(numbers, bench.gold(name), found)
    return sets


def retrieval_figures(sets: dict[str, RankedSet]) -> dict[str, Any]:
    """Returns how often gold passages are among the first by distance and fused distance."""
    fitted = fit_weights(sets["held-out"], sets["held-out"].features())
    fixed = torch.tensor([1.0, WORD_WEIGHT], device=fitted.device)
    return {
        name: {
            "candidates": gold_among(each, each.features()[..., 0], (10_000,)),
            "distance": gold_among(each, each.features()[..., 0]),
            "words": gold_among(each, each.features()[..., 1]),
            "fused": gold_among(each, each.features() @ fixed),
            "fused, fitted": gold_among(each, each.features() @ fitted),
        }
        for name, each in sets.items()
    } | {"weights": fitted.tolist()}


def train_late(
    bench: Bench, encoder: Encoder, teacher: Reader, mined: MinedQuestions, seconds: float
) -> CombinedScore:
    """Trains projections of all sizes beside each other."""
    torch.manual_seed(1)
    width = encoder.body.config.hidden_size
    depth = encoder.body.config.num_hidden_layers
    projections = [
        LateInteraction(width, values, [min(layer, depth) for layer in layers])
        for layers, sizes in PROJECTIONS
        for values in sizes
    ]
    network = CombinedScore(projections).to(bench.device)
    task = LateTask(
        network=network,
        body=encoder.body,
        teacher=teacher,
        passages=bench.passages,
        questions=bench.questions[TRAINING],
        mined=_without_weak(bench, mined, cloze=0.25),
        batch=96 // bench.scale,
    )
    schedule = Schedule(rate=2e-3, quantised=0.0)
    deadline = time.monotonic() + seconds
    train_until(network, task.steps(), schedule, deadline, report=bench.report)
    return network


def late_figures(
    bench: Bench, encoder: Encoder, network: CombinedScore, sets: dict[str, RankedSet]
) -> dict[str, Any]:
    """Returns how often gold passages are among the first with late interaction.

    Weights are fitted on held-out questions alone.
    """
    projections = {
        f"{len(each.layers)} layers, {each.project.out_features} values": each
        for each in network.projections
        if isinstance(each, LateInteraction)
    }
    rows = torch.cat([each.found.rows.clamp(min=0).flatten() for each in sets.values()])
    scores = LateScores(projections, encoder.body, bench.passages, rows)
    figures: dict[str, Any] = {}
    for name in projections:
        for bits in _BITS:
            late = {
                key: scores.of(name, bench.questions[_questions_of(key)], each, bits)
                for key, each in sets.items()
            }
            held = sets["held-out"]
            weights = fit_weights(held, held.features(late["held-out"]))
            figures[f"{name}, {bits} bits"] = {
                "weights": weights.tolist(),
                **{
                    key: {
                        "late alone": gold_among(each, late[key]),
                        "fitted": gold_among(each, each.features(late[key]) @ weights),
                    }
                    for key, each in sets.items()
                },
            }
    return figures


def train_encoder(
    bench: Bench, encoder: Encoder, mined: MinedQuestions, seconds: float, rate: float
) -> None:
    """Trains an encoder in large batches, and changes it."""
    task = LargeBatchTask(
        encoder=encoder,
        passages=bench.passages,
        questions=bench.questions[TRAINING],
        mined=_without_weak(bench, mined, cloze=0.5),
        batch=512 // bench.scale,
    )
    schedule = Schedule(rate=rate, warmup=0.1, quantised=0.2)
    deadline = time.monotonic() + seconds
    train_until(
        encoder, task.steps(), schedule, deadline, report=bench.report, body=encoder.body
    )


def search_again(
    bench: Bench, encoder: Encoder, vectors: Tensor, mined: MinedQuestions, seconds: float
) -> MinedQuestions:
    """Returns questions with the candidates of another encoder, as many as time allows."""
    deadline = time.monotonic() + seconds
    questions = bench.questions[TRAINING]
    mined = mined.take(torch.randperm(len(mined), device=bench.device))
    sought = encode_questions(encoder.body, questions, mined.numbers)
    index = bench.index("mined", vectors)
    found = bench.search(
        index, TRAINING, mined.numbers, sought, counts=_MINED, deadline=deadline
    )
    kept = mined.take(torch.arange(len(found.rows), device=bench.device))
    known = kept.numbers, kept.gold, kept.spans
    return MinedQuestions.of(bench.passages, questions, known, found)


def mean_of(bench: Bench, encoder: Encoder, share: float) -> Encoder:
    """Returns the mean of the shipped encoder and the trained one, which has weight `share`."""
    shipped = load_encoder(bench.networks, bench.device)
    state = interpolate_weights(shipped.state_dict(), encoder.state_dict(), share)
    shipped.load_state_dict(state)
    return shipped


def train_reader(bench: Bench, split_layers: int, seconds: float, seed: int) -> None:
    """Trains the split reader on the mined questions, and saves its weights as `reader.pt`."""
    torch.manual_seed(seed)
    deadline = time.monotonic() + seconds
    mined, _ = split_mined(bench, MinedQuestions.load(bench.out / MINED, bench.device))
    reader = load_split_reader(bench.networks, bench.device, split_layers)
    shipped = load_split_reader(bench.networks, bench.device, split_layers)
    task = PackedReadingTask(
        reader=reader,
        teachers=(load_reader(bench.networks, bench.device), shipped),
        passages=bench.passages,
        questions=bench.questions[TRAINING],
        mined=mined,
        weights=_shares(bench, mined, _SHARES),
        plan=PackedReadingPlan(questions=64 // bench.scale),
    )
    schedule = Schedule(rate=1e-4, quantised=0.15, seed=seed)
    train_until(
        reader, task.steps(), schedule, deadline, report=bench.report, body=reader.body
    )
    save_state(bench.out / "reader.pt", reader.state_dict())


def save_late(bench: Bench, networks: dict[str, CombinedScore]) -> None:
    """Saves projections of several encoders as `LATE`."""
    states = {
        f"{encoder}/{name}": each.half().cpu()
        for encoder, network in networks.items()
        for name, each in network.state_dict().items()
    }
    torch.save({**states}, bench.out / LATE)


def _without_weak(bench: Bench, mined: MinedQuestions, cloze: float) -> MinedQuestions:
    """Leaves out weak sources, and all but a share `cloze` of cloze questions."""
    kept = {name: 0.0 for name in _WEAK_SOURCES} | {CLOZE: cloze}
    shares = _shares(bench, mined, kept)
    return mined.take(torch.rand(len(shares), device=bench.device) < shares)


def _shares(bench: Bench, mined: MinedQuestions, by_source: Mapping[str, float]) -> Tensor:
    """Returns the share of each question's source; 1 of sources that are not given."""
    shares = [by_source.get(str(name), 1.0) for name in bench.asked[TRAINING].names]
    return torch.tensor(shares, device=bench.device)[_source_numbers(bench, mined)]


def _source_numbers(bench: Bench, mined: MinedQuestions) -> Tensor:
    sources = torch.from_numpy(bench.asked[TRAINING].sources).to(bench.device).long()
    return sources[mined.numbers]


def _sample(bench: Bench, held: MinedQuestions) -> MinedQuestions:
    """Returns the first held-out questions of each source. Weak sources have none."""
    sources = _source_numbers(bench, held)
    kept = torch.zeros_like(sources, dtype=torch.bool)
    for place, name in enumerate(bench.asked[TRAINING].names):
        if str(name) not in (*_WEAK_SOURCES, CLOZE):
            of_source = sources == place
            kept |= of_source & (of_source.cumsum(0) <= _MAX_HELD_OUT)
    return held.take(kept)


def _questions_of(key: str) -> str:
    return TRAINING if key == "held-out" else key.split()[0]
