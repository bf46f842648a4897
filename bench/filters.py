"""What a filter costs: three ways to find the rows that it lets through.

    python bench/filters.py [--passages 165000] [--repeats 20] [--json]

Makes metadata up, and measures each filter with each way, in turns, in milliseconds (median):

- **shard**: what shards do (`content_node.shard.attributes`): in SQLite the rows of each value, and
  of blocks of values, packed. Without the masks that are kept; **kept** is the same filter asked
  again.
- **plain**: a SQLite table with one entry for each value of each row, and an index.
- **numpy**: columns in memory, sorted by value, searched by bisection.

All three have to let the same rows through.
"""

import argparse
import json
import random
import sqlite3
import statistics
import tempfile
import time
from bisect import bisect_left, bisect_right
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from functools import partial, reduce
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from winnow.content_node.shard.attribute_tables import write_attributes
from winnow.content_node.shard.attributes import Attributes
from winnow.filtering import (
    And,
    AnyOf,
    Compare,
    Exists,
    Filter,
    Not,
    Operator,
    Or,
    Value,
    ValueKind,
    fields_of,
    kind_of,
    parse,
)

Rows = NDArray[np.bool_]
SHOWN = [
    'lang = "en"',
    "year >= 1990",
    'year >= 2010 and lang = "en"',
    'tags in ("t1", "t2", "t150")',
    'tags != "t1"',
    "draft = true",
    "not draft = true",
    "exists year",
    'published >= "2000-01-01"',
    'stamp = "2001-02-03T04:05:06"',
    'stamp >= "2000-01-01"',
    'stamp >= "2024-12-01"',
    "score > 0.1",
    "score > 0.99",
    "exists score",
]


def made_up(passages: int, seed: int) -> list[dict[str, Any]]:
    """Fields with two values, with a hundred, with ten thousand, and with one for each passage."""
    chance = random.Random(seed)
    begin = datetime(1970, 1, 1, tzinfo=UTC)
    found = []
    for _ in range(passages):
        at = begin + timedelta(seconds=chance.randrange(55 * 365 * 86_400))
        one: dict[str, Any] = {
            "year": at.year,
            "lang": chance.choices(["en", "de", "fr", "es", "it"], [70, 10, 8, 7, 5])[0],
            "tags": [f"t{int(chance.paretovariate(0.6)) % 200}" for _ in range(3)],
            "published": at.date().isoformat(),
            "stamp": at.isoformat()[:19],
            "score": chance.random(),
        }
        if chance.random() < 0.02:
            one["draft"] = chance.random() < 0.5
        found.append(one)
    return found


class Plain:
    """One entry for each value of each row."""

    def __init__(self, connection: sqlite3.Connection, metadata: list[dict[str, Any]]) -> None:
        self._connection, self._rows = connection, len(metadata)
        connection.execute(
            "CREATE TABLE plain (name, kind, value, row, PRIMARY KEY (name, kind, value, row))"
            " WITHOUT ROWID"
        )
        connection.executemany(
            "INSERT OR IGNORE INTO plain VALUES (?, ?, ?, ?)",
            sorted(
                (name, int(kind_of(value)), value, row)
                for row, one in enumerate(metadata)
                for name, values in fields_of(one).items()
                for value in values
            ),
        )
        connection.commit()

    def leaf(self, wanted: Filter) -> Rows:
        mask = np.zeros(self._rows, np.bool_)
        start = "SELECT row FROM plain WHERE name = ?"
        of_kind = f"{start} AND kind = ? AND value"
        queries: list[tuple[str, tuple[Any, ...]]] = []
        match wanted:
            case Exists(field):
                queries = [(start, (field,))]
            case Compare(field, Operator.UNEQUAL, value):
                queries = [(f"{start} AND (kind, value) != (?, ?)", (field, kind_of(value), value))]
            case Compare(field, how, value):
                queries = [(f"{of_kind} {how.value} ?", (field, kind_of(value), value))]
            case AnyOf(field, values):
                queries = [(f"{of_kind} = ?", (field, kind_of(each), each)) for each in values]
        for query, parameters in queries:
            found = self._connection.execute(query, parameters).fetchall()
            mask[np.fromiter((row for (row,) in found), np.int64, len(found))] = True
        return mask


class Columns:
    """Rows sorted by value, in memory."""

    def __init__(self, metadata: list[dict[str, Any]]) -> None:
        self._rows = len(metadata)
        pairs: dict[tuple[str, ValueKind], list[tuple[Any, int]]] = {}
        for row, one in enumerate(metadata):
            for name, values in fields_of(one).items():
                for value in values:
                    pairs.setdefault((name, kind_of(value)), []).append((value, row))
        self._columns: dict[tuple[str, ValueKind], tuple[list[Value], NDArray[np.uint32]]] = {}
        for key, own in pairs.items():
            own.sort()
            rows = np.fromiter((row for _, row in own), np.uint32, len(own))
            self._columns[key] = [value for value, _ in own], rows

    def leaf(self, wanted: Filter) -> Rows:
        mask = np.zeros(self._rows, np.bool_)
        match wanted:
            case Exists(field):
                for kind in ValueKind:
                    mask[self._between(field, kind, None, None)] = True
            case Compare(field, how, value):
                self._compare(mask, field, how, value)
            case AnyOf(field, values):
                for value in values:
                    self._compare(mask, field, Operator.EQUAL, value)
        return mask

    def _compare(self, mask: Rows, field: str, how: Operator, value: Any) -> None:
        kind = kind_of(value)
        values = self._columns.get((field, kind), ([], None))[0]
        low, high = bisect_left(values, value), bisect_right(values, value)
        parts: dict[Operator, list[tuple[int | None, int | None]]] = {
            Operator.EQUAL: [(low, high)],
            Operator.UNEQUAL: [(None, low), (high, None)],
            Operator.LESS: [(None, low)],
            Operator.LESS_OR_EQUAL: [(None, high)],
            Operator.GREATER: [(high, None)],
            Operator.GREATER_OR_EQUAL: [(low, None)],
        }
        for begin, end in parts[how]:
            mask[self._between(field, kind, begin, end)] = True
        if how is Operator.UNEQUAL:
            for other in set(ValueKind) - {kind}:
                mask[self._between(field, other, None, None)] = True

    def _between(self, field: str, kind: ValueKind, low: int | None, high: int | None) -> Any:
        found = self._columns.get((field, kind))
        return [] if found is None else found[1][low:high]


def combined(wanted: Filter, leaf: Callable[[Filter], Rows]) -> Rows:
    match wanted:
        case Not(part):
            return ~combined(part, leaf)
        case And(parts):
            return reduce(np.logical_and, (combined(part, leaf) for part in parts))
        case Or(parts):
            return reduce(np.logical_or, (combined(part, leaf) for part in parts))
    return leaf(wanted)


def shard_attributes(path: Path, metadata: list[dict[str, Any]]) -> tuple[Attributes, float]:
    connection = sqlite3.connect(path)
    started = time.perf_counter()
    write_attributes(connection, ((row, json.dumps(one)) for row, one in enumerate(metadata)))
    connection.commit()
    spent = time.perf_counter() - started

    def select(query: str, values: Any) -> list[Any]:
        return connection.execute(query, values).fetchall()

    return Attributes(select, len(metadata)), spent


def timed(work: Callable[[], Rows]) -> tuple[Rows, float]:
    started = time.perf_counter()
    found = work()
    return found, (time.perf_counter() - started) * 1e3


def measured(metadata: list[dict[str, Any]], repeats: int, place: Path) -> dict[str, Any]:
    attributes, building = shard_attributes(place / "shard.sqlite", metadata)
    plain = Plain(sqlite3.connect(place / "plain.sqlite"), metadata)
    columns = Columns(metadata)
    table = []
    for text in SHOWN:
        wanted = parse(text)
        ways: dict[str, Callable[[], Rows]] = {
            "shard": partial(combined, wanted, attributes._compared),  # noqa: SLF001
            "kept": partial(attributes.where, text),
            "plain": partial(combined, wanted, plain.leaf),
            "numpy": partial(combined, wanted, columns.leaf),
        }
        attributes.where(text)
        spent: dict[str, list[float]] = {name: [] for name in ways}
        for _ in range(repeats):
            found = {}
            for name, way in ways.items():
                found[name], milliseconds = timed(way)
                spent[name].append(milliseconds)
            assert all(np.array_equal(mask, found["shard"]) for mask in found.values()), text
        medians = {name: round(statistics.median(own), 3) for name, own in spent.items()}
        table.append({"filter": text, "rows": int(found["shard"].sum()), **medians})
    sizes = {name: (place / f"{name}.sqlite").stat().st_size for name in ("shard", "plain")}
    return {"passages": len(metadata), "build_s": round(building, 2), "bytes": sizes, "ms": table}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--passages", type=int, default=165_000)
    parser.add_argument("--repeats", type=int, default=20)
    parser.add_argument("--seed", type=int, default=7)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    metadata = made_up(options.passages, options.seed)
    with tempfile.TemporaryDirectory() as place:
        found = measured(metadata, options.repeats, Path(place))
    if options.json:
        print(json.dumps(found, indent=2))
        return
    print(f"{found['passages']} passages; tables made in {found['build_s']} s, {found['bytes']}")
    print(f"{'filter':34} {'rows':>8} {'shard':>8} {'kept':>8} {'plain':>8} {'numpy':>8}")
    for row in found["ms"]:
        figures = " ".join(f"{row[name]:8.2f}" for name in ("shard", "kept", "plain", "numpy"))
        print(f"{row['filter']:34} {row['rows']:8} {figures}")


if __name__ == "__main__":
    main()
