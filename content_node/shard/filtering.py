"""Narrowing by metadata where there is nothing to narrow by."""

from content_node.shard.segment import Rows
from winnow.errors import InvalidRequestError, Violation


def none(expression: str) -> Rows:
    """Raises InvalidRequestError: the passages have no fields."""
    raise InvalidRequestError(
        Violation("filter", f"{expression!r} cannot be used: the shard has no fields")
    )
