"""Puts and deletions: the calls of the feed service, and their replies as plain values."""

from collections.abc import Mapping, Sequence
from typing import Any, Required, TypedDict

from winnow.client.calls import Call
from winnow.convert import feed as convert
from winnow.domain.write import Deletion, FedPassage, WriteResult
from winnow.errors import InvalidRequestError, Violation
from winnow.quoting import quoted, shortened
from winnow.v1 import feed_pb2, feed_pb2_grpc

DEFAULT_FEED_ADDRESS = "127.0.0.1:8081"
DEFAULT_FEED_TIMEOUT = 30.0
"""Seconds."""


class PassageFields(TypedDict, total=False):
    """A passage to be stored."""

    id: Required[str]
    """1 to 256 characters. A passage with a known id replaces the old one."""
    text: Required[str]
    """1 to 10000 characters."""
    title: str
    """At most 1000 characters."""
    metadata: Mapping[str, Any]
    """Values for filters, of any kind that JSON has, at most 20 levels deep."""
    version: int | None
    """A write with a lower version than the stored one changes nothing."""


def put_message(passages: PassageFields | Sequence[PassageFields]) -> feed_pb2.PutRequest:
    """The message that stores passages. Raises InvalidRequestError if a value has the wrong type;
    limits are checked by the front node.
    """
    given = [passages] if isinstance(passages, Mapping) else passages
    message, violations = feed_pb2.PutRequest(), []
    for number, fields in enumerate(given):
        place = f"passages[{number}]"
        if unknown := [name for name in fields if name not in PassageFields.__annotations__]:
            violations.append(Violation(place, f"a passage has no field {quoted(unknown[0])}"))
            continue
        try:
            message.passages.append(convert.passage_to_message(_passage(fields)))
        except (TypeError, ValueError) as error:
            violations.append(Violation(place, shortened(str(error))))
    if violations:
        raise InvalidRequestError(*violations)
    return message


Ids = str | Sequence[str] | Mapping[str, int | None]
"""An id, several, or several with a version each."""


def delete_message(ids: Ids, version: int | None) -> feed_pb2.DeleteRequest:
    """The message that deletes passages; raises as `put_message` does."""
    message, violations = feed_pb2.DeleteRequest(), []
    given = [ids] if isinstance(ids, str) else ids
    versions = ids if isinstance(ids, Mapping) else {}
    for number, each in enumerate(given):
        try:
            deletion = Deletion(each, versions.get(each, version))
            message.deletions.append(convert.deletion_to_message(deletion))
        except (TypeError, ValueError) as error:
            violations.append(Violation(f"deletions[{number}]", shortened(str(error))))
    if violations:
        raise InvalidRequestError(*violations)
    return message


def put_call(passages: PassageFields | Sequence[PassageFields]) -> Call[tuple[WriteResult, ...]]:
    """The call that stores passages. Raises as `put_message` does."""
    return Call(feed_pb2_grpc.FeedServiceStub, "Put", put_message(passages), _results)


def delete_call(ids: Ids, version: int | None) -> Call[tuple[WriteResult, ...]]:
    """The call that deletes passages. Raises as `put_message` does."""
    return Call(feed_pb2_grpc.FeedServiceStub, "Delete", delete_message(ids, version), _results)


def _results(message: feed_pb2.PutResponse | feed_pb2.DeleteResponse) -> tuple[WriteResult, ...]:
    return convert.results_of_messages(message.results)


def _passage(fields: PassageFields) -> FedPassage:
    return FedPassage(
        id=fields.get("id", ""),
        title=fields.get("title", ""),
        text=fields.get("text", ""),
        metadata=fields.get("metadata") or {},
        version=fields.get("version"),
    )
