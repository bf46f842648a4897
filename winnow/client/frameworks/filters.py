"""Filters of frameworks as filters of Winnow. `str` of a filter is a value of `where`.

Frameworks treat a missing field as the value None: `!=` and `not in` accept it. In Winnow's
language, every comparison rejects a missing field (docs/filters.md).
"""

import math
from collections.abc import Sequence

from winnow.errors import InvalidRequestError, invalid_field
from winnow.filtering import And, AnyOf, Compare, Exists, Filter, Not, Operator, Or, Value

_NEGATED = {"!=": "==", "not in": "in"}
_OPERATORS = {
    "==": Operator.EQUAL,
    "<": Operator.LESS,
    "<=": Operator.LESS_OR_EQUAL,
    ">": Operator.GREATER,
    ">=": Operator.GREATER_OR_EQUAL,
}


def comparison(field: str, operator: str, value: object) -> Filter:
    """A filter that compares a field by `==`, `!=`, `<`, `<=`, `>`, `>=`, `in` or `not in`.

    A field that is a list is equal to each of its values. Raises InvalidRequestError for another
    operator, or a value that the operator does not take.
    """
    if operator in _NEGATED:
        return _negated(comparison(field, _NEGATED[operator], value))
    if operator == "==" and value is None:
        return Not(Exists(field))
    if operator == "in" and isinstance(value, Sequence) and not isinstance(value, str):
        # an empty list accepts nothing, and the language has no empty list
        values = tuple(_scalar(field, each) for each in value)
        return AnyOf(field, values) if values else And((Exists(field), Not(Exists(field))))
    if operator not in _OPERATORS:
        raise _invalid(field, f"{operator} {value!r}")
    return Compare(field, _OPERATORS[operator], _scalar(field, value))


def combination(operator: str, parts: Sequence[Filter]) -> Filter:
    """Joins filters by `and` or `or`, or negates their `and` with `not`.

    Raises InvalidRequestError for another operator, or without filters.
    """
    if not parts or operator not in ("and", "or", "not"):
        raise _invalid(operator, f"with {len(parts)} conditions")
    if operator == "not":
        return _negated(combination("and", parts))
    if len(parts) == 1:
        return parts[0]
    return And(tuple(parts)) if operator == "and" else Or(tuple(parts))


def _negated(part: Filter) -> Filter:
    return part.part if isinstance(part, Not) else Not(part)


def _scalar(field: str, value: object) -> Value:
    if isinstance(value, str | bool):
        return value
    if isinstance(value, int | float) and math.isfinite(value):
        return float(value)
    raise _invalid(field, f"the value {value!r}")


def _invalid(name: str, condition: str) -> InvalidRequestError:
    return invalid_field("filters", f"{name} {condition} has no equivalent in a filter of Winnow")
