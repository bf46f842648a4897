"""Restarts the processes of a cluster that end. A process that ends too often is given up."""

from collections import defaultdict
from collections.abc import Callable

from winnow.cli.exits import WRONG_USAGE
from winnow.cli.local.cluster import LoadFailure, LocalCluster
from winnow.errors import UnavailableError

MAX_RESTARTS = 3
"""Maximum number of restarts of a process within the window."""
WINDOW = 60.0
"""Length of the window, in seconds."""


class RestartLimit:
    """Limits how often a process is restarted. Pure."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._times: defaultdict[str, list[float]] = defaultdict(list)

    def allow(self, name: str) -> bool:
        """Whether `name` may be restarted now. If so, the restart is counted."""
        now = self._clock()
        recent = [time for time in self._times[name] if now - time < WINDOW]
        if len(recent) < MAX_RESTARTS:
            recent.append(now)
            self._times[name] = recent
            return True
        return False

    def undo_last(self, name: str) -> None:
        """Forgets the last counted restart, because it failed."""
        self._times[name].pop()


class ClusterSupervisor:
    """Restarts processes of a cluster that ended, whenever `restart_ended_processes` is called.

    A cluster without its front node, or without any content node, is an error. A node that is given
    up is reported once, with the command that starts it again at the same address.
    """

    def __init__(
        self, cluster: LocalCluster, restarts: RestartLimit, say: Callable[[str], None]
    ) -> None:
        self._cluster, self._restarts, self._say = cluster, restarts, say
        self._given_up: set[str] = set()
        self._failures: dict[str, LoadFailure] = {}
        self._unstarted: set[str] = set()
        """Processes whose last restart failed."""

    def restart_ended_processes(self) -> None:
        """Restarts the processes that have ended, or gives them up.

        Raises UnavailableError if the front node or the last content node was given up.
        """
        for name, code in self._ended().items():
            if self._restarts.allow(name):
                self._restart(name, code)
            else:
                self._give_up(name, code)

    async def check_at_start(self) -> None:
        """Calls `restart_ended_processes`, and reports nodes that fail to load shards at the start.

        Raises UnavailableError if the front node failed, a node has wrong settings, or no node can
        serve a shard.
        """
        for name, code in self._ended().items():
            # a restart would fail in the same way, unless a signal ended the process
            if (code >= 0 and not _is_node(name)) or code == WRONG_USAGE:
                raise UnavailableError(self._describe_end(name, code))
        self.restart_ended_processes()
        for name, failure in (await self._cluster.load_failures()).items():
            before, self._failures[name] = self._failures.get(name), failure
            if before is None or before.reason != failure.reason:
                pid = self._cluster.processes.pid(name)
                self._say(
                    f"{_describe_failure(name, failure)}\nthe other nodes serve meanwhile; repair "
                    f"the shard, then run `kill {pid}` to restart the node"
                )
        self._require_serving_node()

    def _restart(self, name: str, code: int) -> None:
        is_reported = name in self._unstarted
        if not is_reported:
            self._say(f"{name} ended with exit code {code}: starting it again")
        try:
            self._cluster.processes.restart(name)
        except OSError as error:  # no fault of the process: the machine lacks memory or processes
            self._restarts.undo_last(name)
            self._unstarted.add(name)
            if not is_reported:
                self._say(f"{name} cannot be started now ({error}): trying again")
        else:
            self._unstarted.discard(name)
            self._failures.pop(name, None)

    def _ended(self) -> dict[str, int]:
        """Exit codes of the processes that have ended and are not given up."""
        codes = self._cluster.processes.exit_codes()
        return {name: code for name, code in codes.items() if name not in self._given_up}

    def _describe_end(self, name: str, code: int) -> str:
        return f"{name} ended with exit code {code}{self._cluster.last_log_lines(name)}"

    def _give_up(self, name: str, code: int) -> None:
        if not _is_node(name):
            raise UnavailableError(self._describe_end(name, code))
        self._given_up.add(name)
        self._failures.pop(name, None)
        self._say(
            f"{self._describe_end(name, code)}\n"
            f"it ended {MAX_RESTARTS + 1} times in {WINDOW:g} s, and is given up; the other nodes "
            f"still serve; to start it, run: {self._cluster.command(name)}"
        )
        self._require_serving_node()

    def _require_serving_node(self) -> None:
        nodes = len(self._cluster.nodes)
        unable = {name: each for name, each in self._failures.items() if each.of_all}
        if nodes and len(self._given_up) + len(unable) == nodes:
            lines = [f"{name} was given up" for name in sorted(self._given_up)]
            lines += [_describe_failure(name, failure) for name, failure in unable.items()]
            raise UnavailableError("\n  ".join(["no content node can serve a shard:", *lines]))


def _describe_failure(name: str, failure: LoadFailure) -> str:
    shards = "its shard" if failure.of_all else "a shard"
    return f"{name} could not load {shards}: {failure.reason}"


def _is_node(name: str) -> bool:
    return name.startswith("node ")
