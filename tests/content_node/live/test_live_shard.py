"""A shard that takes writes: durable, then served, and told in the end."""

import asyncio
import shutil
import threading
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path
from unittest.mock import Mock

import pytest
from live_writes import delete, digested, encoded, put
from manual_clock import ManualClock
from prometheus_client import CollectorRegistry
from tenacious import LONG, turn
from unpacked import tokens, vector

from winnow.content_node.live.disk_metrics import DiskMetrics
from winnow.content_node.live.limits import WriteLimits
from winnow.content_node.live.loading import open_live
from winnow.content_node.live.reading import log_path
from winnow.content_node.live.shard import LiveShard
from winnow.content_node.live.state import LiveState
from winnow.content_node.merging.merge import merge
from winnow.content_node.metrics import WriteMetrics
from winnow.content_node.shard import ShardView, open_shard
from winnow.convert.lazy import LazySequence
from winnow.deadline import Deadline
from winnow.domain.write import Outcome, Write, Written
from winnow.errors import (
    ArtefactError,
    DeadlineExceededError,
    InvalidRequestError,
    NotWritableError,
    OverloadedError,
)

GOLDEN = Path(__file__).parent.parent.parent / "golden" / "shard-format-3"
LIMITS = WriteLimits(shard=0, shards=1, dimension=8, vocabulary=1_000, max_unmerged=10_000)
S, U, O = Outcome.STORED, Outcome.UNCHANGED, Outcome.OUTDATED  # noqa: E741


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    return Path(shutil.copytree(GOLDEN, tmp_path / "shard"))


def opened(
    directory: Path,
    limits: WriteLimits = LIMITS,
    base: Path | None = None,
    registry: CollectorRegistry | None = None,
) -> LiveShard:
    return open_live(
        directory,
        lambda _: open_shard(base or directory, ef=64),
        lambda _: limits,
        WriteMetrics(registry or CollectorRegistry()),
        feeding=not limits.refusal,
    )


@pytest.fixture
async def shard(directory: Path) -> AsyncIterator[LiveShard]:
    live = opened(directory)
    yield live
    await live.close()


async def write(shard: LiveShard, *writes: Write) -> list[tuple[Outcome, int]]:
    written = await shard.write(writes, Deadline.after(60))
    return [(each.outcome, each.sequence) for each in written]


def there(view: ShardView) -> dict[str, tuple[str, int]]:
    """What a view holds: for each id its text, and the write that put it."""
    found: dict[str, tuple[str, int]] = {}
    for placed in view.segments:
        alive = range(placed.segment.rows)
        for row in alive:
            if placed.live_rows is None or placed.live_rows[row]:
                [(identifier, sequence)] = view.ids_and_sequences([placed.first_row + row])
                assert identifier not in found
                found[identifier] = (view.load(placed.first_row + row).passage.text, sequence)
    assert len(found) == view.passages
    return found


BUILT = {"a": ("First.", 0), "b": ("Zoë's café.", 0), "c": ("🎻", 0)}


async def test_a_live_shard_without_writes_equals_its_base(directory: Path) -> None:
    before = sorted(path.name for path in directory.iterdir())
    live = opened(directory)
    assert there(live.view) == BUILT
    assert (live.sequence, live.merged, live.view.log_id) == (0, 0, "")
    assert live.view.generation == open_shard(directory, ef=64).generation
    await live.close()
    assert sorted(path.name for path in directory.iterdir()) == before


async def test_the_result_of_a_write_names_its_log(shard: LiveShard) -> None:
    [first] = await shard.write([put("d", "one")], Deadline.after(60))
    assert first.log_id == shard.log_id != ""


async def test_writes_are_served_in_their_order(shard: LiveShard) -> None:
    served: list[ShardView] = []
    shard.on_new_view(served.append)
    assert await write(shard, put("d", "one"), put("a", "two"), delete("b")) == [
        (S, 1),
        (S, 2),
        (S, 3),
    ]
    [view] = served
    assert there(view) == {"a": ("two", 2), "c": BUILT["c"], "d": ("one", 1)}
    assert (view.sequence, view.rows) == (3, 5)
    assert await write(shard, put("d", "three"), put("d", "four"), delete("d"), put("b", "x")) == [
        (S, 4),
        (S, 5),
        (S, 6),
        (S, 7),
    ]
    assert there(served[-1]) == {"a": ("two", 2), "b": ("x", 7), "c": BUILT["c"]}
    assert there(view) == {"a": ("two", 2), "c": BUILT["c"], "d": ("one", 1)}
    assert len({each.generation for each in served}) == 1
    assert served[-1].load(3).passage.text == "one"  # rows stay what they were


async def test_token_vectors_of_writes_are_kept_before_questions_see_the_passages(
    shard: LiveShard,
) -> None:
    """The log has none, and computing them takes time."""
    events: list[object] = []
    shard.on_stored(
        lambda writes: events.extend(
            (each.sequence, each.put.token_levels) for each in writes if each.put is not None
        )
    )
    shard.on_new_view(lambda view: events.append(view.sequence))
    sent = Write("d", None, replace(encoded("d"), token_levels=b"levels"))
    await write(shard, sent, sent)
    assert events == [(1, b"levels"), 1]


async def test_a_write_that_changes_nothing_is_not_logged(shard: LiveShard) -> None:
    served: list[ShardView] = []
    shard.on_new_view(served.append)
    await write(shard, put("d", "one", version=5))
    assert await write(shard, put("d", "one", 5), put("d", "other", 4), delete("d", 3)) == [
        (U, 1),
        (O, 1),
        (O, 1),
    ]
    assert await write(shard, delete("nothing"), put("a", "First.")) == [(U, 1), (U, 1)]
    assert len(served) == 1
    assert await write(shard, put("a", "First.", version=1)) == [(S, 2)]


async def test_each_write_of_a_tenant_has_its_own_number_even_if_it_changes_nothing(
    directory: Path,
) -> None:
    """Equal numbers would tell a tenant that no other one wrote meanwhile."""
    live = opened(directory, replace(LIMITS, has_tenants=True))
    one, none = put("acme\x1fa", "one"), delete("acme\x1fnone")
    assert await write(live, one, one, none, none) == [(S, 1), (U, 2), (U, 3), (U, 4)]
    assert await write(live, delete("acme\x1fz", 7), delete("acme\x1fz", 6)) == [(S, 5), (O, 6)]
    for number in (7, 8):
        found = await live.find_unchanged([digested(one)], Deadline.after(60))
        assert found == [Written(U, number)]
    assert await live.find_unchanged([digested(put("acme\x1fnew"))], Deadline.after(60)) == [None]
    view = live.view
    assert (view.sequence, view.passages) == (8, 4)
    await live.close()
    live = opened(directory, replace(LIMITS, has_tenants=True))
    assert await write(live, put("acme\x1fz", "old", 5), one) == [(O, 9), (U, 10)]
    assert there(live.view) == {**BUILT, "acme\x1fa": ("one", 1)}
    await live.close()


def said(metadata: str) -> Write:
    return Write("d", None, encoded("d", metadata=metadata))


async def test_metadata_in_other_words_changes_nothing(shard: LiveShard) -> None:
    await write(shard, said('{"b": 1.0, "a": 1}'))
    assert await write(shard, said('{"a": 1, "b": 1}'), said('{"a": 1, "b": 2}')) == [
        (U, 1),
        (S, 2),
    ]


async def test_an_entry_of_a_journal_is_decided_as_by_replicas_of_older_versions(
    shard: LiveShard,
) -> None:
    """They compare to the letter, and all have to number writes alike."""
    written = await shard.store_from_journal(
        [said('{"a": 1.0}'), said('{"a": 1}'), said('{"a": 1}')], "1"
    )
    assert [(each.outcome, each.sequence) for each in written] == [(S, 1), (S, 2), (U, 2)]


@pytest.mark.parametrize("in_base", [False, True])
async def test_unchanged_puts_are_found_by_their_digests(directory: Path, in_base: bool) -> None:
    """Those since the base and those in it, each as a write of it would be judged."""
    live = opened(directory)
    await write(live, said('{"b": 1.0}'), put("e", "one", 5), delete("b"), delete("z", 7))
    if in_base:
        await live.swap(open_shard(merged(directory, live), ef=64))
    puts = [
        *(put("a", "First."), put("a", "other"), said('{"b": 1}'), said('{"b": 2}')),
        *(put("e", "one", 5), put("e", "one", 4), put("e", "one"), put("e", "one", 6)),
        *(put("b", "Zoë's café."), put("z", "old", 6), put("z", "new", 8), put("new")),
    ]
    found = await live.find_unchanged([*map(digested, puts)], Deadline.after(60))
    wanted = [U, None, U, None, U, O, U, None, None, O, None, None]
    assert [each and each.outcome for each in found] == wanted
    assert {each.sequence for each in found if each} == {4}
    for one, outcome in zip(puts, wanted, strict=True):
        if outcome is not None:
            assert await write(live, one) == [(outcome, 4)]
    await live.close()


async def test_a_shard_that_takes_no_writes_compares_nothing(directory: Path) -> None:
    live = opened(directory, replace(LIMITS, refusal="start the node with --feed"))
    with pytest.raises(NotWritableError, match="--feed"):
        await live.find_unchanged([digested(put("a"))], Deadline.after(60))
    await live.close()


async def test_passages_are_not_compared_after_the_deadline(
    shard: LiveShard, monkeypatch: pytest.MonkeyPatch
) -> None:
    """After a disk that stood still, writes would else wait behind comparisons for nobody."""
    compare = Mock(return_value=[None])
    monkeypatch.setattr(LiveState, "find_unchanged", compare)
    clock, goes_on = ManualClock(), threading.Event()
    storing = asyncio.create_task(shard._group.run_alone(goes_on.wait))
    asking = asyncio.create_task(
        shard.find_unchanged([digested(put("a"))], Deadline.after(1, clock))
    )
    await turn()
    clock.advance(2)
    goes_on.set()
    with pytest.raises(DeadlineExceededError):
        await asking
    assert await storing
    compare.assert_not_called()


async def test_a_call_about_too_many_passages_is_refused(shard: LiveShard) -> None:
    many = [digested(put("a"))] * 10_001
    with pytest.raises(InvalidRequestError, match="10001 elements, at most 10000"):
        await shard.find_unchanged(many, Deadline.after(60))


async def test_an_older_put_does_not_bring_back_a_deleted_passage(directory: Path) -> None:
    """Neither where the deletion had a version, nor where only the passage had one."""
    live = opened(directory)
    await write(live, delete("z", 7), put("y", "one", 3), delete("y", 9))
    assert await write(live, put("z", "old", 6), put("y", "old", 8)) == [(O, 3), (O, 3)]
    await write(live, put("x", "one", 3), delete("x"))
    assert await write(live, put("x", "old", 2)) == [(O, 5)]
    await live.close()
    again = opened(directory)
    assert await write(again, put("z", "old", 6), put("y", "old", 8)) == [(O, 5), (O, 5)]
    assert await write(again, put("z", "new", 7)) == [(S, 6)]
    await again.close()


async def test_everything_is_there_when_it_is_opened_again(directory: Path) -> None:
    live = opened(directory)
    for n in range(30):
        await write(live, put(f"p{n % 7}", f"text {n}"), delete(f"p{n % 5}"))
    before, changes = live.view, await live.changes(Deadline.after(LONG))
    await live.close()
    again = opened(directory)
    after = again.view
    assert there(after) == there(before)
    same = ("generation", "sequence", "log_id", "passages", "rows")
    assert [getattr(after, name) for name in same] == [getattr(before, name) for name in same]
    for row in range(after.rows):
        assert after.load(row) == before.load(row)
    found = await again.changes(Deadline.after(LONG))
    assert found.ids.tolist() == changes.ids.tolist()
    assert found.by.tolist() == changes.by.tolist()
    assert (found.passages, found.tokens) == (changes.passages, changes.tokens)
    await again.close()


async def test_words_that_writes_brought_and_took_are_counted(shard: LiveShard) -> None:
    deadline = Deadline.after(60)
    built = await shard.word_counts_at_build(deadline)
    assert (built.total, built.tokens) == (3, 12)
    await write(shard, put("d", "one two two"), put("d", "one"), delete("a"))
    changes = await shard.changes(deadline)
    counts = dict(zip(changes.ids.tolist(), changes.by.tolist(), strict=True))
    one = put("d", "one").put
    assert one is not None
    gone = {1: -1, 2: -1, 3: -1, 9: -1}  # of "a"
    assert counts == {**gone, 7: 1, 8: 1, tokens(one).ids[0]: 1}
    assert (changes.sequence, changes.passages, changes.tokens) == (3, 0, 3 - 4)


async def test_writes_are_converted_and_stored_in_the_thread_that_commits(
    shard: LiveShard, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A write changes threads once on a node."""
    threads: list[str] = []

    def convert() -> list[Write]:
        threads.append(threading.current_thread().name)
        return [put("d", "one")]

    monkeypatch.setattr(asyncio, "to_thread", Mock(side_effect=AssertionError("another thread")))
    (written,) = await shard.write(LazySequence(1, convert), Deadline.after(60))
    assert written.outcome is S
    assert [name.startswith("commit") for name in threads] == [True]


async def test_wrong_writes_of_one_call_leave_the_others(shard: LiveShard) -> None:
    goes_on = threading.Event()
    held = asyncio.create_task(shard._group.run_alone(goes_on.wait))
    await turn()
    wrong = asyncio.create_task(write(shard, Write("e", None, replace(encoded("e"), vector=b""))))
    right = asyncio.create_task(write(shard, put("f")))
    await turn()
    goes_on.set()
    await held
    with pytest.raises(InvalidRequestError, match="has 0 values"):
        await wrong
    assert await right == [(S, 1)]


async def test_many_small_writes_are_few_segments(shard: LiveShard) -> None:
    for n in range(200):
        await write(shard, put(f"p{n}", f"text {n}"))
    assert len(shard.view.segments) < 12
    assert there(shard.view).keys() == {*BUILT, *(f"p{n}" for n in range(200))}


async def test_it_is_found_at_once_and_gone_at_once(shard: LiveShard) -> None:
    passage = put("d", "something else")
    assert passage.put is not None
    await write(shard, passage)
    last = shard.view.segments[-1]
    assert last.segment.nearest(vector(passage.put), 1, last.live_rows) == [(0, 0.0)]
    await write(shard, delete("d"))
    last = shard.view.segments[-1]
    assert last.segment.nearest(vector(passage.put), 1, last.live_rows) == []


async def test_a_node_that_takes_no_writes_says_how_it_would(directory: Path) -> None:
    live = opened(directory)
    await write(live, put("d", "one"))
    await live.close()
    reading = replace(LIMITS, refusal="start the node with --feed")
    one, other = opened(directory, reading), opened(directory, reading)
    assert there(one.view) == there(other.view) == {**BUILT, "d": ("one", 1)}
    with pytest.raises(NotWritableError, match="start the node with --feed"):
        await write(one, put("e"))
    with pytest.raises(ArtefactError, match="held by another node"):
        opened(directory)
    await one.close()
    await other.close()


@pytest.mark.parametrize(
    ("limits", "said"),
    [
        (
            WriteLimits(shard=0, shards=1, dimension=9, vocabulary=1_000, max_unmerged=10),
            r"writes\[0\]\.put\.vector: has 8 values",
        ),
        (
            WriteLimits(shard=0, shards=1, dimension=8, vocabulary=7, max_unmerged=10),
            r"writes\[0\]\.put\.title_tokens: 8 is not a token",
        ),
        (
            WriteLimits(shard=0, shards=1, dimension=8, vocabulary=9, max_unmerged=10),
            r"writes\[0\]\.put\.text_tokens: \d+ is not a token",
        ),
        (
            WriteLimits(shard=0, shards=2, dimension=8, vocabulary=999, max_unmerged=10),
            r"writes\[0\]\.id: 'd' belongs to shard 1",
        ),
    ],
)
async def test_a_write_that_the_shard_cannot_hold_is_refused(
    directory: Path, limits: WriteLimits, said: str
) -> None:
    live = opened(directory, limits)
    with pytest.raises(InvalidRequestError, match=said):
        await write(live, put("d"))
    assert live.sequence == 0
    await live.close()


async def test_no_more_is_taken_than_may_be_unmerged(directory: Path) -> None:
    live = opened(directory, replace(LIMITS, max_unmerged=3))
    await write(live, put("d"), put("e"))
    with pytest.raises(OverloadedError, match="4 writes are not merged yet, at most 3"):
        await write(live, put("f"), put("g"))
    assert await write(live, put("f")) == [(S, 3)]
    await live.swap(open_shard(merged(directory, live), ef=64))
    assert await write(live, put("g"), put("h")) == [(S, 4), (S, 5)]
    await live.close()


def merged(directory: Path, live: LiveShard) -> Path:
    """The next base, made here and now."""
    return Path(merge(live.directory, directory, live.sequence).directory)


async def test_a_merged_base_is_served_like_the_log(directory: Path) -> None:
    live = opened(directory)
    served: list[ShardView] = []
    live.on_new_view(served.append)
    await write(live, put("d", "one"), put("a", "two"), delete("b", 7), put("d", "three"))
    base = merged(directory, live)
    await write(live, delete("c"), put("e", "late"), put("a", "later"))
    before, changes = there(live.view), await live.changes(Deadline.after(LONG))
    await live.swap(open_shard(base, ef=64))
    assert there(live.view) == before == there(served[-1])
    assert served[-1].generation != served[-2].generation
    assert (live.directory, live.merged, live.sequence) == (base, 4, 7)
    assert live.merge_backlog().writes == 3
    await live.trim(live.sequence)  # no more than the base holds
    assert (await live.changes(Deadline.after(LONG))).by.tolist() == changes.by.tolist()
    assert await write(live, put("b", "old", 6), put("b", "new", 8)) == [(O, 7), (S, 8)]
    after, changes = there(live.view), await live.changes(Deadline.after(LONG))
    await live.close()
    again = opened(directory, base=base)
    assert there(again.view) == after
    assert again.view.generation == served[-1].generation
    found = await again.changes(Deadline.after(LONG))
    assert (found.ids.tolist(), found.by.tolist()) == (changes.ids.tolist(), changes.by.tolist())
    assert (found.passages, found.tokens) == (changes.passages, changes.tokens)
    await again.close()


async def test_a_base_that_lacks_trimmed_writes_is_refused(directory: Path) -> None:
    live = opened(directory)
    await write(live, put("d", "one"), put("a", "two"))
    await live.swap(open_shard(merged(directory, live), ef=64))
    await live.trim(2)
    with pytest.raises(ArtefactError, match="does not continue"):
        await live.swap(open_shard(GOLDEN, ef=64))
    await live.close()
    with pytest.raises(
        ArtefactError, match="holds writes 3 to 2, but the shard's base ends at write 0"
    ):
        opened(directory)


async def test_a_base_of_another_log_is_refused(directory: Path, tmp_path: Path) -> None:
    live = opened(directory)
    await write(live, put("d", "one"))
    base = merged(directory, live)
    await live.close()
    shutil.move(log_path(directory).parent, tmp_path / "aside")
    other = opened(directory)
    await write(other, put("e", "one"))
    await other.close()
    moved = tmp_path / "aside" / base.name
    with pytest.raises(ArtefactError, match=r"has log id .*, but the shard's base follows log"):
        opened(directory, base=moved)
    with pytest.raises(ArtefactError, match=r"has log id \(none\)"):
        opened(Path(shutil.copytree(GOLDEN, tmp_path / "third")), base=moved)


async def test_writes_while_the_next_base_is_swapped_in_are_all_there(directory: Path) -> None:
    live = opened(directory)
    served: list[ShardView] = []
    live.on_new_view(served.append)
    await write(live, *(put(f"p{n}", f"text {n}") for n in range(50)))
    base = open_shard(merged(directory, live), ef=64)
    swapping = asyncio.create_task(live.swap(base))
    late = [asyncio.create_task(write(live, put(f"q{n}", "late"))) for n in range(50)]
    await asyncio.gather(swapping, *late)
    assert live.merged == 50
    names = {*BUILT, *(f"{kind}{n}" for kind in "pq" for n in range(50))}
    assert there(live.view).keys() == names
    sequences = [view.sequence for view in served]
    assert sequences == sorted(sequences)
    await live.close()


async def test_a_full_disk_fails_writes_and_not_the_served_view(directory: Path) -> None:
    live = opened(directory)
    await write(live, put("d", "one"))
    log = live._log
    assert log._connection is not None
    log._connection.execute("PRAGMA max_page_count = 12").close()
    long = [put(f"p{n}", f"{n} " + "word " * 900) for n in range(40)]
    results = await asyncio.gather(*(write(live, each) for each in long), return_exceptions=True)
    assert {type(each) for each in results} == {OverloadedError}
    assert there(live.view) == {**BUILT, "d": ("one", 1)}
    assert (await live.changes(Deadline.after(LONG))).passages == 1
    assert await write(live, *long) == [(S, 2 + n) for n in range(40)]  # there is room again
    assert len(there(live.view)) == len(BUILT) + 41
    await live.close()


async def test_each_of_many_callers_gets_its_own_results(shard: LiveShard) -> None:
    async def caller(name: str) -> None:
        for n in range(20):
            [(outcome, sequence)] = await write(shard, put(name, f"{name} {n}"))
            assert outcome is S
            assert there(shard.view)[name] == (f"{name} {n}", sequence)  # it reads its own writes

    await asyncio.gather(*(caller(f"caller-{n}") for n in range(8)))
    assert shard.sequence == 160


class BrokenError(Exception):
    """Of nobody's making."""


async def test_a_durable_write_that_cannot_be_served_ends_all_writing(
    directory: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    live = opened(directory)
    await write(live, put("d", "one"))

    def fail(*_: object) -> None:
        raise BrokenError

    monkeypatch.setattr(live._store._state, "apply", fail)
    for _ in range(2):
        with pytest.raises(
            NotWritableError, match=r"applying a durable write failed .* restart the node"
        ):
            await write(live, put("e", "two"))
    assert there(live.view) == {**BUILT, "d": ("one", 1)}
    await live.close()
    again = opened(directory)
    assert there(again.view) == {**BUILT, "d": ("one", 1), "e": ("two", 2)}
    await again.close()


async def test_metrics_count_writes_and_unmerged_writes(directory: Path) -> None:
    registry = CollectorRegistry()
    sample = registry.get_sample_value
    live = opened(directory, registry=registry)
    DiskMetrics(registry, directory)
    assert sample("winnow_node_writes_total", {"outcome": "stored"}) == 0
    assert sample("winnow_node_log_bytes") == 0
    await write(live, put("one", "A new one."), put("two", "Another."), delete("none"))
    assert sample("winnow_node_writes_total", {"outcome": "stored"}) == 2
    assert sample("winnow_node_writes_total", {"outcome": "unchanged"}) == 1
    assert sample("winnow_node_sequence") == 2
    assert sample("winnow_node_unmerged_writes") == 2
    assert sample("winnow_node_unmerged_limit_writes") == LIMITS.max_unmerged
    assert sample("winnow_node_writes_waiting") == 0
    for name in ("winnow_node_log_bytes", "winnow_node_disk_free_bytes"):
        assert (sample(name) or 0) > 0
    await live.close()


async def test_a_shard_that_takes_no_writes_has_no_limit_of_them(directory: Path) -> None:
    registry = CollectorRegistry()
    live = opened(directory, replace(LIMITS, refusal="no"), registry=registry)
    assert registry.get_sample_value("winnow_node_unmerged_limit_writes") == 0
    await live.close()


async def test_a_shard_that_follows_a_journal_takes_no_direct_writes(directory: Path) -> None:
    """As of a node that is started without --journal: its replicas would differ for good."""
    live = opened(directory)
    await live.store_from_journal([put("a", "one")], "1 key", "journal-1")
    await live.close()
    live = opened(directory)
    with pytest.raises(
        NotWritableError, match=r"only from journal-1.*start the node with --journal"
    ):
        await write(live, put("b", "two"))
    assert live.sequence == 1
    await live.store_from_journal([put("b", "two")], "2 key")
    assert live.sequence == 2
    await live.close()


async def test_a_shard_that_follows_a_journal_calls_nothing_unchanged_by_itself(
    directory: Path,
) -> None:
    """A node without --journal does not know what its replicas have acknowledged since."""
    live = opened(directory)
    await live.store_from_journal([put("a", "one")], "1 key", "journal-1")
    with pytest.raises(NotWritableError, match="start the node with --journal"):
        await live.find_unchanged([digested(put("a", "one"))], Deadline.after(60))
    found = await live.find_unchanged_locally([digested(put("a", "one"))], Deadline.after(60))
    assert [each and each.outcome for each in found] == [U]
    await live.close()
