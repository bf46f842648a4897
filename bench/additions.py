"""What each addition to a small reader's training brings, at the same number of steps.

    python bench/additions.py --work var/models --out var/additions [--layers 3] [--steps 600]

Every variant adds one thing to the one before it: gold spans and right answers alone, questions by
distant supervision, the teacher's answers, the teacher's last states. Each is measured in float32
at gold paragraphs, and on held-out training questions through retrieval, the score fitted for it.
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
from models.measuring.calibrate import candidates, exact_match_by_passages, fit, sample
from models.measuring.gold import read_gold
from models.measuring.reading import OfflineReader
from models.measuring.retrieving import retrieve
from models.mining.embedding import Embedder
from models.mining.mine import load
from models.network.architecture import freeze_embeddings, shorten
from models.network.export import export
from models.steps import CALIBRATION, DEFAULT_PASSAGES, READ, train, trained_reader, words
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


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--data", type=Path, default=Path("../shared/data"))
    parser.add_argument("--bundle", type=Path, default=Path("bundles/default"))
    parser.add_argument("--weights", type=Path, default=Path("var/minilm"))
    parser.add_argument("--work", type=Path, default=Path("var/models"))
    parser.add_argument("--out", type=Path, required=True, help="directory of the runs")
    parser.add_argument("--layers", type=int, default=3)
    parser.add_argument("--steps", type=int, default=600)
    parser.add_argument("--limit", type=int, default=1500, help="gold questions of each set")
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)

    work, bundle = Workspace(options.work), load_bundle(options.bundle)
    data = DataDirectory(options.data)
    passages, questions = load(work.mined)
    learnt, held = split(questions, passages)
    asked = sample(held, CALIBRATION, options.seed)
    tokenizer = words(options.weights)
    encoded = Encoded(tokenizer, passages, learnt)
    embedder = Embedder(bundle.passage_encoder, bundle.tokenizer, cache=work.vectors)
    near = retrieve(asked, passages, embedder, tokenizer)
    schedule = Schedule(quantised=0.0, seed=options.seed)

    for number, variant in enumerate(variants(DistillingPlan(options.layers))):
        measured = options.out / f"variant-{number}.json"
        if measured.is_file():
            print(measured.read_text(encoding="utf-8"), flush=True)
            continue
        teacher = trained_reader(options.weights, work)
        student = copy.deepcopy(teacher)
        shorten(student.body, options.layers)
        freeze_embeddings(student.body)
        kept = {source: times for source, times in READ.items() if source in variant.sources}
        once = sum(kept.get(question.source, 0) for question in learnt)
        scale = options.steps * QUESTIONS / once
        plan = ReadingPlan({source: times * scale for source, times in kept.items()}, QUESTIONS, 1)
        reading = ReadingTask(student, encoded, plan, options.seed)
        distilling = DistillingPlan(options.layers, variant.answers, variant.states)
        told = variant.answers or variant.states
        task = DistillingTask(reading, teacher, distilling) if told else reading
        train(task, schedule, options.out / f"variant-{number}.pt", every=50)
        with tempfile.TemporaryDirectory() as directory:
            graph = Path(directory) / "reader.onnx"
            export(student.eval(), graph)
            reader = OfflineReader(graph, bundle.tokenizer, bundle.manifest)
            gold = {}
            for which in DEVELOPMENT:
                asked_of = data.development(which)
                step = max(len(asked_of) // options.limit, 1)
                chosen = asked_of[::step][: options.limit]
                gold[which] = read_gold(reader, chosen, which).em
            found = candidates(asked, passages, near, bundle.manifest.retrieval.words, reader)
        (retrieved,) = exact_match_by_passages(found, fit(found), [DEFAULT_PASSAGES])
        row = {"variant": variant.name, "steps": task.steps, "gold": gold}
        said = json.dumps({**row, "held_out": round(retrieved, 1)})
        measured.write_text(said, encoding="utf-8")
        print(said, flush=True)


if __name__ == "__main__":
    main()
