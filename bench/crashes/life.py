"""One life of a shard: it starts, is checked, is written to and merged, and is killed."""

import asyncio
import random
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from bench.crashes.checking import WrongError, expect_found, survivor
from bench.crashes.model import Draft, Model
from bench.crashes.process import DiedError, Process

_WORDS = ("ant", "bee", "cat", "dog", "eel", "fox", "gnu", "hen", "ibis", "jay", "koi", "lark")
_CALLS = 14
_AT_ONCE = 4
"""Calls that wait for their answers side by side."""
IN_BETWEEN = "between two points"


@dataclass(slots=True)
class Life:
    """What is known of a shard when its process is gone."""

    model: Model
    """All that was acknowledged."""
    unknown: list[list[Draft]] = field(default_factory=list)
    """Calls that were sent and not answered, in order."""
    kills: list[str] = field(default_factory=list)
    """Where processes were killed: nodes and merges."""
    acknowledged: int = 0
    """Writes in this life."""
    merges: int = 0
    checks: int = 0


async def live(
    shard: Path, before: Life, rng: random.Random, kill_at: str, calls: int = _CALLS
) -> Life:
    """Lives once more; `kill_at` is a point as in `winnow.faultpoints`, or empty.

    Raises:
        WrongError: the shard is not what it should be, or does not start by itself.

    """
    point = kill_at.partition(":")[0]
    life = Life(before.model, before.unknown)
    async with Process(shard, kill_at) as process:
        try:
            await process.ready()
            await _check(process, life, rng)
            await _write(process, life, rng, calls)
        except DiedError:
            await process.end()
            if not process.killed:
                raise WrongError(f"it ended by itself:\n{process.last_words}") from None
            life.kills.append(point)
        else:
            life.kills.append(IN_BETWEEN)
    return life


async def _check(process: Process, life: Life, rng: random.Random) -> None:
    dump = await process.tell("dump")
    life.model, life.unknown = survivor(life.model, life.unknown, dump), []
    for _ in range(2):
        await expect_found(process, life.model, _text(rng))
    life.checks += 1


async def _write(process: Process, life: Life, rng: random.Random, calls: int) -> None:
    """Writes and merges for a while; all answers are awaited, but for those of the last calls."""
    mergings = rng.sample(range(1, calls), min(3, calls - 1))
    merging: asyncio.Future[Any] | None = None
    waiting: list[tuple[list[Draft], asyncio.Future[Any]]] = []
    try:
        for number in range(calls):
            drafts = [_draft(rng) for _ in range(rng.randint(1, 5))]
            waiting.append((drafts, process.tell("writes", drafts)))
            if number in mergings and (merging is None or merging.done()):
                _count(merging, life)
                merging = process.tell("merge")
            if len(waiting) >= rng.randint(1, _AT_ONCE):
                await _acknowledged(waiting, life)
        if merging is not None and rng.random() < 0.8:
            await merging
            _count(merging, life)
            merging = None
        if rng.random() < 0.5:
            while waiting:
                await _acknowledged(waiting, life)
            await _check(process, life, rng)
    finally:
        # what was answered before the end counts, too
        while waiting and waiting[0][1].done() and waiting[0][1].exception() is None:
            await _acknowledged(waiting, life)
        life.unknown = [drafts for drafts, _ in waiting]
        _count(merging, life)


async def _acknowledged(
    waiting: list[tuple[list[Draft], "asyncio.Future[Any]"]], life: Life
) -> None:
    drafts, answer = waiting[0]
    said = await answer
    del waiting[0]
    if isinstance(said, dict):
        raise WrongError(f"a write was refused: {said['error']}")
    expected = [list(each) for each in life.model.apply(drafts)]
    if said != expected:
        raise WrongError(f"{drafts} became {said}, expected {expected}")
    life.acknowledged += len(drafts)


def _count(merging: "asyncio.Future[Any] | None", life: Life) -> None:
    """Counts a merge that has ended, or its death."""
    if merging is None or not merging.done() or merging.exception() is not None:
        return
    said = merging.result()
    if not isinstance(said, dict):
        life.merges += 1
    elif "exit code -9" in said["error"]:
        life.kills.append("a merge")
    else:
        raise WrongError(f"a merge failed: {said['error']}")


def _draft(rng: random.Random) -> Draft:
    identifier = f"id-{rng.randint(0, 40)}"
    version = rng.randint(0, 9) if rng.random() < 0.3 else None
    return identifier, None if rng.random() < 0.3 else _text(rng), version


def _text(rng: random.Random) -> str:
    return " ".join(rng.choices(_WORDS, k=rng.randint(1, 6)))


def first_texts(count: int, rng: random.Random) -> dict[str, str]:
    """What is there when the shard is built."""
    return {f"id-{number}": _text(rng) for number in range(count)}


def points_in_turn(points: Sequence[str], rng: random.Random) -> list[str]:
    """Every point once, in any order, each to be killed at when it is come to for the N-th time."""
    drawn = []
    for point in rng.sample(points, len(points)):
        often = {"log": 6, "trim": 2}.get(point.partition(".")[0], 1)
        drawn.append(f"{point}:{rng.randint(1, often)}")
    return drawn
