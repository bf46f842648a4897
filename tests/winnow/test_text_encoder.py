"""Encoders of texts: in threads of this process, and cached."""

import asyncio
import threading
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tenacious import happens, turn

from winnow.bundle import Bundle
from winnow.domain.question import QuestionTokens
from winnow.errors import OverloadedError, UnavailableError
from winnow.inference.encoder import open_question_encoder
from winnow.inference.local import LocalTextEncoder
from winnow.text.cached import CachedTextEncoder
from winnow.text.encoder import OnEncoded, TextEncoding
from winnow.text.tokenizer import Tokenizer

ROOM = 1 << 20
"""Bytes; more than any test keeps."""


class Slow:
    """Encodes when it is told to: a text's vector is its ids."""

    def __init__(self) -> None:
        self.encoded: list[tuple[int, ...]] = []
        self.given_up: list[tuple[int, ...]] = []
        self.go_on = asyncio.Event()
        self.fails: list[Exception] = []
        self.warmed = 0
        self.closed = False

    async def encode(
        self, ids: Sequence[int], client: str = "", on_encoded: OnEncoded | None = None
    ) -> TextEncoding:
        self.encoded.append(tuple(ids))
        try:
            await self.go_on.wait()
        except asyncio.CancelledError:
            self.given_up.append(tuple(ids))
            raise
        if self.fails:
            raise self.fails.pop(0)
        vector = np.array(ids, np.float32)
        made = TextEncoding(vector, np.stack([vector, vector]), 0.25, 0.5)
        if on_encoded is not None:
            on_encoded(made)
        return made

    async def warm_up(self, longest: int) -> None:
        self.warmed = longest

    def close(self) -> None:
        self.closed = True


class Counted:
    """Notes what it is told of a cache."""

    def __init__(self) -> None:
        self.looks: list[str] = []
        self.bytes = self.evicted = 0

    def count_lookup(self, result: str) -> None:
        self.looks.append(result)

    def resize(self, added_bytes: int, evicted: int) -> None:
        self.bytes += added_bytes
        self.evicted += evicted


def ready() -> Slow:
    slow = Slow()
    slow.go_on.set()
    return slow


async def test_a_text_is_encoded_once_and_takes_no_time_after_that() -> None:
    slow, counted = ready(), Counted()
    cached = CachedTextEncoder(slow, ROOM, counted)
    first, again = await cached.encode([1, 2]), await cached.encode((1, 2))
    assert slow.encoded == [(1, 2)]
    assert again.vector is first.vector
    assert (first.queue, first.encode, again.queue, again.encode) == (0.25, 0.5, 0, 0)
    assert counted.looks == ["miss", "hit"]


async def test_an_encoding_without_token_vectors_is_used_until_the_encoder_returns_some() -> None:
    """Encoder servers of an older version return none, and are replaced by newer ones."""

    class Upgraded(Slow):
        tokens: QuestionTokens | None = None

        async def encode(
            self, ids: Sequence[int], client: str = "", on_encoded: OnEncoded | None = None
        ) -> TextEncoding:
            return replace(await super().encode(ids, client, on_encoded), tokens=self.tokens)

    inner = Upgraded()
    inner.go_on.set()
    cached = CachedTextEncoder(inner, ROOM)
    for text in ([1], [1]):
        assert (await cached.encode(text)).tokens is None
    inner.tokens = QuestionTokens(np.ones((3, 4), np.int16), np.ones(3, np.float32))
    for text in ([2], [1], [1]):
        assert (await cached.encode(text)).tokens is not None
    assert inner.encoded == [(1,), (2,), (1,)]


async def test_what_is_longest_unused_is_forgotten() -> None:
    slow, counted = ready(), Counted()
    await CachedTextEncoder(ready(), ROOM, counted).encode([1])
    two = 2 * counted.bytes
    cached = CachedTextEncoder(slow, two, counted)
    for text in (1, 2, 1, 3, 1, 2):
        await cached.encode([text])
    assert slow.encoded == [(1,), (2,), (3,), (2,)]
    assert counted.evicted == 2


async def test_a_text_that_takes_more_than_the_whole_budget_is_encoded_and_not_kept() -> None:
    slow, counted = ready(), Counted()
    cached = CachedTextEncoder(slow, 1_000, counted)
    await cached.encode([1])
    short = counted.bytes
    long = [7] * 1_000
    assert (await cached.encode(long)).vector.tolist() == long
    await cached.encode(long)
    assert slow.encoded.count(tuple(long)) == 2
    assert (counted.bytes, counted.evicted) == (short, 0), "and the others stay"


@given(st.lists(st.lists(st.integers(0, 3), max_size=40), max_size=60), st.integers(0, 4_000))
def test_for_all_texts_memory_stays_in_its_budget_and_encodings_are_the_same(
    texts: list[list[int]], budget: int
) -> None:
    async def ask_all() -> None:
        counted = Counted()
        cached, plain = CachedTextEncoder(ready(), budget, counted), ready()
        for text in texts:
            kept, fresh = await cached.encode(text), await plain.encode(text)
            np.testing.assert_array_equal(kept.vector, fresh.vector)
            np.testing.assert_array_equal(kept.states, fresh.states)
            assert 0 <= counted.bytes <= budget

    asyncio.run(ask_all())


async def test_texts_that_come_at_once_are_encoded_once() -> None:
    slow, counted = Slow(), Counted()
    cached = CachedTextEncoder(slow, 0, counted)
    tasks = [asyncio.create_task(cached.encode([1])) for _ in range(3)]
    await happens(lambda: len(counted.looks) == 3)
    slow.go_on.set()
    first, *others = await asyncio.gather(*tasks)
    assert slow.encoded == [(1,)]
    assert counted.looks == ["miss", "hit", "hit"]
    assert first.encode == 0.5
    for other in others:
        assert other.vector is first.vector
        assert other.encode == 0


@pytest.mark.parametrize("cancelled", [0, 1])
async def test_one_that_is_cancelled_takes_the_encoding_from_nobody(cancelled: int) -> None:
    slow = Slow()
    cached = CachedTextEncoder(slow, ROOM)
    tasks = [asyncio.create_task(cached.encode([1])) for _ in range(2)]
    await happens(lambda: bool(slow.encoded))
    tasks[cancelled].cancel()
    await turn()
    slow.go_on.set()
    assert (await tasks[1 - cancelled]).vector == [1]
    assert tasks[cancelled].cancelled()
    assert slow.encoded == [(1,)]


async def test_an_encoding_that_nobody_waits_for_any_more_is_given_up() -> None:
    slow = Slow()
    cached = CachedTextEncoder(slow, ROOM)
    tasks = [asyncio.create_task(cached.encode([1])) for _ in range(2)]
    await happens(lambda: bool(slow.encoded))
    for task in tasks:
        task.cancel()
    await happens(lambda: slow.given_up == [(1,)])
    slow.go_on.set()
    assert (await cached.encode([1])).vector == [1]
    assert slow.encoded == [(1,), (1,)]


async def test_who_comes_as_the_last_one_gives_up_gets_an_encoding() -> None:
    slow = Slow()
    cached = CachedTextEncoder(slow, ROOM)
    leaves = asyncio.create_task(cached.encode([1]))
    await happens(lambda: bool(slow.encoded))
    # both act in one turn of the loop: first the one leaves, then the other comes
    leaves.cancel()
    comes = asyncio.create_task(cached.encode([1]))
    slow.go_on.set()
    assert (await comes).vector == [1]


async def test_only_the_first_caller_of_a_text_has_it_encoded() -> None:
    slow, done = Slow(), list[str]()
    cached = CachedTextEncoder(slow, ROOM)
    first = asyncio.create_task(cached.encode([1], on_encoded=lambda _: done.append("first")))
    second = asyncio.create_task(cached.encode([1], on_encoded=lambda _: done.append("second")))
    await happens(lambda: bool(slow.encoded))
    slow.go_on.set()
    await asyncio.gather(first, second)
    await cached.encode([1], on_encoded=lambda _: done.append("kept"))
    assert done == ["first"]


async def test_a_failure_is_told_to_all_who_wait_and_not_kept() -> None:
    slow = Slow()
    slow.fails = [UnavailableError("gone")]
    cached = CachedTextEncoder(slow, ROOM)
    tasks = [asyncio.create_task(cached.encode([1])) for _ in range(2)]
    await happens(lambda: bool(slow.encoded))
    slow.go_on.set()
    ended = await asyncio.gather(*tasks, return_exceptions=True)
    assert [type(each) for each in ended] == [UnavailableError] * 2
    assert (await cached.encode([1])).vector == [1]


async def test_the_refusal_of_one_client_is_not_that_of_another() -> None:
    slow = Slow()
    slow.fails = [OverloadedError("full", 1.0)]
    cached = CachedTextEncoder(slow, ROOM)
    tasks = [asyncio.create_task(cached.encode([1], client)) for client in "xyz"]
    await happens(lambda: bool(slow.encoded))
    await turn()
    slow.go_on.set()
    ended = await asyncio.gather(*tasks, return_exceptions=True)
    assert [isinstance(each, OverloadedError) for each in ended] == [True, False, False]
    assert slow.encoded == [(1,), (1,)]


async def test_who_has_the_better_turn_does_not_wait_in_the_line_of_another_client() -> None:
    slow = Slow()
    cached = CachedTextEncoder(slow, ROOM)
    busy = [asyncio.create_task(cached.encode([text], "busy")) for text in (1, 2, 3)]
    await happens(lambda: len(slow.encoded) == 3)
    idle = asyncio.create_task(cached.encode([3], "idle"))
    await happens(lambda: slow.encoded == [(1,), (2,), (3,), (3,)])
    again = asyncio.create_task(cached.encode([3], "late"))
    await turn()
    assert len(slow.encoded) == 4, "and others share that turn"
    slow.go_on.set()
    await asyncio.gather(*busy, idle, again)


async def test_nobody_can_change_what_is_kept() -> None:
    kept = await CachedTextEncoder(ready(), ROOM).encode([1, 2])
    assert kept.states is not None
    for values in (kept.vector, kept.states):
        with pytest.raises(ValueError, match="read-only"):
            values[0] = 7
        assert values.flags.owndata, "and not a view of what somebody else may change"


async def test_closing_ends_what_is_being_encoded_and_the_encoder_within() -> None:
    slow = Slow()
    cached = CachedTextEncoder(slow, ROOM)
    waiting = asyncio.create_task(cached.encode([1]))
    await happens(lambda: bool(slow.encoded))
    await cached.warm_up(9)
    cached.close()
    with pytest.raises(asyncio.CancelledError):
        await waiting
    assert (slow.closed, slow.warmed) == (True, 9)


async def test_threads_of_this_process_encode_as_the_encoder_does(bundle: Bundle) -> None:
    encoder = open_question_encoder(bundle, Tokenizer(bundle.tokenizer).special)
    local = LocalTextEncoder(encoder, 2)
    await local.warm_up(4)
    several = await asyncio.gather(*(local.encode([1000 + n, 2000]) for n in range(3)))
    seen: list[tuple[str, bool]] = []

    def on_encoded(encoding: TextEncoding) -> None:
        right = np.array_equal(encoding.vector, encoder.question([1000]))
        seen.append((threading.current_thread().name.partition("_")[0], right))

    await local.encode([1000], on_encoded=on_encoded)
    assert seen == [("encode", True)]
    local.close()
    for n, encoding in enumerate(several):
        np.testing.assert_array_equal(encoding.vector, encoder.question([1000 + n, 2000]))
        assert encoding.states is None
        assert encoding.encode > 0
        assert encoding.queue >= 0
