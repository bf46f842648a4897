"""Smaller networks, taught by the trained ones, and bundles of every combination.

A student starts as some of its teacher's layers with all of its embeddings and heads. Readers learn
from the teacher and from the answers (`distilling_task`), question encoders from the teacher's
vectors (`question_task`), so that the index stays what it is.
"""

import copy
import random
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from models.assemble import Description, Sources, amend, assemble
from models.data.directory import DEVELOPMENT, DataDirectory
from models.data.holding_out import split
from models.data.rows import DataError
from models.mining.mine import load, unseen
from models.network.architecture import Encoder, Reader, freeze_embeddings, load_body, shorten
from models.steps import export_both, train, trained_encoder, trained_reader, words
from models.training import checkpoint
from models.training.distilling_task import DistillingPlan, DistillingTask
from models.training.examples import Encoded
from models.training.loop import Schedule
from models.training.question_task import QuestionPlan, QuestionTask
from models.training.reading_task import ReadingPlan, ReadingTask
from models.workspace import Workspace
from winnow.bundle import read_manifest
from winnow.inference.runtime import FLOAT, INT8

READERS = (4, 3, 2, 1)
"""Layers of the reader's students."""
ENCODERS = (3, 2)
"""Layers of the question encoder's students."""
WHOLE = 6
"""Layers of MiniLM."""


@dataclass(frozen=True, slots=True)
class Rung:
    """What a bundle of the ladder holds; no number of layers means the whole network."""

    reader: int | None = None
    encoder: int | None = None
    read_in: str = INT8
    """Precision of the reader."""
    ask_in: str = INT8
    """Precision of the question encoder."""

    @property
    def name(self) -> str:
        """Layers and precision of both."""
        return (
            f"reader-{self.reader or WHOLE}-{self.read_in}-"
            f"encoder-{self.encoder or WHOLE}-{self.ask_in}"
        )


def rungs(reader: int | None, encoders: Sequence[int]) -> list[Rung]:
    """Every bundle with this reader but for the one that the whole encoder is in, in int8: that
    one has the score fitted.
    """
    small = [Rung(reader, layers) for layers in encoders]
    exact = [
        Rung(reader, read_in=FLOAT),
        Rung(reader, ask_in=FLOAT),
        Rung(reader, None, FLOAT, FLOAT),
    ]
    return [*small, *exact]


def train_small_reader(
    weights: Path,
    work: Workspace,
    plan: tuple[ReadingPlan, DistillingPlan],
    schedule: Schedule,
    every: int,
) -> None:
    """Trains a student of the reader, from its checkpoint if there is one."""
    reading, distilling = plan
    teacher = trained_reader(weights, work)
    student = copy.deepcopy(teacher)
    shorten(student.body, distilling.layers)
    freeze_embeddings(student.body)
    passages, questions = load(work.mined)
    learnt, _ = split(questions, passages)
    encoded = Encoded(words(weights), passages, learnt)
    task = DistillingTask(
        ReadingTask(student, encoded, reading, schedule.seed), teacher, distilling
    )
    train(task, schedule, work.run("reader", distilling.layers), every)


def train_small_encoder(
    weights: Path,
    work: Workspace,
    data: DataDirectory,
    plan: QuestionPlan,
    schedule: Schedule,
    every: int,
) -> None:
    """Trains a student of the encoder on questions and titles, from its checkpoint if there is
    one.
    """
    teacher = trained_encoder(weights, work)
    student = copy.deepcopy(teacher)
    shorten(student.body, plan.layers)
    freeze_embeddings(student.body)
    task = QuestionTask(student, teacher, words(weights), _texts(data), plan, schedule.seed)
    train(task, schedule, work.run("encoder", plan.layers), every)


def export_small_reader(weights: Path, work: Workspace, layers: int) -> None:
    """Exports a trained student in float32 and int8."""
    reader = Reader(load_body(weights))
    shorten(reader.body, layers)
    reader.load_state_dict(_learnt(work, "reader", layers))
    export_both(reader.eval(), weights, work, "reader", layers)


def export_small_encoder(weights: Path, work: Workspace, layers: int) -> None:
    """Exports a trained student in float32 and int8."""
    encoder = Encoder(load_body(weights))
    shorten(encoder.body, layers)
    encoder.load_state_dict(_learnt(work, "encoder", layers))
    export_both(encoder.eval(), weights, work, "encoder", layers)


def make_rung(weights: Path, work: Workspace, target: Path, rung: Rung) -> None:
    """Puts a bundle together; passages are encoded as by the whole encoder in int8."""
    encoder = work.graph("encoder", "int8")
    questions = work.graph("encoder", rung.ask_in, rung.encoder)
    about = Description(
        f"reader {rung.reader or WHOLE}, encoder {rung.encoder or WHOLE}",
        "1.0.0",
        rung.read_in,
        dimension=384,
        max_answer_tokens=10,
        question_precision=rung.ask_in,
        provenance={
            "weights": "sentence-transformers/all-MiniLM-L6-v2",
            "command": "winnow models ladder",
        },
    )
    sources = Sources(
        encoder,
        work.graph("reader", rung.read_in, rung.reader),
        weights / "tokenizer.json",
        None if questions == encoder else questions,
    )
    assemble(target, sources, about)


def share_score(source: Path, target: Path) -> None:
    """Gives a bundle the calibrated weights of another with the same reader."""
    manifest = read_manifest(source)
    amend(
        target,
        score=manifest.score.model_dump(),
        retrieval=manifest.retrieval.model_dump(),
        stopping=[entry.model_dump() for entry in manifest.stopping],
    )


def _texts(data: DataDirectory) -> list[str]:
    """Training questions and titles, each once, in an order of chance."""
    held_out = [question for name in DEVELOPMENT for question in data.development(name)]
    asked = [question.text for question in unseen([*data.gold(), *data.pairs()], held_out)]
    texts = sorted({*asked, *(passage.title for passage in data.wikipedia())} - {""})
    random.Random(0).shuffle(texts)
    return texts


def _learnt(work: Workspace, network: str, layers: int) -> dict[str, object]:
    state = checkpoint.finished(work.run(network, layers))
    if state is None:
        raise DataError(
            f"{work.run(network, layers)} is missing or not finished: "
            f"run `winnow models train-{network} --layers {layers}` first"
        )
    network_state: dict[str, object] = state["network"]
    return network_state
