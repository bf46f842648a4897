"""Figures and states of `winnow top` as texts; `-` for an unknown figure. Pure."""

from winnow.v1.cluster_pb2 import ReplicaState

NONE = "-"
_MB, _GB = 1e6, 1e9
_CLOSE, _MANY = 10, 100

STATES = {
    ReplicaState.STATE_SERVING: ("serving", "green"),
    ReplicaState.STATE_OUT: ("left out", "yellow"),
    ReplicaState.STATE_LEAVING: ("leaving", "yellow"),
    ReplicaState.STATE_UNREACHABLE: ("unreachable", "bold red"),
    ReplicaState.STATE_NOT_LOADED: ("not loaded", "bold red"),
    ReplicaState.STATE_REFUSED: ("refused", "bold red"),
}
"""The name of each state, and its style."""


def milliseconds(seconds: float | None) -> str:
    """Milliseconds: 0.4, 12.3, 1,204."""
    if seconds is None:
        return NONE
    value = seconds * 1e3
    return f"{value:.1f}" if value < _MANY else f"{value:,.0f}"


def rate(a_second: float | None) -> str:
    """A rate: 0.4, 12, 1,204."""
    if a_second is None:
        return NONE
    return f"{a_second:.1f}" if a_second < _CLOSE else f"{a_second:,.0f}"


def percent(share: float | None) -> str:
    """A percentage; only an exact 0 or 1 is shown as 0 % or 100 %."""
    if share is None:
        return NONE
    shown = f"{100 * share:.1f}"
    if shown in ("100.0", "0.0") and share not in (0.0, 1.0):
        return "> 99.9 %" if share > 0.5 else "< 0.1 %"  # noqa: PLR2004
    return f"{shown.removesuffix('.0')} %"


def memory(size: float | None) -> str:
    """Bytes: 140 MB, 2.1 GB."""
    if size is None:
        return NONE
    return f"{size / _GB:,.1f} GB" if size >= _GB else f"{size / _MB:,.0f} MB"


def state(replica: ReplicaState) -> tuple[str, str]:
    """The name of the state of a replica, and its style."""
    return STATES.get(replica.state, ("unknown", "yellow"))
