"""How often the encoder finds the right passage, by how much of its training is kept.

    python bench/retrieval.py --work var/models --weights var/minilm --share 0 --share 0.7 --share 1

Over the questions that training held out: 2 500 passages and their own, int8, exact search. A share
of 0 is the pretrained encoder, 1 the trained one as it is (see `TRAINED_SHARE` in
`models/steps/encoder.py`).
"""

import argparse
import json
import random
import tempfile
from pathlib import Path

import numpy as np

from models.data.holding_out import split
from models.data.rows import Passage
from models.mining.embedding import Embedder
from models.mining.mine import TrainingQuestion, load
from models.network.architecture import Encoder, load_body
from models.network.averaging import mixed
from models.network.embedding_table import shrink_embeddings
from models.network.export import export
from models.network.quantise import quantise
from models.training import checkpoint
from models.workspace import Workspace

STEPS = (1, 2, 5, 10, 20)
DISTRACTORS = 2_500


def recall(
    embedder: Embedder, questions: list[TrainingQuestion], passages: dict[int, Passage]
) -> dict[str, dict[str, float]]:
    """Percent of the questions of each source whose passage is among the nearest so many."""
    column = {number: place for place, number in enumerate(passages)}
    vectors = embedder.passages(list(passages.values()))
    asked = embedder.questions([question.question for question in questions])
    scores = asked @ vectors.T
    own = scores[np.arange(len(questions)), [column[q.positive] for q in questions]]
    rank = (scores > own[:, None]).sum(1)
    found: dict[str, dict[str, float]] = {}
    for source in sorted({question.source for question in questions}):
        ranks = rank[[question.source == source for question in questions]]
        found[source] = {"questions": len(ranks)}
        found[source] |= {f"@{k}": round(100 * float((ranks < k).mean()), 1) for k in STEPS}
    return found


def graph(weights: Path, work: Workspace, share: float, target: Path) -> Path:
    """The encoder with `share` of its training, int8."""
    state = checkpoint.finished(work.run("encoder"))
    encoder = Encoder(load_body(weights))
    if state is not None:
        encoder.load_state_dict(mixed(encoder.state_dict(), state["network"], share))
    shrink_embeddings(encoder.body)
    plain = target.with_suffix(".float.onnx")
    export(encoder, plain)
    quantise(plain, target)
    return target


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--work", type=Path, default=Path("var/models"))
    parser.add_argument("--weights", type=Path, default=Path("var/minilm"))
    parser.add_argument("--share", type=float, action="append", required=True)
    options = parser.parse_args()
    work = Workspace(options.work)
    everything, questions = load(work.mined)
    _, held = split(questions, everything)
    held = [question for question in held if not question.source.startswith("squadshifts")]
    drawn = random.Random(1).sample(range(len(everything)), min(DISTRACTORS, len(everything)))
    numbers = sorted({question.positive for question in held} | set(drawn))
    passages = {number: everything[number] for number in numbers}
    with tempfile.TemporaryDirectory() as directory:
        for share in options.share:
            made = graph(options.weights, work, share, Path(directory) / f"{share}.onnx")
            embedder = Embedder(made, options.weights / "tokenizer.json")
            print(json.dumps({"share": share, **recall(embedder, held, passages)}), flush=True)


if __name__ == "__main__":
    main()
