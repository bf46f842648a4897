"""Long default deadlines, so that no test depends on how fast a busy machine is.

A test of a deadline sets that deadline itself.
"""

import sys

import pytest
from tenacious import LONG

from winnow.client.aio import AsyncClientApi
from winnow.client.client import ClientApi
from winnow.content_node.merging.child_process import WritingChild
from winnow.settings.names import variable

_SETTINGS = (
    *((table, "default_deadline") for table in ("front", "node", "encoder", "heads", "reader")),
    ("front", "poll_timeout"),
    ("front", "form_timeout"),
)
_RUN_AT_USUAL_NICENESS = """
import os, runpy, sys
os.nice = lambda _: 0
package = sys.argv.pop(1)
runpy.run_module(package, run_name="__main__", alter_sys=True)
"""


def set_in_processes(patch: pytest.MonkeyPatch) -> None:
    """Sets the variables of settings for processes that tests start."""
    for table, field in _SETTINGS:
        patch.setenv(variable(table, field), str(LONG))


def set_in_clients(patch: pytest.MonkeyPatch) -> None:
    """Raises the default timeouts of clients in this process."""
    for api in (AsyncClientApi, ClientApi):
        for method in vars(api).values():
            defaults = getattr(method, "__kwdefaults__", None) or {}
            if "timeout" in defaults:
                patch.setitem(defaults, "timeout", max(defaults["timeout"], LONG))


def set_in_children(patch: pytest.MonkeyPatch) -> None:
    """Lets the processes that merge and split shards run at the niceness of the tests.

    At the highest niceness, a machine with other work would leave them next to no time.
    """
    prepare = WritingChild.__init__

    def prepare_as_usual(child: WritingChild, package: str, *arguments: str) -> None:
        prepare(child, package, *arguments)
        child._arguments = (sys.executable, "-c", _RUN_AT_USUAL_NICENESS, package, *arguments)

    patch.setattr(WritingChild, "__init__", prepare_as_usual)
