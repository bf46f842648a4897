"""The result of a call for several shards, of which some may need further calls."""

from collections.abc import Callable, Coroutine, Mapping
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar

Result = TypeVar("Result")
Shards = tuple[int, ...]
"""Numbers of the shards of one call."""


@dataclass(frozen=True, slots=True)
class PartialResult(Generic[Result]):
    """The results of some shards of a call, and how the other shards continue."""

    results: Mapping[int, Result]
    """Results by shard."""
    further: Mapping[Shards, "SendJoint[Result]"] = field(default_factory=dict)
    """The calls of the other shards; each of these is in one of the calls."""


SendJoint = Callable[[], Coroutine[Any, Any, PartialResult[Result]]]
"""Calls several shards at once. An error that it raises is an error of each of them."""
