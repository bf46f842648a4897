"""Filter expressions and their meaning. Pure.

`str` of a filter is its canonical text, which `parse` turns into an equal filter.
"""

import operator
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Any

from winnow.filtering.fields import Fields, Value, fields_of, kind_of
from winnow.filtering.writing import format_name, format_value


class Operator(Enum):
    """Operators of comparisons."""

    EQUAL = "="
    UNEQUAL = "!="
    LESS = "<"
    LESS_OR_EQUAL = "<="
    GREATER = ">"
    GREATER_OR_EQUAL = ">="


_COMPARISONS: Mapping[Operator, Callable[[Any, Any], bool]] = {
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
        """Returns whether the filter accepts a passage with this metadata, a JSON object."""
        return self.accepts(fields_of(metadata))

    @abstractmethod
    def accepts(self, fields: Fields) -> bool:
        """Returns whether the filter accepts a passage with these fields."""

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the fields in the filter, in order of appearance, with repetitions."""
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
    """Accepts passages if any value of the field passes the comparison."""

    field: str
    operator: Operator
    value: Value

    def accepts(self, fields: Fields) -> bool:
        return any(map(self._passes, fields.get(self.field, ())))

    def _passes(self, value: Value) -> bool:
        if kind_of(value) is not kind_of(self.value):
            return self.operator is Operator.UNEQUAL
        return _COMPARISONS[self.operator](value, self.value)

    def __str__(self) -> str:
        return f"{format_name(self.field)} {self.operator.value} {format_value(self.value)}"


@dataclass(frozen=True, slots=True)
class AnyOf(Filter):
    """Accepts passages if any value of the field is among `values`."""

    field: str
    values: tuple[Value, ...]

    def accepts(self, fields: Fields) -> bool:
        accepted = {(kind_of(value), value) for value in self.values}
        return any((kind_of(value), value) in accepted for value in fields.get(self.field, ()))

    def __str__(self) -> str:
        return f"{format_name(self.field)} in ({', '.join(map(format_value, self.values))})"


@dataclass(frozen=True, slots=True)
class Exists(Filter):
    """Accepts passages that have the field."""

    field: str

    def accepts(self, fields: Fields) -> bool:
        return bool(fields.get(self.field))

    def __str__(self) -> str:
        return f"exists {format_name(self.field)}"


@dataclass(frozen=True, slots=True)
class Not(Filter):
    """Accepts passages that the inner filter rejects."""

    part: Filter

    def accepts(self, fields: Fields) -> bool:
        return not self.part.accepts(fields)

    def __str__(self) -> str:
        return f"not {_in_parentheses(self.part, And | Or)}"


@dataclass(frozen=True, slots=True)
class And(Filter):
    """Accepts passages that all of two or more filters accept."""

    parts: tuple[Filter, ...]

    def accepts(self, fields: Fields) -> bool:
        return all(part.accepts(fields) for part in self.parts)

    def __str__(self) -> str:
        return " and ".join(_in_parentheses(part, And | Or) for part in self.parts)


@dataclass(frozen=True, slots=True)
class Or(Filter):
    """Accepts passages that any of two or more filters accepts."""

    parts: tuple[Filter, ...]

    def accepts(self, fields: Fields) -> bool:
        return any(part.accepts(fields) for part in self.parts)

    def __str__(self) -> str:
        return " or ".join(_in_parentheses(part, Or) for part in self.parts)


def _in_parentheses(part: Filter, looser: Any) -> str:
    """Writes an inner filter, in parentheses if it binds more loosely than the outer one."""
    return f"({part})" if isinstance(part, looser) else str(part)
