"""Keeping a cluster going: what ends is started again, or given up while the rest serves on."""

from collections.abc import Callable, Mapping
from typing import Protocol

from winnow.cli.exits import WRONG_USAGE
from winnow.cli.local.restarts import MOST, WINDOW, Restarts
from winnow.errors import UnavailableError

Say = Callable[[str], None]


class SupervisedCluster(Protocol):
    """A cluster whose processes may end."""

    nodes: list[str]

    def ended(self) -> Mapping[str, int]:
        """Exit codes of the processes that have ended, by their names."""

    def again(self, name: str) -> None:
        """Starts one of them once more."""

    def pid(self, name: str) -> int:
        """The id of one of them that runs."""

    def by_hand(self, name: str) -> str:
        """The command that starts it."""

    def last_words(self, name: str) -> str:
        """What it said last, each line after a line feed; empty where its log is shown."""

    async def not_loaded(self) -> Mapping[str, str]:
        """Why nodes that run serve nothing, by their names."""


class Keeping:
    """Looks after a cluster: `look` at it now and then.

    Without its front a cluster is none, and without any node neither. A node that is missing is
    said once, with the way to bring it back: the front finds it under its address.
    """

    def __init__(self, cluster: SupervisedCluster, restarts: Restarts, say: Say) -> None:
        self._cluster, self._restarts, self._say = cluster, restarts, say
        self._given_up: set[str] = set()
        self._faults: dict[str, str] = {}
        self._unstarted: set[str] = set()
        """Those for which the machine has no process just now."""

    def look(self) -> None:
        """Starts again what has ended, or gives it up.

        Raises:
            UnavailableError: the front was given up, or the last of the nodes.

        """
        for name, code in self._ended().items():
            if self._restarts.allow(name):
                self._start_again(name, code)
            else:
                self._give_up(name, code)

    async def look_at_start(self) -> None:
        """The same until the cluster is ready, and says which nodes have no shard to serve.

        Raises:
            UnavailableError: the front ended, or a node has wrong settings, or no node is left that
                may serve a shard.

        """
        for name, code in self._ended().items():
            # nothing that it needs will be there the next time
            if not _is_node(name) or code == WRONG_USAGE:
                raise UnavailableError(self._end(name, code))
        self.look()
        for name, fault in (await self._cluster.not_loaded()).items():
            if self._faults.get(name) != fault:
                self._faults[name] = fault
                self._say(
                    f"{name} could not load its shard: {fault}\nthe others will serve without it; "
                    f"put that right, then `kill {self._cluster.pid(name)}`: it is started again"
                )
        self._expect_any()

    def _start_again(self, name: str, code: int) -> None:
        known = name in self._unstarted
        if not known:
            self._say(f"{name} ended with exit code {code}: starting it again")
        try:
            self._cluster.again(name)
        except OSError as error:  # too little memory, too many processes: not its own fault
            self._restarts.take_back(name)
            self._unstarted.add(name)
            if not known:
                self._say(f"{name} cannot be started now, it is tried until it can: {error}")
        else:
            self._unstarted.discard(name)
            self._faults.pop(name, None)

    def _ended(self) -> dict[str, int]:
        ended = self._cluster.ended()
        return {name: code for name, code in ended.items() if name not in self._given_up}

    def _end(self, name: str, code: int) -> str:
        return f"{name} ended with exit code {code}{self._cluster.last_words(name)}"

    def _give_up(self, name: str, code: int) -> None:
        said = self._end(name, code)
        if not _is_node(name):
            raise UnavailableError(said)
        self._given_up.add(name)
        self._faults.pop(name, None)
        self._say(
            f"{said}\nthat was {MOST + 1} times in {WINDOW:g} s: it is given up, the others serve "
            f"without it; to bring it back: {self._cluster.by_hand(name)}"
        )
        self._expect_any()

    def _expect_any(self) -> None:
        if len(self._given_up) + len(self._faults) == len(self._cluster.nodes):
            why = [f"{name} was given up" for name in sorted(self._given_up)]
            why += [
                f"{name} could not load its shard: {self._faults[name]}" for name in self._faults
            ]
            raise UnavailableError("\n  ".join(["no node is left that serves a shard:", *why]))


def _is_node(name: str) -> bool:
    return name.startswith("node ")
