"""When a shard is merged while it is served, and what happens if that fails."""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from prometheus_client import CollectorRegistry
from structlog.testing import capture_logs
from tenacious import LONG

from winnow.content_node.merging.merger import Merger
from winnow.content_node.merging.policy import MergeBacklog, MergePolicy
from winnow.content_node.merging.protocol import Merged
from winnow.content_node.metrics import MergeMetrics
from winnow.content_node.shard.changes import FileChange
from winnow.errors import UnavailableError, WinnowError


@dataclass
class FakeShard:
    """A shard with some writes; remembers what was done to it."""

    writes: int = 0
    sequence: int = 0
    directory: Path = Path("built")
    merged: int = 0
    done: list[str] = field(default_factory=list)
    fails: set[str] = field(default_factory=set)
    change: FileChange | None = None
    """How the files of the base have changed."""
    is_held: bool = False
    """Whether the log keeps writes for another node."""

    def write(self, count: int) -> None:
        self.sequence += count

    def merge_backlog(self) -> MergeBacklog:
        return MergeBacklog(
            passages=0, rows=self.sequence, dead=0, writes=self.sequence - self.merged, idle=0.0
        )

    def file_change(self) -> FileChange | None:
        return self.change

    async def swap(self, base: Path) -> None:
        self._try(f"swap {base}")
        self.directory, self.merged = base, int(base.name)

    async def trim(self, upto: int) -> bool:
        self._try(f"trim {upto}")
        return not self.is_held

    def remove_obsolete(self, served: int) -> None:
        self._try(f"tidy {served}")

    def open(self, base: Path) -> Path:
        self._try(f"open {base}")
        return base

    def _try(self, what: str) -> None:
        if what.split(maxsplit=1)[0] in self.fails:
            self.done.append(f"{what} fails")
            raise OSError(28, "No space left on device")
        self.done.append(what)


@dataclass
class FakeMerge:
    """A merge that ends when it is told to."""

    shard: FakeShard
    base: Path
    upto: int
    stopped: bool = False
    runs: Callable[[], None] = lambda: None
    lacking: str = ""

    def run(self) -> Merged:
        self.shard.done.append(f"merge {self.base} to {self.upto}")
        if "merge" in self.shard.fails:
            raise WinnowError("the process ended with exit code -9")
        self.runs()
        return Merged(
            directory=str(self.upto),
            sequence=self.upto,
            passages=1,
            rows=1,
            without_states=self.lacking,
        )

    def stop(self) -> None:
        self.stopped = True


class Stage:
    """A shard, its merger, and a clock that goes on when it is told to."""

    def __init__(self) -> None:
        self.shard = FakeShard()
        self.merges: list[FakeMerge] = []
        self.slept: list[float] = []
        self.runs: Callable[[], None] = lambda: None
        self.lacking = ""
        self.now = 0.0
        self._turns, self._sleeps = asyncio.Semaphore(0), asyncio.Semaphore(0)
        self.registry = CollectorRegistry()
        self.merger: Merger[Path] = Merger(
            shard=self.shard,
            policy=MergePolicy(min_writes=10),
            new_merge=self._new_merge,
            open_base=self.shard.open,
            remove_obsolete=self.shard.remove_obsolete,
            metrics=MergeMetrics(self.registry),
            one_at_a_time=asyncio.Lock(),
            sleep=self._sleep,
            clock=lambda: self.now,
        )

    def _new_merge(self, base: Path, upto: int) -> FakeMerge:
        self.merges.append(FakeMerge(self.shard, base, upto, runs=self.runs, lacking=self.lacking))
        return self.merges[-1]

    async def _sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        self._sleeps.release()
        await self._turns.acquire()

    async def look(self) -> None:
        """Lets the merger look once, and waits until it sleeps again."""
        self._turns.release()
        await self.asleep()

    async def asleep(self) -> None:
        """Waits until the merger sleeps."""
        await self._sleeps.acquire()

    def count(self, result: str) -> float:
        return self.registry.get_sample_value("winnow_node_merges_total", {"result": result}) or 0


@pytest.fixture
async def stage() -> Stage:
    return Stage()


async def test_a_merge_is_swapped_in_before_the_log_is_trimmed(stage: Stage) -> None:
    task = asyncio.create_task(stage.merger.run())
    await stage.asleep()
    stage.shard.done.clear()
    stage.shard.write(9)
    await stage.look()
    assert not stage.shard.done
    stage.shard.write(1)
    await stage.look()
    assert stage.shard.done == ["merge built to 10", "open 10", "swap 10", "trim 10", "tidy 10"]
    stage.shard.write(12)
    await stage.look()
    assert stage.shard.done[5:] == ["merge 10 to 22", "open 22", "swap 22", "trim 22", "tidy 22"]
    assert stage.count("done") == 2
    task.cancel()


async def test_what_a_killed_node_left_is_cleaned_up_at_the_start(stage: Stage) -> None:
    stage.shard.merged = stage.shard.sequence = 7
    task = asyncio.create_task(stage.merger.run())
    await stage.asleep()
    assert stage.shard.done == ["trim 7", "tidy 7"]
    task.cancel()


@pytest.mark.parametrize(
    ("fails", "did"),
    [
        ("merge", ["merge built to 10"]),
        ("open", ["merge built to 10", "open 10 fails"]),
        ("swap", ["merge built to 10", "open 10", "swap 10 fails"]),
    ],
)
async def test_a_failure_before_the_swap_is_retried_later_and_later_and_trims_nothing(
    stage: Stage, fails: str, did: list[str]
) -> None:
    task = asyncio.create_task(stage.merger.run())
    await stage.asleep()
    stage.shard.done.clear()
    stage.shard.write(10)
    stage.shard.fails.add(fails)
    for _ in range(3):
        await stage.look()
    assert stage.shard.done == 3 * did
    assert stage.slept == [1, 1, 2, 4]
    assert stage.count("failed") == 3
    stage.shard.fails.clear()
    await stage.look()
    assert stage.shard.done[-2:] == ["trim 10", "tidy 10"]
    assert stage.slept[-1] == 1
    task.cancel()


@pytest.mark.parametrize("fails", ["trim", "tidy"])
async def test_what_cannot_be_forgotten_does_not_undo_a_merge(stage: Stage, fails: str) -> None:
    task = asyncio.create_task(stage.merger.run())
    await stage.asleep()
    stage.shard.write(10)
    stage.shard.fails.add(fails)
    await stage.look()
    assert (stage.shard.merged, stage.count("done"), stage.count("failed")) == (10, 1, 0)
    await stage.look()  # nothing is merged again
    assert len(stage.merges) == 1
    task.cancel()


async def test_what_could_not_be_forgotten_is_tried_again_without_a_merge(stage: Stage) -> None:
    """On a full disk no write comes that a merge would follow."""
    task = asyncio.create_task(stage.merger.run())
    await stage.asleep()
    stage.shard.write(10)
    stage.shard.fails.add("trim")
    await stage.look()
    assert stage.shard.done[-2:] == ["trim 10 fails", "tidy 10"]  # which makes room
    stage.shard.fails.clear()
    await stage.look()
    assert stage.shard.done[-1] == "tidy 10"  # not yet
    stage.now += 1.0
    await stage.look()
    assert stage.shard.done[-2:] == ["trim 10", "tidy 10"]
    count = len(stage.shard.done)
    stage.now += 1_000.0
    await stage.look()
    assert len(stage.shard.done) == count
    task.cancel()


async def test_writes_kept_for_another_node_are_removed_later_without_a_merge(
    stage: Stage,
) -> None:
    """They may be of a deleted tenant."""
    task = asyncio.create_task(stage.merger.run())
    await stage.asleep()
    stage.shard.write(10)
    stage.shard.is_held = True
    await stage.look()
    count = len(stage.shard.done)
    await stage.look()
    assert len(stage.shard.done) == count  # not yet
    stage.shard.is_held = False
    stage.now += 60.0
    await stage.look()
    assert stage.shard.done[count:] == ["trim 10", "tidy 10"]
    stage.now += 60.0
    await stage.look()
    assert len(stage.shard.done) == count + 2
    task.cancel()


async def test_what_could_not_be_forgotten_is_tried_again_before_a_merge(stage: Stage) -> None:
    """On a disk that is full again the next merge fails, unless a cleanup makes room for it."""
    task = asyncio.create_task(stage.merger.run())
    await stage.asleep()
    stage.shard.write(10)
    stage.shard.fails.add("trim")
    await stage.look()
    stage.shard.write(10)
    stage.shard.fails = {"merge"}
    await stage.look()
    assert stage.shard.done[-1] == "merge 10 to 20"  # it is too soon for a cleanup
    stage.now += 1.0
    await stage.look()
    assert stage.shard.done[-3:] == ["trim 10", "tidy 10", "merge 10 to 20"]
    task.cancel()


async def test_a_shard_whose_files_were_replaced_is_not_merged(stage: Stage) -> None:
    """The merge would write into the directory that took their place."""
    stage.shard.write(10)
    stage.shard.change = FileChange("the file was replaced", readable=True)
    with pytest.raises(UnavailableError, match="cannot merge: the file was replaced"):
        await stage.merger.merge_now()
    assert stage.shard.done == []


async def test_writes_that_come_during_a_merge_are_of_the_next(stage: Stage) -> None:
    stage.runs = lambda: stage.shard.write(5)
    task = asyncio.create_task(stage.merger.run())
    await stage.asleep()
    stage.shard.write(10)
    await stage.look()
    assert (stage.shard.merged, stage.shard.sequence) == (10, 15)
    task.cancel()


async def test_the_end_of_the_node_ends_a_merge(stage: Stage) -> None:
    import threading

    begun, ended = threading.Event(), threading.Event()

    def runs() -> None:
        begun.set()
        ended.wait(LONG)

    stage.runs = runs
    stage.shard.write(10)
    task = asyncio.create_task(stage.merger.run())
    await stage.asleep()
    stage._turns.release()
    await asyncio.to_thread(begun.wait)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert stage.merges[0].stopped
    assert stage.shard.merged == 0
    ended.set()


async def test_while_a_shard_is_merged_its_metrics_say_so(stage: Stage) -> None:
    def merging() -> float | None:
        return stage.registry.get_sample_value("winnow_node_merging")

    seen: list[float | None] = []
    stage.runs = lambda: seen.append(merging())
    task = asyncio.create_task(stage.merger.run())
    await stage.asleep()
    stage.shard.write(10)
    await stage.look()
    assert (seen, merging()) == ([1], 0)
    task.cancel()


async def test_a_merge_without_the_states_of_its_base_is_told(stage: Stage) -> None:
    stage.lacking = "No space left on device"
    task = asyncio.create_task(stage.merger.run())
    await stage.asleep()
    stage.shard.write(10)
    with capture_logs() as logs:
        await stage.look()
    (told,) = (log for log in logs if log["log_level"] == "warning")
    assert told["directory"] == str(stage.merges[0].upto)
    assert told["event"].endswith(f"by the merge: {stage.lacking}")
    task.cancel()
