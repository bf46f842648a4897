"""Filters on the metadata of passages. `docs/filters.md` describes the language."""

from winnow.filtering.expression import And, AnyOf, Compare, Exists, Filter, Not, Operator, Or
from winnow.filtering.fields import Fields, Value, ValueKind, fields_of, kind_of
from winnow.filtering.lexer import FIELD
from winnow.filtering.parser import MAX_CANONICAL, MAX_CHARACTERS, parse

__all__ = [
    "FIELD",
    "MAX_CANONICAL",
    "MAX_CHARACTERS",
    "And",
    "AnyOf",
    "Compare",
    "Exists",
    "Fields",
    "Filter",
    "Not",
    "Operator",
    "Or",
    "Value",
    "ValueKind",
    "fields_of",
    "kind_of",
    "parse",
]
