"""The commands that rebuild an index and switch its alias, as people run them in terminals.

A command is a process. If it is killed, its terminal runs it again from the beginning.
"""

import asyncio
from collections import deque
from collections.abc import Callable, Coroutine, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from simulation import fixtures
from simulation.loop import SimulatedLoop
from simulation.models import FIRST_VERSION, SimulatedCopyEncoder
from simulation.plan import ALIAS, StepKind
from simulation.process import OUTSIDE, Process
from winnow.bundle import Bundle
from winnow.catalog import CatalogFile
from winnow.content_node.copying.commands import begin_copy, point_alias
from winnow.content_node.copying.replacing import IndexCopier
from winnow.domain.catalog import Catalog
from winnow.errors import ArtefactError, IdentityError, NotWritableError, WinnowError
from winnow.storage.pull import NoProgress

SECOND_VERSION = "2"
"""Version of the bundle with which the index is rebuilt."""
OnChange = Callable[[Catalog], None]
"""Called with each version of the catalog that a command has written."""
_SNAPSHOTS = "snapshots-of-copies"


class ObservedCatalogFile(CatalogFile):
    """A catalog whose changes are observed."""

    def __init__(self, path: Path, on_change: OnChange) -> None:
        super().__init__(str(path))
        self._on_change = on_change

    def change(self, change: Callable[[Catalog | None], Catalog]) -> Catalog:
        changed = super().change(change)
        self._on_change(changed)
        return changed


@dataclass(eq=False, slots=True)
class Terminal:
    """Runs commands one after the other."""

    name: str
    process: Process
    """The process of the command that runs, or ran last."""
    waiting: deque[StepKind] = field(default_factory=deque)
    """The commands that have not ended, the running one first."""

    @property
    def is_running(self) -> bool:
        return bool(self.waiting) and self.process.alive


class _Listener(NoProgress):
    """Records what a command says."""

    def __init__(self, say: Callable[[str], None]) -> None:
        self.say = say


class Terminals:
    """The terminals of all people who run commands."""

    def __init__(
        self,
        names: Sequence[str],
        catalog: Path,
        *,
        loop: SimulatedLoop,
        record: Callable[[str], None],
        report: Callable[[str], None],
        on_change: OnChange,
    ) -> None:
        """`record` adds a line to the timeline; `report` adds a violation."""
        self.all = {name: Terminal(name, Process(name, alive=False)) for name in names}
        self._file = ObservedCatalogFile(catalog, on_change)
        self._snapshots = str(catalog.with_name(_SNAPSHOTS))
        self._loop, self._record, self._report = loop, record, report
        self._begun = 0
        """Number of commands that have begun."""
        self._works: dict[StepKind, Callable[[_Listener], Coroutine[Any, Any, str]]] = {
            StepKind.REBUILD: self._rebuild,
            StepKind.SWITCH: self._switch,
            StepKind.KEEP_ALIAS: self._keep_alias,
        }

    @property
    def are_idle(self) -> bool:
        """Whether all commands have ended."""
        return not any(each.waiting for each in self.all.values())

    def enter(self, name: str, command: StepKind) -> None:
        """Runs a command in a terminal, once the earlier commands there have ended."""
        terminal = self.all[name]
        terminal.waiting.append(command)
        if len(terminal.waiting) == 1:
            self._begin(terminal)

    def restart(self, name: str) -> None:
        """Runs a killed command again."""
        terminal = self.all[name]
        if terminal.waiting and not terminal.process.alive:
            self._begin(terminal)

    def _begin(self, terminal: Terminal) -> None:
        self._begun += 1
        is_alone = not any(each.is_running for each in self.all.values())
        terminal.process = Process(terminal.name)
        self._loop.start(terminal.process, self._run(terminal, self._begun if is_alone else 0))

    async def _run(self, terminal: Terminal, number: int) -> None:
        """Runs a command. `number` is its number; 0 if another command runs already."""
        command, process = terminal.waiting[0], terminal.process
        self._say(terminal, f"runs: {command.value}")
        work = self._works[command](_Listener(lambda text: self._say(terminal, text)))
        try:
            self._say(terminal, f"{command.value} has ended: {await work}")
        except (ArtefactError, NotWritableError) as error:  # the copy cannot be completed
            self._report(f"{terminal.name} {command.value} failed: {error!r}")
        except IdentityError as error:
            self._say(terminal, f"{command.value} failed: {error!r}")
            if number == self._begun:
                self._report(f"{terminal.name} was told of another command, but there is none")
        except WinnowError as error:
            self._say(terminal, f"{command.value} failed: {error!r}")
        except Exception as error:  # noqa: BLE001 (reported)
            if process.alive:  # a killed process runs no `finally` blocks
                self._report(f"{terminal.name} {command.value} failed: {error!r}")
        if process.alive:
            self._loop.run_in(OUTSIDE, self._end, terminal)

    def _end(self, terminal: Terminal) -> None:
        terminal.waiting.popleft()
        terminal.process.alive = False
        if terminal.waiting:
            self._begin(terminal)

    def _say(self, terminal: Terminal, text: str) -> None:
        self._record(f"{terminal.name}  {text}")

    async def _rebuild(self, listener: _Listener) -> str:
        """Copies the index, unless it is copied into the index that it has replaced."""
        copies = (await self._catalog()).copies
        if any(copy.was_replaced for copy in copies.values()):
            return "there is a copy for the way back"
        bundle = fixtures.bundle(SECOND_VERSION)
        name = await begin_copy(
            self._file, ALIAS, bundle, snapshot=self._snapshots, say=listener.say
        )
        await self._copier(name, bundle, listener).catch_up()
        return f"{name} is a copy"

    async def _switch(self, listener: _Listener) -> str:
        """Points the alias to the copy, if there is one."""
        copy = next(iter((await self._catalog()).copies), "")
        return await self._point(copy, listener) if copy else "there is no copy"

    async def _keep_alias(self, listener: _Listener) -> str:
        """Points the alias to its present index."""
        return await self._point((await self._catalog()).aliases[ALIAS].index, listener)

    async def _point(self, name: str, listener: _Listener) -> str:
        def open_copier(catalog: Catalog) -> IndexCopier:
            return self._copier(name, bundle_of(catalog, name), listener)

        pointed = await point_alias(self._file, ALIAS, name, open_copier)
        if pointed.held is None:
            return f"{ALIAS} stands for {name}"
        return f"{ALIAS} stands for {name}, and writes were held for {pointed.held:.1f} s"

    def _copier(self, name: str, bundle: Bundle, listener: _Listener) -> IndexCopier:
        return IndexCopier(
            self._file, name, encoder=SimulatedCopyEncoder(bundle), listener=listener
        )

    async def _catalog(self) -> Catalog:
        return await asyncio.to_thread(self._file.read) or Catalog()


def bundle_of(catalog: Catalog, name: str) -> Bundle:
    """Returns the bundle of an index."""
    return fixtures.bundle(SECOND_VERSION if catalog.indexes[name].bundle else FIRST_VERSION)
