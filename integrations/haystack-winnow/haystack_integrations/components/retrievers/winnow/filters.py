"""Haystack filters as a filter of Winnow."""

from collections.abc import Mapping
from typing import Any

from haystack.errors import FilterError

from winnow.client.frameworks import combination, comparison, framework_errors
from winnow.errors import InvalidRequestError
from winnow.filtering import Filter


def where_of_filters(filters: Mapping[str, Any] | None) -> str | None:
    """The filter of Winnow that accepts the same documents; None for no filters.

    Raises FilterError if the filters are malformed or have no equivalent. Fields are those of a
    document's `meta`.
    """
    if not filters:
        return None
    with framework_errors({InvalidRequestError: FilterError}):
        return str(_filter(filters))


def _filter(condition: Mapping[str, Any]) -> Filter:
    try:
        if "field" in condition:
            field = str(condition["field"]).removeprefix("meta.")
            return comparison(field, condition["operator"], condition["value"])
        parts = [_filter(each) for each in condition["conditions"]]
        return combination(str(condition["operator"]).lower(), parts)
    except (KeyError, TypeError) as error:
        raise FilterError(f"malformed filter {condition!r}: {error!r}") from error
