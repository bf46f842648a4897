"""Passages that the served retriever finds for training questions."""

import json
from dataclasses import replace
from pathlib import Path

import pytest
from conftest import Recorder

from models.measuring.collection import indexes_of
from models.mining.embedding import Embedder
from models.mining.retrievers import ScoredPassage, ServedRetriever
from winnow.bundle import Bundle
from winnow.content_node.indexing.builder import build_index
from winnow.content_node.indexing.plan import BuildPlan
from winnow.errors import ArtefactError

QUESTION = "Who keeps the lighthouse of Quendel?"
ROWS = [
    {"id": "1", "title": "Quendel", "text": "Marta keeps the lighthouse of Quendel."},
    {"id": "2", "title": "Bread", "text": "Bread is made of flour, water and salt."},
    {"id": "3", "title": "Lighthouses", "text": "Every lighthouse has a lamp and a keeper."},
    {"id": "4", "title": "Salt", "text": "Salt comes from the sea and from mines."},
]


def build(rows: list[dict[str, str]], out: Path, shards: int, bundle: Bundle) -> Path:
    source = out.with_suffix(".jsonl")
    source.write_text("".join(json.dumps(row) + "\n" for row in rows))
    build_index(BuildPlan(source=source, target=out, shards=shards, threads=1), bundle, Recorder())
    return out


def find(indexes: list[Path], bundle: Bundle, count: int = len(ROWS)) -> list[ScoredPassage]:
    [vector] = Embedder.of(bundle).questions([QUESTION])
    return list(ServedRetriever(indexes, bundle).find(QUESTION, vector, count))


def test_several_shards_find_what_one_shard_finds(bundle: Bundle, tmp_path: Path) -> None:
    one = find([build(ROWS, tmp_path / "one", 1, bundle)], bundle)
    two = find([build(ROWS, tmp_path / "two", 2, bundle)], bundle)
    assert one == two
    assert [each.passage.title for each in one[:2]] == ["Quendel", "Lighthouses"]
    assert one[0].words > one[1].words > 0


def test_further_indexes_of_a_collection_add_passages(bundle: Bundle, tmp_path: Path) -> None:
    build(ROWS[1:], tmp_path / "index", 1, bundle)
    same_id = {**ROWS[0], "id": ROWS[1]["id"]}  # ids are unique only within an index
    build([same_id], tmp_path / "index-more", 1, bundle)
    found = find(indexes_of(tmp_path), bundle)
    assert len(found) == len(ROWS)
    assert found[0].passage.title == "Quendel"
    assert found[:1] == find(indexes_of(tmp_path), bundle, 1)


def test_an_index_of_another_bundle_is_refused_by_name(bundle: Bundle, tmp_path: Path) -> None:
    index = build(ROWS[:1], tmp_path / "index", 1, bundle)
    encoder = bundle.manifest.encoder.model_copy(update={"max_passage_tokens": 200})
    other = replace(bundle, manifest=bundle.manifest.model_copy(update={"encoder": encoder}))
    with pytest.raises(ArtefactError, match=f"{index} was encoded by bundle"):
        ServedRetriever([index], other)
