"""The result of a joint call, after which some shards may need further calls."""

from collections.abc import Callable, Coroutine, Mapping
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar

Result = TypeVar("Result")
Shards = tuple[int, ...]
"""Numbers of the shards of one call."""


@dataclass(frozen=True, slots=True)
class PartialResult(Generic[Result]):
    """The results of some shards of a call, and the further calls of its other shards."""

    results: Mapping[int, Result]
    """Results by shard."""
    further: Mapping[Shards, "SendJoint[Result]"] = field(default_factory=dict)
    """The further calls, by their shards. Each shard without a result is in one of them."""


SendJoint = Callable[[], Coroutine[Any, Any, PartialResult[Result]]]
"""Sends one call for several shards. If it raises an error, every shard of the call failed."""
