"""The deletion of a whole tenant: at once for all calls, and from the disk with the next merge."""

from dataclasses import replace
from pathlib import Path

import pytest
from live_shards import TENANT_LIMITS, built, opened
from live_writes import delete, encoded, put

from winnow.content_node.live.reading import log_path
from winnow.content_node.live.shard import LiveShard
from winnow.content_node.merging.merge import merge
from winnow.content_node.merging.tidying import remove_obsolete
from winnow.content_node.shard import open_shard
from winnow.content_node.shard.manifest import read_shard_manifest
from winnow.content_node.snapshots.contents import open_shard_files
from winnow.content_node.splitting.write_half import write_half
from winnow.deadline import Deadline
from winnow.domain.partition import halves_of
from winnow.domain.tenant import id_of_whole_tenant, prefix_of, stored_id
from winnow.domain.write import Outcome, Write
from winnow.errors import InvalidRequestError

WHOLE = Write(id_of_whole_tenant("acme"))
S, U = Outcome.STORED, Outcome.UNCHANGED


def text(tenant: str, number: int) -> str:
    return f"the secret of {tenant} number {number}"


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    """A shard with 30 passages of two tenants each, and 300 of another."""
    texts = {
        stored_id(tenant, f"p{number}"): text(tenant, number)
        for tenant, passages in (("acme", 30), ("acme2", 30), ("b", 300))
        for number in range(passages)
    }
    return built(tmp_path, texts, tenants=True)


async def write(shard: LiveShard, *writes: Write) -> list[Outcome]:
    return [each.outcome for each in await shard.write(writes, Deadline.after(60))]


def passages_of(shard: LiveShard, tenant: str) -> list[str]:
    """The ids of the passages that are served."""
    prefix = prefix_of(tenant)
    found = []
    for placed in shard.view.segments:
        rows = placed.segment.rows_with_prefix(prefix)
        live = rows if placed.live_rows is None else rows[placed.live_rows[rows]]
        found += [each for each, _ in placed.segment.ids_and_sequences(live.tolist())]
    return sorted(each.removeprefix(prefix) for each in found)


async def fed(directory: Path) -> LiveShard:
    """The shard with unmerged writes of two tenants, one of them a deletion with a version."""
    shard = opened(directory)
    for tenant in ("acme", "b"):
        await write(
            shard,
            *(
                put(stored_id(tenant, f"new{number}"), text(tenant, 50 + number))
                for number in range(9)
            ),
            put(stored_id(tenant, "p0"), text(tenant, 70), 5),
            delete(stored_id(tenant, "p1"), 7),
        )
    return shard


async def merged(shard: LiveShard, directory: Path) -> bool:
    """Merges all writes, serves the result, and removes what it replaced, if no node needs it."""
    done = merge(shard.directory, directory, shard.sequence)
    await shard.swap(open_shard(Path(done.directory), ef=64))
    remove_obsolete(directory, shard.merged)
    return await shard.trim(shard.merged)


async def test_all_passages_of_a_tenant_are_gone_at_once_and_those_of_others_stay(
    directory: Path,
) -> None:
    """In one view, durably, and although a later write of the tenant follows in the same call."""
    shard = await fed(directory)
    others = {each: passages_of(shard, each) for each in ("acme2", "b")}
    before = shard.view.passages
    gone = len(passages_of(shard, "acme"))
    assert gone == 38
    kept = put(stored_id("acme", "p1"), "written later", 6)
    assert await write(shard, WHOLE, kept, WHOLE, kept) == [S, S, S, S]
    assert passages_of(shard, "acme") == ["p1"]
    assert shard.view.passages == before - gone + 1
    await shard.close()
    again = opened(directory)
    assert passages_of(again, "acme") == ["p1"]
    assert {each: passages_of(again, each) for each in others} == others
    assert await write(again, WHOLE) == [S]
    assert await write(again, WHOLE, Write(id_of_whole_tenant("nobody"))) == [U, U]
    await again.close()


async def test_a_log_that_another_node_copies_tells_that_it_must_be_trimmed_again(
    directory: Path,
) -> None:
    shard = await fed(directory)
    shard.hold_log("copy", 0)
    await write(shard, WHOLE)
    assert not await merged(shard, directory)
    assert _holding(directory, b"secret of acme number")
    shard.hold_log("copy", shard.sequence)
    assert await shard.trim(shard.merged)
    assert not _holding(directory, b"secret of acme number")
    await shard.close()


@pytest.mark.graph
@pytest.mark.parametrize("merged_before", [False, True])
async def test_no_byte_of_a_deleted_tenant_is_on_the_disk_after_a_merge(
    directory: Path, merged_before: bool
) -> None:
    """Neither texts, ids nor vectors: in no file of the shard."""
    shard = await fed(directory)
    if merged_before:
        await merged(shard, directory)
    secrets = [b"secret of acme number", b"acme\x1f"]
    secrets += [encoded("", text("acme", number)).vector for number in (3, 50, 70)]
    assert [each for each in secrets if not _holding(directory, each)] == []
    await write(shard, WHOLE)
    await write(shard, put(stored_id("b", "after"), "one more"))
    await merged(shard, directory)
    assert [each for each in secrets if _holding(directory, each)] == []
    assert _holding(directory, b"secret of acme2 number")
    assert passages_of(shard, "acme") == []
    assert len(passages_of(shard, "b")) == 309
    await shard.close()
    again = opened(directory)
    assert len(passages_of(again, "b")) == 309
    await again.close()


def _holding(directory: Path, content: bytes) -> list[str]:
    """The names of the files that have some bytes."""
    return [
        path.name
        for path in directory.rglob("*")
        if path.is_file() and content in path.read_bytes()
    ]


async def test_a_shard_without_its_built_passages_is_copied(directory: Path) -> None:
    shard = await fed(directory)
    await merged(shard, directory)
    store = read_shard_manifest(directory).store
    assert not (directory / store).exists()
    with open_shard_files(directory) as contents:
        paths = {each.path for each in contents.files}
    assert f"live/{shard.directory.name}/{store}" in paths
    assert store not in paths
    await shard.close()


async def test_both_halves_of_a_split_shard_delete_a_tenant(
    directory: Path, tmp_path: Path
) -> None:
    """Also of a shard without its built passages. Each half takes the same write."""
    shard = await fed(directory)
    await merged(shard, directory)
    found = []
    for half in halves_of(0, 1):
        target = tmp_path / f"half-{half}"
        target.mkdir()
        write_half(shard.directory, directory, half, target, following=False)
        own = opened(target, replace(TENANT_LIMITS, shard=half))
        found.append(passages_of(own, "acme"))
        assert found[-1]
        assert await write(own, WHOLE) == [S]
        assert passages_of(own, "acme") == []
        assert passages_of(own, "b")
        await own.close()
    assert sorted(found[0] + found[1]) == passages_of(shard, "acme")
    await shard.close()


async def test_the_deletion_of_a_tenant_is_merged_soon(directory: Path) -> None:
    shard = await fed(directory)
    assert shard.merge_backlog().since_tenant_deletion is None
    await write(shard, WHOLE)
    waited = shard.merge_backlog()
    assert waited.since_tenant_deletion is not None
    await shard.close()
    again = opened(directory)
    assert again.merge_backlog().since_tenant_deletion is not None
    await merged(again, directory)
    assert again.merge_backlog().since_tenant_deletion is None
    await again.close()


async def test_a_passage_cannot_have_the_id_of_a_whole_tenant(directory: Path) -> None:
    shard = opened(directory)
    with pytest.raises(InvalidRequestError, match="not the id of a passage"):
        await write(shard, put(id_of_whole_tenant("acme")))
    assert not log_path(directory).exists()
    await shard.close()
