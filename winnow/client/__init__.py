"""Clients that ask, predict and feed, with plain values instead of protobuf messages."""

from winnow.client.aio import AsyncClient
from winnow.client.client import Client
from winnow.client.credentials import Credentials
from winnow.client.feeding import PassageFields
from winnow.client.options import Options
from winnow.client.predicting import HeadPrediction, Predictions, PredictTimings, TextPrediction
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
from winnow.domain.prediction import Entity, LabelScore
from winnow.domain.question import PartialResults, ReadScope, Retriever
from winnow.domain.shard_call import CallKind, CallOutcome
from winnow.domain.source import Source
from winnow.domain.write import Outcome, Position, WriteResult

__all__ = [
    "Answer",
    "AnswerSize",
    "AsyncClient",
    "CallKind",
    "CallOutcome",
    "Client",
    "Coverage",
    "Credentials",
    "Entity",
    "HeadPrediction",
    "LabelScore",
    "Options",
    "Outcome",
    "PartialResults",
    "Passage",
    "PassageFields",
    "Position",
    "PredictTimings",
    "Predictions",
    "ReadScope",
    "ReadTiming",
    "Reply",
    "Retriever",
    "ShardCall",
    "ShardCoverage",
    "ShardStatus",
    "ShardTimings",
    "Source",
    "TextPrediction",
    "Timings",
    "WriteResult",
]
