"""Finds tables of a process that grow with the number of calls.

An idle process keeps nothing of the calls that have ended, except in tables with a limit. So its
tables stay small, however long it has run.
"""

import contextlib
from collections import deque
from collections.abc import Iterator, Mapping
from functools import partial
from types import BuiltinMethodType, FunctionType, MethodType
from typing import Any

_SIMPLE = (str, bytes, int, float, bool, type(None), type)
_TABLES = (dict, list, set, frozenset, deque, Mapping)
_SHOWN_ITEMS = 100
"""Number of items of a table that are followed."""
_OWN = (
    "winnow.",
    "simulation.channel.SimulatedServer",
    "simulation.front.",
    "simulation.node.",
    "grpc._utilities.",
)
"""What the names of objects that are followed begin with. Metrics have tables of their own."""
_BOUNDED = ("ByteBoundedLru", "MemorySegment", "NodeSettings", "FrontSettings")
"""Classes of objects that are not followed: caches limited by bytes, unmerged writes, settings."""


def large_tables(root: object, name: str, limit: int) -> Iterator[str]:
    """Yields the path and the length of each table below `root` with more than `limit` items."""
    waiting: deque[tuple[object, str]] = deque([(root, name)])
    seen = {id(root)}
    while waiting:
        found, path = waiting.popleft()
        if isinstance(found, _TABLES) and len(found) > limit:
            yield f"{path} has {len(found)} items"
        for part, value in _parts(found):
            if id(value) not in seen and not isinstance(value, _SIMPLE):
                seen.add(id(value))
                waiting.append((value, f"{path}{part}"))


def _parts(found: object) -> Iterator[tuple[str, Any]]:
    """Yields what an object refers to, with the text that leads there."""
    if isinstance(found, Mapping):
        for key, value in list(found.items())[:_SHOWN_ITEMS]:
            yield f"[{key!r}]"[:40], value
            yield ".key", key
    elif isinstance(found, list | tuple | set | frozenset | deque):
        for number, value in enumerate(list(found)[:_SHOWN_ITEMS]):
            yield f"[{number}]", value
    elif _is_followed(type(found)):
        for attribute in _attributes(found):
            if (value := getattr(found, attribute, None)) is not None:
                yield f".{attribute}", value
    else:
        yield from (("()", each) for each in _bound(found))


def _bound(found: object) -> Iterator[Any]:
    """Yields what a function is bound to."""
    if isinstance(found, partial):
        yield from (found.func, *found.args, *found.keywords.values())
    elif isinstance(found, MethodType | BuiltinMethodType):
        yield found.__self__
    elif isinstance(found, FunctionType):
        for cell in found.__closure__ or ():
            with contextlib.suppress(ValueError):  # an empty cell
                yield cell.cell_contents


def _is_followed(kind: type) -> bool:
    name = f"{kind.__module__}.{kind.__name__}"
    return name.startswith(_OWN) and kind.__name__ not in _BOUNDED


def _attributes(found: object) -> list[str]:
    """Returns the names of the attributes that are stored in an object."""
    slots = (getattr(each, "__slots__", ()) for each in type(found).__mro__)
    names = [name for own in slots for name in ([own] if isinstance(own, str) else own)]
    return [name for name in (*names, *getattr(found, "__dict__", ())) if name != "__weakref__"]
