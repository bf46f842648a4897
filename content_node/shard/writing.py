"""Writes the files of a shard from staged passages: database, graph, words and manifest.

All files are durable. The caller chooses a partial directory, and renames it at the end.
"""

import sqlite3
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from winnow.content_node.shard.field_tables import write_tables
from winnow.content_node.shard.hnsw import SPACE, can_use_graphs
from winnow.content_node.shard.manifest import SHARD_FILE, ShardManifest, write_manifest
from winnow.content_node.shard.nearest import build_graph
from winnow.content_node.shard.saving import (
    FILES,
    GRAPH,
    STORE,
    VECTORS,
    describe_files,
    save_graph,
    save_vectors,
    save_words,
)
from winnow.content_node.shard.schema import SCHEMA, TENANT_OF_ID
from winnow.content_node.shard.store import PassageStore
from winnow.domain.shard import shard_name
from winnow.domain.word_counts import WordCounts
from winnow.files.durable import sync_directory, sync_file
from winnow.files.opened import OpenFile


@dataclass(frozen=True, slots=True)
class GraphPlan:
    """Parameters for building a graph (Malkov and Yashunin 2016, section 4.1)."""

    m: int = 16
    ef_construction: int = 200
    threads: int = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class ShardSetIdentity:
    """Properties of an index that are in the manifest of each of its shards."""

    index_id: str
    shards: int
    dimension: int
    bundle_name: str
    encoding_fingerprint: str
    passages: int
    """Number of passages of all shards."""
    words: WordCounts
    """Word counts of all shards."""
    tenants: bool = False
    """Whether every passage is of a tenant."""


def write_shard(
    staging: Path, target: Path, shard: int, identity: ShardSetIdentity, plan: GraphPlan
) -> ShardManifest:
    """Writes one shard below `target`, and replaces the files of an interrupted build."""
    directory = target / shard_name(shard, identity.shards)
    directory.mkdir(exist_ok=True)
    for name in (*FILES, VECTORS, SHARD_FILE):
        (directory / name).unlink(missing_ok=True)
    _copy_passages(staging, directory / STORE, shard, by_tenant=identity.tenants)
    store = PassageStore(OpenFile(directory / STORE))
    vectors = store.vectors(identity.dimension)
    tokens, ends = store.tokens(identity.words.vocabulary, len(vectors))
    store.close()
    words = save_words(directory, tokens, ends, identity.words)
    vector_file = _write_vectors(vectors, directory, plan)
    manifest = ShardManifest(
        shard=shard,
        passages=len(vectors),
        rows=len(vectors),
        index_passages=identity.passages,
        space=SPACE,
        m=plan.m,
        ef_construction=plan.ef_construction,
        words=words,
        **describe_files(directory, vector_file),
        index_id=identity.index_id,
        shards=identity.shards,
        dimension=identity.dimension,
        bundle_name=identity.bundle_name,
        encoding_fingerprint=identity.encoding_fingerprint,
        tenants=True if identity.tenants else None,
    )
    written = write_manifest(directory / SHARD_FILE, manifest)
    sync_directory(directory)
    return written


def _write_vectors(vectors: NDArray[np.float32], directory: Path, plan: GraphPlan) -> str:
    """Writes vectors, with a graph if hnswlib is installed; returns the name of the file."""
    if can_use_graphs():
        graph = build_graph(vectors, plan.m, plan.ef_construction, plan.threads)
        save_graph(graph, directory / GRAPH)
        return GRAPH
    save_vectors(np.arange(len(vectors)), vectors, len(vectors), directory / VECTORS)
    return VECTORS


def _copy_passages(staging: Path, path: Path, shard: int, *, by_tenant: bool) -> None:
    order = f"{TENANT_OF_ID}, seq" if by_tenant else "seq"
    connection = sqlite3.connect(path)
    try:
        connection.executescript(SCHEMA)
        connection.execute("ATTACH ? AS staging", (str(staging),))
        connection.execute(
            "INSERT INTO main.passages (row, id, title, text, metadata, title_tokens, text_tokens,"  # noqa: S608
            " text_offsets, vector, version)"
            f" SELECT row_number() OVER (ORDER BY {order}) - 1, id, title, text,"
            " metadata, title_tokens, text_tokens, text_offsets, vector, version"
            " FROM staging.shards JOIN staging.passages USING (seq) WHERE shards.shard = ?",
            (shard,),
        )
        connection.execute(
            "INSERT INTO main.tombstones SELECT id, version FROM staging.tombstones"
            " WHERE shard = ?",
            (shard,),
        )
        write_tables(connection)
        connection.commit()
    finally:
        connection.close()
    sync_file(path)
