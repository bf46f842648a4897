"""Small shards that take writes, built without models."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
from live_writes import DIMENSION, encoded, put
from prometheus_client import CollectorRegistry

from winnow.content_node.indexing.counting import count_words
from winnow.content_node.indexing.staging import Staging
from winnow.content_node.live.limits import WriteLimits
from winnow.content_node.live.loading import open_live
from winnow.content_node.live.log import WriteLog
from winnow.content_node.live.log_entry import LoggedWrite
from winnow.content_node.live.opening import open_log
from winnow.content_node.live.shard import LiveShard
from winnow.content_node.merging.newest import open_newest
from winnow.content_node.metrics import WriteMetrics
from winnow.content_node.shard import open_shard
from winnow.content_node.shard.writing import GraphPlan, ShardSetIdentity, write_shard

TENANT_LIMITS = WriteLimits(
    shard=0, shards=1, dimension=DIMENSION, vocabulary=1_000, max_unmerged=10_000, has_tenants=True
)
"""The limits of a shard with tenants."""


def built(directory: Path, texts: Mapping[str, str], *, tenants: bool = False) -> Path:
    """Builds the only shard of an index from texts by id; returns the shard's directory.

    `tenants`: whether the ids name tenants.
    """
    with TemporaryDirectory() as aside:
        staging = Staging(Path(aside) / "staging.sqlite")
        for identifier, text in texts.items():
            staging.add(put(identifier, text))
        words = count_words(staging.passage_tokens())
        staging.partition(1)
        staging.record(done=True)
        staging.close()
        identity = ShardSetIdentity(
            index_id="index",
            shards=1,
            dimension=DIMENSION,
            bundle_name="bundle",
            encoding_fingerprint="encoding",
            passages=len(texts),
            words=words,
            tenants=tenants,
        )
        write_shard(staging.path, directory, 0, identity, GraphPlan())
    return directory / "shard-00000-of-00001"


@dataclass
class Stored:
    """The expected passage of an id."""

    text: str
    sequence: int
    version: int | None


@dataclass
class Fed:
    """A built shard with a log of writes, and its expected contents."""

    shard: Path
    texts: Mapping[str, str]
    log: WriteLog = field(init=False)
    passages: dict[str, Stored] = field(init=False)
    tombstones: dict[str, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.log = open_log(self.shard)
        self.passages = {name: Stored(text, 0, None) for name, text in self.texts.items()}

    def put(
        self, identifier: str, text: str, version: int | None = None, metadata: str = ""
    ) -> None:
        """Writes a passage."""
        sequence = self._append(identifier, text, version, metadata)
        self.passages[identifier] = Stored(text, sequence, version)
        self.tombstones.pop(identifier, None)

    def delete(self, identifier: str, version: int | None = None) -> None:
        """Deletes a stored passage; with a version, also one that is not stored."""
        self._append(identifier, None, version)
        self.passages.pop(identifier, None)
        self.tombstones.pop(identifier, None)
        if version is not None:
            self.tombstones[identifier] = version

    def apply(self, writes: Iterable[tuple[str, str | None]]) -> None:
        """Puts passages by id and text; deletes those whose text is None."""
        for identifier, text in writes:
            if text is not None:
                self.put(identifier, text)
            elif identifier in self.passages:
                self.delete(identifier)

    def _append(
        self, identifier: str, text: str | None, version: int | None, metadata: str = ""
    ) -> int:
        old = self.passages.get(identifier)
        removed = None if old is None else encoded(identifier, old.text).words
        put = None if text is None else encoded(identifier, text, metadata)
        write = LoggedWrite(
            sequence=self.log.last + 1,
            id=identifier,
            version=version,
            put=put,
            removed_words=removed,
        )
        self.log.append([write])
        self.log.acknowledge()
        return write.sequence

    def nearest(self, vector: np.ndarray, k: int) -> list[str]:
        """Returns the ids of the `k` nearest passages, by exhaustive search."""

        def distance(identifier: str) -> float:
            stored = encoded(identifier, self.passages[identifier].text)
            own = np.frombuffer(stored.vector, "<f4")
            return float(((own - vector) ** 2).sum())

        return sorted(self.passages, key=distance)[:k]


def opened(directory: Path, limits: WriteLimits = TENANT_LIMITS) -> LiveShard:
    """Opens a shard with tenants, and its log."""
    return open_live(
        directory,
        lambda trimmed: open_newest(
            directory, trimmed, lambda each: open_shard(each, ef=64), feeding=True
        ),
        lambda _: limits,
        WriteMetrics(CollectorRegistry()),
        feeding=True,
    )
