"""Documents for the web page, and the calls of `PassageService` over them."""

import json
import re
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

    def _reply(self, request: Request, name: str, rows: list[Any]) -> Response:
        self.headers = dict(request.headers)
        if self.problem is not None:
            return JSONResponse(
                self.problem, self.problem["status"], media_type="application/problem+json"
            )
        first = int(request.query_params.get("pageToken") or 0)
        end = first + min(int(request.query_params.get("pageSize", 100)), self.page_limit)
        token = str(end) if end < len(rows) else ""
        return JSONResponse({name: rows[first:end], "nextPageToken": token})


def _matches(passage: Passage, where: str) -> bool:
    metadata = passage["metadata"]
    if document := _DOCUMENT.search(where):
        name = re.sub(r"\\(.)", r"\1", document[1])
        if metadata["document"] != name:
            return False
    span = _RANGE.search(where)
    return span is None or int(span[1]) <= metadata["start"] < int(span[2])
