"""Archiving and restoring the files of a shard, with a kill at every step."""

import asyncio
import errno
import json
import shutil
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
import structlog.testing
from archived_shard import (
    Archiving,
    Killed,
    archives_at,
    contents,
    killing,
    now,
    was_killed,
)
from damaged_files import flip_bit
from live_shards import built
from live_writes import put
from manual_clock import ManualClock
from tenacious import happens, turn

from winnow.content_node.archiving import files
from winnow.content_node.archiving.archives import Archives
from winnow.content_node.archiving.files import (
    commit_archive,
    lock_shard,
    restore_shard,
    upload_shard,
)
from winnow.content_node.archiving.policy import ArchivePolicy
from winnow.content_node.archiving.stub import ArchiveStub, read_stub
from winnow.content_node.live.locks import DirectoryLock
from winnow.content_node.live.shard import LiveShard
from winnow.content_node.merging.merge import merge
from winnow.content_node.shard import open_shard
from winnow.content_node.shard.manifest import SHARD_FILE, read_shard_manifest
from winnow.content_node.snapshots import contents as contents_module
from winnow.content_node.snapshots.taking import take_snapshot
from winnow.deadline import Deadline
from winnow.domain.tenant import stored_id
from winnow.errors import (
    ArchiveUnreachableError,
    ArtefactError,
    NotFoundError,
    RestoringError,
    UnavailableError,
)
from winnow.storage.pull import NoProgress

POINTS = (
    "archive.uploaded",
    "archive.verified",
    "archive.stubbed",
    *(f"archive.removing:{number}" for number in range(1, 8)),
    "archive.removed",
    "restore.pulled",
    *(f"restore.moving:{number}" for number in range(1, 8)),
    "restore.moved",
    "restore.renamed",
)


def present(directory: Path) -> list[str]:
    return sorted(each.relative_to(directory).as_posix() for each in directory.rglob("*"))


@pytest.mark.parametrize("remote", [False, True])
async def test_an_archived_shard_leaves_a_stub_and_comes_back_with_its_log_and_numbers(
    archiving: Archiving, remote: bool
) -> None:
    """So positions of writes stay valid: it is the same shard, and no copy."""
    if remote:
        archiving.url = f"memory://{uuid4().hex}/archive"
    shard = await archiving.archive()
    assert present(archiving.directory) == ["live", "live/archive.json", "live/lock", SHARD_FILE]
    stub = read_stub(archiving.directory)
    assert stub is not None
    assert (stub.log_id, stub.sequence, stub.passages) == (archiving.log_id, 2, 10)
    assert [(name, count) for name, count, _ in stub.tenants] == [("acme", 5), ("b", 5)]
    await shard.close()
    await archiving.check()
    assert "restored.partial" not in present(archiving.directory)


@pytest.mark.parametrize("point", POINTS)
async def test_a_kill_at_any_step_loses_no_write(
    archiving: Archiving, point: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """At each moment the directory has either the whole shard, or a stub of a whole archive."""
    name, _, times = point.partition(":")
    monkeypatch.setattr(files, "reach", killing(point))
    if name.startswith("restore"):
        await (await archiving.archive()).close()
        killed = was_killed(lambda: restore_shard(archiving.directory, "", NoProgress()))
    else:
        shard = archiving.shard()
        await shard.begin()
        assert shard.gate.opened is not None
        stub, killed = None, False
        try:
            stub = await shard._upload(shard.gate.opened.live)
        except Killed:
            killed = True
        await shard._close_shard()
        if stub is not None:
            archived = stub
            killed = was_killed(lambda: commit_archive(archiving.directory, archived).release())
    assert killed or times  # there are fewer files than tried
    monkeypatch.undo()
    if read_stub(archiving.directory) is None:
        shutil.rmtree(archiving.url, ignore_errors=True)  # only the shard counts
    await archiving.check()


async def test_a_write_during_archiving_keeps_the_shard_and_is_not_lost(
    archiving: Archiving,
) -> None:
    """The directory is compared with the archive while no other process can have it open."""
    shard = archiving.shard()
    await shard.begin()
    assert shard.gate.opened is not None
    live = shard.gate.opened.live
    stub = await shard._upload(live)
    assert stub is not None
    await live.write([put(stored_id("b", "late"), "a late text")], Deadline.after(60))
    await live.close()
    before = present(archiving.directory)
    with pytest.raises(ArtefactError, match="has write 3, but its archive ends at write 2"):
        commit_archive(archiving.directory, stub)
    assert set(before) <= set(present(archiving.directory))  # reading a log adds files
    lock = lock_shard(archiving.directory)
    with pytest.raises(ArtefactError, match="held by another node"):
        commit_archive(archiving.directory, stub)
    lock.release()


async def test_files_that_another_process_restores_before_it_is_locked_are_kept(
    archiving: Archiving, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A restore that was given up goes on in its thread, while the shard is opened again."""
    await (await archiving.archive()).close()
    lock = files.lock_shard

    def restore_first(directory: Path) -> DirectoryLock:
        monkeypatch.undo()
        assert restore_shard(directory, archiving.url, NoProgress()) is not None
        return lock(directory)

    monkeypatch.setattr(files, "lock_shard", restore_first)
    assert restore_shard(archiving.directory, archiving.url, NoProgress()) is None
    await (await archiving.archive()).close()
    monkeypatch.setattr(files, "lock_shard", restore_first)
    shard = archiving.shard()
    assert await shard.begin() is None
    assert shard.gate.opened is not None
    assert contents(shard.gate.opened.live) == archiving.passages
    await shard._close_shard()
    await archiving.check()


@pytest.mark.parametrize("merges", [False, True])
async def test_a_write_or_a_merge_while_the_shard_is_copied_is_no_failure(
    archiving: Archiving, merges: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is tried again as soon as the shard is unused, and no alert tells of it."""
    shard = archiving.shard()
    await shard.begin()
    assert shard.gate.opened is not None
    live, upload = shard.gate.opened.live, shard._upload

    async def change_meanwhile(uploaded: LiveShard) -> ArchiveStub | None:
        if merges:
            merged = merge(live.directory, archiving.directory, live.sequence)
            await live.swap(open_shard(Path(merged.directory), ef=64))
            return await upload(uploaded)
        stub = await upload(uploaded)
        async with shard.gate.enter(Deadline.after(60)):
            await live.write([put(stored_id("b", "late"))], Deadline.after(60))
        return stub

    monkeypatch.setattr(shard, "_upload", change_meanwhile)
    with structlog.testing.capture_logs() as logged:
        assert not await shard.archive()
    assert [each["log_level"] for each in logged] == ["info"]
    assert shard._failed_at is None
    await shard._close_shard()


@pytest.mark.parametrize("step", ["newest_name", "copy_log"])
@pytest.mark.parametrize("comes_back", [False, True])
async def test_a_snapshot_lacks_no_write_although_the_shard_is_archived_meanwhile(
    archiving: Archiving,
    step: str,
    comes_back: bool,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The built files may be open already, while the merged ones and the log are removed."""
    shard = archiving.shard()
    await shard.begin()
    assert shard.gate.opened is not None
    stub = await shard._upload(shard.gate.opened.live)
    assert stub is not None
    await shard._close_shard()
    do_step = getattr(contents_module, step)

    def archive_first(*given: Any) -> Any:
        monkeypatch.undo()
        commit_archive(archiving.directory, stub).release()
        if comes_back:
            restore_shard(archiving.directory, "", NoProgress())
        return do_step(*given)

    monkeypatch.setattr(contents_module, step, archive_first)
    url = str(tmp_path / "snapshots")
    if comes_back:
        (part,) = take_snapshot(archiving.directory, url, NoProgress(), now).parts
        assert part.sequence == archiving.sequence
    else:
        with pytest.raises(ArtefactError, match="is archived at"):
            take_snapshot(archiving.directory, url, NoProgress(), now)


async def test_leftovers_of_killed_processes_are_removed(archiving: Archiving) -> None:
    (archiving.directory / "archived.partial").write_bytes(b"read back")
    shutil.copytree(archiving.directory / "live", archiving.directory / "restored.partial/live")
    shard = archiving.shard()
    await shard.begin()
    assert not [each for each in present(archiving.directory) if ".partial" in each]
    await shard._close_shard()


async def test_a_call_while_another_shard_is_archived_keeps_the_shard(
    archiving: Archiving,
) -> None:
    """Its time without calls begins again."""
    archives, clock = archives_at(archiving.url), ManualClock()
    sleeps: list[float] = []

    async def sleep(_: float) -> None:
        sleeps.append(clock.now)
        await turn()

    shard = archiving.shard(archives=archives, clock=clock, sleep=sleep)
    await shard.begin()
    clock.advance(60)
    async with archives.one_at_a_time:
        running = asyncio.create_task(shard.run())
        for _ in range(20):
            await turn()
        assert len(sleeps) == 1  # it waits for the other shard
        async with shard.gate.enter(Deadline.after(60)):
            pass
    await happens(lambda: len(sleeps) > 1)
    assert shard.gate.opened is not None
    clock.advance(60)
    await happens(lambda: shard._is_archived)
    running.cancel()
    await shard.close()
    await archiving.check()


async def test_a_damaged_archive_deletes_no_local_file_and_is_told(archiving: Archiving) -> None:
    """A file that the archive has already may have been damaged there since. The next attempt to
    archive the shard copies it again. Nobody is told to remove a file of an archived shard.
    """
    upload_shard(archiving.directory, archiving.url, now, merged=1)
    stored = max(Path(archiving.url).glob("*/*/files/*"), key=lambda each: each.stat().st_size)
    flip_bit(stored)
    shard = archiving.shard()
    await shard.begin()
    with structlog.testing.capture_logs() as logged:
        assert not await shard.archive()
    assert f"damaged (files/{stored.name}): the next attempt copies it" in logged[0]["reason"]
    assert read_stub(archiving.directory) is None
    assert await shard.archive()
    await shard.close()
    flip_bit(stored)
    with pytest.raises(ArtefactError, match=f"damaged.*{stored.name}.*the only copy"):
        restore_shard(archiving.directory, "", NoProgress())
    assert read_stub(archiving.directory) is not None
    flip_bit(stored)
    await archiving.check()


async def test_a_shard_stays_while_the_archive_is_unreachable_and_a_restore_is_tried_again(
    archiving: Archiving, tmp_path: Path
) -> None:
    archive = Path(archiving.url)
    archive.write_text("not a directory")
    shard = archiving.shard()
    await shard.begin()
    assert not await shard.archive()
    assert shard.gate.opened is not None
    archive.unlink()
    assert await shard.archive()
    await shard.close()
    archive.rename(tmp_path / "moved")
    with pytest.raises(ArchiveUnreachableError, match="mount that archive again"):
        restore_shard(archiving.directory, "", NoProgress())
    with pytest.raises(ArchiveUnreachableError, match="s4"):
        restore_shard(archiving.directory, "s4://bucket/archive", NoProgress())
    archiving.url = str(tmp_path / "moved")  # the setting counts, not the stub
    await archiving.check()


async def test_a_full_disk_fails_a_restore_and_gets_its_space_back(
    archiving: Archiving, monkeypatch: pytest.MonkeyPatch
) -> None:
    await (await archiving.archive()).close()

    def fill(_source: object, _files: object, directory: Path, _progress: object) -> None:
        (directory / "passages.sqlite").write_bytes(b"half")
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(files, "pull_files", fill)
    with pytest.raises(UnavailableError, match="No space left on device: make room"):
        restore_shard(archiving.directory, "", NoProgress())
    assert present(archiving.directory) == ["live", "live/archive.json", "live/lock", SHARD_FILE]
    monkeypatch.undo()
    await archiving.check()


async def test_tools_and_older_versions_refuse_an_archived_shard(archiving: Archiving) -> None:
    """Older versions know formats up to 4, so the format of a stub is another one."""
    await (await archiving.archive()).close()
    assert json.loads((archiving.directory / SHARD_FILE).read_text())["format"] == 5
    for use in (
        lambda: read_shard_manifest(archiving.directory),
        lambda: open_shard(archiving.directory, ef=64),
        lambda: take_snapshot(archiving.directory, archiving.url + "2", NoProgress(), now),
    ):
        with pytest.raises(ArtefactError, match=r"is archived at .*archive: start a node"):
            use()


async def test_a_shard_that_was_never_written_to_can_be_archived(tmp_path: Path) -> None:
    directory = built(tmp_path, {stored_id("a", "p"): "a text"}, tenants=True)
    archiving = Archiving(
        directory, str(tmp_path / "archive"), {stored_id("a", "p"): "a text"}, "", 0
    )
    await (await archiving.archive()).close()
    await archiving.check()


async def test_a_restarted_node_finishes_the_removal_and_holds_the_directory(
    archiving: Archiving,
) -> None:
    await (await archiving.archive()).close()
    (archiving.directory / "graph.hnsw").write_bytes(b"left by a kill")
    shard = archiving.shard()
    stub = await shard.begin()
    assert stub is not None
    assert stub == shard.stub
    assert present(archiving.directory) == ["live", "live/archive.json", "live/lock", SHARD_FILE]
    with pytest.raises(ArtefactError, match="held by another node"):
        lock_shard(archiving.directory)
    await shard.close()
    await archiving.check()


async def test_a_directory_that_cannot_be_used_now_is_not_held(
    archiving: Archiving, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The shard is opened again later, while the error may still be referred to."""
    await (await archiving.archive()).close()

    def fail(_: str) -> None:
        raise OSError(errno.EIO, "I/O error")

    (archiving.directory / "graph.hnsw").write_bytes(b"left by a kill")
    monkeypatch.setattr(files, "reach", fail)
    with pytest.raises(ArtefactError, match="cannot be used: I/O error") as told:
        await archiving.shard().begin()
    monkeypatch.undo()
    assert told.value.__cause__ is not None
    shard = archiving.shard()
    assert await shard.begin() is not None
    await shard.close()


async def test_a_restore_that_ends_with_its_node_is_no_failure(
    archiving: Archiving, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Otherwise an alert would fire."""
    shard = await archiving.archive()
    monkeypatch.setattr(shard, "_open_shard", asyncio.Event().wait)  # never ends
    with structlog.testing.capture_logs() as logged:
        restoring = shard.gate.begin_restore()
        await turn()
        await shard.close()
    assert restoring is not None
    assert restoring.cancelled()
    assert logged == []
    await archiving.check()


async def test_calls_that_wait_share_one_restore(archiving: Archiving) -> None:
    await (await archiving.archive()).close()
    restores = []
    shard = archiving.shard(lambda: restores.append(1))
    await shard.begin()

    async def write(number: int) -> int:
        async with shard.gate.enter(Deadline.after(60)) as inside:
            written = await inside.live.write(
                [put(stored_id("b", f"n{number}"))], Deadline.after(60)
            )
        return written[0].sequence

    assert sorted(await asyncio.gather(*map(write, range(5)))) == [3, 4, 5, 6, 7]
    assert restores == [1]
    assert shard.stub is None
    assert shard.gate.opened is not None
    await shard._close_shard()


async def test_shards_are_restored_in_turn_and_calls_wait_until_their_deadlines(
    archiving: Archiving,
) -> None:
    archives = Archives(archiving.url, ArchivePolicy(60), asyncio.Semaphore(1))
    shard = archiving.shard(archives=archives)
    await shard.begin()
    assert await shard.archive()
    async with archives.restores:  # another shard is being restored
        with pytest.raises(RestoringError):
            async with shard.gate.enter(Deadline.after(0.01)):
                pass
        assert read_stub(archiving.directory) is not None
    async with shard.gate.enter(Deadline.after(60)) as inside:
        assert contents(inside.live) == archiving.passages
        await inside.live.close()
    await archiving.check()


async def test_a_restore_from_another_archive_names_both_and_loses_nothing(
    archiving: Archiving, tmp_path: Path
) -> None:
    await (await archiving.archive()).close()
    elsewhere = str(tmp_path / "elsewhere")
    Path(elsewhere).mkdir()
    with pytest.raises(NotFoundError) as refused:
        restore_shard(archiving.directory, elsewhere, NoProgress())
    assert f"was archived at {archiving.url}, but {elsewhere} has no copy" in str(refused.value)
    assert "correct --archive-url" in str(refused.value)
    assert restore_shard(archiving.directory, archiving.url, NoProgress()) is not None


async def test_a_copy_ends_soon_after_its_shard_is_closed(
    archiving: Archiving, monkeypatch: pytest.MonkeyPatch
) -> None:
    shard = archiving.shard()
    await shard.begin()
    closings: list[asyncio.Future[None]] = []
    loop, reached = asyncio.get_running_loop(), list[str]()

    def close(point: str) -> None:
        reached.append(point)
        if not closings:
            closings.append(asyncio.run_coroutine_threadsafe(shard.close(), loop))  # type: ignore[arg-type]
            closings[0].result()

    monkeypatch.setattr(files, "reach", close)
    assert not await shard.archive()
    assert reached == ["archive.uploaded"]
    await shard._close_shard()
