"""Documents for the web page, and the calls of `PassageService` over them."""

import json
import re
from base64 import b64decode
from collections import Counter
from typing import Any

from starlette.requests import Request
from starlette.responses import JSONResponse, Response

Passage = dict[str, Any]
_DOCUMENT = re.compile(r'document = "((?:[^"\\]|\\.)*)"')
_RANGE = re.compile(r"start >= (\d+) and start < (\d+)")


class PageLibrary:
    """Passages in memory, by pages of at most `page_limit`; knows the filters that the page sends."""

    def __init__(self) -> None:
        self.clear()

    def clear(self) -> None:
        """Forgets all passages."""
        self.passages: dict[str, Passage] = {}
        self.page_limit = 1000
        self.problem: dict[str, Any] | None = None
        self.feeds = False
        self.refusals: list[dict[str, Any]] = []
        self.calls: list[tuple[str, dict[str, Any]]] = []
        self.headers: dict[str, str] = {}

    def put(self, document: str, *parts: tuple[str, str, int], **metadata: Any) -> None:
        """Adds a document; a part has the path of its headings, its text and its page."""
        offset = 0
        for number, (heading, text, page) in enumerate(parts):
            own = {
                "document": document,
                "heading": heading,
                "page": page,
                "start": offset,
                **metadata,
            }
            identifier = f"{document}#{number}"
            self.passages[identifier] = {"id": identifier, "text": text, "metadata": own}
            offset += len(text) + 1

    def documents(self, request: Request) -> Response:
        counts = Counter(each["metadata"]["document"] for each in self.passages.values())
        names = [{"name": name, "passages": str(size)} for name, size in sorted(counts.items())]
        return self._reply(request, "documents", names)

    def page(self, request: Request) -> Response:
        where = request.query_params.get("filter", "")
        found = [each for _, each in sorted(self.passages.items()) if _matches(each, where)]
        return self._reply(request, "passages", found)

    async def look_up(self, request: Request) -> Response:
        ids = json.loads(await request.body())["ids"]
        found = [self.passages[each] for each in ids if each in self.passages]
        missing = [each for each in ids if each not in self.passages]
        return JSONResponse({"passages": found, "missingIds": missing})

    def operations(self, _request: Request) -> Response:
        """Describes the front: whether it converts documents."""
        return JSONResponse({"paths": {"/v1/documents:convert": {}} if self.feeds else {}})

    async def convert(self, request: Request) -> Response:
        """Makes a passage of each line of a document. The content is its hash."""
        sent = self._heard("convert", json.loads(await request.body()))
        if self.refusals:
            return _problem(self.refusals.pop(0))
        name, lines = sent["name"], b64decode(sent["content"]).decode().splitlines()
        metadata = {"document": name, "heading": "", "document_hash": sent["content"]}
        made = [
            {"id": f"{name}#{number}", "text": line, "metadata": {**metadata, "start": number}}
            for number, line in enumerate(lines)
        ]
        return JSONResponse({"passages": made, "documentHash": sent["content"]})

    async def put_all(self, request: Request) -> Response:
        sent = self._heard("put", json.loads(await request.body()))["passages"]
        self.passages |= {each["id"]: each for each in sent}
        position = {"shard": 0, "sequence": str(len(self.calls))}
        return JSONResponse(
            {"results": [{"id": each["id"], "position": position} for each in sent]}
        )

    async def delete_where(self, request: Request) -> Response:
        sent = self._heard("delete", json.loads(await request.body()))
        (kept,) = re.findall(r'not document_hash = "([^"]*)"', sent["filter"])
        for key, each in list(self.passages.items()):
            if _matches(each, sent["filter"]) and each["metadata"].get("document_hash") != kept:
                del self.passages[key]
        return JSONResponse({"complete": True})

    def _heard(self, name: str, sent: dict[str, Any]) -> dict[str, Any]:
        self.calls.append((name, sent))
        return sent

    def _reply(self, request: Request, name: str, rows: list[Any]) -> Response:
        self.headers = dict(request.headers)
        if self.problem is not None:
            return _problem(self.problem)
        first = int(request.query_params.get("pageToken") or 0)
        end = first + min(int(request.query_params.get("pageSize", 100)), self.page_limit)
        token = str(end) if end < len(rows) else ""
        return JSONResponse({name: rows[first:end], "nextPageToken": token})


def _problem(problem: dict[str, Any]) -> Response:
    return JSONResponse(problem, problem["status"], media_type="application/problem+json")


def _matches(passage: Passage, where: str) -> bool:
    metadata = passage["metadata"]
    if document := _DOCUMENT.search(where):
        name = re.sub(r"\\(.)", r"\1", document[1])
        if metadata["document"] != name:
            return False
    span = _RANGE.search(where)
    return span is None or int(span[1]) <= metadata["start"] < int(span[2])
