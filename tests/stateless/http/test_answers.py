"""Questions over HTTP."""

import asyncio
import threading
from collections import Counter
from collections.abc import Callable
from typing import Any

import httpx
import pytest
from http_front import METADATA, TEXT, HttpFront, asking, wire
from tenacious import LONG, happens

from winnow.convert import answer as convert
from winnow.errors import OverloadedError
from winnow.stateless.http import json_text, packed_answers
from winnow.stateless.http.call import OperationLimits


async def test_an_answer_has_every_field_in_lower_camel_case(client: httpx.AsyncClient) -> None:
    reply = await client.post("/v1/answer", json={"question": "Who won?", "answers": 1})
    assert (reply.status_code, reply.headers["content-type"]) == (200, "application/json")
    said = reply.json()
    (answer,) = said["answers"]
    assert answer["text"] == TEXT[answer["start"] : answer["end"]] == "Marta Quendelheim"
    assert answer["passage"]["metadata"] == {"year": 2031}
    assert said["hasAnswer"] is True
    assert said["readScope"] == "READ_SCOPE_GLOBAL"
    assert said["requestId"] == reply.headers["x-request-id"]
    assert answer["distance"] == 0.0, "a zero is said, too"
    assert said["heads"] == []
    assert said["coverage"]["shards"][0]["sequence"] == "7", "64 bits are a string"


async def test_long_metadata_is_converted_in_threads_and_said_as_short_metadata_is(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    where: list[str] = []

    def noted(work: Callable[[Any], Any]) -> Callable[[Any], Any]:
        def run(value: Any) -> Any:
            where.append(threading.current_thread().name)
            return work(value)

        return run

    monkeypatch.setattr(convert, "passage_to_message", noted(convert.passage_to_message))
    monkeypatch.setattr(packed_answers, "object_of", noted(json_text.object_of))
    front = HttpFront(packs=True)
    async with front.serving() as client:
        one = (await client.post("/v1/answer", json={"question": "long?"})).json()
        requests = [{"question": "long?"}, {"question": "Who?"}, {"question": ""}]
        many = (await client.post("/v1/answers", json={"requests": requests})).json()
        short = (await client.post("/v1/answer", json={"question": "Who?"})).json()
    assert one.keys() == short.keys()
    assert [each["passage"]["metadata"] for each in one["answers"]] == [METADATA] * 3
    long, brief, wrong = many["results"]
    assert long["response"]["answers"] == one["answers"]
    assert brief["response"]["answers"] == short["answers"]
    assert wrong["problem"]["status"] == 400
    assert many.keys() == {"results", "requestId"}
    threads = [name.partition("_")[0] for name in where]
    assert Counter(threads) == {"packing": 6, "json": 5, "MainThread": 6}


@pytest.mark.parametrize("name", ["passagesToRead", "passages_to_read"])
async def test_a_request_may_have_names_of_both_forms(
    name: str, front: HttpFront, client: httpx.AsyncClient
) -> None:
    await client.post("/v1/answer", json={"question": "Who?", name: 7})
    assert front.answerer.asked[0].passages_to_read == 7


async def test_a_reply_has_the_headers_that_were_added_during_its_call(
    client: httpx.AsyncClient,
) -> None:
    """Also over a connection that is used again."""
    told = [
        (await client.post("/v1/answer", json={"question": each})).headers.get("x-told")
        for each in ("tell", "Who?")
    ]
    assert told == ["something", None]


async def test_a_caller_may_name_itself_and_its_request(
    front: HttpFront, client: httpx.AsyncClient
) -> None:
    headers = {"x-request-id": "mine", "x-winnow-client": "me", "x-winnow-timeout": "3000.5"}
    reply = await client.post("/v1/answer", json={"question": "Who?"}, headers=headers)
    assert reply.json()["requestId"] == reply.headers["x-request-id"] == "mine"
    assert front.answerer.clients == ["me"]
    assert LONG < front.answerer.left[0] <= 3000.5


@pytest.mark.parametrize(
    ("body", "field", "words"),
    [
        (b'{"question": ""}', "question", "is empty"),
        (b'{"question": "Who?", "answers": 1000}', "answers", "1000 is not between 1 and 100"),
        (
            b'{"question": "Who?", "retriever": 77}',
            "retriever",
            "77 is none of DENSE, SPARSE, HYBRID",
        ),
        (
            b'{"question": "Who?", "passages_to_read": 0}',
            "passagesToRead",
            "0 is not between 1 and 100",
        ),
        (b'{"question": "Who?", "maxLoss": -1}', "maxLoss", "-1 is not between 0 and 100"),
        (b'{"question": "Who?", "passagesToRead": -3}', "passagesToRead", "-3 is less than 0"),
        (b'{"question": "Who?", "passagesToRead": 1e99}', "passagesToRead", " is too large"),
        (b'{"question": "Who?", "max_lose": 1}', "max_lose", "is not a field of this request"),
        (b'{"question": 5}', "question", "is not a string: give it in quotes"),
        (b'{"question": {"text": "Who?"}}', "question", "is an object and not a string"),
        (b'{"question": "Who?", "heads": "intent"}', "heads", "is not a list: put it in [ ]"),
        (
            b'{"question": "Who?", "passagesToRead": "ten"}',
            "passagesToRead",
            "'ten' is not a whole number",
        ),
        (
            b'{"question": "Who?", "passages_to_read": 1.5}',
            "passagesToRead",
            "1.5 is not a whole number",
        ),
        (
            b'{"question": "Who?", "passagesToRead": true}',
            "passagesToRead",
            "is not a whole number",
        ),
        (b'{"question": "Who?", "passagesToRead": [1]}', "passagesToRead", "is not a whole number"),
        (b'{"question": "Who?", "maxLoss": "much"}', "maxLoss", "is not a number"),
        (b'{"question": "Who?", "maxLoss": true}', "maxLoss", "true is not a number"),
        (b'{"question": "Who?", "max_loss": false}', "maxLoss", "false is not a number"),
        (b'{"question": "Who?", "fresh": "yes"}', "fresh", "is neither true nor false"),
        (
            b'{"question": "Who?", "retriever": "both"}',
            "retriever",
            "'both' is none of DENSE, SPARSE, HYBRID",
        ),
        (b'{"quest": "Who?"}', "quest", "is not a field of this request"),
        (b'{"[quest]": "Who?"}', "request", "a name in [ ], which is not a field"),
        (
            b'{"question": "Who?", "after": [{"max_loss": 1}]}',
            "after.max_loss",
            "is not a field of this request",
        ),
        (
            b'{"question": "Who?", "after": [{"shard": "x"}]}',
            "after.shard",
            "is not a whole number",
        ),
        (b'{"question": "\\ud800"}', "question", "has a lone surrogate"),
        (b"[]", "request", "is not a JSON object"),
        (b"", "request", "is not a JSON object"),
        (b"{", "request", "cannot be read as JSON"),
        (b'{"question": "\xff"}', "request", "is not UTF-8"),
        (b'{"a":' * 3_000, "request", "recursion"),
    ],
)
async def test_what_is_wrong_with_a_request_is_named(
    body: bytes, field: str, words: str, front: HttpFront, client: httpx.AsyncClient
) -> None:
    headers = {"content-type": "application/json"}
    reply = await client.post("/v1/answer", content=body, headers=headers)
    assert (reply.status_code, reply.headers["content-type"]) == (400, "application/problem+json")
    problem = reply.json()
    assert (problem["status"], problem["code"]) == (400, "INVALID_ARGUMENT")
    assert problem["requestId"] == reply.headers["x-request-id"]
    (violation,) = problem["violations"]
    assert violation["field"] == field
    assert words in violation["description"]
    assert front.calls_ended("Answer", "INVALID_ARGUMENT") == 1


async def test_a_mistake_is_told_without_its_words(
    front: HttpFront, client: httpx.AsyncClient
) -> None:
    reply = await client.post("/v1/answer", json={"question": "break"})
    assert reply.status_code == 500
    assert "secret" not in reply.text
    assert reply.json()["code"] == "INTERNAL"
    assert front.calls_ended("Answer", "INTERNAL") == 1
    assert (await client.post("/v1/answer", json={"question": "Who?"})).status_code == 200


async def test_a_refusal_says_when_to_try_again(
    front: HttpFront, client: httpx.AsyncClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    def ask(*_: object) -> None:
        raise OverloadedError("too much to do", 2.5)

    monkeypatch.setattr(front.core, "answer", ask)
    reply = await client.post("/v1/answer", json={"question": "Who?"})
    assert (reply.status_code, reply.headers["retry-after"]) == (429, "3")
    assert reply.json()["retryAfterSeconds"] == 2.5


async def test_who_is_refused_at_the_door_is_told_before_the_question_is_read(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    front = HttpFront()
    refused = OverloadedError("come later", 0.25)
    monkeypatch.setattr(front.admission, "refusal", lambda client: client == "greedy" and refused)
    front.calls.clear()
    from winnow.stateless.http.answers import answer_operations

    front.add(
        answer_operations(
            front.core,
            OperationLimits(2.0, front.admission.refusal),
            front.boundary.record_part,
        )
    )
    async with front.serving(), wire(front.address) as line:
        line.send("POST /v1/answer HTTP/1.1\r\nhost: localhost\r\nx-winnow-client: greedy\r\n")
        line.send("content-type: application/json\r\ncontent-length: 20\r\n\r\n")
        status, headers, problem = await line.reply()
    assert (status, headers["retry-after"]) == (429, "1")
    assert problem["detail"] == "come later"


async def test_nothing_is_replied_later_than_the_caller_allows(
    front: HttpFront, client: httpx.AsyncClient
) -> None:
    headers = {"x-winnow-timeout": "0.05"}
    reply = await client.post("/v1/answer", json={"question": "wait"}, headers=headers)
    assert (reply.status_code, reply.json()["code"]) == (504, "DEADLINE_EXCEEDED")
    assert front.answerer.cancelled == len(front.answerer.asked)  # none on a slow machine


@pytest.mark.parametrize("said", ["0", "-1", "soon", "1e3", "nan", "0.0", "1000000000"])
async def test_a_time_that_is_none_is_refused(said: str, client: httpx.AsyncClient) -> None:
    headers = {"x-winnow-timeout": said}
    reply = await client.post("/v1/answer", json={"question": "Who?"}, headers=headers)
    assert reply.status_code == 400
    problem = f"'{said}' is not a number of seconds above 0 and below 1000000000, such as 0.5"
    assert reply.json()["detail"] == f"x-winnow-timeout: {problem}"


async def test_a_question_whose_caller_goes_is_given_up(
    front: HttpFront, client: httpx.AsyncClient
) -> None:
    async with wire(front.address) as line:
        line.send(asking("wait"))
        await happens(lambda: bool(front.answerer.asked), LONG)
    await happens(lambda: front.answerer.cancelled == 1, LONG)
    await happens(lambda: front.calls_ended("Answer", "CANCELLED") == 1, LONG)


async def test_many_questions_are_answered_in_their_order_each_for_itself(
    front: HttpFront, client: httpx.AsyncClient
) -> None:
    texts = ["one", "", "break", "four"]
    requests = [{"question": text, "maxLoss": -1 if not text else 0} for text in texts]
    reply = await client.post("/v1/answers", json={"requests": requests})
    first, empty, broken, last = reply.json()["results"]
    assert reply.status_code == 200
    assert [len(each["response"]["answers"]) for each in (first, last)] == [3, 3]
    assert [each["field"] for each in empty["problem"]["violations"]] == ["question", "maxLoss"]
    assert (broken["problem"]["status"], "secret" in reply.text) == (500, False)
    assert front.calls_ended("Answers", "OK") == 1
    for status, count in {"OK": 2, "INVALID_ARGUMENT": 1, "INTERNAL": 1}.items():
        assert front.calls_ended("AnswerOfMany", status) == count
    assert front.calls_ended("Answer", "OK") == 0


async def test_questions_of_a_request_whose_caller_goes_are_counted_as_given_up(
    front: HttpFront, client: httpx.AsyncClient
) -> None:
    requests = [{"question": "wait"}] * 3
    asking = asyncio.create_task(client.post("/v1/answers", json={"requests": requests}))
    await happens(lambda: len(front.answerer.asked) == 3, LONG)
    asking.cancel()
    await asyncio.wait([asking])
    await happens(lambda: front.calls_ended("Answers", "CANCELLED") == 1, LONG)
    assert front.calls_ended("AnswerOfMany", "CANCELLED") == 3


async def test_many_questions_are_not_asked_all_at_once(
    front: HttpFront, client: httpx.AsyncClient
) -> None:
    requests = [{"question": f"wait {n}"} for n in range(10)]
    headers = {"x-winnow-timeout": "60"}
    asking = asyncio.create_task(
        client.post("/v1/answers", json={"requests": requests}, headers=headers)
    )
    await happens(lambda: len(front.answerer.asked) >= 4, LONG)
    assert front.admission.in_flight == 4
    front.answerer.go_on.set()
    assert len((await asking).json()["results"]) == 10


@pytest.mark.parametrize("count", [0, 101])
async def test_too_many_questions_or_none_are_refused(
    count: int, client: httpx.AsyncClient
) -> None:
    requests = [{"question": "Who?"}] * count
    reply = await client.post("/v1/answers", json={"requests": requests})
    assert reply.status_code == 400
    assert f"has {count} questions" in reply.json()["detail"]


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({"requests": [{"question": "Who?"}], "index": "other"}, "index"),
        ({"requests": [{"question": "Who?"}, {"index": "other"}]}, "requests[1].index"),
    ],
)
async def test_a_question_is_of_no_other_index_than_its_path(
    body: dict[str, object], field: str, client: httpx.AsyncClient
) -> None:
    """A proxy may allow only the paths of one index."""
    reply = await client.post("/v1/indexes/docs/answers", json=body)
    assert reply.status_code == 400
    violation = reply.json()["violations"][0]
    assert violation == {"field": field, "description": "'other' is not the index of the path"}


@pytest.mark.parametrize(
    ("path", "body", "field"),
    [
        ("/v1/answer", {"tenant": "beta"}, "tenant"),
        ("/v1/answers", {"requests": [{"question": "Who?"}], "tenant": "beta"}, "tenant"),
        (
            "/v1/answers",
            {"requests": [{"question": "Who?"}, {"tenant": "beta"}]},
            "requests[1].tenant",
        ),
    ],
)
async def test_a_question_is_of_no_other_tenant_than_its_header(
    path: str, body: dict[str, object], field: str, client: httpx.AsyncClient
) -> None:
    """A proxy in front of a front without keys may set the header."""
    reply = await client.post(path, json=body, headers={"x-winnow-tenant": "acme"})
    assert reply.status_code == 400
    violation = reply.json()["violations"][0]
    assert violation == {
        "field": field,
        "description": "the header x-winnow-tenant names another tenant",
    }


async def test_two_headers_with_different_tenants_are_refused(client: httpx.AsyncClient) -> None:
    """A proxy may add its header behind that of the caller."""
    named = [("x-winnow-tenant", "beta"), ("x-winnow-tenant", "acme")]
    reply = await client.post("/v1/answer", json={"question": "Who?"}, headers=named)
    assert (reply.status_code, reply.json()["violations"][0]["field"]) == (400, "x-winnow-tenant")


async def test_an_answer_of_many_passages_is_written_whole(client: httpx.AsyncClient) -> None:
    """What is long is written in a thread."""
    reply = await client.post("/v1/answer", json={"question": "Who?", "answers": 100})
    assert len(reply.json()["answers"]) == 100
