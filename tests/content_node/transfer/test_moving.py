"""A shard moves to another node: it is copied, followed and handed over, over real gRPC."""

import asyncio
import shutil
from collections.abc import AsyncIterator, Callable
from contextlib import aclosing, asynccontextmanager
from pathlib import Path

import pytest
from damaged_files import flip_bit
from doubtful_commits import doubt
from fake_split_reader import lower
from live_shards import built
from live_writes import delete, put
from moving_shards import INDEX, Holder, holding, merged, moves, opened, store

from winnow.content_node.live.custody import (
    CUSTODY_FILE,
    OWNED,
    Custody,
    Role,
    read_custody,
    write_custody,
)
from winnow.content_node.live.shard import LiveShard
from winnow.content_node.states.manifest import DATA
from winnow.content_node.states.writing import StatesWriter
from winnow.content_node.transfer.batches import check_copied_log
from winnow.content_node.transfer.following import LogFollower
from winnow.content_node.transfer.receiving import receive_shard
from winnow.content_node.transfer.remote import PeerCopy, PeerShard
from winnow.deadline import Deadline
from winnow.errors import (
    ArtefactError,
    IdentityError,
    NotWritableError,
    OverloadedError,
    UnavailableError,
    WinnowError,
)
from winnow.storage.pull import NoProgress
from winnow.v1.shard_transfer_pb2 import OpenCopyResponse, ShardFile

TEXTS = {"a": "one two", "b": "two two three", "c": "four"}


@pytest.fixture
async def owner(tmp_path: Path) -> AsyncIterator[Holder]:
    async with holding(built(tmp_path, TEXTS)) as holder:
        yield holder


@asynccontextmanager
async def peer(owner: Holder, name: str = "new") -> AsyncIterator[PeerShard]:
    async with moves(name, old=owner.address).open_shard("old", INDEX, 0) as shard:
        yield shard


async def copied(owner: Holder, directory: Path, feeding: bool = True) -> Path:
    async with peer(owner) as shard:
        await receive_shard(shard, "old", directory, NoProgress(), feeding=feeding)
    return directory


def follower(copy: LiveShard, owner: Holder) -> LogFollower:
    nodes = moves("new", old=owner.address)
    return LogFollower(copy, lambda node: nodes.open_shard(node, INDEX, 0))


async def test_a_shard_that_takes_no_writes_is_only_copied(owner: Holder, tmp_path: Path) -> None:
    owner.allow_transfer(takes_writes=False)
    directory = await copied(owner, tmp_path / "copy", feeding=False)
    copy = opened(directory)
    assert copy.custody == OWNED
    assert copy.view.generation == owner.shard.view.generation
    await copy.close()


async def test_a_moved_shard_has_every_write_and_takes_the_next_ones(
    owner: Holder, tmp_path: Path
) -> None:
    await store(owner.shard, put("d", "before the copy"))
    directory = await copied(owner, tmp_path / "copy")
    copy = opened(directory)
    assert copy.custody == Custody(Role.FOLLOWER, "old")
    await store(owner.shard, put("e", "after the copy"), delete("a"))
    await follower(copy, owner).run()
    assert (copy.sequence, copy.log_id) == (3, owner.shard.log_id)
    assert copy.custody == Custody(moves=1)
    with pytest.raises(UnavailableError, match="has moved to node new"):
        await owner.shard.write([put("f")], Deadline.after(60))
    assert await store(copy, put("f")) == 4
    await copy.close()
    again = opened(directory)
    assert (again.sequence, again.view.passages) == (4, 5)
    await again.close()


async def test_a_copy_lacks_a_write_whose_commit_has_failed(owner: Holder, tmp_path: Path) -> None:
    await store(owner.shard, put("d", "first"))
    doubt(owner.shard._log)
    with pytest.raises(OverloadedError):
        await owner.shard.write([put("d", "failed")], Deadline.after(60))
    copy = opened(await copied(owner, tmp_path / "copy"))
    assert copy.sequence == 1
    await store(owner.shard, put("d", "later"))
    await follower(copy, owner).run()
    (last,) = copy.logged_after(1, 10)
    assert last.put is not None
    assert last.put.passage.text == "later"
    await copy.close()


async def test_a_copy_with_a_write_that_failed_meanwhile_is_refused(owner: Holder) -> None:
    await store(owner.shard, put("d"))
    with pytest.raises(UnavailableError, match="copied with write 1, which then failed"):
        await check_copied_log(owner.shard, 1, b"the link of another write")


async def test_a_copy_takes_no_writes_before_the_owner_has_handed_over(
    owner: Holder, tmp_path: Path
) -> None:
    copy = opened(await copied(owner, tmp_path / "copy"))
    with pytest.raises(UnavailableError, match="is moving here from node old"):
        await copy.write([put("d")], Deadline.after(60))
    with pytest.raises(UnavailableError, match="this copy"):
        await owner.shard.store_followed([], owner.shard.log_id)
    await copy.close()


async def test_the_first_write_of_a_shard_creates_the_same_log_on_both_nodes(
    owner: Holder, tmp_path: Path
) -> None:
    copy = opened(await copied(owner, tmp_path / "copy"))
    assert not copy.log_id
    async with peer(owner) as shard, aclosing(shard.follow(0)) as batches:
        assert not (await anext(batches)).writes
        await store(owner.shard, put("d"))
        batch = await anext(batches)
        await copy.store_followed(batch.writes, batch.log_id)
    assert copy.log_id == owner.shard.log_id
    assert copy.sequence == 1
    await copy.close()


async def test_a_merge_keeps_the_writes_that_a_copy_still_needs(
    owner: Holder, tmp_path: Path
) -> None:
    await store(owner.shard, put("d"))
    copy = opened(await copied(owner, tmp_path / "copy"))
    await store(owner.shard, put("e"))
    await merged(owner.shard, owner.directory)
    assert owner.shard.trimmed == 1  # the copy lacks the second
    await follower(copy, owner).run()
    assert copy.sequence == 2
    await copy.close()


async def test_a_copy_that_stayed_too_far_behind_must_be_copied_again(
    owner: Holder, tmp_path: Path
) -> None:
    await store(owner.shard, put("d"))
    shutil.copytree(owner.directory, tmp_path / "copy")
    write_custody(tmp_path / "copy", Custody(Role.FOLLOWER, "old"))
    copy = opened(tmp_path / "copy")
    await store(owner.shard, put("e"))
    await merged(owner.shard, owner.directory)
    assert owner.shard.trimmed == 2
    with pytest.raises(ArtefactError, match="copy the shard again"):
        await follower(copy, owner).run()
    await copy.close()


async def test_a_former_owner_keeps_the_writes_that_the_new_owner_may_lack(
    owner: Holder, tmp_path: Path
) -> None:
    """The new owner may have been killed before it stored them, and the old one after."""
    copy = opened(await copied(owner, tmp_path / "copy"))
    await store(owner.shard, put("d"))
    await owner.shard.hand_over("new")
    await owner.restart()
    await merged(owner.shard, owner.directory)
    await follower(copy, owner).run()
    assert (copy.sequence, copy.custody) == (1, Custody(moves=1))
    await copy.close()


async def test_reading_a_copy_keeps_the_writes_after_it(owner: Holder, tmp_path: Path) -> None:
    await store(owner.shard, put("d"))
    held: list[int] = []
    async with peer(owner) as shard:
        copy = await shard.open_copy()

        def hold_log(node: str, after: int) -> None:
            assert node == "new"
            held.append(after)

        owner.shard.hold_log = hold_log  # type: ignore[method-assign]
        path = next(iter(copy.files))
        await asyncio.to_thread(copy.download, path, tmp_path / "file", lambda _: None)
    assert set(held) == {1}


@pytest.mark.parametrize("path", ["../escaped", "/escaped", "live/../../escaped", ""])
async def test_a_file_outside_of_the_shard_is_refused(owner: Holder, path: str) -> None:
    reply = OpenCopyResponse(copy="id", files=[ShardFile(path=path, sha256="0", bytes=1)])
    async with peer(owner) as shard:
        with pytest.raises(UnavailableError, match="sent the invalid file path"):
            PeerCopy(shard, reply)


async def test_a_copy_that_was_not_dropped_takes_over_after_all(
    owner: Holder, tmp_path: Path
) -> None:
    copy = opened(await copied(owner, tmp_path / "copy"))
    following = follower(copy, owner)
    assert await following.try_prepare_drop()
    following.cancel_drop()
    await following.run()
    assert copy.custody.takes_writes
    await copy.close()


async def test_a_copy_that_is_ahead_of_its_owner_is_refused(owner: Holder) -> None:
    async with peer(owner) as shard, aclosing(shard.follow(7)) as batches:
        with pytest.raises(IdentityError, match="ends at write 0"):
            await anext(batches)


async def test_a_shard_is_handed_over_to_one_node_only(owner: Holder) -> None:
    async with peer(owner) as shard:
        first = await shard.hand_over()
        assert await shard.hand_over() == first
    async with peer(owner, "other") as shard:
        with pytest.raises(IdentityError, match="handed over to node new"):
            await shard.hand_over()
    async with peer(owner, "") as shard:
        with pytest.raises(WinnowError, match=r"transfer\.node: it is empty"):
            await shard.hand_over()


async def test_both_nodes_remember_after_a_crash_who_takes_the_writes(
    owner: Holder, tmp_path: Path
) -> None:
    copy = opened(await copied(owner, tmp_path / "copy"))
    async with peer(owner) as shard:
        await shard.hand_over()
    await copy.close()
    await owner.restart()
    with pytest.raises(UnavailableError, match="has moved to node new"):
        await owner.shard.write([put("d")], Deadline.after(60))
    copy = opened(tmp_path / "copy")
    await follower(copy, owner).run()
    await copy.close()
    assert read_custody(tmp_path / "copy") == Custody(moves=1)


async def test_a_copy_may_be_dropped_unless_the_owner_has_handed_over(
    owner: Holder, tmp_path: Path
) -> None:
    """`try_prepare_drop` asks the owner, so that the shard never has no owner."""
    copy = opened(await copied(owner, tmp_path / "copy"))
    for handed_over in (False, True):
        if handed_over:
            await owner.shard.hand_over("new")
        following = follower(copy, owner)
        assert await following.try_prepare_drop() is not handed_over
    await copy.close()


async def test_a_copy_that_may_be_dropped_never_becomes_the_owner(
    owner: Holder, tmp_path: Path
) -> None:
    copy = opened(await copied(owner, tmp_path / "copy"))
    following = follower(copy, owner)
    assert await following.try_prepare_drop()
    running = asyncio.create_task(following.run())
    await store(owner.shard, put("d"))
    await copy.wait_for_write(1, Deadline.after(60))
    await store(owner.shard, put("e"))
    await copy.wait_for_write(2, Deadline.after(60))
    assert owner.shard.custody == OWNED
    running.cancel()
    await asyncio.wait([running])
    await copy.close()


async def test_a_node_without_feeding_receives_no_shard_that_takes_writes(
    owner: Holder, tmp_path: Path
) -> None:
    with pytest.raises(ArtefactError, match="start this node with --feed"):
        await copied(owner, tmp_path / "copy", feeding=False)
    assert not (tmp_path / "copy").exists()


async def test_an_interrupted_copy_is_resumed(owner: Holder, tmp_path: Path) -> None:
    async with peer(owner) as shard:
        copy = await shard.open_copy()
        (first, file), *_ = copy.files.items()
        target = tmp_path / "copy.partial" / "content" / first
        target.parent.mkdir(parents=True)
        await asyncio.to_thread(copy.download, file.path, target, lambda _: None)
        written = target.stat().st_ino
    directory = await copied(owner, tmp_path / "copy")
    assert (directory / first).stat().st_ino == written


async def test_a_file_that_is_damaged_on_its_way_is_refused(owner: Holder, tmp_path: Path) -> None:
    flip_bit(owner.directory / "postings.npy")
    with pytest.raises(ArtefactError, match=r"postings.npy of the shard at node old is damaged"):
        await copied(owner, tmp_path / "copy")
    assert not (tmp_path / "copy").exists()


def cut_short(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-9])


@pytest.mark.parametrize("damage", [flip_bit, cut_short])
async def test_damaged_states_stop_no_move(
    owner: Holder, tmp_path: Path, damage: Callable[[Path], None]
) -> None:
    """The node that receives the shard computes them for each question, as the owner does."""
    StatesWriter(owner.directory, lower()).write(1, lambda *_: None, lambda _: None)
    damage(owner.directory / DATA)
    directory = await copied(owner, tmp_path / "copy")
    assert not (directory / DATA).exists()
    await opened(directory).close()


async def test_an_unknown_node_and_a_silent_one_are_named(owner: Holder) -> None:
    with pytest.raises(UnavailableError, match="node gone is not in the assignment"):
        async with moves("new").open_shard("gone", INDEX, 0):
            raise AssertionError
    async with moves("new", old="127.0.0.1:1").open_shard("old", INDEX, 0) as shard:
        with pytest.raises(UnavailableError, match=r"127\.0\.0\.1:1"):
            await shard.hand_over()


async def test_a_shard_of_another_index_is_not_sent(owner: Holder) -> None:
    async with moves("new", old=owner.address).open_shard("old", "another", 0) as shard:
        with pytest.raises(IdentityError, match="this node serves index index"):
            await shard.hand_over()


@pytest.mark.parametrize("content", [b"", b"{}", b'{"role": "king", "node": "x"}', b"[1]"])
def test_damaged_custody_is_refused_by_name(tmp_path: Path, content: bytes) -> None:
    """To take writes by mistake would lose them."""
    directory = built(tmp_path, TEXTS)
    (directory / "live").mkdir()
    (directory / "live" / CUSTODY_FILE).write_bytes(content)
    with pytest.raises(ArtefactError, match=r"custody\.json is damaged"):
        opened(directory)


async def test_a_shard_that_follows_a_journal_is_not_handed_over(owner: Holder) -> None:
    await owner.shard.store_from_journal([], "0", "journal-x")
    async with peer(owner) as shard:
        with pytest.raises(NotWritableError, match="follows a journal"):
            await shard.hand_over()
