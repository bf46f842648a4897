"""Any history of writes, looks, merges and lost replicas: what may be answered, and what is said."""

import asyncio
from collections.abc import Coroutine
from typing import Any, TypeVar

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule
from live_front import LiveFront
from logged_shards import Entry, LiveReplica, ShardLog, Words, counted

from winnow.domain.answered import Answered
from winnow.domain.coverage import ShardStatus
from winnow.domain.shard import shard_of
from winnow.domain.write import Position
from winnow.errors import DeadlineExceededError, UnavailableError

Result = TypeVar("Result")
NAMES = st.sampled_from("abcdefgh")
WORDS = st.lists(st.integers(1, 20), min_size=1, max_size=3).map(tuple)
SHARDS = 2
REPLICAS = "xy"
READ = 3
"""Passages that each question reads."""


class History(RuleBasedStateMachine):
    """A front over two shards with two replicas each; writes are acknowledged by either."""

    @initialize(built=st.dictionaries(NAMES, WORDS, min_size=1))
    def start(self, built: dict[str, Words]) -> None:
        self.runner = asyncio.Runner()
        content = [{n: w for n, w in built.items() if _shard(n) == s} for s in range(SHARDS)]
        self.logs = [ShardLog(own, f"log-{shard}") for shard, own in enumerate(content)]
        index = counted(built)
        self.replicas = [
            [LiveReplica(f"{name}{shard}", log, shard, SHARDS, index) for name in REPLICAS]
            for shard, log in enumerate(self.logs)
        ]
        self.front = self.run(self.open())
        self.acknowledged = [0] * SHARDS

    async def open(self) -> LiveFront:
        return LiveFront(*(each for own in self.replicas for each in own))

    def run(self, work: Coroutine[Any, Any, Result]) -> Result:
        return self.runner.run(work)

    def teardown(self) -> None:
        if hasattr(self, "runner"):
            self.runner.close()

    @rule(name=NAMES, words=WORDS, replica=st.integers(0, 1))
    def put(self, name: str, words: Words, replica: int) -> None:
        shard = _shard(name)
        self.acknowledge(shard, self.logs[shard].put(name, words), replica)

    @rule(name=NAMES, replica=st.integers(0, 1))
    def delete(self, name: str, replica: int) -> None:
        shard = _shard(name)
        self.acknowledge(shard, self.logs[shard].delete(name), replica)

    def acknowledge(self, shard: int, sequence: int, replica: int) -> None:
        """By a replica that has all writes up to this one."""
        self.replicas[shard][replica].follow()
        self.acknowledged[shard] = sequence
        self.front.snapshot.record_write(shard, sequence)

    @rule(shard=st.integers(0, 1), replica=st.integers(0, 1), more=st.integers(1, 3))
    def follow(self, shard: int, replica: int, more: int) -> None:
        each = self.replicas[shard][replica]
        each.follow(each.sequence + more)

    @rule(shard=st.integers(0, 1), replica=st.integers(0, 1))
    def merge(self, shard: int, replica: int) -> None:
        self.replicas[shard][replica].merge()

    @rule(shard=st.integers(0, 1), replica=st.integers(0, 1))
    def look(self, shard: int, replica: int) -> None:
        self.front.look(self.replicas[shard][replica].name)

    @rule(shard=st.integers(0, 1), replica=st.integers(0, 1))
    def lose(self, shard: int, replica: int) -> None:
        """One at a time: what nobody has cannot be answered."""
        if self.replicas[shard][1 - replica].fails is None:
            self.front.kill(self.replicas[shard][replica].name)

    @rule(shard=st.integers(0, 1), replica=st.integers(0, 1))
    def bring_back(self, shard: int, replica: int) -> None:
        self.replicas[shard][replica].fails = None

    @rule(seconds=st.sampled_from([0.1, 1.0]))
    def pass_time(self, seconds: float) -> None:
        self.front.clock.advance(seconds)

    @rule()
    def count(self) -> None:
        self.run(self.front.count())

    @rule(fresh=st.booleans(), named=st.booleans())
    def ask(self, fresh: bool, named: bool) -> None:
        self.expect(self.asked(fresh, named))

    @rule(name=NAMES, shard=st.integers(0, 1), replica=st.integers(0, 1))
    def ask_while_it_changes(self, name: str, shard: int, replica: int) -> None:
        """A passage goes, and rows with it, between retrieving and reading."""
        lowest = [self.least(n) for n in range(SHARDS)]

        def change() -> None:
            self.delete(name, replica)
            self.replicas[shard][replica].merge()

        for own in self.replicas:
            for each in own:
                each.before_reading = [change]
        found = self.asked(fresh=True, named=False)
        for own in self.replicas:
            for each in own:
                each.before_reading = []
        for answer in found.answers if found is not None else ():
            held = [
                log.content(sequence).get(answer.reading.passage.id)
                for log, least in zip(self.logs, lowest, strict=True)
                for sequence in range(least, log.sequence + 1)
            ]
            texts = {entry.reading().passage.text for entry in held if entry is not None}
            assert answer.reading.passage.text in texts

    def asked(self, fresh: bool, named: bool) -> Answered | None:
        """The answer; None if no shard has what it needs, which is said."""
        after = [Position(n, self.acknowledged[n]) for n in range(SHARDS)] if named else []
        try:
            return self.run(self.front.ask("Who?", *after, fresh=fresh))
        except (DeadlineExceededError, UnavailableError):
            assert any(self.lacking(shard) for shard in range(SHARDS))
            return None

    def lacking(self, shard: int) -> bool:
        """Whether a replica may be asked that cannot answer."""
        own, known = self.replicas[shard], self.front.nodes.nodes
        return any(
            each.fails is not None
            or each.sequence < self.acknowledged[shard]
            or known[each.name].error is not None
            for each in own
        )

    def least(self, shard: int) -> int:
        """The write that an answer must know of: that of the front, unless it gave it up."""
        return self.front.cluster.required_sequence(shard)

    def expect(self, found: Answered | None) -> None:
        """The best passages of what the shards held at the writes that the answer names."""
        if found is None:
            return
        coverage = found.coverage
        assert coverage.known == coverage.searched + coverage.failed
        assert min(part.passages for part in coverage.shards) >= 0
        failed = [part for part in coverage.shards if part.status is not ShardStatus.SEARCHED]
        assert coverage.complete == (not failed)
        held: list[Entry] = []
        for part in coverage.shards:
            if part.status is ShardStatus.SEARCHED:
                assert part.sequence is not None
                assert part.sequence >= self.least(part.shard)
                held += self.logs[part.shard].content(part.sequence).values()
        best = sorted(held, key=lambda entry: (entry.distance, entry.id))[:READ]
        said = {(each.reading.passage.id, each.reading.passage.text) for each in found.answers}
        expected = {(each.id, each.reading().passage.text) for each in best}
        assert said == expected if coverage.complete else said <= expected
        if found.cached:
            assert [part.sequence for part in coverage.shards] == [
                self.front.cluster.latest_sequences()[part.shard] for part in coverage.shards
            ]

    @invariant()
    def counts_are_of_no_more_passages_than_there_are(self) -> None:
        if hasattr(self, "front"):
            assert all(info.passages >= 0 for info in self.front.cluster.shard_infos.values())


def _shard(name: str) -> int:
    return shard_of(name, SHARDS)


TestHistories = History.TestCase
TestHistories.settings = settings(max_examples=25, stateful_step_count=30, deadline=None)
