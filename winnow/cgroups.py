"""How much processor time the kernel grants this process: quotas of control groups (Linux).

A container that is given two cores (`docker run --cpus 2`, a CPU limit of Kubernetes) sees every
core of its machine. Once its time in a tenth of a second is used up, all its threads wait for the
next one. https://docs.kernel.org/admin-guide/cgroup-v2.html, and scheduler/sched-bwc for version 1.
"""

from collections.abc import Iterator
from pathlib import Path

_MOUNT = Path("sys/fs/cgroup")
_OWN = Path("proc/self/cgroup")
_UNLIMITED = "max"


def cpu_quota(root: Path = Path("/")) -> float | None:
    """Cores' worth of time that this process may use; None if nothing limits it.

    A group can have less than those that it is in, and never more: the least one counts.

    Args:
        root: where `proc` and `sys` are mounted.

    """
    quotas = [each for group in _groups(root) if (each := _quota(group)) is not None]
    return min(quotas, default=None)


def _groups(root: Path) -> Iterator[Path]:
    """Directories of the groups that the process is in.

    Some are not there: in a container the path may be that of the host, while only the
    container's own group is mounted.
    """
    mount = root / _MOUNT
    for line in filter(None, _read(root / _OWN).split("\n")):
        _, controllers, path = line.split(":", 2)
        if not controllers:  # version 2
            yield from _upwards(mount, path)
        elif "cpu" in controllers.split(","):
            yield from _upwards(mount / controllers, path)
            yield from _upwards(mount / "cpu", path)


def _upwards(mount: Path, path: str) -> Iterator[Path]:
    group = mount / path.lstrip("/")
    while group != mount and ".." not in group.parts:
        yield group
        group = group.parent
    yield mount


def _quota(group: Path) -> float | None:
    """Cores' worth of time of one group, by either version's files."""
    allowed, _, period = _read(group / "cpu.max").strip().partition(" ")
    if not allowed:
        allowed = _read(group / "cpu.cfs_quota_us").strip()
        period = _read(group / "cpu.cfs_period_us").strip()
    if allowed == _UNLIMITED or not (allowed.isdecimal() and period.isdecimal()):
        return None  # -1 is no limit in version 1
    return int(allowed) / int(period) if int(period) else None


def _read(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8", errors="surrogateescape")  # groups have any name
    except OSError:
        return ""
