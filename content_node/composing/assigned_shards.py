"""Opens, receives, splits and closes the shards of a node as an assignment says."""

import asyncio
import contextlib
from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import partial
from pathlib import Path

import structlog

from winnow.content_node.archiving.removing import try_remove_archives
from winnow.content_node.assigned.directories import (
    delete_partial_copies,
    delete_shard,
    lock_data,
    prepare_data,
    shards_in,
)
from winnow.content_node.assigned.followed import FollowedAssignment, ReadsAssignment
from winnow.content_node.assigned.other_nodes import OtherNodes
from winnow.content_node.assigned.steps import (
    HeldShard,
    NextSteps,
    next_steps,
    nodes_serving,
)
from winnow.content_node.composing.shard import RunningShard
from winnow.content_node.composing.shards import RunningShards
from winnow.content_node.daemon_work import DaemonWork
from winnow.content_node.live.locks import DirectoryLock
from winnow.content_node.settings import NodeSettings
from winnow.content_node.supervision import keep_running
from winnow.content_node.transfer.remote import PeerNodes
from winnow.deadline import Deadline, Sleep
from winnow.domain.assignment import Assignment
from winnow.domain.index_copy import IndexWrites
from winnow.domain.partition import halves_of, parent_of
from winnow.domain.shard import NodeReport, ShardInfo, shard_name, shard_number_of
from winnow.errors import NotLoadedError, UnavailableError, WinnowError
from winnow.heap import collect_closed

_log = structlog.get_logger("content_node")
_INTERVAL = 1.0
"""Seconds between two reads of the assignment."""
_RETRY_AFTER = 10.0
"""Seconds after which a shard that could not be opened is tried again."""
_POLLED_SECONDS = 7.0
"""Seconds in which every front has polled all nodes. Idle fronts poll every 5 s by default."""


class AssignedShards:
    """Opens the shards that are assigned to this node, and closes shards that moved away."""

    def __init__(
        self,
        settings: NodeSettings,
        shards: RunningShards,
        peer_nodes: PeerNodes,
        file: ReadsAssignment,
        *,
        addresses: dict[str, str],
        writes: Callable[[], IndexWrites] = IndexWrites,
        watch_files: Callable[[], Awaitable[None]] | None = None,
        sleep: Sleep = asyncio.sleep,
    ) -> None:
        """Opens nothing yet.

        Args:
            settings: settings of the node.
            shards: serves the shards; has none yet.
            peer_nodes: calls the other nodes.
            file: the file of the assignment.
            addresses: gets the addresses of the nodes by name, for `peer_nodes`.
            writes: returns what the shards do with writes, because of copies of the index.
            watch_files: rereads the certificates for calls to other nodes; None without any.
            sleep: waits for a number of seconds.

        """
        assert settings.data is not None
        self._settings, self._data = settings, settings.data
        self._shards, self._sleep = shards, sleep
        self._followed = FollowedAssignment(file, settings.name)
        self._others = OtherNodes(settings, peer_nodes)
        self._addresses, self._watch_files = addresses, watch_files
        self._writes = writes
        self.served = shards.served
        self._held: dict[int, RunningShard] = {}
        """The shards that are served, by number."""
        self._failed: dict[int, RunningShard] = {}
        """The shards that could not be opened, and are tried again."""
        self._lock: DirectoryLock | None = None
        self._tasks: list[asyncio.Task[None]] = []
        self._changing: dict[int, asyncio.Task[None]] = {}
        """The shards that are being opened or closed."""
        self._hidden: set[int] = set()
        """The halves that fronts must not use yet."""
        self._not_before: dict[int, float] = {}
        """The earliest next attempt to open or make a shard, on the clock of the event loop."""

    @property
    def all(self) -> Sequence[RunningShard]:
        """All shards of the node."""
        return self._shards.all

    @property
    def _assignment(self) -> Assignment | None:
        return self._followed.last

    async def load(self) -> None:
        """Loads the shards in the data directory, and begins to follow the assignment."""
        await DaemonWork(partial(prepare_data, self._data)).result()
        self._lock = await DaemonWork(partial(lock_data, self._data)).result()
        await self._read_assignment()
        found: dict[int, Path] = {}
        for directory in await DaemonWork(partial(shards_in, self._data)).result():
            number = shard_number_of(directory.name)
            if number is not None and self._is_known(directory):
                found[number] = directory
        self.served.expect(found)
        await self._others.check_name(self._assignment)
        await self._delete_partial_copies()
        for number in sorted(found, reverse=True):
            # halves before their shard, which lacks later writes
            await self._open_shard(number, found[number])
        self._tasks.append(
            asyncio.create_task(keep_running("following the assignment", self._follow_assignment))
        )
        if self._watch_files is not None:
            watching = keep_running("certificates of other nodes", self._watch_files)
            self._tasks.append(asyncio.create_task(watching))

    async def apply_copies(self) -> None:
        """Makes all shards take or refuse writes as the catalog says."""
        for running in list(self._held.values()):
            with contextlib.suppress(UnavailableError):  # the shard is being closed
                await running.apply_copies(self._writes())

    def start_leaving(self) -> None:
        """Stops opening and closing shards, and reports to callers that the node is leaving."""
        for task in (*self._tasks, *self._changing.values()):
            task.cancel()
        self._shards.start_leaving()

    async def close(self) -> None:
        """Stores waiting writes, and releases the directories."""
        tasks = [*self._tasks, *self._changing.values()]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        try:
            await self._shards.close()
        finally:
            if self._lock is not None:  # this process may open the index again
                self._lock.release()

    async def _follow_assignment(self) -> None:
        while True:
            await self._read_assignment()
            if self._assignment is not None:
                await self._apply_assignment(self._assignment)
            await self._sleep(_INTERVAL)

    async def _read_assignment(self) -> None:
        """Reads the assignment. If it cannot be followed, the last one stays."""
        is_first = self._assignment is None
        if not await self._followed.read():
            return
        assignment = self._assignment
        assert assignment is not None
        if is_first:
            self._shards.set_index(assignment.index_id)
        self._addresses.clear()
        self._addresses.update(assignment.nodes)

    def _is_known(self, directory: Path) -> bool:
        """Whether the directory is named like a shard of the assignment, if there is one."""
        if self._assignment is None:
            return True
        assignment, number = self._assignment, shard_number_of(directory.name)
        if number is None or directory.name != shard_name(number, assignment.shards):
            return False
        return bool(assignment.partition.parts_of(number))

    async def _delete_partial_copies(self) -> None:
        """Deletes the files of interrupted copies of shards that this node does not need."""
        if self._assignment is not None:
            wanted = self._assignment.of_node(self._settings.name) | self._changing.keys()
            await DaemonWork(partial(delete_partial_copies, self._data, wanted)).result()

    async def _apply_assignment(self, assignment: Assignment) -> None:
        own = assignment.of_node(self._settings.name)
        failed = self._failed.keys() - own - self._changing.keys()
        if cancelled := [each for each in failed if not self._is_half_to_make(each, assignment)]:
            for shard in cancelled:
                await self._shards.remove(self._failed.pop(shard))
                self._hidden.discard(shard)
            await self._delete_partial_copies()
        self._restore_for_changes(assignment)
        held = await self._held_shards()
        is_settled = held.keys() == own and not self._hidden
        if is_settled and not any(copy.must_be_replaced for copy in held.values()):
            return  # nothing to do, so the other nodes need not be asked
        reports = await self._others.reports(assignment)
        held = await self._held_shards()  # a shard may have been opened meanwhile
        steps = next_steps(assignment, self._settings.name, held, reports)
        for shard in steps.to_show:
            self._hidden.remove(shard)
            self._shards.served.show(self._held[shard].served)
            _log.info("half of a shard is served", shard=shard)
        for shard in steps.to_close:
            if not self._is_family_changing(shard) and await self._try_prepare_close(shard):
                self._start_change(shard, self._close_shard(shard))
        await self._open_next(assignment, steps, reports)

    def _restore_for_changes(self, assignment: Assignment) -> None:
        """Begins to restore archived shards that move or are split. They change once they are here.

        The other shards do not wait for them: an archive may be damaged or unreachable.
        """
        for shard, running in self._held.items():
            if not self._is_settled(shard, assignment):
                running.restore_for_change()

    def _may_archive(self, shard: int) -> bool:
        """Whether the assignment changes nothing about a shard of this node now."""
        assignment = self._assignment
        if assignment is None or shard in self._changing or shard in self._hidden:
            return False
        return self._is_settled(shard, assignment)

    def _is_settled(self, shard: int, assignment: Assignment) -> bool:
        """Whether this node is the only holder of a shard, and does not split it or its parent."""
        parent = parent_of(shard, assignment.shards)
        is_only_holder = assignment.holders.get(shard) == (self._settings.name,)
        return is_only_holder and (parent is None or parent not in self._held)

    def _is_half_to_make(self, shard: int, assignment: Assignment) -> bool:
        """Whether this is a half of a shard that this node splits. The half may be assigned to
        another node.
        """
        parent = parent_of(shard, assignment.shards)
        return parent in self._held and parent not in assignment.partition

    def _is_family_changing(self, shard: int) -> bool:
        """Whether the other half, or the parent, is being opened or closed.

        If so, this half is not closed.
        """
        assert self._assignment is not None
        built = self._assignment.shards
        parent = parent_of(shard, built)
        if parent is None:
            return False
        return any(each in self._changing for each in {parent, *halves_of(parent, built)} - {shard})

    async def _open_next(
        self, assignment: Assignment, steps: NextSteps, reports: Mapping[str, NodeReport]
    ) -> None:
        """Opens or makes the next shard, unless another one is being opened: copies would share the
        disk.
        """
        now = asyncio.get_running_loop().time()
        if any(shard not in self._held for shard in self._changing):
            return
        for shard in (*steps.to_make, *steps.to_open):
            is_here = shard in self._changing or shard in self._held
            if is_here or now < self._not_before.get(shard, 0.0):
                continue
            directory = self._data / shard_name(shard, assignment.shards)
            if shard in steps.to_make:
                parent = parent_of(shard, assignment.shards)
                assert parent is not None
                make = partial(self._held[parent].make_half, shard, directory)
                self._start_change(shard, self._open_shard(shard, directory, prepare=make))
                return
            sources = nodes_serving(assignment.index_id, shard, None, reports)
            if not sources and await self._waits_for_first_node(assignment, shard, directory):
                continue
            receive = partial(self._others.copy_shard, assignment, shard, directory, sources)
            self._start_change(shard, self._open_shard(shard, directory, prepare=receive))
            return

    async def _waits_for_first_node(
        self, assignment: Assignment, shard: int, directory: Path
    ) -> bool:
        """Whether to wait until the first node of a shard has restored it from a snapshot.

        This node then copies the shard from the first one. If all nodes tried to restore it at the
        same time, each would refuse to do so, because another node might have the shard already.
        """
        if assignment.holders[shard][0] == self._settings.name:
            return False
        if await DaemonWork(directory.exists).result():
            return False  # a copy that could not be opened
        if (failed := self._failed.pop(shard, None)) is not None:
            await self._shards.remove(failed)
            self._hidden.discard(shard)
        return True

    def _start_change(self, shard: int, work: "asyncio._CoroutineLike[None]") -> None:
        task = asyncio.create_task(work)
        self._changing[shard] = task

        def on_done(task: "asyncio.Task[None]") -> None:
            del self._changing[shard]
            if not task.cancelled() and (error := task.exception()) is not None:
                _log.error("following the assignment failed", shard=shard, exc_info=error)

        task.add_done_callback(on_done)

    async def _held_shards(self) -> dict[int, HeldShard]:
        """Returns the shards of this node, except shards that are being opened or closed."""
        return {
            shard: await self._describe_shard(running)
            for shard, running in list(self._held.items())
            if shard not in self._changing
        }

    async def _describe_shard(self, running: RunningShard) -> HeldShard:
        info: ShardInfo | None = None
        try:
            info = await running.served.info(Deadline.after(_INTERVAL))
        except WinnowError:
            info = None
        return HeldShard(
            info,
            must_be_replaced=running.must_be_replaced,
            can_split=running.can_split,
            is_unfinished_half=running.is_unfinished_half,
            is_hidden=running.served.number in self._hidden,
        )

    async def _may_still_close(self, shard: int) -> bool:
        """Checks once more whether a shard may be closed.

        The assignment may have changed meanwhile, and other nodes may be closing their copies.
        """
        await self._read_assignment()
        assignment = self._assignment
        assert assignment is not None
        if self._is_family_changing(shard):
            return False
        held = {**await self._held_shards(), shard: await self._describe_shard(self._held[shard])}
        reports = await self._others.reports(assignment)
        return shard in next_steps(assignment, self._settings.name, held, reports).to_close

    async def _try_prepare_close(self, shard: int) -> bool:
        try:
            return await self._held[shard].try_prepare_close()
        except WinnowError as error:
            _log.warning("shard is not closed yet", shard=shard, reason=str(error))
            return False

    async def _open_shard(
        self, shard: int, directory: Path, prepare: Callable[[], Awaitable[None]] | None = None
    ) -> None:
        """Opens and serves a shard. If its directory does not exist, `prepare` writes it.

        A failure is reported as the shard's fault.
        """
        if (failed := self._failed.pop(shard, None)) is not None:
            self.served.expect([shard])  # it is reported throughout
            await self._shards.remove(failed)
        hidden = await self._is_half_of_held(shard)
        running = self._shards.add(directory, max_unmerged=self._max_unmerged(), hidden=hidden)
        running.served.number = shard
        running.may_archive = partial(self._may_archive, shard)
        if hidden:
            self._hidden.add(shard)
        else:
            self._hidden.discard(shard)
        try:
            if prepare is not None and not await DaemonWork(directory.exists).result():
                await prepare()
            await running.apply_copies(self._writes())
            await self._shards.load_added(running)
        except Exception as error:  # noqa: BLE001 (a fault of the shard; the others are served)
            known = isinstance(error, WinnowError)
            reason = str(error) if known else f"opening it failed ({error!r})"
            _log.error(
                "shard could not be opened",
                shard=shard,
                reason=reason,
                exc_info=None if known else error,
            )
            is_temporary = isinstance(error, UnavailableError) and not isinstance(
                error, NotLoadedError
            )
            public = error.public if isinstance(error, WinnowError) else ""
            running.served.fail(public or reason, is_temporary=is_temporary)
            self._failed[shard] = running
            self._not_before[shard] = asyncio.get_running_loop().time() + _RETRY_AFTER
        else:
            self._held[shard] = running
            await self.apply_copies()  # the catalog may have changed while the shard was loaded

    async def _is_half_of_held(self, shard: int) -> bool:
        """Whether a shard is a half of a shard on this node, so that it stays hidden at first."""
        if self._assignment is None:
            return False
        built = self._assignment.shards
        parent = parent_of(shard, built)
        if parent is None:
            return False
        return await DaemonWork((self._data / shard_name(parent, built)).exists).result()

    def _max_unmerged(self) -> int:
        """Returns a shard's limit of unmerged writes: its equal part of the node's limit."""
        own = self._assignment.of_node(self._settings.name) if self._assignment is not None else ()
        return max(self._settings.max_unmerged // max(len(own), 1), 1)

    async def _close_shard(self, shard: int) -> None:
        """Ends the service of a shard that other nodes serve, and deletes its directory."""
        running = self._held[shard]
        try:
            is_unused = await self._end_use(shard, running)
        except Exception:
            running.cancel_close()
            raise
        if not is_unused:
            running.cancel_close()
            return
        del self._held[shard]
        self._hidden.discard(shard)
        await self._shards.remove(running)
        directory = running.directory
        del running
        collect_closed()
        # this node follows the assignment further, although the archive may be unreachable
        await DaemonWork(
            partial(try_remove_archives, [directory], self._settings.archive_url)
        ).result()
        await DaemonWork(partial(delete_shard, directory)).result()
        _log.info("shard closed; other nodes serve it", shard=shard)

    async def _end_use(self, shard: int, running: RunningShard) -> bool:
        """Waits until fronts call the other nodes of a shard; returns whether it may be closed.

        Otherwise, and after an error, fronts may use the shard again.
        """
        await self._sleep(_POLLED_SECONDS)  # fronts find the other nodes first
        if not await self._may_still_close(shard):
            return False
        if shard in self._hidden:
            await self._sleep(_POLLED_SECONDS)
            return await self._may_still_close(shard)
        await running.move_away()
        self._shards.served.hide(running.served)
        may_close = False
        try:
            await self._sleep(_POLLED_SECONDS)  # fronts send no more calls here
            may_close = await self._may_still_close(shard)
        finally:
            if not may_close:
                self._shards.served.show(running.served)
        return may_close
