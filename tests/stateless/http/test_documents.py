"""Conversion of documents over HTTP."""

import asyncio
import base64
from collections.abc import AsyncIterator, Iterator
from contextlib import ExitStack
from dataclasses import replace
from threading import Event

import httpx
import pytest
from http_front import HttpFront
from tenacious import LONG

from winnow.documents.conversion.converter import DocumentConverter
from winnow.documents.failures import ConversionFailure, FailureReason
from winnow.errors import OverloadedError
from winnow.stateless.feed.document_conversion import (
    MAX_FILE_BYTES,
    UPLOAD_LIMITS,
    DocumentConversion,
)
from winnow.stateless.http.call import OperationLimits
from winnow.stateless.http.documents import document_operations

MARKDOWN = b"# Policy\n\n## Archive areas\n\nThe areas are main, contrib and non-free.\n"
PATH = "/v1/documents:convert"


class HeldConverter:
    """A converter whose files wait for `go_on`, and all fail."""

    def __init__(self) -> None:
        self.go_on = Event()

    def convert(self, paths: list[object]) -> Iterator[tuple[object, ConversionFailure]]:
        self.go_on.wait(LONG)
        yield paths[0], ConversionFailure(FailureReason.DAMAGED, "page 3 is not a page")


@pytest.fixture(scope="module")
def conversion() -> Iterator[DocumentConversion]:
    with ExitStack() as stack:
        # the seconds of the first file include the start of the process
        limits = replace(UPLOAD_LIMITS, seconds=LONG)
        converter = DocumentConverter(workers=1, limits=limits)
        made = DocumentConversion(converter)
        stack.callback(made.close)
        stack.callback(converter.close)
        yield made


@pytest.fixture
async def client(conversion: DocumentConversion) -> AsyncIterator[httpx.AsyncClient]:
    front = HttpFront()
    front.add(document_operations(conversion, OperationLimits(LONG, front.admission.refusal)))
    async with front.serving() as client:
        yield client


async def sent(client: httpx.AsyncClient, name: str, content: bytes) -> httpx.Response:
    body = {"name": name, "content": base64.b64encode(content).decode()}
    return await client.post(PATH, json=body, timeout=LONG)


async def test_a_document_becomes_passages_that_can_be_fed(client: httpx.AsyncClient) -> None:
    reply = (await sent(client, "docs/policy.md", MARKDOWN)).json()
    (passage,) = reply["passages"]
    assert passage["id"] == "docs/policy.md#0"
    assert passage["text"] == "The areas are main, contrib and non-free."
    metadata = passage["metadata"]
    assert metadata["document"] == "docs/policy.md"
    assert metadata["heading"].endswith("Archive areas")
    assert metadata["document_hash"] == reply["documentHash"]
    assert metadata["document_passages"] == 1


@pytest.mark.parametrize(
    ("name", "content", "field", "problem"),
    [
        ("broken.pdf", b"%PDF-1.4 broken", "content", "damaged"),
        ("empty.md", b"", "content", ""),
        ("", MARKDOWN, "name", "has 0 characters"),
        ("a" * 250, MARKDOWN, "name", "has 250 characters"),
        ("a\x00.md", MARKDOWN, "name", "control characters"),
        ("../../../etc/policy.md", b"\x00\x01\x02", "content", ""),
    ],
)
async def test_why_a_document_is_not_converted_is_said_of_its_field(
    client: httpx.AsyncClient, name: str, content: bytes, field: str, problem: str
) -> None:
    reply = await sent(client, name, content)
    assert reply.status_code == 400
    (violation,) = reply.json()["violations"]
    assert violation["field"] == field
    assert problem in violation["description"]


async def test_a_file_that_is_too_large_is_refused(client: httpx.AsyncClient) -> None:
    assert (await sent(client, "a.md", b"a" * (MAX_FILE_BYTES + 4096))).status_code == 413


async def test_documents_that_wait_are_limited() -> None:
    converter = HeldConverter()
    conversion = DocumentConversion(converter)  # type: ignore[arg-type]
    waiting = [asyncio.create_task(conversion.convert("a.md", b"a")) for _ in range(4)]
    await asyncio.sleep(0)
    with pytest.raises(OverloadedError):
        await conversion.convert("b.md", b"b")
    converter.go_on.set()
    results = await asyncio.gather(*waiting, return_exceptions=True)
    assert ["damaged: page 3" in str(each) for each in results] == [True] * 4
    conversion.close()
