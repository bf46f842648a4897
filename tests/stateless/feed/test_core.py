"""Passages and deletions through the core: where they are stored, and when the call fails."""

import asyncio
import threading
import tracemalloc
from collections.abc import AsyncIterator, Iterator
from dataclasses import replace
from functools import partial
from typing import Any
from unittest.mock import Mock

import numpy as np
import pytest
from awaited import AwaitedCount
from fed_front import FedFront, ids_of, node_info
from manual_clock import ManualClock
from tenacious import LONG
from unpacked import title_ids, tokens, vector

from winnow.bundle import Bundle
from winnow.convert.feed import passages_of_message
from winnow.deadline import Deadline
from winnow.domain.write import Deletion, FedPassage, Outcome, Position, WriteResult
from winnow.errors import (
    ArchiveUnreachableError,
    DeadlineExceededError,
    IdentityError,
    InvalidRequestError,
    NotLoadedError,
    NotWritableError,
    OverloadedError,
    UnavailableError,
    WinnowError,
)
from winnow.inference.encoder import open_passage_encoder
from winnow.inference.fair_threads import FairThreads
from winnow.inference.options import Runtime
from winnow.passages.encoding import PassageEncoder
from winnow.stateless.cluster.membership import ClusterView
from winnow.stateless.feed.encoding import FeedEncoder
from winnow.text.tokenizer import Tokenizer
from winnow.v1 import feed_pb2

ZERO, ONE = ids_of(0, 5), ids_of(1, 5)


@pytest.fixture
def front(bundle: Bundle) -> Iterator[FedFront]:
    made = FedFront(bundle)
    yield made
    made.close()


def fed(name: str, text: str = "The Danube rises in the Black Forest.", **more: Any) -> FedPassage:
    return FedPassage(id=name, title="Danube", text=text, **more)


async def put(front: FedFront, *passages: FedPassage, seconds: float = LONG) -> list[WriteResult]:
    return await front.core.put(passages, Deadline.after(seconds, front.clock), "me")


async def test_each_passage_is_stored_in_the_shard_that_its_id_belongs_to(front: FedFront) -> None:
    results = await put(front, *[fed(name) for name in (*ZERO, *ONE)])
    assert [set(shard.passages) for shard in front.shards] == [set(ZERO), set(ONE)]
    assert [each.id for each in results] == [*ZERO, *ONE]
    assert {each.outcome for each in results} == {Outcome.STORED}
    assert results[4].position == Position(0, 5)
    assert results[9].position == Position(1, 5)
    assert front.sample("winnow_front_feed_writes_total", outcome="stored") == 10
    assert front.admission.in_flight == 0


async def test_writes_have_the_token_vectors_that_the_shards_use(
    front: FedFront, bundle: Bundle
) -> None:
    """One run of the encoder gives them and the vector, so that nodes need not encode again."""
    await put(front, fed("a"))
    front.token_vectors = bundle.manifest.token_vectors_fingerprint
    await put(front, fed("b"))
    without, found = front.passages["a"], front.passages["b"]
    special = Tokenizer(bundle.tokenizer).special
    model = open_passage_encoder(bundle, special, token_vectors=True)
    encoder = PassageEncoder(model, bundle.manifest.encoder)
    levels = encoder.token_vectors(title_ids(found), tokens(found).ids)
    assert found.token_levels == levels.tobytes()
    assert found.token_vectors_fingerprint == front.token_vectors
    assert (without.token_levels, without.vector) == (b"", found.vector)


def test_prepared_passages_take_little_memory(bundle: Bundle) -> None:
    """Streams hold them while they wait for room: tokens as integers would take megabytes each."""
    encoder = FeedEncoder(bundle, Runtime.AUTO, threads=1, nice=0)
    try:
        passages = [fed("a", "語" * 10_000)]
        encoder.prepare(passages)
        tracemalloc.start()
        prepared = encoder.prepare(passages)
        held, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
        encoder.close()
    assert len(prepared) == 1
    assert held < 500_000


async def test_a_passage_changes_threads_twice_in_a_front(
    front: FedFront, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One thread converts, validates and tokenises it, and another one encodes it."""
    threads: list[str] = []
    run = FairThreads.run

    async def counted(pool: FairThreads, client: str, work: Any) -> Any:
        def named() -> Any:
            threads.append(threading.current_thread().name)
            return work()

        return await run(pool, client, named)

    monkeypatch.setattr(FairThreads, "run", counted)
    monkeypatch.setattr(asyncio, "to_thread", Mock(side_effect=AssertionError("another thread")))
    message = feed_pb2.PutRequest(passages=[feed_pb2.FedPassage(id="a", text="words")])
    await front.core.put(passages_of_message(message), Deadline.after(30, front.clock))
    assert [name.rpartition("_")[0] for name in threads] == ["fed", "feed"]


async def test_a_durable_write_is_noticed_even_if_another_shard_fails(front: FedFront) -> None:
    front.shards[0].fails = NotWritableError("shard 0 takes no writes")
    with pytest.raises(NotWritableError):
        await put(front, *[fed(name) for name in (*ZERO, *ONE)])
    assert front.noticed == [(1, 5)]


async def test_of_two_passages_with_one_id_the_last_counts(front: FedFront) -> None:
    await put(front, fed("a", "the old text"), fed("a", "the new text"))
    assert front.passages["a"].passage.text == "the new text"


async def test_sending_again_changes_nothing(front: FedFront) -> None:
    await put(front, fed("a"))
    (again,) = await put(front, fed("a"))
    assert again.outcome is Outcome.UNCHANGED
    (deleted,) = await front.core.delete([Deletion("a")], Deadline.after(LONG))
    assert (deleted.outcome, front.passages) == (Outcome.STORED, {})
    (again,) = await front.core.delete([Deletion("a")], Deadline.after(LONG))
    assert again.outcome is Outcome.UNCHANGED


async def test_a_passage_that_is_there_already_is_not_encoded(front: FedFront) -> None:
    """Shards are asked by digest, so that feeding a file again costs little."""
    await put(front, *[fed(name) for name in (*ZERO, *ONE)])
    before = front.encoded
    again = await put(front, fed(ZERO[0]), fed(ONE[0], "new"), fed(ONE[1]), fed("new"))
    assert [each.id for each in again] == [ZERO[0], ONE[0], ONE[1], "new"]
    assert [each.outcome for each in again] == [
        *(Outcome.UNCHANGED, Outcome.STORED, Outcome.UNCHANGED, Outcome.STORED)
    ]
    assert again[0].position == Position(0, 5)
    assert front.encoded - before == 2
    assert front.sample("winnow_front_feed_writes_total", outcome="unchanged") == 2


async def test_metadata_in_another_order_changes_nothing(front: FedFront) -> None:
    await put(front, fed("a", metadata={"year": 2015, "by": ["Ann", 1]}))
    before = front.encoded
    (again,) = await put(front, fed("a", metadata={"by": ["Ann", 1.0], "year": 2015.0}))
    assert (again.outcome, front.encoded) == (Outcome.UNCHANGED, before)


async def test_an_older_version_is_not_encoded(front: FedFront) -> None:
    await put(front, fed("a", "new", version=7))
    before = front.encoded
    (old,) = await put(front, fed("a", "old", version=6))
    assert (old.outcome, front.encoded) == (Outcome.OUTDATED, before)


async def test_an_unchanged_put_is_noticed_for_questions(front: FedFront) -> None:
    """Another front may have stored it a moment ago."""
    await put(front, fed(ZERO[0]))
    front.noticed.clear()
    await put(front, fed(ZERO[0]))
    assert front.noticed == [(0, 1)]


async def test_a_shard_that_cannot_compare_is_written_to(front: FedFront) -> None:
    await put(front, fed(ZERO[0]))
    front.shards[0].fails_to_compare = UnavailableError("busy")
    (again,) = await put(front, fed(ZERO[0]))
    assert again.outcome is Outcome.UNCHANGED
    assert len(front.shards[0].batches) == 2


async def test_a_shard_that_does_not_tell_in_time_is_written_to(front: FedFront) -> None:
    """It has a part of the time left; the rest is for storing."""
    clock = ManualClock()
    await front.core.put([fed(ZERO[0])], Deadline(clock() + 30, clock))
    (asked,) = front.shards[0].compared_until
    assert asked.left() == pytest.approx(7.5)


async def test_of_two_passages_with_one_id_the_last_counts_also_if_it_was_there(
    front: FedFront,
) -> None:
    """The first one is not stored yet when shards are asked what is unchanged."""
    await put(front, fed("a", "there"))
    results = await put(front, fed("a", "other"), fed("a", "there"))
    assert front.passages["a"].passage.text == "there"
    assert [each.outcome for each in results] == [Outcome.STORED, Outcome.STORED]


async def test_a_text_of_too_many_tokens_is_named_before_shards_are_asked(
    front: FedFront,
) -> None:
    with pytest.raises(InvalidRequestError, match="tokens"):
        await put(front, fed("a", "각 " * 5_000))
    assert not front.shard("a").compared


async def test_an_unchanged_put_reports_truncation(front: FedFront) -> None:
    long = " ".join(["word"] * 500)
    await put(front, fed("long", long))
    (again,) = await put(front, fed("long", long))
    assert (again.outcome, again.truncated) == (Outcome.UNCHANGED, True)


async def test_an_older_version_is_outdated(front: FedFront) -> None:
    await put(front, fed("a", "new", version=7))
    (old,) = await put(front, fed("a", "old", version=6))
    assert (old.outcome, front.passages["a"].passage.text) == (Outcome.OUTDATED, "new")
    assert front.sample("winnow_front_feed_writes_total", outcome="outdated") == 1


async def test_a_passage_that_the_encoder_reads_a_part_of_says_so(front: FedFront) -> None:
    long = " ".join(["word"] * 500)
    results = await put(front, fed("short"), fed("long", long))
    assert [each.truncated for each in results] == [False, True]
    assert len(tokens(front.passages["long"])) == 500


async def test_a_request_with_a_broken_rule_stores_nothing(front: FedFront) -> None:
    with pytest.raises(InvalidRequestError):
        await put(front, fed("a"), fed("b", ""))
    assert not front.passages


async def test_a_text_of_too_many_tokens_is_named(front: FedFront) -> None:
    many = "각 " * 5_000
    with pytest.raises(InvalidRequestError, match="15000 tokens, at most 14000") as caught:
        await put(front, fed("a"), fed("b", many), fed("c", many))
    fields = [each.field for each in caught.value.violations]
    assert fields == ["passages[1].text", "passages[2].text"]
    assert not front.passages


async def test_a_shard_that_is_away_for_a_moment_is_tried_again(front: FedFront) -> None:
    front.shards[0].fails, front.shards[0].failures_left = UnavailableError("gone"), 3
    results = await put(front, fed(ZERO[0]), fed(ONE[0]))
    assert [each.outcome for each in results] == [Outcome.STORED, Outcome.STORED]
    assert front.rests == [0.05, 0.1, 0.2]
    assert len(front.shards[1].batches) == 1
    assert front.sample("winnow_front_feed_retries_total", shard="0") == 3


async def test_a_write_whose_reply_was_lost_is_stored_once(front: FedFront) -> None:
    shard = front.shards[0]
    shard.fails, shard.failures_left = UnavailableError("lost"), 1
    shard.stores_before_failing = True
    (result,) = await put(front, fed(ZERO[0]))
    assert (result.outcome, result.position.sequence) == (Outcome.UNCHANGED, 1)


async def test_attempts_of_a_call_have_one_name_and_rising_numbers(front: FedFront) -> None:
    shard = front.shards[0]
    shard.fails, shard.failures_left = UnavailableError("gone"), 2
    await put(front, fed(ZERO[0]))
    await put(front, fed(ZERO[1]))
    calls = [each.call for each in shard.attempts if each]
    assert [each.number for each in shard.attempts if each] == [0, 1, 2, 0]
    assert calls[0] == calls[1] == calls[2] != calls[3]


async def test_a_failure_is_reported_once_no_attempt_can_arrive_any_more(front: FedFront) -> None:
    """Nodes refuse attempts that arrive after the deadline."""
    front.shards[0].fails = UnavailableError("the connection was lost")
    began = front.clock()
    with pytest.raises(UnavailableError):
        await put(front, fed(ZERO[0]), seconds=5)
    reported = front.clock()
    assert max(each.at for each in front.shards[0].deadlines) <= reported < began + 5


async def test_a_caller_soon_learns_that_an_archive_cannot_be_reached(front: FedFront) -> None:
    """A command tells this to its user, and tries again. A short fault is no error."""
    shard = front.shards[0]
    shard.fails, shard.failures_left = ArchiveUnreachableError("the archive is away"), 5
    await put(front, fed(ZERO[0]))
    shard.failures_left, began = 1_000, front.clock()
    with pytest.raises(ArchiveUnreachableError, match="1 of 1 write may not be stored: shard 0"):
        await put(front, fed(ZERO[1]), seconds=60)
    assert front.clock() < began + 5
    assert not front.passages.keys() - {ZERO[0]}


async def test_a_shard_that_is_full_is_given_the_time_it_asks_for(front: FedFront) -> None:
    front.shards[0].fails, front.shards[0].failures_left = OverloadedError("full", 0.7), 1
    await put(front, fed(ZERO[0]))
    assert front.rests == [0.7]


@pytest.mark.parametrize(
    ("fails", "kind"),
    [
        (UnavailableError("gone"), UnavailableError),
        (OverloadedError("the disk is full", 60.0), OverloadedError),
        (NotWritableError("no log"), NotWritableError),
        (NotLoadedError("damaged"), UnavailableError),
        (IdentityError("another index"), IdentityError),
    ],
)
async def test_the_call_fails_if_a_part_was_not_stored_and_the_rest_is(
    front: FedFront, fails: WinnowError, kind: type[WinnowError]
) -> None:
    front.shards[0].fails = fails
    with pytest.raises(kind) as caught:
        await put(front, *map(fed, (*ZERO[:2], ONE[0])), seconds=0.5)
    assert set(front.passages) == {ONE[0]}
    assert str(fails) in str(caught.value)
    if not isinstance(fails, IdentityError):
        assert "2 of 3 writes may not be stored: shard 0: " in str(caught.value)
    if isinstance(caught.value, OverloadedError):
        assert caught.value.retry_after == 60
    assert front.admission.in_flight == 0


async def test_of_several_failures_the_lasting_one_is_raised(front: FedFront) -> None:
    front.shards[0].fails = UnavailableError("gone")
    front.shards[1].fails = NotWritableError("no log")
    with pytest.raises(NotWritableError, match="2 of 2 writes may not be stored: shard 1: no log"):
        await put(front, fed(ZERO[0]), fed(ONE[0]), seconds=0.2)


async def test_a_mistake_in_the_program_is_none_of_the_callers(front: FedFront) -> None:
    front.shards[0].fails = ZeroDivisionError("bug")  # type: ignore[assignment]
    with pytest.raises(ExceptionGroup):
        await put(front, fed(ZERO[0]))
    assert front.admission.in_flight == 0


async def test_a_shard_without_a_node_is_retried_until_the_deadline(
    front: FedFront,
) -> None:
    front.view = ClusterView(front.view.identity, {0: (), 1: ("node-1:1",)})
    with pytest.raises(UnavailableError, match="no node serves shard 0 now"):
        await put(front, fed(ZERO[0]), seconds=0.2)
    assert front.rests


async def test_replicas_without_a_common_log_are_not_written_to(front: FedFront) -> None:
    front.view = ClusterView(front.view.identity, {0: ("node-0:1", "other:1"), 1: ("node-1:1",)})
    front.infos["other:1"] = node_info(0, "another log")
    with pytest.raises(NotWritableError, match="share no log"):
        await put(front, fed(ZERO[0]))
    assert not front.shards[0].batches


async def test_nor_is_the_only_one_that_is_used_if_another_could_be_used_later(
    front: FedFront,
) -> None:
    """It would lack what was acknowledged."""
    front.infos["left-out:1"] = node_info(0, "another log")
    with pytest.raises(NotWritableError, match=r"left-out:1, node-0:1\) that share no log"):
        await put(front, fed(ZERO[0]))
    await put(front, fed(ONE[0]))


async def test_replicas_of_one_journal_take_turns_where_one_fails(front: FedFront) -> None:
    front.nodes["other:1"] = other = replace(front.shards[0], batches=[])
    front.view = ClusterView(front.view.identity, {0: ("node-0:1", "other:1"), 1: ("node-1:1",)})
    front.infos |= {each: node_info(0, "journal-1") for each in ("node-0:1", "other:1")}
    front.shards[0].fails = UnavailableError("gone")
    await put(front, fed(ZERO[0]))
    assert (len(front.shards[0].batches), len(other.batches)) == (1, 1)


async def test_before_the_index_is_found_nothing_can_be_stored(front: FedFront) -> None:
    front.view = ClusterView()
    with pytest.raises(UnavailableError, match="no shard of the index has been found yet"):
        await put(front, fed("a"))


async def test_a_node_that_serves_no_longer_is_let_go(front: FedFront) -> None:
    await put(front, fed(ZERO[0]))
    front.nodes["new:1"] = front.shards[0]
    front.infos["new:1"] = front.infos.pop("node-0:1")
    front.view = ClusterView(front.view.identity, {0: ("new:1",), 1: ("node-1:1",)})
    await put(front, fed(ZERO[1]))
    assert front.closed == ["node-0:1"]


async def test_a_deadline_that_has_passed_begins_nothing(front: FedFront) -> None:
    clock = ManualClock()
    with pytest.raises(DeadlineExceededError):
        await front.core.put([fed("a")], Deadline(clock() - 1, clock))
    assert not front.passages


async def test_a_call_that_is_cancelled_leaves_nothing_in_hand(front: FedFront) -> None:
    front.shards[0].hangs = True
    putting = asyncio.create_task(put(front, fed(ZERO[0])))
    await asyncio.wait_for(front.shards[0].hanging.wait(), LONG)
    assert front.admission.in_flight == 1
    putting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await putting
    assert front.shards[0].released.is_set()
    assert front.admission.in_flight == 0


async def test_vectors_are_those_that_the_builder_makes(front: FedFront, bundle: Bundle) -> None:
    from winnow.inference.encoder import open_passage_encoder
    from winnow.inference.options import InferenceOptions
    from winnow.passages.encoding import PassageEncoder
    from winnow.text.tokenizer import Tokenizer

    tokenizer = Tokenizer(bundle.tokenizer)
    model = open_passage_encoder(bundle, tokenizer.special, InferenceOptions(runs=1))
    builder = PassageEncoder(model, bundle.manifest.encoder)
    texts = ["Gold has the symbol Au.", "The cafe\u0301 in Łódź 🎻", "word " * 400]
    await put(front, *[fed(str(n), text.strip()) for n, text in enumerate(texts)])
    for number in range(len(texts)):
        stored = front.passages[str(number)]
        title, text = tokenizer.tokenise("Danube"), tokenizer.tokenise(stored.passage.text)
        assert (title_ids(stored), tokens(stored)) == (title.ids, text)
        assert np.array_equal(vector(stored), builder.encode(title.ids, text.ids))


class Messages:
    """A stream that counts what is read of it."""

    def __init__(self, *messages: Any) -> None:
        self.left, self.read = list(messages), AwaitedCount()

    def __aiter__(self) -> AsyncIterator[Any]:
        return self

    async def __anext__(self) -> Any:
        await asyncio.sleep(0)
        if not self.left:
            raise StopAsyncIteration
        self.read.add()
        return self.left.pop(0)


def soon() -> Deadline:
    return Deadline.after(LONG)


async def test_a_stream_is_summed_up(front: FedFront) -> None:
    messages = Messages([fed(ZERO[0]), fed(ONE[0])], [fed(ZERO[0])], [fed(ZERO[1], version=3)])
    summary = await front.core.put_stream(messages, soon)
    assert (summary.stored, summary.unchanged, summary.outdated) == (3, 1, 0)
    assert summary.positions == (Position(0, 2), Position(1, 1))
    summary = await front.core.delete_stream(Messages([Deletion(ZERO[0])], [Deletion("x")]), soon)
    assert (summary.stored, summary.unchanged) == (1, 1)
    assert set(front.passages) == {ZERO[1], ONE[0]}


async def test_messages_of_a_stream_are_stored_in_their_order(front: FedFront) -> None:
    messages = [[fed("a", f"text {n} " + "word " * (200 - 10 * n))] for n in range(15)]
    await front.core.put_stream(Messages(*messages), soon)
    assert front.passages["a"].passage.text.startswith("text 14")
    assert len(front.shard("a").batches) == 15


async def test_in_a_stream_the_last_message_counts_even_if_it_equals_the_stored_one(
    front: FedFront,
) -> None:
    """The second message is compared while the first one waits: its id is in hand."""
    await put(front, fed(ZERO[0], "there"))
    before = front.encoded
    front.shards[0].hangs = True
    messages = Messages([fed(ZERO[0], "other")], [fed(ZERO[0], "there")], [fed(ONE[0])])
    feeding = asyncio.create_task(front.core.put_stream(messages, soon))
    await asyncio.wait_for(front.shards[0].hanging.wait(), LONG)
    await front.encoder.encoded.reaches(before + 3)
    front.shards[0].hangs = False
    front.shards[0].go_on.set()
    assert (await feeding).stored == 3
    assert front.passages[ZERO[0]].passage.text == "there"


async def test_in_a_stream_unchanged_passages_are_not_encoded(front: FedFront) -> None:
    messages = [[fed(name)] for name in (*ZERO, *ONE)]
    await front.core.put_stream(Messages(*messages), soon)
    before = front.encoded
    summary = await front.core.put_stream(Messages(*messages), soon)
    assert (summary.stored, summary.unchanged) == (0, 10)
    assert summary.positions == (Position(0, 5), Position(1, 5))
    assert front.encoded == before


async def test_a_stream_is_read_no_faster_than_it_is_stored(front: FedFront) -> None:
    front.shards[0].hangs = True
    messages = Messages(*[[fed(name)] for name in ids_of(0, 20)])
    feeding = asyncio.create_task(front.core.put_stream(messages, soon))
    await asyncio.wait_for(front.shards[0].hanging.wait(), LONG)
    await messages.read.reaches(3)
    for _ in range(100):
        await asyncio.sleep(0)
    assert (messages.read.value, len(front.shards[0].batches)) == (3, 1)
    front.shards[0].hangs = False
    front.shards[0].go_on.set()
    assert (await feeding).stored == 20


async def test_a_wrong_message_ends_its_stream(front: FedFront) -> None:
    messages = Messages([fed("a")], [fed("")], [fed("c")])
    with pytest.raises(InvalidRequestError, match=r"passages\[0\].id"):
        await front.core.put_stream(messages, soon)
    assert front.admission.in_flight == 0


async def test_a_stream_waits_for_room_where_a_request_is_refused(bundle: Bundle) -> None:
    front = FedFront(bundle, most=2)
    front.shards[0].hangs = True
    first = asyncio.create_task(put(front, *map(fed, ZERO[:2])))
    await asyncio.wait_for(front.shards[0].hanging.wait(), LONG)
    with pytest.raises(
        OverloadedError, match="2 passages are being stored, and the limit of all clients is 2"
    ):
        await put(front, fed(ONE[0]))
    stream = asyncio.create_task(front.core.put_stream(Messages([fed(ONE[0])]), soon, "other"))
    for _ in range(100):
        await asyncio.sleep(0)
    assert not front.shards[1].batches
    front.shards[0].go_on.set()
    await first
    assert (await asyncio.wait_for(stream, LONG)).stored == 1
    assert front.admission.in_flight == 0
    assert front.sample("winnow_front_feed_refusals_total") == 1
    front.close()


async def test_a_stream_that_finds_no_room_in_time_is_refused(bundle: Bundle) -> None:
    front = FedFront(bundle, most=1)
    front.shards[0].hangs = True
    first = asyncio.create_task(put(front, fed(ZERO[0])))
    await asyncio.wait_for(front.shards[0].hanging.wait(), LONG)
    until = partial(Deadline.after, 0.05, ManualClock())
    with pytest.raises(OverloadedError, match="no room for 1 more"):
        await front.core.put_stream(Messages([fed(ONE[0])]), until, "other")
    front.shards[0].go_on.set()
    await first
    front.close()


async def test_a_stream_that_is_cancelled_leaves_nothing_in_hand(front: FedFront) -> None:
    front.shards[0].hangs = True
    messages = Messages(*[[fed(name)] for name in ZERO])
    feeding = asyncio.create_task(front.core.put_stream(messages, soon))
    await asyncio.wait_for(front.shards[0].hanging.wait(), LONG)
    feeding.cancel()
    with pytest.raises(asyncio.CancelledError):
        await feeding
    assert front.shards[0].released.is_set()
    assert front.admission.in_flight == 0
