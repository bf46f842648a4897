"""What integrations with frameworks share: filters, errors, metadata and clients."""

import asyncio
import copy
import pickle
from typing import Any

import pytest
from pydantic import SecretStr, ValidationError
from scripted_front import full_reply, scripted_front

from winnow.client import Passage, Source
from winnow.client.frameworks import (
    LazyClients,
    combination,
    comparison,
    framework_errors,
    passage_metadata,
    text_to_read,
)
from winnow.client.frameworks.connection import WinnowConnection
from winnow.errors import DeadlineExceededError, InvalidRequestError, OverloadedError
from winnow.filtering import parse

WITH = {"year": 2015, "tags": ["sport", "cycling"]}
WITHOUT: dict[str, Any] = {}


@pytest.mark.parametrize(
    ("operator", "value", "field", "accepted"),
    [
        ("==", 2015, "year", [WITH]),
        ("!=", 2015, "year", [WITHOUT]),
        (">", 2014.5, "year", [WITH]),
        ("<=", 2014, "year", []),
        ("in", [2014, 2015], "year", [WITH]),
        ("not in", [2014], "year", [WITH, WITHOUT]),
        ("in", [], "year", []),
        ("not in", [], "year", [WITH, WITHOUT]),
        ("==", None, "year", [WITHOUT]),
        ("!=", None, "year", [WITH]),
        ("==", "sport", "tags", [WITH]),
        ("==", 'a "quoted" \\ word', "tags", []),
    ],
)
def test_a_comparison_treats_a_missing_field_as_none(
    operator: str, value: object, field: str, accepted: list[dict[str, Any]]
) -> None:
    written = parse(str(comparison(field, operator, value)))
    assert [each for each in (WITH, WITHOUT) if written.matches(each)] == accepted


def test_combinations_are_written_as_text() -> None:
    year, tag = comparison("year", ">=", 2010), comparison("tags", "==", "sport")
    assert str(combination("or", [year, combination("not", [tag, year])])) == (
        'year >= 2010 or not (tags = "sport" and year >= 2010)'
    )


@pytest.mark.parametrize(("operator", "value"), [("like", "x"), ("==", [1]), ("<", float("nan"))])
def test_a_comparison_without_an_equivalent_is_refused(operator: str, value: object) -> None:
    with pytest.raises(InvalidRequestError, match="year"):
        comparison("year", operator, value)
    with pytest.raises(InvalidRequestError, match="0 conditions"):
        combination("and", [])


def test_an_error_keeps_its_message_its_notes_and_its_cause() -> None:
    late = DeadlineExceededError("no reply in time")
    late.add_note("request id: 1")
    with pytest.raises(TimeoutError, match="no reply") as raised, framework_errors():
        raise late
    assert raised.value.__notes__ == ["request id: 1"]
    assert raised.value.__cause__ is late
    with pytest.raises(OverloadedError), framework_errors():
        raise OverloadedError("full")


def test_metadata_has_the_title_and_the_source_of_a_passage() -> None:
    passage = Passage(id="1", title="Policy", text="…", metadata={"title": "draft", "page": 4})
    source = Source(document="policy.pdf", page=4, url="https://example.com/policy.pdf")
    assert passage_metadata(passage, source) == {
        "title": "Policy",
        "page": 4,
        "source": "https://example.com/policy.pdf",
        "citation": "policy.pdf, page 4",
    }
    assert passage_metadata(passage, None) == {"title": "Policy", "page": 4}


def test_a_title_in_the_metadata_is_read() -> None:
    assert text_to_read("…", {"title": "Policy"}) == {"text": "…", "title": "Policy"}
    assert text_to_read("…", {"title": 7}) == {"text": "…", "title": ""}
    assert len(text_to_read("…", {"title": "long " * 1000})["title"]) == 1000


async def test_copies_open_connections_of_their_own() -> None:
    async with scripted_front() as front:
        front.reply = full_reply()
        clients = LazyClients(front.address, index="docs", tenant="acme")
        for each in (clients, copy.deepcopy(clients), pickle.loads(pickle.dumps(clients))):
            answered = await each.async_client.ask("Who?")
            assert answered == await asyncio.to_thread(each.client.ask, "Who?")
            named = [(request.index, request.tenant) for request in front.requests[-2:]]
            assert named == [("docs", "acme")] * 2
            assert each.async_client is each.async_client
            each.close()
            await each.close_async()
        assert await clients.async_client.ask("Who?") == answered
        await clients.close_async()


def test_a_connection_that_cannot_work_is_refused_when_it_is_made() -> None:
    with pytest.raises(ValidationError, match="tokens"):
        WinnowConnection.model_validate({"tokens": "x"})
    with pytest.raises(ValueError, match="HOST:PORT"):
        _ = WinnowConnection(address="front").clients
    with pytest.raises(ValueError, match="plain text"):
        _ = WinnowConnection(address="front:8080", token=SecretStr("a-token")).clients


def test_a_copy_of_a_connection_calls_its_own_server() -> None:
    first = WinnowConnection(address="127.0.0.1:1", index="docs", tenant="acme")
    assert first.clients is first.clients
    copied = first.model_copy(update={"address": "127.0.0.1:2"})
    assert copied.clients is not first.clients
