"""Asking from a program: plain values in, plain values out, no protobuf messages."""

from winnow.client.aio import AsyncClient
from winnow.client.client import Client
from winnow.client.options import Options
from winnow.client.replies import (
    Answer,
    Coverage,
    Passage,
    Reply,
    ShardCoverage,
    ShardTimings,
    Timings,
)
from winnow.domain.coverage import ShardStatus
from winnow.domain.question import PartialResults, ReadScope, Retriever

__all__ = [
    "Answer",
    "AsyncClient",
    "Client",
    "Coverage",
    "Options",
    "PartialResults",
    "Passage",
    "ReadScope",
    "Reply",
    "Retriever",
    "ShardCoverage",
    "ShardStatus",
    "ShardTimings",
    "Timings",
]
