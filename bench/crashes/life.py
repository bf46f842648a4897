"""One life of a shard: it starts, is checked, is written to and merged, and is killed."""

import asyncio
import random
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from bench.crashes.expected import Draft, Model, WrongError, expect_found, survivor
from bench.crashes.victim_process import DiedError, VictimProcess

_WORDS = ("ant", "bee", "cat", "dog", "eel", "fox", "gnu", "hen", "ibis", "jay", "koi", "lark")
_AT_ONCE = 4
"""Calls that wait for their replies at the same time."""
_BETWEEN = "between two points"


@dataclass(slots=True, kw_only=True)
class ExpectedShard:
    """What is known of a shard when its process has ended."""

    model: Model
    """All that was acknowledged."""
    unknown: list[list[Draft]] = field(default_factory=list)
    """Calls that were sent and not acknowledged, in order."""
    kills: list[str] = field(default_factory=list)
    """Fault points at which nodes and merges were killed."""
    acknowledged: int = 0
    """Writes in this life."""
    merges: int = 0
    checks: int = 0


async def live(
    shard: Path, before: ExpectedShard, rng: random.Random, kill_at: str, calls: int
) -> ExpectedShard:
    """Runs one more life; `kill_at` is a point as in `winnow.faultpoints`, or empty.

    Raises:
        WrongError: the shard differs from the dictionary, or its process ended by itself.

    """
    life = ExpectedShard(model=before.model, unknown=before.unknown)
    async with VictimProcess(shard, kill_at) as victim:
        try:
            await victim.ready()
            await _check(victim, life, rng)
            await _write(victim, life, rng, calls)
        except DiedError:
            await victim.end()
            if not victim.killed:
                raise WrongError(f"it ended by itself:\n{victim.last_log_lines}") from None
            life.kills.append(kill_at.partition(":")[0])
        else:
            life.kills.append(_BETWEEN)
    return life


async def _check(victim: VictimProcess, life: ExpectedShard, rng: random.Random) -> None:
    dump = await victim.send("dump")
    life.model, life.unknown = survivor(life.model, life.unknown, dump), []
    for _ in range(2):
        text = _text(rng)
        expect_found(await victim.send("search", text), life.model, text)
    life.checks += 1


async def _write(
    victim: VictimProcess, life: ExpectedShard, rng: random.Random, calls: int
) -> None:
    """Writes and merges for a while; awaits all replies but those to the last calls."""
    merge_before = rng.sample(range(1, calls), min(3, calls - 1))
    merging: asyncio.Future[Any] | None = None
    waiting: list[tuple[list[Draft], asyncio.Future[Any]]] = []
    try:
        for number in range(calls):
            drafts = [_draft(rng) for _ in range(rng.randint(1, 5))]
            waiting.append((drafts, victim.send("writes", drafts)))
            if number in merge_before and (merging is None or merging.done()):
                _count_merge(merging, life)
                merging = victim.send("merge")
            if len(waiting) >= rng.randint(1, _AT_ONCE):
                await _acknowledged(waiting, life)
        if merging is not None and rng.random() < 0.8:
            await merging
            _count_merge(merging, life)
            merging = None
        if rng.random() < 0.5:
            while waiting:
                await _acknowledged(waiting, life)
            await _check(victim, life, rng)
    finally:
        # a reply that came before the end counts, too
        while waiting and waiting[0][1].done() and waiting[0][1].exception() is None:
            await _acknowledged(waiting, life)
        life.unknown = [drafts for drafts, _ in waiting]
        _count_merge(merging, life)


async def _acknowledged(
    waiting: list[tuple[list[Draft], "asyncio.Future[Any]"]], life: ExpectedShard
) -> None:
    drafts, future = waiting[0]
    reply = await future
    del waiting[0]
    if isinstance(reply, dict):
        raise WrongError(f"a write was refused: {reply['error']}")
    expected = [list(each) for each in life.model.apply(drafts)]
    if reply != expected:
        raise WrongError(f"the writes {drafts} had the outcomes {reply}, expected {expected}")
    life.acknowledged += len(drafts)


def _count_merge(merging: "asyncio.Future[Any] | None", life: ExpectedShard) -> None:
    """Counts a merge that has ended, or was killed."""
    if merging is None or not merging.done() or merging.exception() is not None:
        return
    reply = merging.result()
    if not isinstance(reply, dict):
        life.merges += 1
    elif "exit code -9" in reply["error"]:
        life.kills.append("a merge")
    else:
        raise WrongError(f"a merge failed: {reply['error']}")


def _draft(rng: random.Random) -> Draft:
    identifier = f"id-{rng.randint(0, 40)}"
    version = rng.randint(0, 9) if rng.random() < 0.3 else None
    return identifier, None if rng.random() < 0.3 else _text(rng), version


def _text(rng: random.Random) -> str:
    return " ".join(rng.choices(_WORDS, k=rng.randint(1, 6)))


def first_texts(count: int, rng: random.Random) -> dict[str, str]:
    """Returns the texts of a shard when it is built, by id."""
    return {f"id-{number}": _text(rng) for number in range(count)}


def points_in_random_order(points: Sequence[str], rng: random.Random) -> list[str]:
    """Returns every fault point once, each with the number of the pass at which it kills."""
    drawn = []
    for point in rng.sample(points, len(points)):
        passes = {"log": 6, "trim": 2}.get(point.partition(".")[0], 1)
        drawn.append(f"{point}:{rng.randint(1, passes)}")
    return drawn
