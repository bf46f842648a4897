"""One life of a shard's process: start, check of the contents, writes and merges, kill."""

import asyncio
import random
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from bench.crashes.expected import (
    Draft,
    ExpectedShard,
    MismatchError,
    check_search,
    match_stored_calls,
)
from bench.crashes.victim_process import VictimEndedError, VictimProcess

_WORDS = ("ant", "bee", "cat", "dog", "eel", "fox", "gnu", "hen", "ibis", "jay", "koi", "lark")
_MAX_PENDING = 4
"""Maximum number of unacknowledged calls in flight."""
_ANY_MOMENT = "between two points"


@dataclass(slots=True, kw_only=True)
class Life:
    """Expected contents of a shard after one life of its process, and counts of this life."""

    expected: ExpectedShard
    """Contents of the shard after all acknowledged writes."""
    unacknowledged: list[list[Draft]] = field(default_factory=list)
    """Calls that were sent but not acknowledged, in order."""
    kills: list[str] = field(default_factory=list)
    """Fault points at which the process or a merge was killed."""
    acknowledged: int = 0
    """Number of acknowledged writes in this life."""
    merges: int = 0
    checks: int = 0
    """Number of comparisons with `expected`."""


async def run_life(
    shard: Path, previous: Life, rng: random.Random, kill_at: str, calls: int
) -> Life:
    """Runs the next life of the process, until it is killed.

    `kill_at` is a fault point of `winnow.faultpoints`; empty kills at a random moment.

    Raises:
        MismatchError: the shard differs from its expected contents, or its process was not killed.

    """
    life = Life(expected=previous.expected, unacknowledged=previous.unacknowledged)
    async with VictimProcess(shard, kill_at) as victim:
        try:
            await victim.wait_ready()
            await _check_shard(victim, life, rng)
            await _write_and_merge(victim, life, rng, calls)
        except VictimEndedError:
            await victim.wait_ended()
            if not victim.was_killed:
                raise MismatchError(
                    f"the shard's process ended without being killed:\n{victim.last_log_lines}"
                ) from None
            life.kills.append(kill_at.partition(":")[0])
        else:
            life.kills.append(_ANY_MOMENT)
    return life


async def _check_shard(victim: VictimProcess, life: Life, rng: random.Random) -> None:
    dump = await victim.send("dump")
    life.expected, life.unacknowledged = (
        match_stored_calls(life.expected, life.unacknowledged, dump),
        [],
    )
    for _ in range(2):
        text = _random_text(rng)
        check_search(await victim.send("search", text), life.expected, text)
    life.checks += 1


async def _write_and_merge(
    victim: VictimProcess, life: Life, rng: random.Random, calls: int
) -> None:
    """Sends writes and merges; some of the last calls stay unacknowledged."""
    merge_before = rng.sample(range(1, calls), min(3, calls - 1))
    merge: asyncio.Future[Any] | None = None
    pending: list[tuple[list[Draft], asyncio.Future[Any]]] = []
    try:
        for number in range(calls):
            drafts = [_random_draft(rng) for _ in range(rng.randint(1, 5))]
            pending.append((drafts, victim.send("writes", drafts)))
            if number in merge_before and (merge is None or merge.done()):
                _count_merge(merge, life)
                merge = victim.send("merge")
            if len(pending) >= rng.randint(1, _MAX_PENDING):
                await _await_acknowledgement(pending, life)
        if merge is not None and rng.random() < 0.8:
            await merge
            _count_merge(merge, life)
            merge = None
        if rng.random() < 0.5:
            while pending:
                await _await_acknowledgement(pending, life)
            await _check_shard(victim, life, rng)
    finally:
        # replies that arrived before the process ended also count
        while pending and pending[0][1].done() and pending[0][1].exception() is None:
            await _await_acknowledgement(pending, life)
        life.unacknowledged = [drafts for drafts, _ in pending]
        _count_merge(merge, life)


async def _await_acknowledgement(
    pending: list[tuple[list[Draft], "asyncio.Future[Any]"]], life: Life
) -> None:
    drafts, future = pending[0]
    reply = await future
    del pending[0]
    if isinstance(reply, dict):
        raise MismatchError(f"a write was refused: {reply['error']}")
    expected = [list(each) for each in life.expected.apply(drafts)]
    if reply != expected:
        raise MismatchError(f"the writes {drafts} had the outcomes {reply}, expected {expected}")
    life.acknowledged += len(drafts)


def _count_merge(merge: "asyncio.Future[Any] | None", life: Life) -> None:
    """Counts a merge that finished or was killed. Ignores a running merge."""
    if merge is None or not merge.done() or merge.exception() is not None:
        return
    reply = merge.result()
    if not isinstance(reply, dict):
        life.merges += 1
    elif "exit code -9" in reply["error"]:
        life.kills.append("a merge")
    else:
        raise MismatchError(f"a merge failed: {reply['error']}")


def _random_draft(rng: random.Random) -> Draft:
    identifier = f"id-{rng.randint(0, 40)}"
    version = rng.randint(0, 9) if rng.random() < 0.3 else None
    return identifier, None if rng.random() < 0.3 else _random_text(rng), version


def _random_text(rng: random.Random) -> str:
    return " ".join(rng.choices(_WORDS, k=rng.randint(1, 6)))


def initial_texts(count: int, rng: random.Random) -> dict[str, str]:
    """Returns random texts by id, for building a shard."""
    return {f"id-{number}": _random_text(rng) for number in range(count)}


def shuffled_fault_points(points: Sequence[str], rng: random.Random) -> list[str]:
    """Returns all fault points in random order, as POINT:PASS.

    POINT:PASS kills the process when it reaches POINT for the PASS-th time.
    """
    shuffled = []
    for point in rng.sample(points, len(points)):
        passes = {"log": 6, "trim": 2}.get(point.partition(".")[0], 1)
        shuffled.append(f"{point}:{rng.randint(1, passes)}")
    return shuffled
