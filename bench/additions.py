"""What each addition to a small reader's training brings, at the same number of steps.

    python bench/additions.py --work var/models --out var/additions [--layers 3] [--steps 600]

Every variant adds one thing to the one before it: gold spans and right answers, questions by
distant supervision, the teacher's answers, the teacher's last states. All start from the
teacher's layers, so that none learns without distant supervision altogether. Each is measured in
float32 at gold paragraphs, and on held-out training questions through retrieval, the score fitted
to these.
Needs what `winnow models build` left in --work. Interrupted, the same command goes on.
"""

import argparse
import copy
import json
import tempfile
from dataclasses import dataclass
from pathlib import Path

from models.data.directory import DEVELOPMENT, DataDirectory
from models.data.holding_out import split
from models.measuring.calibrate import best_of, candidates, exact_match_by_passages, fit, sample
from models.measuring.gold import read_gold
from models.measuring.reading import OfflineReader
from models.measuring.retrieving import retrieve
from models.mining.embedding import Embedder
from models.mining.mine import load
from models.network.architecture import Reader, freeze_embeddings, shorten
from models.network.export import export
from models.network.weights import open_tokenizer
from models.steps.calibration import CALIBRATION, DEFAULT_PASSAGES
from models.steps.reader import READ, trained_reader
from models.steps.training import train
from models.training.distilling_task import DistillingPlan, DistillingTask
from models.training.examples import Encoded
from models.training.loop import Schedule
from models.training.reading_task import ReadingPlan, ReadingTask
from models.workspace import Workspace
from winnow.bundle import load_bundle

QUESTIONS = 16
DISTANT = {"dpr-nq.dev", "dpr-trivia.dev", "webquestions-train"}
"""Sources whose passages were found by distant supervision."""


@dataclass(frozen=True, slots=True)
class Variant:
    """One way to train."""

    name: str
    sources: frozenset[str]
    answers: float
    """Weight of the teacher's spans and relevance."""
    states: float
    """Weight of the teacher's last states."""


def variants(plan: DistillingPlan) -> list[Variant]:
    """Each adds one thing."""
    every = frozenset(READ)
    return [
        Variant("gold spans", every - DISTANT, 0, 0),
        Variant("+ distant supervision", every, 0, 0),
        Variant("+ the teacher's answers", every, plan.answers, 0),
        Variant("+ the teacher's last states", every, plan.answers, plan.states),
    ]


class Additions:
    """What all variants have in common: the same data, teacher and questions to be measured by."""

    def __init__(self, options: argparse.Namespace) -> None:
        self._options, self._work = options, Workspace(options.work)
        self._data, self._bundle = DataDirectory(options.data), load_bundle(options.bundle)
        self._passages, questions = load(self._work.mined)
        self._learnt, held = split(questions, self._passages)
        self._asked = sample(held, CALIBRATION, options.seed)
        tokenizer, bundle = open_tokenizer(options.weights), self._bundle
        self._encoded = Encoded(tokenizer, self._passages, self._learnt)
        embedder = Embedder(bundle.passage_encoder, bundle.tokenizer, cache=self._work.vectors)
        self._near = retrieve(self._asked, self._passages, embedder, tokenizer)

    def train(self, variant: Variant, run: Path) -> Reader:
        """A student trained in this way, for the same number of steps as any other."""
        options = self._options
        teacher = trained_reader(options.weights, self._work)
        student = copy.deepcopy(teacher)
        shorten(student.body, options.layers)
        freeze_embeddings(student.body)
        kept = {source: times for source, times in READ.items() if source in variant.sources}
        once = sum(kept.get(question.source, 0) for question in self._learnt)
        scale = options.steps * QUESTIONS / once
        plan = ReadingPlan({source: times * scale for source, times in kept.items()}, QUESTIONS, 1)
        reading = ReadingTask(student, self._encoded, plan, options.seed)
        distilling = DistillingPlan(options.layers, answers=variant.answers, states=variant.states)
        told = variant.answers or variant.states
        task = DistillingTask(reading, teacher, distilling) if told else reading
        train(task, Schedule(quantised=0.0, seed=options.seed), run, every=50)
        return student.eval()

    def measure(self, student: Reader) -> dict[str, float]:
        """Exact match at gold paragraphs, and of held-out training questions."""
        bundle, found = self._bundle, {}
        with tempfile.TemporaryDirectory() as directory:
            graph = Path(directory) / "reader.onnx"
            export(student, graph)
            reader = OfflineReader(graph, bundle.tokenizer, bundle.manifest)
            for which in DEVELOPMENT:
                asked = self._data.development(which)
                step = max(len(asked) // self._options.limit, 1)
                found[which] = read_gold(reader, asked[::step][: self._options.limit], which).em
            weight = bundle.manifest.retrieval.words
            retrieved = best_of(self._near, self._passages, weight)
            read = candidates(self._asked, retrieved, reader)
        (held_out,) = exact_match_by_passages(read, fit(read), [DEFAULT_PASSAGES])
        return {**found, "held out": round(held_out, 1)}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--data", type=Path, default=Path("../shared/data"))
    parser.add_argument("--bundle", type=Path, default=Path("bundles/whole"))
    parser.add_argument("--weights", type=Path, default=Path("var/minilm"))
    parser.add_argument("--work", type=Path, default=Path("var/models"))
    parser.add_argument("--out", type=Path, required=True, help="directory of the runs")
    parser.add_argument("--layers", type=int, default=3)
    parser.add_argument("--steps", type=int, default=600)
    parser.add_argument("--limit", type=int, default=1500, help="gold questions of each set")
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)
    additions = Additions(options)
    how = f"{options.layers}-layers-{options.steps}-steps-{options.limit}-asked-seed-{options.seed}"
    for number, variant in enumerate(variants(DistillingPlan(options.layers))):
        run = options.out / f"variant-{number}-{how}"
        measured = run.with_suffix(".json")
        if not measured.is_file():
            student = additions.train(variant, run.with_suffix(".pt"))
            row = {"variant": variant.name, **additions.measure(student)}
            beside = run.with_suffix(".part")
            beside.write_text(json.dumps(row), encoding="utf-8")
            beside.rename(measured)
        print(measured.read_text(encoding="utf-8"), flush=True)


if __name__ == "__main__":
    main()
