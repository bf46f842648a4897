"""Reads the CPU quota of this process from Linux control groups.

A container with a CPU limit (`docker run --cpus 2`, Kubernetes) still sees all cores of the
machine. When it has used its quota for a period, all its threads are throttled until the next
period. See https://docs.kernel.org/admin-guide/cgroup-v2.html for version 2, and
https://docs.kernel.org/scheduler/sched-bwc.html for version 1.
"""

from collections.abc import Iterator
from pathlib import Path

_CGROUP_MOUNT = Path("sys/fs/cgroup")
_OWN_GROUPS = Path("proc/self/cgroup")
_UNLIMITED = "max"


def cpu_quota(root: Path = Path("/")) -> float | None:
    """Returns the number of cores that this process may use; None if it is not limited.

    This is the smallest quota of the process's groups and their ancestors. `root`: directory in
    which `proc` and `sys` are mounted.
    """
    quotas = [
        each for group in _group_directories(root) if (each := _group_quota(group)) is not None
    ]
    return min(quotas, default=None)


def _group_directories(root: Path) -> Iterator[Path]:
    """Yields the directories of the process's groups and their ancestors.

    Some may not exist: a container may see the host's paths, although only its own group is
    mounted.
    """
    mount = root / _CGROUP_MOUNT
    for line in filter(None, _read(root / _OWN_GROUPS).split("\n")):
        _, controllers, path = line.split(":", 2)
        if not controllers:  # version 2
            yield from _with_ancestors(mount, path)
        elif "cpu" in controllers.split(","):
            yield from _with_ancestors(mount / controllers, path)
            yield from _with_ancestors(mount / "cpu", path)


def _with_ancestors(mount: Path, path: str) -> Iterator[Path]:
    group = mount / path.lstrip("/")
    while group != mount and ".." not in group.parts:
        yield group
        group = group.parent
    yield mount


def _group_quota(group: Path) -> float | None:
    """Returns the quota of one group in cores, from the files of version 2 or version 1."""
    quota, _, period = _read(group / "cpu.max").strip().partition(" ")
    if not quota:
        quota = _read(group / "cpu.cfs_quota_us").strip()
        period = _read(group / "cpu.cfs_period_us").strip()
    if quota == _UNLIMITED or not (quota.isdecimal() and period.isdecimal()):
        return None  # in version 1, -1 means unlimited
    return int(quota) / int(period) if int(period) else None


def _read(path: Path) -> str:
    try:
        return path.read_text(
            encoding="utf-8", errors="surrogateescape"
        )  # group names are arbitrary bytes
    except OSError:
        return ""
