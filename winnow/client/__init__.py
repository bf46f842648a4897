"""Clients that ask, predict and feed, with plain values instead of protobuf messages."""

from winnow.client.aio import AsyncClient
from winnow.client.client import Client
from winnow.client.credentials import Credentials
from winnow.client.feeding import PassageFields, WriteResults
from winnow.client.options import Options
from winnow.client.passages import (
    FoundPassage,
    ListOptions,
    PassageBatch,
    SearchOptions,
    SearchReply,
)
from winnow.client.predicting import HeadPrediction, Predictions, PredictTimings, TextPrediction
from winnow.client.reading import (
    HighlightReply,
    RankedText,
    ReadingReport,
    ReadReply,
    RerankReply,
    TextFields,
    TextReading,
)
from winnow.client.replies import (
    Answer,
    Coverage,
    Passage,
    ReadTiming,
    Reply,
    ShardCall,
    ShardCoverage,
    ShardTimings,
    Timings,
)
from winnow.domain.answer_size import AnswerSize
from winnow.domain.coverage import ShardStatus
from winnow.domain.listing import StoredDocument, StoredTenant
from winnow.domain.passage_request import DocumentBatch
from winnow.domain.prediction import Entity, LabelScore
from winnow.domain.question import PartialResults, ReadScope, Retriever
from winnow.domain.quota import StorageQuota, StorageUse, TenantUsage
from winnow.domain.shard_call import CallKind, CallOutcome
from winnow.domain.source import Source
from winnow.domain.text_reading import HighlightedSentence
from winnow.domain.write import DeletedPassages, DeletedTenant, Outcome, Position, WriteResult

__all__ = [
    "Answer",
    "AnswerSize",
    "AsyncClient",
    "CallKind",
    "CallOutcome",
    "Client",
    "Coverage",
    "Credentials",
    "DeletedPassages",
    "DeletedTenant",
    "DocumentBatch",
    "Entity",
    "FoundPassage",
    "HeadPrediction",
    "HighlightReply",
    "HighlightedSentence",
    "LabelScore",
    "ListOptions",
    "Options",
    "Outcome",
    "PartialResults",
    "Passage",
    "PassageBatch",
    "PassageFields",
    "Position",
    "PredictTimings",
    "Predictions",
    "RankedText",
    "ReadReply",
    "ReadScope",
    "ReadTiming",
    "ReadingReport",
    "Reply",
    "RerankReply",
    "Retriever",
    "SearchOptions",
    "SearchReply",
    "ShardCall",
    "ShardCoverage",
    "ShardStatus",
    "ShardTimings",
    "Source",
    "StorageQuota",
    "StorageUse",
    "StoredDocument",
    "StoredTenant",
    "TenantUsage",
    "TextFields",
    "TextPrediction",
    "TextReading",
    "Timings",
    "WriteResult",
    "WriteResults",
]
