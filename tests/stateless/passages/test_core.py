"""Calls for passages over fake shards."""

import asyncio
from collections import Counter
from contextlib import nullcontext
from random import Random

import pytest
from manual_clock import ManualClock
from passage_front import DEFAULTS, PassageFront
from prometheus_client import CollectorRegistry
from tenacious import LATER, turn

from winnow import caller
from winnow.caller import Caller, Lease
from winnow.deadline import Deadline
from winnow.domain.listing import PassageListing, PassageLookup, SelectedFields, StoredDocument
from winnow.domain.passage_request import PageRequest, PassageCountRequest, PassagesRequest
from winnow.domain.write import Position
from winnow.errors import (
    DeadlineExceededError,
    InvalidRequestError,
    NotServedError,
    OverloadedError,
    UnauthenticatedError,
    UnavailableError,
    WinnowError,
)
from winnow.policy.load import LoadSettings, ReadLoad
from winnow.stateless.answer.admission import Admission
from winnow.stateless.metrics import AdmissionMetrics
from winnow.stateless.passages import core as core_module
from winnow.stateless.passages.core import PassageCore


@pytest.mark.parametrize("shards", [1, 3, 7])
@pytest.mark.parametrize("size", [1, 10, 1_000])
async def test_pages_have_all_passages_of_all_shards_in_order(shards: int, size: int) -> None:
    ids = [f"{letter}#{number}" for letter in "zaéЯ" for number in range(20)]
    front = PassageFront(shards, ids)
    found: list[str] = []
    token = ""
    while True:
        page, token = await front.page(size, token)
        assert 1 <= len(page) <= size
        found += page
        if not token:
            break
    assert found == sorted(ids, key=str.encode)


@pytest.mark.parametrize("seed", range(30))
async def test_a_passage_that_stays_is_listed_once_whatever_happens_between_pages(
    seed: int,
) -> None:
    """Between pages passages come and go, and shards are split."""
    chance = Random(seed)
    names = [f"p{number}" for number in range(60)]
    stays = set(chance.sample(names, 30))
    front = PassageFront(2, stays)
    others = sorted(set(names) - stays)
    found: list[str] = []
    token = ""
    for split in (None, None, 0, None, 1, *[None] * 200):
        for each in chance.sample(others, 5):
            front.put(each) if chance.random() < 0.5 else front.delete(each)
        if split is not None:
            front.show(front.partition.split(split).shards)
        page, token = await front.page(chance.randint(1, 9), token)
        found += page
        if not token:
            break
    assert not token
    assert max(Counter(found).values()) == 1
    assert stays <= set(found)


async def test_an_export_has_every_page() -> None:
    ids = [f"p{number}" for number in range(25)]
    front = PassageFront(3, ids)
    for own in front.shards.values():
        own.page_limit = 4
    new_deadlines = 0

    def new_deadline() -> Deadline:
        nonlocal new_deadlines
        new_deadlines += 1
        return Deadline.after(60)

    pages = [page async for page in front.core.export(PageRequest(), new_deadline)]
    assert [each.id for page in pages for each in page.passages] == sorted(ids)
    assert len(pages) == new_deadlines > 1


async def exported(front: PassageFront) -> list[str]:
    pages = front.core.export(PageRequest(), lambda: Deadline.after(60))
    return [each.id async for page in pages for each in page.passages]


async def test_an_export_waits_while_the_shards_are_overloaded() -> None:
    front = PassageFront(1, ["a", "b"])
    front.shards[0].fails = OverloadedError("full", 0.25)

    def recover() -> None:
        front.shards[0].fails = None

    front.on_pause = recover
    assert await exported(front) == ["a", "b"]
    assert front.pauses == [0.25]
    front.shards[0].fails = OverloadedError("full", 61.0)
    with pytest.raises(OverloadedError):
        await exported(front)


async def test_an_export_keeps_to_the_rate_of_its_key_and_ends_when_it_is_revoked() -> None:
    front = PassageFront(1, ["a", "b", "c"])
    front.shards[0].page_limit = 1
    waits = [0.0, 5.0, 0.0]
    lease = Lease(lambda: waits.pop(0))
    known = Caller("alice", lambda: nullcontext(lease), lambda _: True, lambda _: None)

    async def call() -> list[str]:
        caller.bind(known)
        return await exported(front)

    assert await asyncio.create_task(call()) == ["a", "b", "c"]
    assert front.pauses == [1.0]
    lease.end(UnauthenticatedError("key alice was revoked"))
    with pytest.raises(UnauthenticatedError):
        await asyncio.create_task(call())


async def test_passages_are_looked_up_in_their_shards_in_the_order_of_the_ids() -> None:
    front = PassageFront(3, ["a", "b", "c"])
    found = await front.core.look_up(PassagesRequest(ids=("c", "x", "a", "c")), LATER)
    assert [each.id for each in found.passages] == ["c", "a"]
    assert (found.missing_ids, found.remaining_ids) == (("x",), ())


async def test_what_does_not_fit_into_a_reply_remains(monkeypatch: pytest.MonkeyPatch) -> None:
    ids = tuple(f"p{number:02}" for number in range(40))
    front = PassageFront(2, ids)
    for own in front.shards.values():
        own.page_limit = 3
    one_by_one = await front.core.look_up(PassagesRequest(ids=ids), LATER)
    assert [each.id for each in one_by_one.passages] == list(ids)
    monkeypatch.setattr(core_module, "MAX_PAGE_BYTES", 100)
    found = await front.core.look_up(PassagesRequest(ids=ids), LATER)
    assert 1 <= len(found.passages) < len(ids)
    assert (*(each.id for each in found.passages), *found.remaining_ids) == ids


async def test_counts_and_documents_are_those_of_all_shards() -> None:
    front = PassageFront(3)
    for number in range(9):
        front.put(f"p{number}", document=f"d{number % 2}", document_hash="h", document_passages=9)
    assert await front.core.count(PassageCountRequest(), LATER) == 9
    first = await front.core.documents(PageRequest(page_size=1), LATER)
    assert first.documents == (StoredDocument(name="d0", passages=5, hash="h", expected=9),)
    rest = await front.core.documents(PageRequest(page_token=first.next_page_token), LATER)
    assert rest.documents == (StoredDocument(name="d1", passages=4, hash="h", expected=9),)
    assert rest.next_page_token == ""


async def test_shards_get_the_filter_the_fields_and_the_client() -> None:
    front = PassageFront(1)
    no_text = SelectedFields(text=False)
    request = PageRequest(where="lang='en'", fields=no_text, page_size=5)
    await front.core.page(request, LATER, "me")
    await front.core.look_up(PassagesRequest(ids=("a",), fields=no_text), LATER, "me")
    assert front.shards[0].requests == [
        PassageListing(limit=5, where='lang = "en"', fields=no_text, client="me"),
        PassageLookup(ids=["a"], fields=no_text, client="me"),
    ]
    assert front.calls == 2


async def test_a_call_waits_for_acknowledged_writes_and_for_those_that_it_names() -> None:
    front = PassageFront(2)
    front.cluster.record_write(0, 4, "log")
    await front.core.count(PassageCountRequest(after=(Position(1, 7),)), LATER)
    afters = [own.requests[0].after for own in front.shards.values()]
    assert afters == [4, 7]


async def test_a_position_of_a_split_shard_is_one_of_its_halves() -> None:
    front = PassageFront(1)
    front.show(front.partition.split(0).shards)
    await front.core.count(PassageCountRequest(after=(Position(0, 3),)), LATER)
    assert [own.requests[0].after for own in front.shards.values()] == [3, 3]


@pytest.mark.parametrize(
    ("error", "raised", "message"),
    [
        (OverloadedError("full", 0.5), OverloadedError, "its nodes are overloaded"),
        (DeadlineExceededError("late"), DeadlineExceededError, "no reply in time"),
        (UnavailableError("gone"), UnavailableError, "none of its replicas"),
        (
            NotServedError("10.0.0.1: old").with_public("a node is of an older version"),
            UnavailableError,
            "a node is of an older version",
        ),
    ],
)
async def test_a_call_fails_if_a_shard_fails(
    error: WinnowError, raised: type[WinnowError], message: str
) -> None:
    """A partial export or count would mislead a program that relies on it."""
    front = PassageFront(3, ["a", "b", "c"])
    front.shards[1].fails = error
    with pytest.raises(raised) as caught:
        await front.page(9)
    assert f"shard 1: {message}" in caught.value.public


@pytest.mark.parametrize(
    ("request_", "field"),
    [
        (PageRequest(page_size=0), "page_size"),
        (PageRequest(page_size=1_001), "page_size"),
        (PageRequest(page_token="ä"), "page_token"),
        (PageRequest(page_token="ZDE"), "page_token"),  # of documents
        (PageRequest(where="lang >"), "filter"),
        (PageRequest(where="year = 1"), "filter"),
        (PageRequest(after=(Position(0, 1), Position(0, 2))), "after"),
        (PageRequest(after=(Position(10**6, 1),)), "after"),
    ],
)
async def test_an_invalid_page_request_names_the_field(request_: PageRequest, field: str) -> None:
    with pytest.raises(InvalidRequestError) as caught:
        await PassageFront().core.page(request_, LATER)
    assert [each.field for each in caught.value.violations] == [field]


@pytest.mark.parametrize("ids", [(), ("a",) * 101, ("",), ("x" * 513,)])
async def test_invalid_ids_are_refused(ids: tuple[str, ...]) -> None:
    with pytest.raises(InvalidRequestError, match="ids"):
        await PassageFront().core.look_up(PassagesRequest(ids=ids), LATER)


async def test_filters_may_name_documents_even_if_the_index_has_none() -> None:
    front = PassageFront(1)
    await front.core.count(PassageCountRequest(where='document_hash = "x"'), LATER)


async def test_calls_share_the_limit_of_questions_and_end_with_their_deadline() -> None:
    front = PassageFront(1, max_in_flight=1)
    front.shards[0].hangs = asyncio.Event()
    first = asyncio.create_task(front.core.count(PassageCountRequest(), LATER))
    await turn()
    with pytest.raises(OverloadedError):
        await front.core.count(PassageCountRequest(), LATER)
    front.shards[0].hangs.set()
    assert await first == 0
    front.shards[0].hangs = asyncio.Event()
    with pytest.raises(DeadlineExceededError):
        await front.core.count(PassageCountRequest(), Deadline.after(0.05))


async def test_calls_are_refused_until_the_shards_are_found() -> None:
    load = ReadLoad(LoadSettings(), ManualClock(), lambda: None)
    core = PassageCore(DEFAULTS, Admission(load, 1, AdmissionMetrics(CollectorRegistry())))
    with pytest.raises(UnavailableError, match="not every shard"):
        await core.count(PassageCountRequest(), LATER)
