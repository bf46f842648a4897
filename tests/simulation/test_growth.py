"""Tables that have grown are found, wherever a process keeps them."""

from collections.abc import Callable
from functools import partial
from typing import Any

from simulation.growth import large_tables
from winnow.policy.byte_bounded_lru import ByteBoundedLru
from winnow.shard_service.attempts import LatestAttempts


class Holder:
    """An object of a module that is followed."""

    def __init__(self, **parts: Any) -> None:
        self.__dict__ |= parts


Holder.__module__ = "winnow.holder"


def found(root: object) -> list[str]:
    return list(large_tables(root, "node", 3))


def closure(table: object) -> Callable[[], object]:
    return lambda: table


def test_a_large_table_is_found_with_its_path() -> None:
    attempts = LatestAttempts()
    attempts._latest = dict.fromkeys("abcd", None)  # type: ignore[assignment]
    assert found(Holder(parts=[Holder(attempts=attempts)])) == [
        "node.parts[0].attempts._latest has 4 items"
    ]


def test_tables_of_functions_are_found() -> None:
    table = [1, 2, 3, 4]
    for function in (closure(table), partial(print, table), table.append):
        assert found(Holder(function=function)) == ["node.function() has 4 items"]


def test_small_tables_and_caches_limited_by_bytes_are_not_reported() -> None:
    cache = ByteBoundedLru[str, str](1_000)
    for name in "abcdef":
        cache.put(name, name, 1)
    assert not found(Holder(cache=cache, small={"a": 1}))
