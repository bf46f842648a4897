"""Tests of `winnow models export`: from Hugging Face checkpoints to a bundle that answers."""

import json
from itertools import pairwise
from pathlib import Path

import numpy as np
import one_shard
import pytest
import torch
from checkpoints import make, sentence_layout, whole
from conftest import PASSAGES, Recorder
from numpy.typing import NDArray
from typer.testing import CliRunner, Result

from models.cli import app
from winnow.bundle import Bundle, load_bundle
from winnow.content_node.indexing.builder import build_index
from winnow.content_node.indexing.plan import BuildPlan
from winnow.content_node.indexing.verify import verify_index
from winnow.content_node.shard import open_shard, view_of
from winnow.content_node.shard.retrieving import retrieve
from winnow.domain.passage import Hit, Passage
from winnow.domain.question import EncodedQuestion, RetrievalDepth
from winnow.domain.reading import Reading
from winnow.domain.shard import shard_name
from winnow.inference.encoder import open_passage_encoder, open_question_encoder
from winnow.inference.options import InferenceOptions, Runtime
from winnow.reading import open_reader
from winnow.reading.stored_passage import StoredPassage
from winnow.text.tokenizer import Tokenizer

EXACT = InferenceOptions(runtime=Runtime.ONNXRUNTIME)
"""In float32, also where OpenVINO would run a float model in bfloat16."""
QUESTION = "Who won the Tour de France in 2015?"
TITLE, TEXT = "Tour de France", "Chris Froome won the 2015 Tour de France, ahead of Nairo Quintana."


def invoke(*arguments: object) -> Result:
    return CliRunner().invoke(app, ["export", *map(str, arguments)])


def exported(target: Path, *arguments: object) -> Bundle:
    done = invoke(*arguments, "--bundle", target)
    assert done.exit_code == 0, (done.output, done.exception)
    return load_bundle(target)


def read(bundle: Bundle) -> Reading:
    tokenizer = Tokenizer(bundle.tokenizer)
    stored = StoredPassage(
        Passage("p", TITLE, TEXT), tokenizer.tokenise(TITLE).ids, tokenizer.tokenise(TEXT)
    )
    question = tokenizer.tokenise(QUESTION).ids
    reader = open_reader(bundle, tokenizer.special, EXACT)
    return reader.read(
        question, stored, Hit(row=0, passage_id="", distance=0.5, hybrid_distance=0.5), 10
    )


def best(start: NDArray[np.float32], end: NDArray[np.float32]) -> tuple[float, int, int]:
    """By trying every span of at most ten tokens."""
    return max(
        (float(start[a] + end[b]), a, b)
        for a in range(len(start))
        for b in range(a, min(a + 10, len(end)))
    )


@pytest.fixture(scope="module")
def dpr(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    root = tmp_path_factory.mktemp("dpr")
    return {part: make(f"dpr-{part}", root / part) for part in ("question", "passage", "reader")}


@pytest.fixture(scope="module")
def dpr_bundle(dpr: dict[str, Path], tmp_path_factory: pytest.TempPathFactory) -> Bundle:
    return exported(
        tmp_path_factory.mktemp("bundles") / "dpr-nq",
        *("--question-encoder", dpr["question"], "--passage-encoder", dpr["passage"]),
        *("--reader", dpr["reader"], "--licence", "CC-BY-NC-4.0"),
    )


def test_dpr_reads_a_passage_as_its_own_class_does(
    dpr: dict[str, Path], dpr_bundle: Bundle
) -> None:
    tokenizer = Tokenizer(dpr_bundle.tokenizer)
    cls, sep = tokenizer.special.cls, tokenizer.special.sep
    question, title = tokenizer.tokenise(QUESTION).ids, tokenizer.tokenise(TITLE).ids
    text = tokenizer.tokenise(TEXT)
    ids = torch.tensor([[cls, *question, sep, *title, sep, *text.ids]])
    with torch.no_grad():
        output = whole("dpr-reader", dpr["reader"])(ids, torch.ones_like(ids))
    place = ids.shape[1] - len(text)
    start, end = (x[0, place:].numpy() for x in (output.start_logits, output.end_logits))
    span, first, last = best(start, end)
    reading = read(dpr_bundle)
    assert reading.relevance == pytest.approx(float(output.relevance_logits[0]), abs=1e-4)
    assert reading.span_score == pytest.approx(span, abs=1e-4)
    assert reading.score == reading.relevance, "DPR ranks by relevance alone"
    # the answer may be grown to whole words
    assert reading.start <= text.offsets[first][0]
    assert reading.end >= text.offsets[last][1]
    assert reading.answer == TEXT[reading.start : reading.end]


def test_an_index_of_dpr_finds_passages_by_inner_product(
    dpr: dict[str, Path], dpr_bundle: Bundle, passages_file: Path, tmp_path: Path
) -> None:
    build_index(
        BuildPlan(source=passages_file, target=tmp_path / "index", shards=1, threads=1),
        dpr_bundle,
        Recorder(),
    )
    assert [report.faults for report in verify_index(tmp_path / "index", 12, 1.0)] == [()]
    tokenizer = Tokenizer(dpr_bundle.tokenizer)
    cls, sep = tokenizer.special.cls, tokenizer.special.sep
    asked, found = (whole(f"dpr-{part}", dpr[part]) for part in ("question", "passage"))
    question = tokenizer.tokenise(QUESTION).ids
    with torch.no_grad():
        wanted = asked(torch.tensor([[cls, *question, sep]])).pooler_output[0]
        products = {}
        for name, title, text in PASSAGES:
            head = [cls, *tokenizer.tokenise(title).ids[:32], sep]
            room = dpr_bundle.manifest.encoder.max_passage_tokens - len(head) - 1
            ids = torch.tensor([[*head, *tokenizer.tokenise(text).ids[:room], sep]])
            pooled = found(ids, token_type_ids=torch.zeros_like(ids)).pooler_output[0]
            products[name] = float(pooled @ wanted)
    vector = open_question_encoder(dpr_bundle, tokenizer.special).question(question)
    shard = open_shard(tmp_path / "index" / shard_name(0, 1), ef=100)
    encoded, depth = (
        EncodedQuestion(text="", token_ids=(), vector=vector, bundle_fingerprint=""),
        RetrievalDepth(passages=len(PASSAGES)),
    )
    hits = retrieve(view_of(shard), encoded, depth, 0.0).hits
    in_order = [products[hit.passage_id] for hit in hits]
    assert len(in_order) == len(PASSAGES)
    # where the processor multiplies in bfloat16, neighbours may change places
    assert all(later < earlier + 0.05 for earlier, later in pairwise(in_order))


async def test_dpr_answers_with_the_text_of_its_passages(
    dpr_bundle: Bundle, passages_file: Path, tmp_path: Path
) -> None:
    """Its weights are random, so which words they are means nothing."""
    build_index(
        BuildPlan(source=passages_file, target=tmp_path / "index", shards=1, threads=1),
        dpr_bundle,
        Recorder(),
    )
    readings = await one_shard.search(dpr_bundle, tmp_path / "index", QUESTION, 4)
    texts = {name: text for name, _, text in PASSAGES}
    assert len(readings) == 4
    for reading in readings:
        assert reading.answer == texts[reading.passage.id][reading.start : reading.end] != ""


def test_the_manifest_records_provenance(dpr_bundle: Bundle) -> None:
    manifest = dpr_bundle.manifest
    assert manifest.name == "dpr-nq"
    assert manifest.licences == {"weights": "CC-BY-NC-4.0"}
    assert manifest.encoder.dimension == 17
    assert manifest.encoder.question != manifest.encoder.passage
    assert manifest.reader.token_types == (0, 0)
    assert manifest.accuracy == {}
    reader = manifest.provenance["reader"]
    assert (reader["directory"], reader["architecture"]) == ("reader", "DPRReader")
    assert len(reader["weights"]["model.safetensors"]) == 64
    assert reader["fidelity"]["difference"] < 1e-3
    assert str(dpr_bundle.directory.parent) not in json.dumps(manifest.provenance)


def test_a_span_reader_ranks_by_the_lead_over_no_answer(tmp_path: Path) -> None:
    encoder = sentence_layout(tmp_path / "minilm", {"pooling_mode_mean_tokens": True})
    directory = make("bert-reader", tmp_path / "reader")
    bundle = exported(tmp_path / "b", "--question-encoder", encoder, "--reader", directory)
    assert bundle.manifest.encoder.question == bundle.manifest.encoder.passage == "encoder.onnx"
    assert bundle.manifest.encoder.max_passage_tokens == 200, "as sentence-transformers says"
    assert bundle.manifest.reader.token_types == (0, 1)
    tokenizer = Tokenizer(bundle.tokenizer)
    cls, sep = tokenizer.special.cls, tokenizer.special.sep
    asked, title, text = (tokenizer.tokenise(t) for t in (QUESTION, TITLE, TEXT))
    head = [cls, *asked.ids, sep]
    ids = torch.tensor([[*head, *title.ids, sep, *text.ids, sep]])
    types = (torch.arange(ids.shape[1]) >= len(head)).long().unsqueeze(0)
    with torch.no_grad():
        output = whole("bert-reader", directory)(ids, token_type_ids=types)
    start, end = output.start_logits[0].numpy(), output.end_logits[0].numpy()
    place = ids.shape[1] - len(text) - 1
    span, _, _ = best(start[place:-1], end[place:-1])
    reading = read(bundle)
    assert reading.span_score == pytest.approx(span, abs=1e-4)
    assert reading.score == pytest.approx(span - float(start[0] + end[0]), abs=1e-4)


def test_distilbert_alone_makes_a_bundle_in_int8(tmp_path: Path) -> None:
    bundle = exported(
        tmp_path / "b",
        *("--question-encoder", make("distilbert", tmp_path / "encoder")),
        *("--passage-encoder", make("distilbert", tmp_path / "passages")),
        *("--reader", make("distilbert-reader", tmp_path / "reader")),
        *("--precision", "int8", "--pooling", "cls", "--no-answer-below", "0.5"),
    )
    manifest = bundle.manifest
    assert (manifest.encoder.precision, manifest.reader.precision) == ("int8", "int8")
    assert manifest.score.no_answer_below == 0.5
    special = Tokenizer(bundle.tokenizer).special
    for encoder in (open_question_encoder(bundle, special), open_passage_encoder(bundle, special)):
        assert np.linalg.norm(encoder.question((1000, 1001))) == pytest.approx(1, abs=1e-5)
    reading = read(bundle)
    assert reading.answer == TEXT[reading.start : reading.end] != ""


def test_an_existing_directory_is_not_changed(dpr: dict[str, Path], tmp_path: Path) -> None:
    kept = tmp_path / "bundle" / "precious"
    kept.parent.mkdir()
    kept.write_text("mine")
    done = invoke(
        *("--question-encoder", dpr["question"], "--passage-encoder", dpr["passage"]),
        *("--reader", dpr["reader"], "--bundle", kept.parent),
    )
    assert done.exit_code == 1
    assert "already exists" in str(done.exception)
    assert kept.read_text() == "mine"


def test_a_refusal_leaves_nothing_behind(dpr: dict[str, Path], tmp_path: Path) -> None:
    """The encoders are done when the reader turns out to be none."""
    done = invoke(
        *("--question-encoder", dpr["question"], "--passage-encoder", dpr["passage"]),
        *("--reader", dpr["passage"], "--bundle", tmp_path / "bundle"),
    )
    assert "DPRContextEncoder, which is not a reader" in str(done.exception)
    assert list(tmp_path.iterdir()) == []
