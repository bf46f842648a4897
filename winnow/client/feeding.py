"""Calls of the feed service, which store and delete passages, with plain values."""

from collections.abc import Mapping, Sequence
from typing import Any, Required, TypedDict

from winnow.client.calls import Call
from winnow.client.requests import UNREPRESENTABLE, build_request, listed
from winnow.convert import feed as convert
from winnow.domain.quota import StorageUse
from winnow.domain.write import (
    DeletedPassages,
    DeletedTenant,
    Deletion,
    FedPassage,
    Position,
    WriteResult,
)
from winnow.errors import InvalidRequestError, Violation
from winnow.quoting import quoted, shortened
from winnow.v1 import feed_pb2, feed_pb2_grpc

DEFAULT_FEED_ADDRESS = "127.0.0.1:8081"
DEFAULT_FEED_TIMEOUT = 30.0
"""Seconds until a write is given up."""


class PassageFields(TypedDict, total=False):
    """Fields of a passage to store."""

    id: Required[str]
    """1 to 256 characters. A stored passage with the same id is replaced."""
    text: Required[str]
    """1 to 10000 characters."""
    title: str
    """At most 1000 characters."""
    metadata: Mapping[str, Any]
    """JSON values for filters, at most 20 levels deep."""
    version: int | None
    """Version of the passage. A write with a lower version than the stored one is ignored."""


Ids = str | Sequence[str] | Mapping[str, int | None]
"""An id, several ids, or several ids with the version of each."""


class WriteResults(tuple[WriteResult, ...]):  # noqa: SLOT001 (it has an attribute)
    """The results of the writes of a call, in their order."""

    storage: StorageUse | None = None
    """What the tenant has stored, and how much it may store. None if it has no quota, or the front
    node does not know.
    """


def put_call(passages: PassageFields | Sequence[PassageFields]) -> Call[WriteResults]:
    """The call that stores passages.

    Raises InvalidRequestError if a value has the wrong type. The front node checks limits.
    """
    request, violations = feed_pb2.PutRequest(), []
    given = [passages] if isinstance(passages, Mapping) else listed("passages", passages)
    for number, fields in enumerate(given):
        field = f"passages[{number}]"
        if not isinstance(fields, Mapping):
            kind = type(fields).__name__
            violations.append(Violation(field, f"is not a mapping, but of the type {kind}"))
            continue
        if unknown := [name for name in fields if name not in PassageFields.__annotations__]:
            name = quoted(str(unknown[0]))
            violations.append(Violation(field, f"a passage has no field {name}"))
            continue
        try:
            request.passages.append(convert.passage_to_message(_passage(fields)))
        except UNREPRESENTABLE as error:
            violations.append(Violation(field, shortened(str(error))))
    if violations:
        raise InvalidRequestError(*violations)
    return Call(feed_pb2_grpc.FeedServiceStub, "Put", request, _results)


def delete_call(ids: Ids, version: int | None) -> Call[WriteResults]:
    """The call that deletes passages. `version` applies to ids that have none in `ids`.

    Raises InvalidRequestError if a value has the wrong type. The front node checks limits.
    """
    request, violations = feed_pb2.DeleteRequest(), []
    versions = ids if isinstance(ids, Mapping) else {}
    for number, each in enumerate([ids] if isinstance(ids, str) else listed("ids", ids)):
        try:
            deletion = Deletion(each, versions.get(each, version))
            request.deletions.append(convert.deletion_to_message(deletion))
        except UNREPRESENTABLE as error:
            violations.append(Violation(f"deletions[{number}]", shortened(str(error))))
    if violations:
        raise InvalidRequestError(*violations)
    return Call(feed_pb2_grpc.FeedServiceStub, "Delete", request, _results)


def delete_where_call(
    where: str, document: str, dry_run: bool, after: Sequence[Position]
) -> Call[DeletedPassages]:
    """The call that deletes passages by filter. The front node checks its values.

    Raises InvalidRequestError if a value has the wrong type.
    """
    values = {"where": where, "document": document, "dry_run": dry_run, "after": after}
    request = build_request(feed_pb2.DeleteWhereRequest, values)
    return Call(feed_pb2_grpc.FeedServiceStub, "DeleteWhere", request, convert.deleted_of_message)


def delete_tenant_call(tenant: str) -> Call[DeletedTenant]:
    """The call that deletes all passages of a tenant.

    Raises InvalidRequestError if the name is not a text.
    """
    request = build_request(feed_pb2.DeleteTenantRequest, {"tenant": tenant})
    return Call(
        feed_pb2_grpc.FeedServiceStub, "DeleteTenant", request, convert.deleted_tenant_of_message
    )


def joined_deletions(first: DeletedPassages, second: DeletedPassages) -> DeletedPassages:
    """Adds up the results of two calls, one after the other."""
    positions = {each.shard: each for each in (*first.positions, *second.positions)}
    return DeletedPassages(
        matched=first.matched + second.matched,
        deleted=first.deleted + second.deleted,
        complete=second.complete,
        positions=tuple(positions.values()),
    )


def _results(message: feed_pb2.PutResponse | feed_pb2.DeleteResponse) -> WriteResults:
    results = WriteResults(convert.results_of_messages(message.results))
    results.storage = convert.storage_of_message(message)
    return results


def _passage(fields: PassageFields) -> FedPassage:
    return FedPassage(
        id=fields.get("id", ""),
        title=fields.get("title", ""),
        text=fields.get("text", ""),
        metadata=fields.get("metadata") or {},
        version=fields.get("version"),
    )
