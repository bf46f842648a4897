"""A fake index behind the interface of clients: scripted replies, no network."""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

from google.protobuf import struct_pb2
from scripted_front import full_reply

from winnow.client.aio import AsyncClientApi
from winnow.client.calls import Call
from winnow.v1 import answer_pb2, passage_pb2, read_pb2

Result = TypeVar("Result")


def passage(identifier: str, text: str = "some words", **metadata: Any) -> answer_pb2.Passage:
    values = struct_pb2.Struct()
    values.update(metadata)
    return answer_pb2.Passage(id=identifier, title="Title", text=text, metadata=values)


@dataclass
class FakeIndex(AsyncClientApi):
    """Answers every question alike, and has passages."""

    passages: Sequence[answer_pb2.Passage] = ()
    page_size: int = 1_000
    """Most passages or documents of a page."""
    answer: answer_pb2.AnswerResponse = field(default_factory=full_reply)
    fails: Mapping[str, Exception] = field(default_factory=dict)
    """Errors by the name of the call."""
    hangs: asyncio.Event | None = None
    cancelled: asyncio.Event = field(default_factory=asyncio.Event)
    requests: list[Any] = field(default_factory=list)

    async def run(self, call: Call[Result], timeout: float, request_id: str | None) -> Result:
        self.requests.append(call.request)
        if self.hangs is not None:
            self.hangs.set()
            try:
                await asyncio.Event().wait()
            except asyncio.CancelledError:
                self.cancelled.set()
                raise
        if call.method in self.fails:
            raise self.fails[call.method]
        return call.result(getattr(self, f"_{call.method}")(call.request))

    def _Answer(self, _request: answer_pb2.AnswerRequest) -> answer_pb2.AnswerResponse:
        return self.answer

    def _SearchPassages(self, request: Any) -> passage_pb2.SearchPassagesResponse:
        found = [passage_pb2.FoundPassage(passage=each) for each in self.passages]
        coverage = answer_pb2.Coverage(complete=True, passages_known=9, passages_searched=9)
        return passage_pb2.SearchPassagesResponse(
            passages=found[: request.passages], coverage=coverage
        )

    def _GetPassages(self, request: Any) -> passage_pb2.GetPassagesResponse:
        return passage_pb2.GetPassagesResponse(
            passages=[each for each in self.passages if each.id in request.ids]
        )

    def _ListPassages(self, request: Any) -> passage_pb2.ListPassagesResponse:
        """Lists passages by the only filter that documents need."""
        wanted = [each for each in self.passages if f'"{_document(each)}"' in request.filter]
        start = int(request.page_token or 0)
        end = start + self.page_size
        return passage_pb2.ListPassagesResponse(
            passages=wanted[start:end], next_page_token=str(end) if end < len(wanted) else ""
        )

    def _ReadTexts(self, request: Any) -> read_pb2.ReadTextsResponse:
        """Finds the last word of each text; the last text is the best."""
        readings = [
            read_pb2.TextReading(
                index=number,
                text=text.split()[-1],
                start=len(text) - len(text.split()[-1]),
                end=len(text),
                sentence_start=0,
                sentence_end=len(text),
                relevance_score=0.5,
                confidence=0.75,
            )
            for number, text in enumerate(request.texts)
        ]
        best = list(range(len(readings)))[::-1]
        return read_pb2.ReadTextsResponse(readings=readings, best=best, has_answer=True)

    def _ListDocuments(self, request: Any) -> passage_pb2.ListDocumentsResponse:
        names = sorted({_document(each) for each in self.passages})
        start = int(request.page_token or 0)
        end = start + self.page_size
        return passage_pb2.ListDocumentsResponse(
            documents=[passage_pb2.StoredDocument(name=name) for name in names[start:end]],
            next_page_token=str(end) if end < len(names) else "",
        )


def _document(each: answer_pb2.Passage) -> str:
    return str(each.metadata["document"]) if "document" in each.metadata.fields else ""
