"""Segments on disk, of any format, and in memory let the same passages through."""

import json
import shutil
import sqlite3
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import shards_made
from conftest import Recorder

from winnow.bundle import Bundle
from winnow.content_node.indexing.builder import build_index
from winnow.content_node.indexing.plan import BuildPlan
from winnow.content_node.indexing.verify import verify_index
from winnow.content_node.shard import open_shard, view_of
from winnow.content_node.shard.manifest import SHARD_FILE, read_shard_manifest, write_manifest
from winnow.content_node.shard.memory_segment import MemorySegment
from winnow.content_node.shard.row_filter import RowFilter
from winnow.content_node.shard.saving import STORE, file_entry
from winnow.content_node.shard.store import PassageStore
from winnow.content_node.shard.view import PlacedSegment
from winnow.domain.passage import Passage
from winnow.domain.shard import shard_name
from winnow.files.opened import OpenFile
from winnow.filtering import parse
from winnow.passages.encoding import pack
from winnow.text.tokenizer import Tokens

METADATA: list[dict[str, Any]] = [
    {"year": 2010, "tags": ["a", "b"]},
    {},
    {"year": 2015.5, "author": {"name": "x"}},
    {"year": "2010", "note": None},
]
FILTERS = ["year > 2000", "not exists year", "tags != 'a'", "author.name = 'x' or year = '2010'"]


@pytest.fixture(scope="module")
def index(bundle: Bundle, tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("filtered")
    rows = [
        {"id": str(n), "text": f"Passage {n}.", "metadata": one} for n, one in enumerate(METADATA)
    ]
    source = place / "passages.jsonl"
    source.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    build_index(
        BuildPlan(source=source, target=place / "index", shards=1, threads=1), bundle, Recorder()
    )
    return place / "index"


def in_memory(metadata: list[dict[str, Any]]) -> MemorySegment:
    passages = [
        pack(
            Passage(str(n), "", f"Passage {n}.", json.dumps(one) if one else ""),
            (),
            Tokens((1,), ((0, 7),)),
            np.eye(1, shards_made.DIMENSION, dtype=np.float32)[0],
        )
        for n, one in enumerate(metadata)
    ]
    return shards_made.in_memory(passages)


@pytest.mark.parametrize("where", FILTERS)
def test_on_disk_and_in_memory_filters_accept_the_same_passages(index: Path, where: str) -> None:
    meant = [parse(where).matches(one) for one in METADATA]
    assert open_shard(index / shard_name(0, 1), 64).matching_rows(where).tolist() == meant
    assert in_memory(METADATA).matching_rows(where).tolist() == meant
    assert (
        in_memory(METADATA[:2]).joined(in_memory(METADATA[2:])).matching_rows(where).tolist()
        == meant
    )


def test_a_view_has_the_fields_of_all_its_segments_and_accepts_no_dead_row(
    index: Path,
) -> None:
    base = open_shard(index / shard_name(0, 1), 64)
    assert view_of(base).field_names == ("author.name", "tags", "year")
    written = in_memory([{"zone": 1}, {"zone": 2, "year": 1}])
    alive = np.array([True, False])
    placed = (PlacedSegment(base, 0), PlacedSegment(written, base.rows, alive))
    view = view_of(base)
    grown = replace(view, segments=placed, passages=view.passages + 1)
    assert grown.field_names == ("author.name", "tags", "year", "zone")
    through = placed[1].allowed_rows("exists zone")
    assert through is not None
    assert through.tolist() == [True, False]


@pytest.mark.parametrize("where", FILTERS)
def test_a_database_without_tables_gets_them_from_its_metadata(
    index: Path, tmp_path: Path, where: str
) -> None:
    old = tmp_path / STORE
    shutil.copy(index / shard_name(0, 1) / STORE, old)
    with closing(sqlite3.connect(old)) as connection:
        for table in ("fields", "attributes", "blocks"):
            connection.execute(f"DROP TABLE {table}")
    with closing(PassageStore(OpenFile(old))) as store:
        fields = store.open_fields(len(METADATA))
        assert fields.field_names == ("author.name", "tags", "year")
        meant = [parse(where).matches(one) for one in METADATA]
        assert RowFilter(fields, len(METADATA), 1 << 20).matching_rows(where).tolist() == meant
        assert store.fields_match_metadata()


def test_verifying_finds_tables_that_differ_from_the_metadata(index: Path, tmp_path: Path) -> None:
    copy = Path(shutil.copytree(index, tmp_path / "index"))
    assert verify_index(copy, 3, 0.5)[0].faults == ()
    shard = copy / shard_name(0, 1)
    with closing(sqlite3.connect(shard / STORE)) as connection:
        connection.execute("UPDATE attributes SET value = 2011.0 WHERE value = 2010.0")
        connection.commit()
    manifest = read_shard_manifest(shard)
    files = {**manifest.files, STORE: file_entry(shard / STORE)}
    write_manifest(shard / SHARD_FILE, manifest.model_copy(update={"files": files}))
    assert any("do not match the metadata" in each for each in verify_index(copy, 3, 0.5)[0].faults)
