"""Filters as values, and what they mean. Pure.

`str` of a filter is its canonical text: `parse` reads it back as the same filter.
"""

import operator
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Any

from winnow.filtering.fields import Fields, Value, fields_of, kind_of
from winnow.filtering.writing import literal, name


class Operator(Enum):
    """How a value is compared."""

    EQUAL = "="
    UNEQUAL = "!="
    LESS = "<"
    LESS_OR_EQUAL = "<="
    GREATER = ">"
    GREATER_OR_EQUAL = ">="


_TESTS: Mapping[Operator, Callable[[Any, Any], bool]] = {
    Operator.EQUAL: operator.eq,
    Operator.UNEQUAL: operator.ne,
    Operator.LESS: operator.lt,
    Operator.LESS_OR_EQUAL: operator.le,
    Operator.GREATER: operator.gt,
    Operator.GREATER_OR_EQUAL: operator.ge,
}


class Filter(ABC):
    """Lets some passages through, by their metadata."""

    __slots__ = ()

    def matches(self, metadata: Mapping[str, Any]) -> bool:
        """Whether a passage with this JSON object is let through: what a filter means."""
        return self.holds(fields_of(metadata))

    @abstractmethod
    def holds(self, fields: Fields) -> bool:
        """The same for metadata whose fields are known."""

    @property
    @abstractmethod
    def names(self) -> tuple[str, ...]:
        """The fields that it names, in its order; some maybe twice."""


@dataclass(frozen=True, slots=True)
class Compare(Filter):
    """Some value of the field compares so."""

    field: str
    operator: Operator
    value: Value

    def holds(self, fields: Fields) -> bool:
        return any(map(self._accepts, fields.get(self.field, ())))

    def _accepts(self, value: Value) -> bool:
        if kind_of(value) is not kind_of(self.value):
            return self.operator is Operator.UNEQUAL
        return _TESTS[self.operator](value, self.value)

    @property
    def names(self) -> tuple[str, ...]:
        return (self.field,)

    def __str__(self) -> str:
        return f"{name(self.field)} {self.operator.value} {literal(self.value)}"


@dataclass(frozen=True, slots=True)
class AnyOf(Filter):
    """Some value of the field is one of these."""

    field: str
    values: tuple[Value, ...]

    def holds(self, fields: Fields) -> bool:
        wanted = {(kind_of(value), value) for value in self.values}
        return any((kind_of(value), value) in wanted for value in fields.get(self.field, ()))

    @property
    def names(self) -> tuple[str, ...]:
        return (self.field,)

    def __str__(self) -> str:
        return f"{name(self.field)} in ({', '.join(map(literal, self.values))})"


@dataclass(frozen=True, slots=True)
class Exists(Filter):
    """The field has a value."""

    field: str

    def holds(self, fields: Fields) -> bool:
        return bool(fields.get(self.field))

    @property
    def names(self) -> tuple[str, ...]:
        return (self.field,)

    def __str__(self) -> str:
        return f"exists {name(self.field)}"


@dataclass(frozen=True, slots=True)
class Not(Filter):
    """The other passages."""

    part: Filter

    def holds(self, fields: Fields) -> bool:
        return not self.part.holds(fields)

    @property
    def names(self) -> tuple[str, ...]:
        return self.part.names

    def __str__(self) -> str:
        return f"not {_within(self.part, And | Or)}"


@dataclass(frozen=True, slots=True)
class And(Filter):
    """All parts hold; there are two or more."""

    parts: tuple[Filter, ...]

    def holds(self, fields: Fields) -> bool:
        return all(part.holds(fields) for part in self.parts)

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(each for part in self.parts for each in part.names)

    def __str__(self) -> str:
        return " and ".join(_within(part, And | Or) for part in self.parts)


@dataclass(frozen=True, slots=True)
class Or(Filter):
    """At least one part holds; there are two or more."""

    parts: tuple[Filter, ...]

    def holds(self, fields: Fields) -> bool:
        return any(part.holds(fields) for part in self.parts)

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(each for part in self.parts for each in part.names)

    def __str__(self) -> str:
        return " or ".join(_within(part, Or) for part in self.parts)


def _within(part: Filter, looser: Any) -> str:
    """A part as it stands in another; in parentheses if it binds more loosely."""
    return f"({part})" if isinstance(part, looser) else str(part)
