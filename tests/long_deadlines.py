"""Long default deadlines, so that no test depends on how fast a busy machine is.

A test of a deadline sets that deadline itself.
"""

from dataclasses import replace

import pytest
from tenacious import LONG

from winnow.client.aio import AsyncClientApi
from winnow.client.client import ClientApi
from winnow.policy.load import LoadSettings
from winnow.rpc.bounded_receive import BoundedReceive
from winnow.settings.names import variable
from winnow.stateless.settings import FrontSettings
from winnow.telemetry.endpoint import _MAX_CONNECTIONS, MetricsEndpoint

_SETTINGS = (
    *((table, "default_deadline") for table in ("front", "node", "encoder", "heads", "reader")),
    ("front", "poll_timeout"),
    ("front", "form_timeout"),
)


def set_in_processes(patch: pytest.MonkeyPatch) -> None:
    """Sets the variables of settings for processes that tests start, and of commands."""
    patch.setenv("WINNOW_TIMEOUT", str(LONG))
    for table, field in _SETTINGS:
        patch.setenv(variable(table, field), str(LONG))
    # fronts of a slow machine would read fewer passages, and give other answers
    patch.setenv(variable("front", "brown_out_floor"), "1")


def set_in_clients(patch: pytest.MonkeyPatch) -> None:
    """Raises the default timeouts of clients in this process."""
    patch.setattr("winnow.cli.local.cluster._INFO_TIMEOUT", LONG)
    for api in (AsyncClientApi, ClientApi):
        for method in vars(api).values():
            defaults = getattr(method, "__kwdefaults__", None) or {}
            if "timeout" in defaults:
                patch.setitem(defaults, "timeout", max(defaults["timeout"], LONG))


def set_in_servers(patch: pytest.MonkeyPatch) -> None:
    """Raises the default time limits of messages and of scrapes for servers in this process.

    A client of a test may be descheduled between two messages, or between connecting and asking.
    """
    patch.setattr(BoundedReceive.__init__, "__defaults__", (LONG,))
    patch.setattr(MetricsEndpoint.__init__, "__defaults__", (_MAX_CONNECTIONS, LONG))


def set_in_fronts(patch: pytest.MonkeyPatch) -> None:
    """Lets fronts in this process admit as many seconds of reading as a question may take.

    A machine that others use may read so slowly that even a few passages take longer than the
    default. Then an answer would lack passages, or a question would be refused.
    """
    original: property = vars(FrontSettings)["admission"]

    def admission(settings: FrontSettings) -> LoadSettings:
        made: LoadSettings = original.__get__(settings)
        return replace(made, horizon=LONG)

    patch.setattr(FrontSettings, "admission", property(admission))
