"""Synthetic shards, built without models."""

import contextlib
import sqlite3
from collections.abc import Collection, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from unpacked import tokens, vector

from winnow.content_node.indexing.counting import count_words
from winnow.content_node.shard import StoredSegment, open_shard
from winnow.content_node.shard.field_tables import write_tables
from winnow.content_node.shard.hnsw import SPACE, can_use_graphs
from winnow.content_node.shard.manifest import SHARD_FILE, ShardManifest, write_manifest
from winnow.content_node.shard.memory_passages import MemoryPassages
from winnow.content_node.shard.memory_segment import MemorySegment
from winnow.content_node.shard.nearest import build_graph
from winnow.content_node.shard.saving import (
    GRAPH,
    STORE,
    VECTORS,
    describe_files,
    save_graph,
    save_vectors,
    save_words,
)
from winnow.content_node.shard.schema import SCHEMA
from winnow.content_node.shard.store import PassageStore
from winnow.domain.passage import Passage
from winnow.domain.question import EncodedQuestion
from winnow.domain.write import EncodedPassage
from winnow.files.opened import OpenFile
from winnow.passages.encoding import pack
from winnow.text.tokenizer import Tokens

DIMENSION = 8
VOCABULARY = 30


def passage(number: int, chance: np.random.Generator, text: str = "") -> EncodedPassage:
    """Returns a passage of a few random tokens with Zipf frequencies."""
    drawn = chance.zipf(1.5, chance.integers(1, 12)) % VOCABULARY
    ids = tuple(int(token) for token in drawn)
    drawn_vector = chance.standard_normal(DIMENSION).astype(np.float32)
    return pack(
        Passage(f"p{number}", "title", text or f"text {number}"),
        (int(chance.integers(VOCABULARY)),),
        Tokens(ids, tuple((place, place + 1) for place in range(len(ids)))),
        drawn_vector / np.linalg.norm(drawn_vector),
    )


def passages(count: int, seed: int = 0) -> list[EncodedPassage]:
    chance = np.random.default_rng(seed)
    return [passage(number, chance) for number in range(count)]


def question(seed: int, **options: Any) -> EncodedQuestion:
    chance = np.random.default_rng(seed)
    asked = passage(0, chance)
    return EncodedQuestion(
        text="?",
        token_ids=tokens(asked).ids,
        vector=vector(asked),
        bundle_fingerprint="",
        **options,
    )


def in_memory(own: Sequence[EncodedPassage], first_write: int = 1) -> MemorySegment:
    """Returns a segment in memory whose passages were written one by one, from `first_write` on."""
    writes = range(first_write, first_write + len(own))
    return MemorySegment.build(MemoryPassages.pack(own, writes, DIMENSION))


def stored(
    directory: Path,
    own: Sequence[EncodedPassage],
    whole: Sequence[EncodedPassage] = (),
    holes: Collection[int] = (),
    ef: int = 64,
    exact_up_to: int = 2_000,
    **altered: Any,
) -> StoredSegment:
    """Builds and opens a shard with these passages, one for each row.

    Rows in `holes` have lost their passages. Words are as rare as in `whole`.
    """
    make(directory, own, whole, holes, **altered)
    return open_shard(directory, ef, exact_up_to=exact_up_to)


def make(
    directory: Path,
    own: Sequence[EncodedPassage],
    whole: Sequence[EncodedPassage] = (),
    holes: Collection[int] = (),
    **altered: Any,
) -> ShardManifest:
    directory.mkdir(parents=True)
    with contextlib.closing(sqlite3.connect(directory / STORE)) as connection:
        connection.executescript(SCHEMA)
        for row, each in enumerate(own):
            if row not in holes:
                connection.execute(
                    "INSERT INTO passages VALUES (?, ?, 0, NULL, ?, ?, ?, ?, ?, ?, ?)",
                    (
                        *(row, each.passage.id, each.passage.title, each.passage.text),
                        each.passage.metadata or "{}",
                        *(each.title_tokens, each.text_tokens, each.text_offsets, each.vector),
                    ),
                )
        write_tables(connection)
        connection.commit()
    every = [np.frombuffer(each.words, "<u4") for each in whole or own]
    store = PassageStore(OpenFile(directory / STORE))
    words_held, ends = store.tokens(VOCABULARY, len(own))
    store.close()
    words = save_words(directory, words_held, ends, count_words(every))
    vectors = np.array([vector(each) for each in own], np.float32).reshape(-1, DIMENSION)
    if can_use_graphs():
        graph = build_graph(vectors, 16, 100, 1)
        for row in holes:
            graph.mark_deleted(row)
        save_graph(graph, directory / GRAPH)
    else:
        save_vectors(np.arange(len(own)), vectors, len(own), directory / VECTORS)
    values = {
        "index_id": "made",
        "shard": 0,
        "shards": 1,
        "rows": len(own),
        "passages": len(own) - len(holes),
        "index_passages": len(whole or own),
        "dimension": DIMENSION,
        "space": SPACE,
        "m": 16,
        "ef_construction": 100,
        "bundle_name": "made",
        "encoding_fingerprint": "made",
        "words": words,
        **describe_files(directory, GRAPH if can_use_graphs() else VECTORS),
        **altered,
    }
    return write_manifest(directory / SHARD_FILE, ShardManifest(**values))
