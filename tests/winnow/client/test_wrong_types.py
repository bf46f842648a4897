"""A value that a request cannot hold is refused by the name of its field, before any call."""

from collections.abc import Callable
from typing import Any

import pytest

from winnow.client.calls import limited_timeout, request_id_metadata, set_tenant
from winnow.client.feeding import delete_call, put_call
from winnow.client.passages import distinct_ids, search_call
from winnow.errors import InvalidRequestError
from winnow.v1 import feed_pb2

HUGE = 10**400


def nested(levels: int) -> dict[str, Any]:
    value: dict[str, Any] = {}
    for _ in range(levels):
        value = {"a": value}
    return value


def cyclic() -> dict[str, Any]:
    value: dict[str, Any] = {}
    value["a"] = value
    return value


def passage(**fields: Any) -> Any:
    return {"id": "a", "text": "b", **fields}


@pytest.mark.parametrize(
    ("make", "field"),
    [
        (lambda: put_call(5), "passages"),  # type: ignore[arg-type]
        (lambda: put_call("a text"), "passages"),  # type: ignore[arg-type]
        (lambda: put_call([""]), "passages[0]"),  # type: ignore[list-item]
        (lambda: put_call([passage(), b"abc"]), "passages[1]"),  # type: ignore[list-item]
        (lambda: put_call([{5: "a"}]), "passages[0]"),  # type: ignore[misc]
        (lambda: put_call(passage(metadata=nested(60))), "passages[0]"),
        (lambda: put_call(passage(metadata=nested(2_000))), "passages[0]"),
        (lambda: put_call(passage(metadata=cyclic())), "passages[0]"),
        (lambda: put_call(passage(metadata={"a": HUGE})), "passages[0]"),
        (lambda: put_call(passage(version=HUGE)), "passages[0]"),
        (lambda: delete_call(5, None), "ids"),  # type: ignore[arg-type]
        (lambda: delete_call(b"abc", None), "ids"),  # type: ignore[arg-type]
        (lambda: delete_call([5], None), "deletions[0]"),  # type: ignore[list-item]
        (lambda: distinct_ids(5), "ids"),  # type: ignore[arg-type]
        (lambda: distinct_ids([["a"]]), "ids"),  # type: ignore[list-item]
        (lambda: search_call("?", {"passages": HUGE}), "passages"),
        (lambda: limited_timeout("5"), "timeout"),  # type: ignore[arg-type]
        (lambda: limited_timeout(None), "timeout"),  # type: ignore[arg-type]
        (lambda: limited_timeout(0), "timeout"),
        (lambda: limited_timeout(-1.0), "timeout"),
        (lambda: limited_timeout(float("nan")), "timeout"),
        (lambda: request_id_metadata(5), "request_id"),  # type: ignore[arg-type]
        (lambda: set_tenant(feed_pb2.PutRequest(), "\ud800"), "tenant"),
        (lambda: set_tenant(feed_pb2.PutRequest(), 5), "tenant"),  # type: ignore[arg-type]
    ],
)
def test_a_value_that_a_request_cannot_hold_is_refused_by_its_field(
    make: Callable[[], object], field: str
) -> None:
    with pytest.raises(InvalidRequestError) as caught:
        make()
    assert [each.field for each in caught.value.violations] == [field]


def test_a_timeout_without_end_is_cut_to_an_hour() -> None:
    assert limited_timeout(HUGE) == limited_timeout(float("inf")) == 3600
