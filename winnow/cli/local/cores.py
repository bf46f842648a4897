"""How many threads each content node gets where all share the cores of one machine."""

import math
from collections.abc import Mapping

from winnow.cli.local.plan import LocalPlan
from winnow.settings.common import cores
from winnow.settings.source import given

_FIELDS = ("threads", "reader_threads")
_FLAGS = tuple(f"--{field.replace('_', '-')}" for field in _FIELDS)


def threads_each(
    plan: LocalPlan,
    nodes: int,
    environment: Mapping[str, str] | None = None,
    available: int | None = None,
) -> int | None:
    """A node's part of the cores, rounded up; None if threads were chosen by anybody.

    With a thread for every core in every node, each read takes as many times longer as there are
    nodes, and a client whose turn it is waits for reads of others that began long ago.

    Args:
        plan: may choose by its flags, or name a settings file that does.
        nodes: content nodes on this machine.
        environment: variables, which may choose, too; of this process unless given.
        available: cores; those of this process unless given.

    Raises:
        SettingsError: the settings file cannot be read.

    """
    by_flag = plan.reader_threads or any(flag.startswith(_FLAGS) for flag in plan.node)
    if by_flag or any(given("node", each, plan.config, environment) for each in _FIELDS):
        return None
    return math.ceil((cores() if available is None else available) / nodes)
