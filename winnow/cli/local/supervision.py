"""Restarts the processes of a cluster that end, or gives them up while the others serve."""

from collections import defaultdict
from collections.abc import Callable

from winnow.cli.exits import WRONG_USAGE
from winnow.cli.local.cluster import LocalCluster
from winnow.errors import UnavailableError

MOST = 3
"""Restarts of a process within the window."""
WINDOW = 60.0
"""Seconds."""


class RestartLimit:
    """Limits how often a process is restarted, on a clock that is given. Pure."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._times: defaultdict[str, list[float]] = defaultdict(list)

    def allow(self, name: str) -> bool:
        """Whether `name` may be restarted now; counts the restart if so."""
        now = self._clock()
        recent = [time for time in self._times[name] if now - time < WINDOW]
        if len(recent) < MOST:
            recent.append(now)
            self._times[name] = recent
            return True
        return False

    def take_back(self, name: str) -> None:
        """Takes back the last restart, which failed."""
        self._times[name].pop()


class ClusterSupervisor:
    """Checks a cluster whenever it is told to, and restarts processes.

    A cluster without its front node, or without any content node, is an error. A node that is given
    up is reported once, with the command that brings it back: the front node finds it at its
    address.
    """

    def __init__(
        self, cluster: LocalCluster, restarts: RestartLimit, say: Callable[[str], None]
    ) -> None:
        self._cluster, self._restarts, self._say = cluster, restarts, say
        self._given_up: set[str] = set()
        self._faults: dict[str, str] = {}
        self._unstarted: set[str] = set()
        """Processes that the machine could not start at the last attempt."""

    def check(self) -> None:
        """Restarts the processes that have ended, or gives them up.

        Raises UnavailableError if the front node was given up, or the last content node.
        """
        for name, code in self._ended().items():
            if self._restarts.allow(name):
                self._restart(name, code)
            else:
                self._give_up(name, code)

    async def check_at_start(self) -> None:
        """Does the same until the cluster is ready; reports nodes without a shard, too.

        Raises UnavailableError if the front node ended, or a node has wrong settings, or no node is
        left that may serve a shard.
        """
        for name, code in self._ended().items():
            # a restart would end in the same way
            if not _is_node(name) or code == WRONG_USAGE:
                raise UnavailableError(self._end(name, code))
        self.check()
        for name, fault in (await self._cluster.not_loaded()).items():
            if self._faults.get(name) != fault:
                self._faults[name] = fault
                pid = self._cluster.processes.pid(name)
                self._say(
                    f"{name} could not load its shard: {fault}\nthe others will serve without it; "
                    f"repair the shard, then `kill {pid}`: the node is restarted"
                )
        self._expect_any()

    def _restart(self, name: str, code: int) -> None:
        known = name in self._unstarted
        if not known:
            self._say(f"{name} ended with exit code {code}: starting it again")
        try:
            self._cluster.processes.again(name)
        except OSError as error:  # the machine lacks memory or processes; the process has no fault
            self._restarts.take_back(name)
            self._unstarted.add(name)
            if not known:
                self._say(f"{name} cannot be started now, retrying until it can: {error}")
        else:
            self._unstarted.discard(name)
            self._faults.pop(name, None)

    def _ended(self) -> dict[str, int]:
        ended = self._cluster.ended()
        return {name: code for name, code in ended.items() if name not in self._given_up}

    def _end(self, name: str, code: int) -> str:
        return f"{name} ended with exit code {code}{self._cluster.last_log_lines(name)}"

    def _give_up(self, name: str, code: int) -> None:
        if not _is_node(name):
            raise UnavailableError(self._end(name, code))
        self._given_up.add(name)
        self._faults.pop(name, None)
        self._say(
            f"{self._end(name, code)}\nthat was {MOST + 1} times in {WINDOW:g} s: it is given up, "
            f"the others serve without it; to bring it back: {self._cluster.command(name)}"
        )
        self._expect_any()

    def _expect_any(self) -> None:
        nodes = len(self._cluster.nodes)
        if nodes and len(self._given_up) + len(self._faults) == nodes:
            why = [f"{name} was given up" for name in sorted(self._given_up)]
            why += [f"{name} could not load its shard: {it}" for name, it in self._faults.items()]
            raise UnavailableError("\n  ".join(["no node is left that serves a shard:", *why]))


def _is_node(name: str) -> bool:
    return name.startswith("node ")
