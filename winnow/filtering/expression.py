"""Filters as values, and their meaning. Pure.

`str` of a filter is its canonical text, which `parse` reads as an equal filter.
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
    """Operators of comparisons."""

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
    """A condition on the metadata of a passage."""

    __slots__ = ()

    def matches(self, metadata: Mapping[str, Any]) -> bool:
        """Whether a passage with this JSON object is accepted: the definition of a filter."""
        return self.holds(fields_of(metadata))

    @abstractmethod
    def holds(self, fields: Fields) -> bool:
        """Whether a passage with these fields is accepted."""

    @property
    def names(self) -> tuple[str, ...]:
        """The fields that it names, in its order; a name may be repeated."""
        match self:
            case Compare(field) | AnyOf(field) | Exists(field):
                return (field,)
            case Not(part):
                return part.names
            case And(parts) | Or(parts):
                return tuple(name for part in parts for name in part.names)
        raise TypeError(f"{self!r} is of an unknown type of filter")


@dataclass(frozen=True, slots=True)
class Compare(Filter):
    """Accepts passages with a value of the field for which the comparison holds."""

    field: str
    operator: Operator
    value: Value

    def holds(self, fields: Fields) -> bool:
        return any(map(self._accepts, fields.get(self.field, ())))

    def _accepts(self, value: Value) -> bool:
        if kind_of(value) is not kind_of(self.value):
            return self.operator is Operator.UNEQUAL
        return _TESTS[self.operator](value, self.value)

    def __str__(self) -> str:
        return f"{name(self.field)} {self.operator.value} {literal(self.value)}"


@dataclass(frozen=True, slots=True)
class AnyOf(Filter):
    """Accepts passages with a value of the field that is one of these."""

    field: str
    values: tuple[Value, ...]

    def holds(self, fields: Fields) -> bool:
        wanted = {(kind_of(value), value) for value in self.values}
        return any((kind_of(value), value) in wanted for value in fields.get(self.field, ()))

    def __str__(self) -> str:
        return f"{name(self.field)} in ({', '.join(map(literal, self.values))})"


@dataclass(frozen=True, slots=True)
class Exists(Filter):
    """Accepts passages that have a value of the field."""

    field: str

    def holds(self, fields: Fields) -> bool:
        return bool(fields.get(self.field))

    def __str__(self) -> str:
        return f"exists {name(self.field)}"


@dataclass(frozen=True, slots=True)
class Not(Filter):
    """Accepts passages that the part does not accept."""

    part: Filter

    def holds(self, fields: Fields) -> bool:
        return not self.part.holds(fields)

    def __str__(self) -> str:
        return f"not {_within(self.part, And | Or)}"


@dataclass(frozen=True, slots=True)
class And(Filter):
    """Accepts passages that all parts accept; there are two parts or more."""

    parts: tuple[Filter, ...]

    def holds(self, fields: Fields) -> bool:
        return all(part.holds(fields) for part in self.parts)

    def __str__(self) -> str:
        return " and ".join(_within(part, And | Or) for part in self.parts)


@dataclass(frozen=True, slots=True)
class Or(Filter):
    """Accepts passages that at least one part accepts; there are two parts or more."""

    parts: tuple[Filter, ...]

    def holds(self, fields: Fields) -> bool:
        return any(part.holds(fields) for part in self.parts)

    def __str__(self) -> str:
        return " or ".join(_within(part, Or) for part in self.parts)


def _within(part: Filter, looser: Any) -> str:
    """Writes a part of another filter; in parentheses if it binds more loosely."""
    return f"({part})" if isinstance(part, looser) else str(part)
