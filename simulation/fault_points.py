"""Fault points of the code that ships, at which the simulation ends a process."""

from collections.abc import Callable

SYNC_POINT = "sync"
"""The point before each sync of a file, a directory or a database."""


class _Hook:
    """What is called at each fault point."""

    on_reach: Callable[[str], None] = lambda _: None


def set_hook(on_reach: Callable[[str], None]) -> None:
    """Makes each fault point call `on_reach` with its name."""
    _Hook.on_reach = on_reach


def reach(point: str) -> None:
    """Takes the place of `winnow.faultpoints.reach`."""
    _Hook.on_reach(point)
