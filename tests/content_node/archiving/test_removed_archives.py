"""What leaves the archive: copies of deleted shards, earlier versions, and deleted passages."""

import asyncio
import errno
import os
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import structlog.testing
from archived_shard import (
    Archiving,
    contents,
    killing,
    now,
    was_killed,
)
from live_writes import put
from manual_clock import ManualClock
from tenacious import happens, turn

from winnow.content_node.archiving import files, removing
from winnow.content_node.archiving.files import (
    restore_shard,
    upload_shard,
)
from winnow.content_node.archiving.folder import recorded_folder
from winnow.content_node.archiving.removing import try_remove_archives
from winnow.content_node.archiving.shard import ArchivableShard
from winnow.content_node.archiving.stub import read_stub
from winnow.content_node.live.shard import LiveShard
from winnow.content_node.merging.merge import merge
from winnow.content_node.merging.tidying import remove_obsolete
from winnow.content_node.shard import open_shard
from winnow.content_node.shard.manifest import SHARD_FILE
from winnow.content_node.snapshots.manifest import Snapshot
from winnow.content_node.snapshots.taking import take_snapshot
from winnow.deadline import Deadline
from winnow.domain.tenant import id_of_whole_tenant, stored_id
from winnow.domain.write import Write
from winnow.errors import (
    UnavailableError,
    WinnowError,
)
from winnow.storage.pull import NoProgress

REMOVING = ("unarchive.unlisted", "unarchive.removing", "unarchive.removing:2", "unarchive.removed")


async def test_the_archive_has_only_the_last_version_of_a_shard(archiving: Archiving) -> None:
    """So what was deleted leaves the archive, too. A copy of the directory has its own folder."""
    shard = await archiving.archive()
    async with shard.gate.enter(Deadline.after(60)) as inside:
        await inside.live.write([Write(id_of_whole_tenant("acme"))], Deadline.after(60))
        done = merge(inside.live.directory, archiving.directory, inside.live.sequence)
        await inside.live.swap(open_shard(Path(done.directory), ef=64))
        await inside.live.trim(inside.live.merged)
        remove_obsolete(archiving.directory, inside.live.merged)
    copied = archiving.directory.with_name("copy")
    shutil.copytree(archiving.directory, copied)
    before = upload_shard(copied, archiving.url, now)
    assert await shard.archive()
    stored = list(Path(archiving.url).glob("*/*/files/*"))
    stub = read_stub(archiving.directory)
    assert stub is not None
    assert stub.folder != before.folder
    own = [each for each in stored if each.parent.parent.name == stub.folder]
    assert len(own) < len(stored)
    assert not [each for each in own if b"text of acme" in each.read_bytes()]
    assert len(list(Path(archiving.url).glob(f"*/{stub.folder}/snapshots/*"))) == 1
    await shard.close()


async def test_the_archive_of_a_deleted_shard_is_removed_unless_a_copy_of_it_is_deleted(
    archiving: Archiving, tmp_path: Path
) -> None:
    """The folder belongs to one directory: a copy of the directory must not remove it."""
    await (await archiving.archive()).close()
    copy, archive = tmp_path / "copy", Path(archiving.url)
    shutil.copytree(archiving.directory, copy)
    with structlog.testing.capture_logs() as logged:
        assert try_remove_archives([copy], "")
    (line,) = logged
    assert (line["event"], line["directory"]) == (
        "archive of a deleted shard may be left",
        str(copy),
    )
    archive.rename(tmp_path / "away")
    archive.write_text("not a directory")
    assert not try_remove_archives([archiving.directory], "")
    archive.unlink()
    (tmp_path / "away").rename(archive)
    assert list(archive.glob("*/*/files/*"))
    assert try_remove_archives([archiving.directory], "")
    assert not [each for each in archive.rglob("*") if each.is_file()]


@pytest.mark.parametrize("point", REMOVING)
async def test_a_killed_removal_of_an_archive_is_finished_by_the_next_one(
    archiving: Archiving, point: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It leaves no file, also none that an interrupted copy has left."""
    await (await archiving.archive()).close()
    stored = next(Path(archiving.url).glob("*/*/files"))
    (stored / ".winnow-interrupted").write_bytes(b"half a file")
    monkeypatch.setattr(removing, "reach", killing(point))
    assert was_killed(lambda: try_remove_archives([archiving.directory], archiving.url))
    monkeypatch.undo()
    assert archiving.directory.exists()
    assert try_remove_archives([archiving.directory], archiving.url)
    assert not [each for each in Path(archiving.url).rglob("*") if each.is_file()]


@pytest.mark.parametrize("error", [OSError(errno.EIO, "I/O error"), RuntimeError("unexpected")])
async def test_a_shard_stays_if_its_archive_is_not_removed_for_any_reason(
    archiving: Archiving, error: Exception, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Only its directory names the folder in the archive."""
    await (await archiving.archive()).close()

    def fail(*_: object) -> None:
        raise error

    for name in ("recorded_folder", "remove_folder"):
        with monkeypatch.context() as patched, structlog.testing.capture_logs() as logged:
            patched.setattr(removing, name, fail)
            assert not try_remove_archives([archiving.directory] * 2, archiving.url)
        (line,) = logged  # each shard would wait for minutes if the archive hangs
        assert line["event"] == "archive of a deleted shard not removed"
    (archiving.directory / SHARD_FILE).write_text("damaged")
    assert try_remove_archives([archiving.directory], archiving.url)
    assert not [each for each in Path(archiving.url).rglob("*") if each.is_file()]


async def test_a_node_without_an_archive_tries_once_to_remove_the_one_that_it_had(
    archiving: Archiving, tmp_path: Path
) -> None:
    """The local files of a dropped index must not wait for a store that is gone."""
    await (await archiving.archive()).close()
    restore_shard(archiving.directory, "", NoProgress())
    away = Path(archiving.url).rename(tmp_path / "away")
    assert try_remove_archives([archiving.directory], "")
    away.rename(archiving.url)
    assert try_remove_archives([archiving.directory], "")
    assert not [each for each in Path(archiving.url).rglob("*") if each.is_file()]


async def test_the_folder_of_a_shard_stays_if_its_disk_gets_another_number(
    archiving: Archiving, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Some machines number their devices differently after a start. Each shard would leave its folder behind."""
    await (await archiving.archive()).close()
    before, stat = recorded_folder(archiving.directory), Path.stat

    def stat_later(path: Path, **options: Any) -> os.stat_result:
        found = stat(path, **options)
        fields = {name: getattr(found, name) for name in ("st_mtime_ns", "st_ctime_ns")}
        return os.stat_result((*found[:2], found.st_dev + 1, *found[3:]), fields)

    monkeypatch.setattr(Path, "stat", stat_later)
    assert before is not None
    assert recorded_folder(archiving.directory) == before


async def test_a_copy_that_outlives_its_shard_leaves_nothing_in_the_archive(
    archiving: Archiving, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The thread of a cancelled archiving goes on, while the dropped index is deleted."""

    Path(archiving.url).mkdir()

    def take_later(source: Path, *given: Any, **options: Any) -> Snapshot:
        assert try_remove_archives([source], archiving.url)
        deleted = source.rename(source.with_name("deleted"))  # whose files are still open
        return take_snapshot(deleted, *given, **options)

    monkeypatch.setattr(files, "take_snapshot", take_later)
    with pytest.raises((WinnowError, OSError)):
        upload_shard(archiving.directory, archiving.url, now)
    assert not [each for each in Path(archiving.url).rglob("*") if each.is_file()]


async def tidied(shard: ArchivableShard) -> None:
    """Waits until a shard has removed from the archive what it does not need."""
    running = asyncio.create_task(shard.run())
    await happens(lambda: shard._needed is not None and shard._tidying.is_done(shard._needed))
    running.cancel()
    await asyncio.gather(running, return_exceptions=True)


def stored_files(archiving: Archiving) -> set[Path]:
    return {each for each in Path(archiving.url).rglob("*") if each.is_file()}


async def test_earlier_versions_leave_the_archive_also_after_a_failure_or_a_kill(
    archiving: Archiving, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They have passages of deleted tenants. The shard may stay archived for years."""

    def fail(*_: object) -> None:
        raise UnavailableError("the store is away")

    clock = ManualClock()
    parts: dict[str, Any] = {"clock": clock, "sleep": lambda _: turn()}
    shard = archiving.shard(**parts)
    await shard.begin()
    monkeypatch.setattr("winnow.content_node.archiving.tidying.remove_earlier", fail)
    assert await shard.archive()
    monkeypatch.undo()
    needed = stored_files(archiving)
    earlier = next(Path(archiving.url).glob("*/*/files")) / ("0" * 64)
    earlier.write_bytes(b"text of acme")
    clock.advance(60)
    await tidied(shard)
    assert stored_files(archiving) == needed
    await shard.close()
    earlier.write_bytes(b"text of acme")
    again = archiving.shard(**parts)
    await again.begin()
    await tidied(again)
    assert stored_files(archiving) == needed
    await again.close()
    await archiving.check()


async def merge_and_serve(live: LiveShard, directory: Path) -> None:
    merged = merge(live.directory, directory, live.sequence)
    await live.swap(open_shard(Path(merged.directory), ef=64))


async def test_the_copy_of_a_restored_shard_leaves_the_archive_after_a_merge(
    archiving: Archiving,
) -> None:
    """A shard with a deleted tenant may be used every day, so that it is never archived again."""
    shard = archiving.shard(clock=ManualClock(), sleep=lambda _: turn())
    await shard.begin()
    assert await shard.archive()
    async with shard.gate.enter(Deadline.after(60)) as inside:
        live = inside.live
        await live.write([Write(id_of_whole_tenant("acme"))], Deadline.after(60))
        await tidied(shard)
        assert stored_files(archiving)
        await merge_and_serve(live, archiving.directory)
        archiving.passages, archiving.sequence = contents(live), live.sequence
    await tidied(shard)
    assert not stored_files(archiving)
    assert await shard.archive()
    assert stored_files(archiving)
    await shard.close()
    await archiving.check()


async def test_a_deleted_tenant_leaves_the_archive_although_archiving_fails_after_the_merge(
    archiving: Archiving, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The failed attempt must not hide that the archive has an earlier copy of the shard."""

    def fail(*_: object, **__: object) -> None:
        raise UnavailableError("the archive is full")

    shard = archiving.shard(clock=ManualClock(), sleep=lambda _: turn())
    await shard.begin()
    assert await shard.archive()
    async with shard.gate.enter(Deadline.after(60)) as inside:
        live = inside.live
        await live.write([Write(id_of_whole_tenant("acme"))], Deadline.after(60))
        await merge_and_serve(live, archiving.directory)
    with monkeypatch.context() as patched:
        patched.setattr(files, "take_snapshot", fail)
        assert not await shard.archive()
    await tidied(shard)
    assert not stored_files(archiving)
    await shard.close()
    await live.close()


async def test_a_copy_of_an_archived_directory_removes_nothing_of_the_original(
    archiving: Archiving, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The copy has a stub of the same folder, in which the original has a later version."""

    def fail(*_: object) -> None:
        raise UnavailableError("the store is away")

    original, copy = await archiving.archive(), tmp_path / "copy"
    shutil.copytree(archiving.directory, copy)
    async with original.gate.enter(Deadline.after(60)) as inside:
        await inside.live.write([put(stored_id("acme", "p9"))], Deadline.after(60))
        archiving.passages, archiving.sequence = contents(inside.live), inside.live.sequence
    with monkeypatch.context() as patched:
        patched.setattr("winnow.content_node.archiving.tidying.remove_earlier", fail)
        assert await original.archive()
    await original.close()
    copied = replace(archiving, directory=copy).shard(clock=ManualClock(), sleep=lambda _: turn())
    await copied.begin()
    await tidied(copied)
    await copied.close()
    await archiving.check()


@pytest.mark.parametrize("is_gone", [False, True])
async def test_a_shard_leaves_no_copy_in_the_archive_that_its_node_had_before(
    archiving: Archiving, tmp_path: Path, is_gone: bool
) -> None:
    """An archive that is gone is named in a warning, and archiving goes on."""
    shard, former = await archiving.archive(), Path(archiving.url)
    async with shard.gate.enter(Deadline.after(60)):
        assert stored_files(archiving)
    await shard.close()
    await archiving._live.close()
    if is_gone:
        shutil.rmtree(former)
    archiving.url = str(tmp_path / "other")
    with structlog.testing.capture_logs() as logs:
        shard = await archiving.archive()
    await shard.close()
    assert stored_files(archiving)
    assert not [each for each in former.rglob("*") if each.is_file()]
    warned = [line["url"] for line in logs if "had before" in line["event"]]
    assert warned == ([str(former)] if is_gone else [])
    await archiving.check()
