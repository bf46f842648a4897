"""The description of the HTTP interface."""

import re
from collections.abc import Iterator
from typing import Any

import pytest
from fake_encoder_groups import FakePredictions
from http_front import HttpFront

from winnow.bundle import Bundle
from winnow.stateless.http.call import OperationLimits
from winnow.stateless.http.docs import _page
from winnow.stateless.http.openapi import openapi
from winnow.stateless.http.passages import feed_operations
from winnow.stateless.http.predictions import predict_operations
from winnow.stateless.http.reading import read_operations
from winnow.stateless.http.stored_passages import passage_operations
from winnow.stateless.passages.servicer import PassageMessages
from winnow.stateless.reading.servicer import ReadMessages


@pytest.fixture
def front(bundle: Bundle) -> HttpFront:
    front = HttpFront()
    front.add(predict_operations(FakePredictions(bundle).core, OperationLimits(1.0)))
    feed = feed_operations(None, OperationLimits(1.0))  # type: ignore[arg-type]
    front.add(feed)
    messages = PassageMessages(None, None)  # type: ignore[arg-type]
    front.add(passage_operations(messages, OperationLimits(1.0)))
    texts = ReadMessages(None, None)  # type: ignore[arg-type]
    front.add(read_operations(texts, OperationLimits(1.0)))
    return front


@pytest.fixture
def described(front: HttpFront) -> dict[str, Any]:
    return openapi(front.calls, "1.2.3")


def references(part: Any) -> set[str]:
    """All schemas that a part of a description names."""
    if isinstance(part, list):
        return {name for each in part for name in references(each)}
    if not isinstance(part, dict):
        return set()
    own = {part["$ref"].rpartition("/")[2]} if "$ref" in part else set()
    return own | {name for each in part.values() for name in references(each)}


def test_every_call_is_described(described: dict[str, Any]) -> None:
    paths = described["paths"]
    assert {path: list(verbs) for path, verbs in paths.items()} == {
        "/v1/answer": ["post"],
        "/v1/answers": ["post"],
        "/v1/predict": ["post"],
        "/v1/heads": ["get"],
        "/v1/passages": ["post", "get"],
        "/v1/passages:delete": ["post"],
        "/v1/passages:deleteWhere": ["post"],
        "/v1/search": ["post"],
        "/v1/passages:get": ["post"],
        "/v1/passages:count": ["get"],
        "/v1/passages:export": ["get"],
        "/v1/documents": ["get"],
        "/v1/tenants": ["get"],
        "/v1/tenants:usage": ["get"],
        "/v1/tenants:delete": ["post"],
        "/v1/read": ["post"],
        "/v1/highlight": ["post"],
        "/v1/rerank": ["post"],
        "/v2/rerank": ["post"],
    }
    problem = paths["/v1/answer"]["post"]["responses"]["default"]["content"]
    assert problem["application/problem+json"]["schema"] == {"$ref": "#/components/schemas/Problem"}
    assert [each["name"] for each in paths["/v1/heads"]["get"]["parameters"]][-1] == "ring"
    listed = paths["/v1/passages"]["get"]["parameters"]
    names = [each["name"] for each in listed]
    assert names[-6:] == ["filter", "pageSize", "pageToken", "fields", "index", "tenant"]
    exported = paths["/v1/passages:export"]["get"]["responses"]["200"]["content"]
    assert list(exported) == ["application/x-ndjson"]


def test_every_schema_that_is_named_is_there(described: dict[str, Any]) -> None:
    assert references(described) == set(described["components"]["schemas"]) - unnamed(described)


def unnamed(described: dict[str, Any]) -> set[str]:
    """The request of a GET is its query."""
    schemas = set(described["components"]["schemas"])
    listed = {f"List{each}Request" for each in ("Heads", "Passages", "Documents", "Tenants")}
    others = {"CountPassagesRequest", "ExportPassagesRequest", "GetTenantUsageRequest"}
    return (listed | others) & schemas


def test_fields_have_the_comments_and_types_of_the_protos(described: dict[str, Any]) -> None:
    schemas = described["components"]["schemas"]
    fields = schemas["AnswerRequest"]["properties"]
    assert fields["question"]["description"].startswith("The question: 1 to 1000 characters")
    assert fields["passagesToRead"]["type"] == "integer"
    assert fields["heads"]["type"] == "array"
    assert schemas["Retriever"]["enum"][1] == "RETRIEVER_DENSE"
    assert "- RETRIEVER_DENSE: By the distance" in schemas["Retriever"]["description"]
    assert "in any case: DENSE, SPARSE, HYBRID." in schemas["Retriever"]["description"]
    assert schemas["Position"]["properties"]["sequence"]["type"] == "string"
    assert schemas["Passage"]["properties"]["metadata"]["type"] == "object"
    faults = schemas["FailedPart"]["properties"]["metadata"]
    assert (faults["type"], faults["additionalProperties"]) == ("object", {"type": "string"})


async def test_a_reply_is_as_it_is_described(front: HttpFront) -> None:
    async with front.serving() as client:
        described = (await client.get("/openapi.json")).json()
        said = (await client.post("/v1/answer", json={"question": "Who?"})).json()
        wrong = (await client.post("/v1/answer", json={"question": ""})).json()
    schemas = described["components"]["schemas"]
    for value, name in ((said, "AnswerResponse"), (wrong, "Problem")):
        expect(value, schemas[name], schemas)


def expect(value: Any, schema: dict[str, Any], schemas: dict[str, Any]) -> None:
    """Fails if a value is not as a schema has it."""
    schema = schemas[schema["$ref"].rpartition("/")[2]] if "$ref" in schema else schema
    kinds: dict[str, Any] = {
        "object": dict,
        "array": list,
        "string": str,
        "boolean": bool,
        "integer": int,
    }
    assert isinstance(value, kinds.get(schema["type"], (int, float))), (value, schema)
    assert value in schema.get("enum", [value])
    if schema["type"] == "array":
        for each in value:
            expect(each, schema["items"], schemas)
    for name, each in value.items() if "properties" in schema else ():
        expect(each, schema["properties"][name], schemas)


async def test_the_page_for_people_names_everything_and_needs_nothing_else(
    front: HttpFront,
) -> None:
    async with front.serving() as client:
        reply = await client.get("/docs")
        style = await client.get("/docs/style.css")
    assert reply.headers["content-type"].startswith("text/html")
    for words in ("POST /v1/answer<", "/v1/passages:delete", "GET /v1/heads", "passagesToRead"):
        assert words in reply.text
    assert "<script" not in reply.text
    assert " style=" not in reply.text
    links = set(re.findall(r'(?:href|src)="([^"#]*)', reply.text))
    assert links == {"", "/docs/style.css", "/openapi.json", "/llms.txt"}
    assert set(re.findall(r'href="#([^"]+)"', reply.text)) <= set(
        re.findall(r'id="([^"]+)"', reply.text)
    )
    assert style.headers["content-type"].startswith("text/css")


def test_what_a_caller_calls_the_front_is_no_markup(
    front: HttpFront, described: dict[str, Any]
) -> None:
    assert "<b>" not in _page(described, front.calls, "http://<b>")


FORMATS = {"byte", "double", "float", "int32", "int64"}
"""Formats that generators of clients know."""


def parts_of(value: Any) -> Iterator[dict[str, Any]]:
    """Yields all objects of a JSON value."""
    if isinstance(value, dict):
        yield value
    for each in value.values() if isinstance(value, dict) else value:
        if isinstance(each, dict | list):
            yield from parts_of(each)


def test_generators_of_clients_take_the_description(described: dict[str, Any]) -> None:
    """They make classes and functions of names, split names at dots, and warn of formats.

    openapi-python-client, datamodel-code-generator and openapi-typescript were tried.
    """
    names = [*described["components"]["schemas"]]
    names += [each["operationId"] for each in parts_of(described) if "operationId" in each]
    assert [name for name in names if not name.isidentifier()] == []
    assert {each["format"] for each in parts_of(described) if "format" in each} <= FORMATS
    lines = described["paths"]["/v1/passages:export"]["get"]["responses"]["200"]["content"]
    assert lines["application/x-ndjson"]["schema"]["type"] == "string"


async def test_language_models_get_an_index_and_a_reference_in_markdown(front: HttpFront) -> None:
    """The index names every call; its links lead to pages of the front."""
    async with front.serving() as client:
        index = await client.get("/llms.txt")
        urls = re.findall(r"\]\((http[^)]+)\)", index.text)
        replies = [await client.get(url) for url in urls]
    assert index.text.startswith("# Winnow\n")
    assert all(f"{each.verb} {each.path}: " in index.text for each in front.calls)
    assert [each.status_code for each in replies] == [200, 200, 405]
    assert replies[0].headers["content-type"] == "text/markdown; charset=utf-8"
    assert "## POST /v1/answer" in replies[0].text
    assert "- `question` (string): The question: 1 to 1000 characters." in replies[0].text


async def test_pages_can_be_switched_off() -> None:
    async with HttpFront(http_pages=False).serving() as client:
        for path in ("/docs", "/openapi.json", "/docs/style.css", "/docs.md", "/llms.txt"):
            assert (await client.get(path)).status_code == 404
        assert (await client.post("/v1/answer", json={"question": "Who?"})).status_code == 200
