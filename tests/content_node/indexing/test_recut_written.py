"""Building an index out of one that was written to."""

import contextlib
import shutil
import sqlite3
from dataclasses import replace
from pathlib import Path

import pytest
from conftest import PASSAGES, InterruptedAfterStaging, Recorder
from fed_index import FedIndex, held, shards_of, tombstones
from live_writes import logged, put

from winnow.bundle import Bundle
from winnow.content_node.indexing.builder import build_index
from winnow.content_node.indexing.plan import BuildPlan
from winnow.content_node.indexing.staging import Staging
from winnow.content_node.indexing.verify import verify_index
from winnow.content_node.live.custody import Custody, Role, write_custody
from winnow.content_node.live.opening import open_log
from winnow.content_node.live.reading import log_path
from winnow.content_node.live.state import LiveState
from winnow.content_node.shard import open_shard
from winnow.content_node.splitting.write_half import write_half
from winnow.domain.partition import halves_of, holds
from winnow.domain.shard import shard_name
from winnow.domain.write import Outcome
from winnow.errors import ArtefactError

FIRST, SECOND, THIRD = (PASSAGES[n][0] for n in range(3))


@pytest.fixture
def fed(indexes: dict[int, Path], tmp_path: Path) -> FedIndex:
    """Three shards; what was written first is merged, what came then is not."""
    fed = FedIndex(indexes[3], tmp_path / "fed")
    fed.put("new", "a first text", 3)
    fed.put(FIRST, "another text")
    fed.delete(SECOND)
    fed.delete(THIRD, 7)
    fed.put("gone", "soon deleted", 1)
    for shard, log in enumerate(fed.logs):
        if log.last:
            fed.merge(shard)
    fed.put("new", "a second text", 4)
    fed.delete("gone", 5)
    fed.delete("never there", 9)
    fed.put("last", "of all")
    return fed


def test_later_writes_are_taken_over(
    bundle: Bundle, fed: FedIndex, tmp_path: Path, recorder: Recorder
) -> None:
    """Merged or not; versions are kept, those of deleted passages, too."""
    fed.close()
    manifest = build_index(
        BuildPlan(source=fed.index, target=tmp_path / "new", shards=2, threads=1), bundle, recorder
    )
    assert held(tmp_path / "new") == fed.held
    assert tombstones(tmp_path / "new") == fed.tombstones
    assert manifest.passages == len(fed.held)
    reports = verify_index(tmp_path / "new", 50, 0.95)
    assert [report.faults for report in reports] == [(), ()]
    assert not any(report.sequence for report in reports)


def test_an_index_that_is_taken_over_twice_stays_the_same(
    bundle: Bundle, fed: FedIndex, tmp_path: Path, recorder: Recorder
) -> None:
    fed.close()
    build_index(
        BuildPlan(source=fed.index, target=tmp_path / "two", shards=2, threads=1), bundle, recorder
    )
    build_index(
        BuildPlan(source=tmp_path / "two", target=tmp_path / "one", shards=1, threads=1),
        bundle,
        recorder,
    )
    assert held(tmp_path / "one") == fed.held
    assert tombstones(tmp_path / "one") == fed.tombstones


def test_an_older_put_brings_nothing_back(
    bundle: Bundle, fed: FedIndex, tmp_path: Path, recorder: Recorder
) -> None:
    fed.close()
    build_index(
        BuildPlan(source=fed.index, target=tmp_path / "new", shards=1, threads=1), bundle, recorder
    )
    state = LiveState(open_shard(shards_of(tmp_path / "new")[0], ef=64), "")
    older = {"gone": 4, "new": 3, "never there": 8, THIRD: 6}
    conflict = state.write_conflict(older)
    for identifier, version in older.items():
        written = conflict.decide(put(identifier, "late", version))
        assert written.outcome is Outcome.OUTDATED
    assert conflict.decide(put("gone", "again", 6)).outcome is Outcome.STORED


def test_an_index_that_a_node_writes_to_is_refused(
    bundle: Bundle, fed: FedIndex, tmp_path: Path, recorder: Recorder
) -> None:
    with pytest.raises(ArtefactError, match=r"a node is feeding .*shard-.*: stop it; or take a s"):
        build_index(
            BuildPlan(source=fed.index, target=tmp_path / "new", shards=1, threads=1),
            bundle,
            recorder,
        )
    assert sorted(path.name for path in tmp_path.iterdir()) == ["fed"]
    fed.close()


def test_a_build_is_not_resumed_from_an_index_with_new_writes(
    bundle: Bundle, fed: FedIndex, tmp_path: Path, recorder: Recorder
) -> None:
    fed.close()
    plan = BuildPlan(source=fed.index, target=tmp_path / "new", shards=2, threads=1)
    with pytest.raises(KeyboardInterrupt):
        build_index(plan, bundle, InterruptedAfterStaging())
    log = open_log(fed.shards[0])
    log.append([logged(log.last + 1, "late")])
    log.acknowledge()
    log.close()
    with pytest.raises(ArtefactError, match="build with another --passages"):
        build_index(plan, bundle, recorder)


def test_a_build_is_resumed_from_an_index_without_new_writes(
    bundle: Bundle, fed: FedIndex, tmp_path: Path, recorder: Recorder
) -> None:
    """A merge changes nothing of what is taken over."""
    plan = BuildPlan(source=fed.index, target=tmp_path / "new", shards=2, threads=1)
    fed.close()
    with pytest.raises(KeyboardInterrupt):
        build_index(plan, bundle, InterruptedAfterStaging())
    fed.logs = [open_log(shard) for shard in fed.shards]
    for shard, log in enumerate(fed.logs):
        if log.last > log.trimmed:
            fed.merge(shard)
    fed.close()
    build_index(plan, bundle, recorder)
    assert held(plan.target) == fed.held
    assert "copying passages" not in [stage for stage, *_ in recorder.stages]


class WritesMeanwhile(Recorder):
    """A node makes the first write of all while passages are taken over."""

    def __init__(self, shard: Path) -> None:
        super().__init__()
        self._shard: Path | None = shard

    def advance(self, steps: int) -> None:
        super().advance(steps)
        shard, self._shard = self._shard, None
        if shard is not None:
            log = open_log(shard)
            log.append([logged(1)])
            log.acknowledge()
            log.close()


def test_a_first_write_meanwhile_is_noticed(
    bundle: Bundle, indexes: dict[int, Path], tmp_path: Path
) -> None:
    source = Path(shutil.copytree(indexes[3], tmp_path / "source"))
    plan = BuildPlan(source=source, target=tmp_path / "new", shards=1, threads=1)
    with pytest.raises(ArtefactError, match="was written to while its passages were copied"):
        build_index(plan, bundle, WritesMeanwhile(shards_of(source)[0]))
    assert sorted(path.name for path in tmp_path.iterdir()) == ["source"]


def test_a_log_that_is_damaged_or_gone_is_refused(
    bundle: Bundle, fed: FedIndex, tmp_path: Path, recorder: Recorder
) -> None:
    fed.close()
    plan = BuildPlan(source=fed.index, target=tmp_path / "new", shards=1, threads=1)
    shard = next(shard for shard, log in zip(fed.shards, fed.logs, strict=True) if log.last)
    path = log_path(shard)
    whole = path.read_bytes()
    path.write_bytes(whole[: len(whole) // 2])
    with pytest.raises(ArtefactError, match=r"writes\.sqlite is damaged"):
        build_index(plan, bundle, recorder)
    shutil.rmtree(path.parent)
    path.parent.mkdir()
    path.write_bytes(whole)
    with pytest.raises(ArtefactError, match="but the shard's base ends at write 0"):
        build_index(plan, bundle, recorder)
    assert not plan.target.exists()


def test_a_shard_whose_halves_take_its_writes_is_refused(
    bundle: Bundle, fed: FedIndex, tmp_path: Path, recorder: Recorder
) -> None:
    fed.close()
    write_custody(fed.shards[0], Custody(Role.FORMER_OWNER))
    plan = BuildPlan(source=fed.index, target=tmp_path / "new", shards=1, threads=1)
    with pytest.raises(ArtefactError, match=r"may lack the last writes.*use its halves"):
        build_index(plan, bundle, recorder)


def test_an_index_whose_shard_was_split_is_verified_and_cut_again(
    bundle: Bundle, fed: FedIndex, tmp_path: Path, recorder: Recorder
) -> None:
    """The log of a half has the writes of the other half as deletions."""
    base = fed.merge(0)
    for half in halves_of(0, 3):
        directory = fed.index / shard_name(half, 3)
        directory.mkdir()
        write_half(base, fed.shards[0], half, directory, following=False)
        others = [logged(10**6, name, None) for name in fed.held if holds(0, 3, name)]
        with contextlib.closing(open_log(directory)) as log:
            for write in others:
                if not holds(half, 3, write.id):
                    log.append([replace(write, sequence=log.last + 1)])
            log.acknowledge()
    fed.close()
    shutil.rmtree(fed.shards[0])
    assert [each.faults for each in verify_index(fed.index, 50, 0.95)] == [()] * 4
    plan = BuildPlan(source=fed.index, target=tmp_path / "new", shards=2, threads=1)
    build_index(plan, bundle, recorder)
    assert held(tmp_path / "new") == fed.held


def test_a_build_that_an_older_version_began_goes_on(tmp_path: Path) -> None:
    with sqlite3.connect(tmp_path / "staging.sqlite") as connection:
        connection.execute("CREATE TABLE passages (seq INTEGER PRIMARY KEY, id TEXT)")
    connection.close()
    staging = Staging(tmp_path / "staging.sqlite")
    staging.close()
    staging = Staging(tmp_path / "staging.sqlite")
    staging.close()
    with sqlite3.connect(tmp_path / "staging.sqlite") as connection:
        assert connection.execute("SELECT id, version FROM passages").fetchall() == []
    connection.close()
