"""Deliberate errors in the code that ships, to show that the simulation finds such errors.

Each mutation replaces a function or a value while a simulation runs. `python -m simulation
--mutations` runs all of them.
"""

import contextlib
from collections.abc import Callable, Iterator
from dataclasses import replace
from inspect import Parameter, signature
from typing import Any
from unittest.mock import patch

from winnow.content_node.assigned import steps
from winnow.content_node.journal import following, journaled
from winnow.content_node.live import (
    acknowledged,
    buffer,
    custody,
    database,
    group_commit,
    log,
    sequence_waiter,
    shard,
    write_conflict,
    write_store,
)
from winnow.content_node.merging import merge, passages, tidying, writing
from winnow.content_node.shard import generations, retrieving, tenant_view
from winnow.content_node.splitting import write_half
from winnow.content_node.transfer import servicer
from winnow.domain import coverage, partition
from winnow.domain.coverage import ShardStatus
from winnow.domain.write import Outcome, Position, WriteAttempt, Written
from winnow.errors import WinnowError
from winnow.journal import expiry, jetstream
from winnow.shard_service import attempts, feed_servicer
from winnow.stateless.answer import answer_cache
from winnow.stateless.answer import merge as answer_merge
from winnow.stateless.cluster import cluster, snapshot
from winnow.stateless.feed import storing, unchanged
from winnow.stateless.replicas import joint
from winnow.storage import local

MUTATIONS: dict[str, Callable[[], contextlib.AbstractContextManager[Any]]] = {}
"""What applies each mutation, by its description."""


def mutation(description: str, target: object, name: str) -> Callable[[Any], Any]:
    """Registers a function that takes the place of `target.name`; it gets the original first."""

    def register(replacement: Callable[..., Any]) -> Callable[..., Any]:
        original = getattr(target, name)
        static = isinstance(target, type) and isinstance(target.__dict__[name], property)
        source = target.__dict__[name].fget if static else original

        _check_arguments(source, replacement)

        def replaced(*arguments: Any, **options: Any) -> Any:
            return replacement(source, *arguments, **options)

        new: Any = property(replaced) if static else replaced
        MUTATIONS[description] = lambda: patch.object(target, name, new)
        return replacement

    return register


def _check_arguments(source: Callable[..., Any], replacement: Callable[..., Any]) -> None:
    """Raises TypeError if a replacement does not take all arguments of what it replaces.

    Else the simulation would find this error of the mutation, and not the mutation.
    """
    parameters = signature(source).parameters.values()
    by_name = {each.name: None for each in parameters if each.kind is Parameter.KEYWORD_ONLY}
    plain = Parameter.POSITIONAL_ONLY, Parameter.POSITIONAL_OR_KEYWORD
    by_place = [None for each in parameters if each.kind in plain]
    signature(replacement).bind(source, *by_place, **by_name)


@mutation("commits are not synced", log, "connect")
def _(original: Any, *arguments: Any, **options: Any) -> Any:
    connection = original(*arguments, **options)
    connection.execute("PRAGMA synchronous = OFF")
    return connection


@mutation("directories are not synced when a log is created", log, "sync_directory")
def _(original: Any, path: Any) -> None:
    return None


@contextlib.contextmanager
def _unsynced_names() -> Iterator[None]:
    """One sync would be enough: creating the file of acknowledged writes syncs its directory."""
    with (
        patch.object(database, "sync_directory", lambda _: None),
        patch.object(acknowledged, "write_durably", lambda path, data: path.write_bytes(data)),
    ):
        yield


MUTATIONS["the names of the files of a new log are not synced"] = _unsynced_names


@mutation("the files of a merge are not synced", writing, "sync_file")
def _(original: Any, path: Any) -> None:
    return None


@mutation(
    "the renaming of a merge is not synced before the log is trimmed", merge, "sync_directory"
)
def _(original: Any, path: Any) -> None:
    return None


@mutation("the directory of the first snapshot is not synced", local, "create_directories")
def _(original: Any, path: Any) -> None:
    path.mkdir(parents=True, exist_ok=True)


@mutation("a lower version is stored", write_conflict, "_is_later")
def _(original: Any, stored: int | None, version: int | None) -> bool:
    return False


@mutation("versions are compared in the wrong direction", write_conflict, "_is_later")
def _(original: Any, stored: int | None, version: int | None) -> bool:
    return stored is not None and version is not None and stored < version


@mutation("a deletion forgets the version", write_conflict, "_version_to_store")
def _(original: Any, write: Any, stored: Any) -> Any:
    return write.version


@mutation("puts of other texts count as unchanged", write_conflict, "outcome_of_put")
def _(original: Any, stored: Any, version: Any, same: bool) -> Any:
    return original(stored, version, stored is not None)


@mutation("deleted rows stay visible", buffer.ViewBuilder, "_delete")
def _(original: Any, self: Any, rows: Any) -> int:
    return 0


@mutation("views are not shown until the next write", group_commit.GroupCommit, "_finish")
def _(original: Any, self: Any, call: Any, result: Any) -> None:
    self._publish = lambda: None
    original(self, call, result)


@mutation("the number of a write is too high by one", write_conflict.WriteConflict, "decide")
def _(original: Any, self: Any, write: Any) -> Any:
    found = original(self, write)
    return replace(found, sequence=found.sequence + 1)


@mutation(
    "questions do not wait for the write that they name", sequence_waiter.SequenceWaiter, "wait"
)
async def _(original: Any, self: Any, sequence: int, deadline: Any) -> None:
    return None


@mutation("fronts forget acknowledged writes", snapshot.ClusterSnapshot, "record_write")
def _(original: Any, self: Any, shard: int, sequence: int, log_id: str = "") -> None:
    return None


@mutation("fronts require only writes that polls have reported", cluster, "LastKnownWrites")
def _(original: Any, clock: Any) -> Any:
    made = original(clock)
    made.required = lambda info: info.sequence
    return made


@mutation("cached answers stay valid after writes", snapshot.ClusterSnapshot, "index_version")
def _(original: Any, self: Any) -> Any:
    found = original(self)
    if found.name is not None:
        self.first = getattr(self, "first", found)
    return getattr(self, "first", found)


@mutation("questions with `after` take any cached answer", answer_cache, "_includes_writes")
def _(original: Any, answered: Any, after: Any) -> bool:
    return True


@mutation("expired entries of the journal are applied", jetstream, "has_expired")
def _(original: Any, header: str, stored_at: Any) -> bool:
    return False


@mutation("entries expire a minute late", expiry.PublishWindow, "header")
def _(original: Any, self: Any) -> str:
    return str(int((self.expires_at + 60) * 1_000))


MUTATIONS["the journal stores repeated keys"] = lambda: patch.object(
    jetstream, "_DUPLICATE_WINDOW", 0.0
)


@mutation("a direct write is stored although it has expired", feed_servicer, "_until_expiry")
def _(original: Any, deadline: Any, request: Any) -> Any:
    return deadline


@mutation("an attempt is stored although a later one has arrived", attempts.LatestAttempts, "admit")
def _(original: Any, self: Any, attempt: Any, deadline: Any) -> None:
    return None


@mutation("attempts of a call have different names", storing, "_numbered")
def _(original: Any, first: Any, attempt: int) -> Any:
    return WriteAttempt(f"{first.call}-{attempt}")


@mutation("the position of the journal is stored too low", following, "_position_of")
def _(original: Any, entry: Any) -> str:
    return f"{max(entry.sequence - 4, 0)} "


@mutation("the position of the journal is not stored", following, "_position_of")
def _(original: Any, entry: Any) -> str:
    return "0 "


@mutation("batches of the journal are applied in reverse", following, "_transaction_batches")
def _(original: Any, entries: Any) -> Any:
    return (list(reversed(batch)) for batch in original(entries))


@mutation("gaps in the journal are skipped", jetstream, "new_entries")
def _(original: Any, after: int, received: Any) -> Any:
    return tuple(each for each in received if each.sequence > after)[1:] or original(after, ())


@mutation(
    "a write is acknowledged once the journal has it", journaled.JournaledShard, "_publish_and_wait"
)
async def _(
    original: Any, self: Any, content: bytes, attempt: Any, deadline: Any, check: Any = None
) -> Any:
    await self._journal.publish(content, attempt.call, deadline)
    writes = self._messages.decode(content).writes
    return [Written(Outcome.STORED, self._shard.sequence, self._shard.log_id) for _ in writes]


@mutation(
    "a replica reports unchanged puts without reading the journal",
    journaled.JournaledShard,
    "find_unchanged",
)
async def _(original: Any, self: Any, puts: Any, deadline: Any) -> Any:
    return await self._shard.find_unchanged_locally(puts, deadline)


@mutation("a follower that fails once stops", following.JournalFollower, "_last_entry")
async def _(original: Any, self: Any) -> Any:
    if getattr(self, "_has_begun", False):
        self._replica.take_no_more = True
        raise SystemError("stopped")
    self._has_begun = True
    return await original(self)


@mutation("the coverage leaves out the last shard", coverage.Coverage, "of")
def _(original: Any, shards: Any) -> Any:
    return coverage.Coverage(tuple(sorted(shards, key=lambda part: part.shard))[:-1])


@mutation("failed shards count as searched", answer_merge, "_shard_coverage")
def _(original: Any, info: Any, failure: Any, result: Any) -> Any:
    return replace(original(info, failure, result), status=ShardStatus.SEARCHED)


@mutation("the coverage counts passages of the last poll", answer_merge, "_shard_coverage")
def _(original: Any, info: Any, failure: Any, result: Any) -> Any:
    return replace(original(info, failure, result), passages=info.passages)


@mutation("one passage too few is retrieved", retrieving, "_nearest_with_ties")
def _(original: Any, scored: Any, k: int) -> Any:
    return original(scored, max(k - 1, 1))


@mutation("the joint reply of a node is assigned to the wrong shards", joint._NodeCall, "results")
def _(original: Any, self: Any) -> Any:
    found = original(self)
    return dict(zip(found, reversed(found.values()), strict=True))


@mutation("hits of another generation keep their rows", generations.RecentGenerations, "lease")
def _(original: Any, self: Any, generation: str, deadline: Any) -> Any:
    view = original(self, "", deadline)
    return replace(view, generation=generation or view.generation)


@mutation("a merge loses its last write", passages.MergedPassages, "copy")
def _(original: Any, self: Any) -> None:
    original(self)
    self._connection.execute(
        "DELETE FROM main.passages WHERE row = (SELECT max(row) FROM main.passages)"
    )


@mutation("the log is trimmed beyond the merged writes", shard.LiveShard, "trim")
async def _(original: Any, self: Any, upto: int) -> None:
    self._log.trim(self.sequence)


@mutation("generations are removed too early", tidying, "obsolete_names")
def _(original: Any, names: Any, served: int) -> Any:
    return [each for each in names if each.startswith("generation-")]


@mutation("failures of the disk are ignored", log.WriteLog, "append")
def _(original: Any, self: Any, *arguments: Any) -> None:
    with contextlib.suppress(Exception):
        original(self, *arguments)


@mutation("a failed transaction stays in the log", log, "roll_back")
def _(original: Any, connection: Any, state: Any) -> None:
    return None


@mutation("writes go to the shard of another id", partition.Partition, "shard_of")
def _(original: Any, self: Any, passage_id: str) -> int:
    return int(original(self, passage_id[:-1] + "0"))


@mutation("a front retries a failed write after its deadline", storing, "_retry_wait")
def _(original: Any, error: Any, attempt: int, deadline: Any) -> float:
    return 0.1


@mutation(
    "a front reports puts as unchanged if their shard cannot be asked",
    unchanged.UnchangedPuts,
    "_find_in_shard",
)
async def _(original: Any, self: Any, shard: int, puts: Any, indices: Any, *rest: Any) -> None:
    deadline, results = rest
    try:
        address = self._writers.address(shard)
        await self._writers.writer(address, shard).find_unchanged(puts, deadline)
    except WinnowError:
        for index in indices:
            results[index] = Outcome.UNCHANGED, Position(shard, 0)
    else:
        await original(self, shard, puts, indices, *rest)


@mutation("a front needs no writes of other logs", cluster.Cluster, "required_writes")
def _(original: Any, self: Any, after: Any) -> dict[int, int]:
    return {}


@contextlib.contextmanager
def _copied_failures() -> Iterator[None]:
    """Only one of both is needed here: the other one is for writes that fail meanwhile."""

    async def settle_log(_: Any) -> None:
        return None

    async def check_copied_log(*_: Any) -> None:
        return None

    with (
        patch.object(shard.LiveShard, "settle_log", settle_log),
        patch.object(servicer, "check_copied_log", check_copied_log),
    ):
        yield


MUTATIONS["a shard moves with writes that have failed"] = _copied_failures


@mutation("a shard takes writes after it was handed over", write_store.WriteStore, "check_owner")
def _(original: Any, self: Any) -> None:
    return None


@mutation("the new owner of a shard is not recorded durably", custody, "write_durably")
def _(original: Any, path: Any, data: bytes) -> None:
    path.write_bytes(data)


@mutation("a half has the passages of both halves", write_half, "holds")
def _(original: Any, shard: int, built: int, passage_id: str) -> bool:
    return True


@mutation("a half leaves out the writes of its parent", shard.LiveShard, "store_followed")
async def _(original: Any, self: Any, writes: Any, log_id: str) -> None:
    if self.custody.parent is not None:
        writes = [each.as_no_op() for each in writes]
    await original(self, writes, log_id)


@mutation("a shard is closed before its new node serves it", steps._StepPlanner, "_may_close")
def _(original: Any, self: Any, number: int, own: Any) -> bool:
    return number not in own


@mutation("tenants share cached answers", answer_cache.AnswerKey, "of")
def _(original: Any, ids: Any, question: Any) -> Any:
    return original(ids, replace(question, tenant=""))


@mutation("a shard shows a tenant the rows of all tenants", tenant_view, "prefix_of")
def _(_: Any, tenant: str) -> Any:
    return ""


def applied(description: str) -> contextlib.AbstractContextManager[Any]:
    """Returns the context in which a mutation is applied."""
    return MUTATIONS[description]()


def descriptions() -> Iterator[str]:
    """Yields the descriptions of all mutations."""
    yield from MUTATIONS
