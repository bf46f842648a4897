"""A merge reads the log in short transactions: the node's write-ahead log can shrink meanwhile."""

from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest
from live_shards import Fed, built
from live_writes import logged

from winnow.content_node.live.database import truncate_wal
from winnow.content_node.live.reading import log_path, wal_path
from winnow.content_node.merging.passages import LogRange, MergedPassages
from winnow.content_node.shard.manifest import read_shard_manifest
from winnow.errors import ArtefactError

WRITES = 5_000


@pytest.fixture
def fed(tmp_path: Path) -> Fed:
    fed = Fed(built(tmp_path, {"built": "text"}), {"built": "text"})
    one = logged(1)
    fed.log.append([replace(one, sequence=n, id=f"id-{n}") for n in range(1, WRITES + 1)])
    fed.log.acknowledge()
    return fed


def passages(fed: Fed, target: Path, log_range: LogRange) -> MergedPassages:
    manifest = read_shard_manifest(fed.shard)
    return MergedPassages(
        target=target,
        base=fed.shard / manifest.store,
        log=log_path(fed.shard),
        rows=manifest.rows,
        log_range=log_range,
    )


def test_while_vectors_go_into_the_graph_the_log_is_pinned_by_nobody(
    fed: Fed, tmp_path: Path
) -> None:
    with closing(passages(fed, tmp_path / "new.sqlite", LogRange(0, WRITES))) as merging:
        counts = merging.count_rows()
        merging.copy()
        assert (counts.rows, counts.passages) == (WRITES + 1, WRITES + 1)
        rows = []
        for numbers, vectors in merging.put_vectors():
            assert len(numbers) == len(vectors)
            rows += numbers.tolist()
            fed.log.append([logged(fed.log.last + 1)])
            assert truncate_wal(fed.log.path)
            assert wal_path(fed.log.path).stat().st_size == 0
        assert rows == list(range(1, WRITES + 1))


def test_writes_that_were_forgotten_are_missed(fed: Fed, tmp_path: Path) -> None:
    with closing(passages(fed, tmp_path / "new.sqlite", LogRange(0, WRITES))) as merging:
        fed.log.trim(10)
        with pytest.raises(ArtefactError, match="holds only 4990 of the writes 1 to 5000"):
            merging.count_rows()
