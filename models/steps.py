"""The steps from data and pretrained weights to a bundle, each leaving its result on disk."""

import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path

import numpy as np
import torch
from tokenizers import Tokenizer
from torch import Tensor

from models.assemble import Description, Score, Sources, amend, assemble
from models.data.directory import DEVELOPMENT, DataDirectory
from models.data.holding_out import split
from models.data.rows import DataError
from models.measuring import stopping
from models.measuring.calibrate import Candidates, candidates, exact_match_by_passages, fit, sample
from models.measuring.gold import read_gold
from models.measuring.parity import largest_difference, mean_cosine
from models.measuring.reading import OfflineReader
from models.measuring.retrieving import fit_words, recall_by_passages, retrieve
from models.measuring.stopping import Stopped
from models.measuring.verify import Verdict, judge
from models.mining.embedding import Embedder
from models.mining.lexical import LexicalIndex
from models.mining.mine import load, mine, save, supervise, unseen
from models.network.architecture import Encoder, Reader, freeze_embeddings, load_body
from models.network.embedding_table import shrink_embeddings
from models.network.export import ENCODER_OUTPUTS, READER_OUTPUTS, export
from models.network.outliers import FLOAT_PART, Inputs, split_outliers
from models.network.quantise import quantise
from models.training import checkpoint
from models.training.encoding_task import EncodingPlan, EncodingTask
from models.training.examples import Encoded
from models.training.loop import Schedule, Task, Trainer
from models.training.progress import TrainingProgress
from models.training.reading_task import ReadingPlan, ReadingTask
from models.workspace import Workspace
from winnow.bundle import load_bundle, read_manifest
from winnow.checksum import sha256
from winnow.inference.runtime import Runtime, runs_bfloat16

STEPS = (1, 2, 5, 10, 20)
DEFAULT_PASSAGES = 10
"""What the rules for stopping are compared with."""
READ = {
    "squad": 2.0,
    "squad-tokenised": 1.6,
    "squadshifts-amazon_reviews": 0.5,
    "squadshifts-reddit": 0.5,
    "dpr-nq.dev": 2.0,
    "dpr-trivia.dev": 0.8,
    "webquestions-train": 1.6,
}
"""How often the reader sees the questions of each source."""
CALIBRATION = {
    "squad": 500,
    "squad-tokenised": 500,
    "dpr-nq.dev": 500,
    "dpr-trivia.dev": 250,
    "webquestions-train": 250,
}
"""Most held-out questions of each source; reviews are not what an index of articles holds."""
TRAINED_SHARE = 0.7
"""Of the encoder's weights: the pretrained ones know more of the world than the training set has
(Wortsman et al. 2022, "Robust fine-tuning of zero-shot models").
"""
MEMBERS = 3
"""Runs of the reader, each with a seed of its own, whose weights are averaged: better than each."""
_HEADS = ("/span/MatMul", "/relevance/Gemm")
_PARITY_TEXTS = 40
_PROBES = 100
"""Sequences that outlier channels are looked for in; they are the same ones in every text."""

GoldBySet = dict[str, dict[str, dict[str, float]]]
"""`em` and `f1` by question set and precision."""


def export_encoder(weights: Path, work: Workspace) -> None:
    """Exports the encoder, trained if it was, in float32 and int8."""
    export_both(trained_encoder(weights, work), weights, work, "encoder")


def trained_encoder(weights: Path, work: Workspace) -> Encoder:
    """The encoder as its finished run left it, mixed with what it was before any training."""
    encoder = Encoder(load_body(weights))
    state = checkpoint.finished(work.run("encoder"))
    if state is not None:
        encoder.load_state_dict(mixed(encoder.state_dict(), state["network"], TRAINED_SHARE))
    return encoder.eval()


def mine_questions(data: DataDirectory, weights: Path, work: Workspace, extra: int) -> int:
    """Makes training questions with hard negatives; returns how many. Takes about ten minutes."""
    held_out = [question for name in DEVELOPMENT for question in data.development(name)]
    wikipedia = data.wikipedia()
    embedder = Embedder(
        work.graph("encoder", "int8"), weights / "tokenizer.json", cache=work.vectors
    )
    lexical = LexicalIndex(wikipedia)
    supervised = supervise(unseen(data.pairs(), held_out), lexical, embedder)
    random.Random(0).shuffle(wikipedia)
    gold = unseen(data.gold(), held_out)
    passages, questions = mine([*gold, *supervised], wikipedia[:extra], embedder)
    save(work.mined, passages, questions)
    work.mined_by.write_text(sha256(work.graph("encoder", "int8")))
    return len(questions)


def is_mined(work: Workspace) -> bool:
    """Whether the training questions were made by the encoder as it is now."""
    graph, by = work.graph("encoder", "int8"), work.mined_by
    return graph.is_file() and by.is_file() and by.read_text() == sha256(graph)


def train_encoder(
    weights: Path, work: Workspace, plan: EncodingPlan, schedule: Schedule, every: int
) -> None:
    """Trains the encoder, from its checkpoint if there is one."""
    passages, questions = load(work.mined)
    encoder = Encoder(load_body(weights))
    freeze_embeddings(encoder.body)
    learnt, _ = split(questions, passages)
    task = EncodingTask(encoder, words(weights), passages, learnt, plan, schedule.seed)
    train(task, schedule, work.run("encoder"), every)


def train_reader(
    weights: Path,
    work: Workspace,
    plan: ReadingPlan,
    schedule: Schedule,
    every: int,
    run: Path | None = None,
) -> None:
    """Trains a reader, from its checkpoint `run` if there is one."""
    torch.manual_seed(schedule.seed)
    passages, questions = load(work.mined)
    learnt, _ = split(questions, passages)
    reader = Reader(load_body(weights))
    freeze_embeddings(reader.body)
    task = ReadingTask(reader, Encoded(words(weights), passages, learnt), plan, schedule.seed)
    train(task, schedule, run or work.run("reader"), every)


def export_reader(weights: Path, work: Workspace) -> None:
    """Exports the trained reader in float32 and int8; its heads stay in float."""
    export_both(trained_reader(weights, work), weights, work, "reader")


def export_both(
    network: Encoder | Reader,
    weights: Path,
    work: Workspace,
    name: str,
    layers: int | None = None,
) -> None:
    """Exports `network` in float32, then in int8; changes it.

    A reader's outliers stay in float: they cost 0.3 MB, and int8 lost 1.5 exact match on dev-squad
    without that. An encoder's do not: its vectors have a cosine of 0.995 with those in float32.
    """
    export(network, work.graph(name, "fp32", layers))
    shrink_embeddings(network.body)
    if isinstance(network, Reader):
        split_outliers(network.body, _probes(weights, work))
    _quantised(network, work.graph(name, "int8", layers))


def trained_reader(weights: Path, work: Workspace) -> Reader:
    """The reader whose weights are the mean of its runs' (Wortsman et al. 2022, "Model soups").

    Raises:
        DataError: there is no run, or one is not finished.

    """
    runs = [path for path in work.reader_runs(MEMBERS) if path.is_file()]
    states = [checkpoint.finished(path) for path in runs]
    unfinished = [str(path) for path, state in zip(runs, states, strict=True) if state is None]
    if unfinished or not runs:
        raise DataError(
            f"{', '.join(unfinished) or work.run('reader')}: there is no finished reader: "
            "run `winnow models train-reader` first"
        )
    reader = Reader(load_body(weights))
    reader.load_state_dict(mean([state["network"] for state in states if state is not None]))
    return reader.eval()


def make_bundle(weights: Path, work: Workspace, target: Path, about: Description) -> None:
    """Puts the int8 graphs together, with a first guess of the score."""
    sources = Sources(
        work.graph("encoder", "int8"), work.graph("reader", "int8"), weights / "tokenizer.json"
    )
    assemble(target, sources, about)


def calibrate(work: Workspace, target: Path, seed: int, say: Callable[[str], None]) -> Score:
    """Fits the weights of retrieval, score and stopping on held-out training questions, and writes
    them into the bundle.
    """
    bundle = load_bundle(target)
    passages, questions = load(work.mined)
    embedder = Embedder(bundle.passage_encoder, bundle.tokenizer, cache=work.vectors)
    reader = OfflineReader(bundle.reader, bundle.tokenizer, bundle.manifest)
    _, held = split(questions, passages)
    chosen = sample(held, CALIBRATION, seed)
    near = retrieve(chosen, passages, embedder, Tokenizer.from_file(str(bundle.tokenizer)))
    right = near.places == np.array([question.positive for question in chosen])[:, None]
    word_weight = round(fit_words(near, right), 5)
    for weight in (0.0, word_weight):
        curve = recall_by_passages(near, right, weight, STEPS)
        say(f"words worth {weight:g}: recall by passages {STEPS}: {[round(v, 1) for v in curve]}")
    found = candidates(chosen, passages, near, word_weight, reader)
    np.savez_compressed(
        work.candidates,
        features=found.features,
        hybrid_distance=found.hybrid_distance,
        right=found.right,
    )
    score = fit(found)
    for name, weights in (("relevance alone", Score(1, 0, 0)), ("fitted", score)):
        curve = exact_match_by_passages(found, weights, STEPS)
        say(f"{name}: exact match by passages {STEPS}: {[round(v, 1) for v in curve]}")
    amend(
        target,
        retrieval={"words": word_weight},
        score={
            "relevance": round(score.relevance, 5),
            "span": round(score.span, 5),
            "distance": round(score.distance, 5),
            "no_answer_below": round(score.no_answer_below, 5),
        },
        stopping=[
            {
                "max_loss": each.max_loss,
                **{name: round(value, 5) for name, value in asdict(each.rule).items()},
            }
            for each in _stopping(found, score, say)
        ],
    )
    return score


def _stopping(found: Candidates, score: Score, say: Callable[[str], None]) -> list[Stopped]:
    rules = stopping.calibrate(found, score, DEFAULT_PASSAGES)
    for each in rules:
        say(
            f"reading may stop early: {each.read:.1f} of {DEFAULT_PASSAGES} passages, "
            f"{each.lost:.2f} exact match lost, at most {each.expected:.2f} expected "
            f"(promised {each.max_loss:g})"
        )
    return rules


def gold_figures(
    work: Workspace, target: Path, data: DataDirectory, limit: int | None
) -> GoldBySet:
    """Exact match and F1 at gold paragraphs: by set, in float32 and int8, and in bfloat16 where
    this machine can run that.
    """
    manifest = read_manifest(target)
    tokenizer = target / manifest.tokenizer
    whole = work.graph("reader", "fp32")
    readers = {
        "fp32": OfflineReader(whole, tokenizer, manifest),
        "int8": OfflineReader(target / manifest.reader.file, tokenizer, manifest),
    }
    if runs_bfloat16():
        readers["bf16"] = OfflineReader(whole, tokenizer, manifest, Runtime.OPENVINO)
    figures: GoldBySet = {}
    for name in DEVELOPMENT:
        questions = data.development(name)[:limit]
        figures[name] = {}
        for precision, reader in readers.items():
            gold = read_gold(reader, questions, f"{name} {precision}")
            figures[name][precision] = {"em": gold.em, "f1": gold.f1}
    return figures


def verify(
    weights: Path,
    work: Workspace,
    target: Path,
    data: DataDirectory,
    max_loss: float,
    limit: int | None,
) -> tuple[Verdict, GoldBySet]:
    """Compares PyTorch, float32 ONNX and int8; says what is not good enough, and the accuracy at
    gold paragraphs that it measured.
    """
    figures = gold_figures(work, target, data, limit)
    texts = _texts(data)
    tokenizer = weights / "tokenizer.json"
    encoder_fp32 = work.graph("encoder", "fp32")
    verdict = judge(
        largest_difference(
            trained_encoder(weights, work), encoder_fp32, ENCODER_OUTPUTS, tokenizer, texts
        ),
        largest_difference(
            trained_reader(weights, work),
            work.graph("reader", "fp32"),
            READER_OUTPUTS,
            tokenizer,
            texts,
        ),
        mean_cosine(encoder_fp32, load_bundle(target).passage_encoder, tokenizer, texts),
        {
            name: {precision: found["em"] for precision, found in sets.items()}
            for name, sets in figures.items()
        },
        max_loss,
    )
    return verdict, figures


def _texts(data: DataDirectory) -> Sequence[str]:
    questions = data.development(DEVELOPMENT[0])
    stride = max(len(questions) // _PARITY_TEXTS, 1)
    return [f"{q.text} {q.gold.text}" for q in questions[::stride] if q.gold is not None]


def mixed(
    before: Mapping[str, Tensor], after: Mapping[str, Tensor], share: float
) -> dict[str, Tensor]:
    """Weights between those before training (`share` 0) and after it (1)."""
    return {
        name: torch.lerp(old, after[name], share) if old.is_floating_point() else old
        for name, old in before.items()
    }


def _probes(weights: Path, work: Workspace) -> Iterator[Inputs]:
    """Questions with passages, one at a time, as the reader sees them."""
    passages, questions = load(work.mined)
    chosen = random.Random(0).sample(questions, min(_PROBES, len(questions)))
    encoded = Encoded(words(weights), passages, chosen)
    generator = random.Random(0)
    for number in range(len(chosen)):
        example = encoded.positive(number, generator)
        if example is not None:
            ids, types = torch.tensor([example.ids]), torch.tensor([example.types])
            yield ids, torch.ones_like(ids), types


def mean(networks: Sequence[Mapping[str, Tensor]]) -> dict[str, Tensor]:
    """The mean of the weights of networks with one shape."""
    return {
        name: torch.stack([network[name] for network in networks]).mean(0)
        if first.is_floating_point()
        else first
        for name, first in networks[0].items()
    }


def train(task: Task, schedule: Schedule, path: Path, every: int) -> None:
    """Trains `task` to its end, from the checkpoint at `path` if there is one."""
    trainer = Trainer(task, schedule, path)
    with TrainingProgress(every) as progress:
        trainer.run(every, progress.show)


def words(weights: Path) -> Tokenizer:
    """The tokenizer of the pretrained weights, without truncation and padding."""
    tokenizer = Tokenizer.from_file(str(weights / "tokenizer.json"))
    tokenizer.no_truncation()
    tokenizer.no_padding()
    return tokenizer


def _quantised(network: Encoder | Reader, target: Path) -> None:
    """Exports `network`, its table already int8, and quantises its matrices."""
    plain = target.with_suffix(".float.onnx")
    export(network, plain)
    quantise(plain, target, (*_HEADS, FLOAT_PART) if isinstance(network, Reader) else ())
    plain.unlink()
