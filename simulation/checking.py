"""Checks what clients saw against the logs of the shards, and the logs against what clients did.

Every check returns sentences about violations; none if the cluster kept its promises.
"""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import replace
from math import inf

import numpy as np

from simulation.history import (
    AppliedWrite,
    History,
    QuestionCall,
    ShardLog,
    WriteCall,
    state_after,
)
from simulation.linearisability import RegisterOperation, is_linearisable
from simulation.models import tokenizer_of, vector_of
from winnow.bundle import Bundle
from winnow.domain.coverage import ShardCoverage, ShardStatus
from winnow.domain.partition import Partition, halves_of, holds, parent_of, shares_passages
from winnow.domain.shard import shard_of_tenant
from winnow.domain.tenant import names_no_passage, stored_id, tenant_of
from winnow.domain.write import Outcome

_ROUNDING = 1e-5
"""Largest difference of two ways to compute a distance."""
_MOMENT = 1e-9


class Checker:
    """Checks a history."""

    def __init__(
        self,
        history: History,
        shards: int,
        bundle: Bundle,
        passages: int,
        *,
        index: str = "",
        is_copied: Callable[[AppliedWrite], bool | None] = lambda _: None,
    ) -> None:
        """Checks nothing yet.

        Args:
            history: the history of the index. Its calls may be of several indexes.
            shards: the number of shards with which the index was built.
            bundle: the bundle of the index.
            passages: the number of passages that each question asks to be read.
            index: the name of the index; empty without a catalog.
            is_copied: whether a write of a copy is one of its source; None while the index is no
                copy, so that clients write to it.

        """
        self._history, self._shards, self._passages = history, shards, passages
        self.index, self._is_copied = index, is_copied
        self._tokenizer, self._version = tokenizer_of(bundle.tokenizer), bundle.manifest.version
        self._distances: dict[tuple[str, str], float] = {}
        self._versions: dict[tuple[int, str], int | None] = {}
        """The version of the last write of each id of a shard."""
        self.lost: set[int] = set()
        """The shards whose journal has lost acknowledged entries. Only their last state counts."""
        self._built = {shard: self._built_texts(shard) for shard in range(shards)}

    def append(
        self, shard: int, node: str, writes: list[AppliedWrite], now: float
    ) -> Iterator[str]:
        """Adds writes that a replica appends; yields differences to what others appended."""
        own = self._history.own_logs.setdefault((shard, node), [])
        for write in writes:
            del own[write.sequence - 1 :]
            own.append(write)
        if shard in self.lost:
            return
        for write in writes:
            log = self.log(shard, write.sequence)
            if write.sequence <= len(log.writes):
                known = log.writes[write.sequence - 1]
                is_own = holds(shard, self._shards, known.id)
                if known != write and (is_own or write.text is not None):
                    yield (
                        f"replicas differ: {node} stores {_described(write)} in shard {shard}, "
                        f"but another replica has {_described(known)}"
                    )
            elif write.sequence == len(log.writes) + 1:
                yield from self._outdated(shard, write)
                log.writes.append(write)
                log.appended_at.append(now)
                if holds(shard, self._shards, write.id) and not self._halves_have(shard, write):
                    yield from self._unexplained(shard, write, now)
            else:
                yield f"{node} skips writes of shard {shard} before {_described(write)}"

    def log(self, shard: int, sequence: float = inf) -> ShardLog:
        """Returns the log of a shard.

        A half of a shard has all writes of its parent. As far as the log of the half is shorter
        than `sequence`, it is continued by them.
        """
        log, parent = self._history.log(shard), parent_of(shard, self._shards)
        if parent is None or len(log.writes) >= sequence:
            return log
        whole = self.log(parent, sequence)
        for write, at in list(zip(whole.writes, whole.appended_at, strict=True))[len(log.writes) :]:
            if write.sequence > sequence:
                break
            own = holds(shard, self._shards, write.id)
            # a half numbers the writes of the other half, too
            log.writes.append(write if own else replace(write, text=None, version=None))
            log.appended_at.append(at)
            if own:
                self._versions[shard, write.id] = self._versions.get((parent, write.id))
        return log

    def _halves_have(self, shard: int, write: AppliedWrite) -> bool:
        """Whether a replica that has split the shard already has stored a write."""
        return any(
            len(self._history.log(half).writes) >= write.sequence
            for half in halves_of(shard, self._shards)
            if half in self._history.logs
        )

    def _built_texts(self, shard: int) -> dict[str, str]:
        """Returns the texts of a shard, or of a part of one, as it was built."""
        built = self._history.built.items()
        return {each: text for each, text in built if holds(shard, self._shards, each)}

    def _outdated(self, shard: int, write: AppliedWrite) -> Iterator[str]:
        """Yields a violation if a later version was stored before a write."""
        key = (shard, write.id)
        before = self._versions.get(key)
        if before is not None and write.version is not None and write.version < before:
            yield f"{_described(write)} has version {write.version}, but {before} was stored before"
        # a deletion without a version keeps the version of the passage
        if write.version is not None or write.text is not None:
            self._versions[key] = write.version

    def _unexplained(self, shard: int, write: AppliedWrite, now: float) -> Iterator[str]:
        """Yields a violation if no running call explains a write that is being appended.

        A copy stores only writes of its source.
        """
        is_copied = self._is_copied(write)
        if is_copied is not None:
            if not is_copied:
                yield f"the copy {self.index} has {_described(write)}, but its source never had it"
            return
        calls = [
            each
            for each in self._history.writes
            if each.id == write.id and each.text == (write.text or "")
        ]
        if names_no_passage(write.id):
            return  # it changes nothing
        if not calls:
            yield f"nobody asked for {_described(write)} of shard {shard}"
        elif all(each.settled < now - _MOMENT for each in calls):
            last = max(calls, key=lambda each: each.settled)
            newer = [
                each
                for each in self._history.writes
                if each.id == write.id and each.outcome is not None and each.begun > last.settled
            ]
            if newer:
                yield (
                    f"a late write undid a newer one: {_described(write)} of shard {shard} was "
                    f"stored {now - last.settled:.3f} s after its call had "
                    f"{'failed' if last.outcome is None else 'succeeded'}"
                )

    def check_write(self, call: WriteCall) -> Iterator[str]:
        """Checks the result of a write when its client gets it."""
        position = call.position
        if position is None or position.shard in self.lost:
            return
        log = self.log(position.shard, position.sequence)
        if position.sequence > len(log.writes):
            yield f"{_call(call)} was acknowledged before a replica stored it"
            return
        if call.outcome is Outcome.STORED and not position.sequence:
            yield f"{_call(call)} is stored, but its number is 0"
            return
        if call.outcome is Outcome.STORED:
            write = log.writes[position.sequence - 1]
            if (write.id, write.text or "") != (call.id, call.text):
                yield f"{_call(call)} was acknowledged as {_described(write)}"
            yield from self._misplaced(call)
        elif call.outcome is Outcome.UNCHANGED:
            state = self.state(position.shard, position.sequence)
            expected = call.text or None
            if state.get(call.id) != expected:
                yield (
                    f"{_call(call)} is unchanged after write {position.sequence}, but the shard "
                    f"then has {state.get(call.id)!r}"
                )

    def _misplaced(self, call: WriteCall) -> Iterator[str]:
        """Yields the acknowledged writes that ended before a write began, but come after it."""
        position = call.position
        assert position is not None
        for other in self._history.writes:
            before = other.position
            if (
                other.id == call.id
                and other.outcome is Outcome.STORED
                and before is not None
                and before.index == position.index
                and other.ended < call.begun
                and before.sequence >= position.sequence
            ):
                yield f"{_call(call)} is stored before {_call(other)}, which had ended"

    def check_histories(
        self, partition: Partition, earlier: Collection["Checker"] = ()
    ) -> Iterator[str]:
        """Checks at the end that the writes of each id have one order that explains all results.

        Args:
            partition: the shards at the end.
            earlier: the checkers of the indexes that took writes before this one replaced them,
                with the first one first.

        """
        ids = {call.id for call in self._history.writes}
        versioned = {call.id for call in self._history.writes if call.version is not None}
        first = [*earlier, self][0]
        for identifier in sorted(ids - versioned):
            shard = partition.shard_of(identifier)
            if shard in self.lost:
                continue
            logs = {each.index: each.log(each.built_shard_of(identifier)) for each in earlier}
            logs[self.index] = self.log(shard)
            stored = {
                write.text
                for log in logs.values()
                for write in log.writes
                if write.id == identifier
            }
            calls = [call for call in self._history.writes if call.id == identifier]
            operations = [
                _operation(call, logs[call.position.index if call.position else self.index])
                for call in calls
                if call.outcome or (call.text or None) in stored
            ]
            last = self.last_state(shard).get(identifier, "")
            end = max((call.settled for call in calls), default=0.0)
            operations.append(RegisterOperation(False, last, end + 1, end + 2))
            if not is_linearisable(operations, first.built_text(identifier)):
                yield f"no order of the writes of {identifier} explains their results"

    def last_writes(self) -> dict[int, int]:
        """Returns the number of the last write of each shard."""
        return {shard: len(self.log(shard).writes) for shard in range(self._shards)}

    def passages(self) -> dict[str, tuple[str, int | None]]:
        """Returns the text and the version of each passage of an index whose shards never split.

        A deleted passage is listed with an empty text, if its version outdates later writes.
        """
        found: dict[str, tuple[str, int | None]] = {
            each: (text, None) for each, text in self._history.built.items()
        }
        for shard in range(self._shards):
            for write in self.log(shard).writes:
                version = self._versions.get((shard, write.id))
                found.pop(write.id, None)
                if write.text is not None or version is not None:
                    found[write.id] = write.text or "", version
        return found

    def had(self, write: AppliedWrite) -> bool:
        """Whether the index ever had a write, apart from its version, or was built with it."""
        if write.text is not None and self._history.built.get(write.id) == write.text:
            return True
        return any(
            (each.id, each.text) == (write.id, write.text)
            for log in self._history.logs.values()
            for each in log.writes
        )

    def built_shard_of(self, identifier: str) -> int:
        """Returns the shard of an id in the index as it was built."""
        return Partition(self._shards, range(self._shards)).shard_of(identifier)

    def built_text(self, identifier: str) -> str:
        """Returns the text of an id in the index as it was built; empty without one."""
        return self._history.built.get(identifier, "")

    def check_parts(self) -> Iterator[str]:
        """Checks at the end that the halves of shards have the writes of their parents."""
        for shard in sorted(self._history.logs):
            parent = parent_of(shard, self._shards)
            if parent is None:
                continue
            whole, part = self.log(parent).writes, self.log(shard).writes
            if len(part) < len(whole):
                yield f"shard {shard} has {len(part)} writes, but its parent has {len(whole)}"
            for write, own in zip(whole, part, strict=False):
                if holds(shard, self._shards, write.id) and write != own:
                    yield f"shard {shard} has {_described(own)}, its parent {_described(write)}"
        for call in self._history.writes:
            yield from self._forgotten(call)

    def _forgotten(self, call: WriteCall) -> Iterator[str]:
        """Yields a violation if a part of a shard lacks an acknowledged write."""
        position = call.position
        if position is None or call.outcome is not Outcome.STORED or position.index != self.index:
            return
        if position.shard in self.lost:
            return
        for part in sorted(self._history.logs):
            log = self.log(part).writes
            is_part = shares_passages(part, position.shard, self._shards)
            if not is_part or not holds(part, self._shards, call.id):
                continue
            if part >= position.shard and position.sequence > len(log):
                yield f"shard {part} lacks write {position.sequence}, the {_call(call)}"
            elif part > position.shard and log[position.sequence - 1].id != call.id:
                found = _described(log[position.sequence - 1])
                yield f"shard {part} has {found} in place of the acknowledged {_call(call)}"

    def own_writes(self, shard: int, node: str) -> int:
        """Returns the number of writes in a replica's log, as far as they were observed."""
        return len(self._history.own_logs.get((shard, node), []))

    def own_state(self, shard: int, node: str) -> dict[str, str]:
        """Returns the texts of a shard by id after all writes of a replica's log."""
        return state_after(self._built[shard], self._history.own_logs.get((shard, node), []))

    def check_served_logs(self, shard: int, nodes: Iterable[str]) -> Iterator[str]:
        """Checks that all replicas that are served have the same log."""
        logs = {node: self._history.own_logs.get((shard, node), []) for node in nodes}
        for node, log in logs.items():
            first, other = next(iter(logs.items()))
            if log != other:
                yield f"{first} and {node} serve shard {shard} after different writes"

    def last_state(self, shard: int) -> dict[str, str]:
        """Returns the texts of a shard by id after all of its writes."""
        return self.state(shard, len(self.log(shard).writes))

    def state(self, shard: int, sequence: int) -> dict[str, str]:
        """Returns the texts of a shard by id after a write."""
        if shard not in self._built:
            self._built[shard] = self._built_texts(shard)
        return state_after(self._built[shard], self.log(shard, sequence).writes[:sequence])

    def check_question(self, call: QuestionCall) -> Iterator[str]:
        """Checks an answer when its client gets it."""
        answered = call.answered
        if answered is None or self.lost:
            return
        expected: dict[str, str] = {}
        for part in answered.coverage.shards:
            if part.status is ShardStatus.SEARCHED and part.sequence is not None:
                expected |= self._state_of_tenant(part.shard, part.sequence, call.tenant)
            yield from self._check_part(call, part)
        listed = [part.shard for part in answered.coverage.shards]
        if call.tenant:  # its passages are in one shard, or in the parts of one
            own = shard_of_tenant(call.tenant, self._shards)
            listed += [shard for shard in range(self._shards) if shard != own]
        try:
            partition = Partition(self._shards, listed)
        except ValueError as error:
            yield f"the coverage of {call.text!r} does not list every shard: {error}"
            return
        yield from self._check_nearest(call, expected, partition)

    def _state_of_tenant(self, shard: int, sequence: int, tenant: str) -> dict[str, str]:
        state = self.state(shard, sequence)
        return {each: text for each, text in state.items() if tenant_of(each) == tenant}

    def _check_part(self, call: QuestionCall, part: ShardCoverage) -> Iterator[str]:
        """Checks what an answer says of a shard."""
        if part.status is not ShardStatus.SEARCHED:
            if not call.allows_partial:
                yield f"{call.text!r} lacks shard {part.shard}, but forbids partial results"
            return
        if part.sequence is None:
            yield f"{call.text!r} searched shard {part.shard}, but names no write of it"
            return
        passages = len(self._state_of_tenant(part.shard, part.sequence, call.tenant))
        if part.sequence > len(self.log(part.shard, part.sequence).writes):
            yield f"{call.text!r} names write {part.sequence}, which no replica has"
        if part.passages != passages:
            yield (
                f"{call.text!r} counts {part.passages} passages of shard {part.shard} after "
                f"write {part.sequence}, not {passages}"
            )
        # a half continues the numbers of its parent
        known = [*call.required.items(), *((each.shard, each.sequence) for each in call.after)]
        needed = max(
            (
                sequence
                for shard, sequence in known
                if shares_passages(part.shard, shard, self._shards)
            ),
            default=0,
        )
        if part.sequence < needed:
            yield (
                f"{call.text!r} saw shard {part.shard} after write {part.sequence}, but it "
                f"needed write {needed}"
            )

    def _check_nearest(
        self, call: QuestionCall, expected: Mapping[str, str], partition: Partition
    ) -> Iterator[str]:
        answered = call.answered
        assert answered is not None
        distances = {
            identifier: self._distance(call.text, text) for identifier, text in expected.items()
        }
        read = min(self._passages, answered.passages_granted)  # fewer under load
        nearest = sorted(distances.values())[:read]
        read_passages = [answer.reading.passage for answer in answered.answers]
        shown = [replace(each, id=stored_id(call.tenant, each.id)) for each in read_passages]
        for passage in shown:
            part = next(
                each
                for each in answered.coverage.shards
                if each.shard == partition.shard_of(passage.id)
            )
            if part.status is not ShardStatus.SEARCHED or part.sequence is None:
                if not self._was_stored(passage.id, passage.text):
                    yield f"{call.text!r} shows {passage.text!r}, which {passage.id} never had"
            elif expected.get(passage.id) != passage.text:
                yield (
                    f"{call.text!r} shows {passage.id} with {passage.text!r}, but the searched "
                    f"writes have {expected.get(passage.id)!r}"
                )
        if any(passage.id not in distances for passage in shown):
            return
        complete = all(part.status is ShardStatus.SEARCHED for part in answered.coverage.shards)
        if complete and len(shown) < len(nearest):
            yield f"{call.text!r} has {len(shown)} answers, not {len(nearest)}"
        found = [distances[passage.id] for passage in shown]
        if complete and any(
            abs(own - best) > _ROUNDING for own, best in zip(found, nearest, strict=False)
        ):
            yield f"{call.text!r} has answers at {found}, but the nearest are at {nearest}"

    def _was_stored(self, identifier: str, text: str) -> bool:
        logs = self._history.logs.values()
        stored = any(
            each.id == identifier and each.text == text for log in logs for each in log.writes
        )
        return stored or self._history.built.get(identifier) == text

    def _distance(self, question: str, text: str) -> float:
        key = (question, text)
        if key not in self._distances:
            one, other = (
                vector_of(self._tokenizer.tokenise(each).ids, self._version) for each in key
            )
            self._distances[key] = float(((one - other).astype(np.float64) ** 2).sum())
        return self._distances[key]


def _operation(call: WriteCall, log: ShardLog) -> RegisterOperation:
    """Returns a write as an operation.

    An unchanged write has only read what is there, unless an earlier attempt has stored it.
    """
    was_stored = any(
        write.id == call.id and (write.text or "") == call.text and call.begun <= at <= call.settled
        for write, at in zip(log.writes, log.appended_at, strict=True)
    )
    is_write = call.outcome is not Outcome.UNCHANGED or was_stored
    certain = call.outcome is not None
    return RegisterOperation(is_write, call.text, call.begun, call.settled, certain)


def _described(write: AppliedWrite) -> str:
    what = "a deletion" if write.text is None else repr(write.text)
    return f"write {write.sequence} of {write.id} ({what})"


def _call(call: WriteCall) -> str:
    return f"{'put' if call.text else 'deletion'} of {call.id} {call.text!r}"
