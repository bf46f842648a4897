"""Cores are counted as the kernel grants them, in the ways that containers are limited."""

import os
from pathlib import Path

import pytest

from winnow.cgroups import cpu_quota
from winnow.settings.common import cores


def machine(root: Path, groups: str, files: dict[str, str]) -> Path:
    """A file system in which the kernel says these things."""
    for name, content in {"proc/self/cgroup": groups, **files}.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content)
    return root


def v1(group: str, quota: int) -> dict[str, str]:
    return {
        f"sys/fs/cgroup/{group}/cpu.cfs_quota_us": f"{quota}\n",
        f"sys/fs/cgroup/{group}/cpu.cfs_period_us": "100000\n",
    }


@pytest.mark.parametrize(
    ("files", "quota"),
    [
        ({"sys/fs/cgroup/cpu.max": "150000 100000\n"}, 1.5),
        ({"sys/fs/cgroup/cpu.max": "max 100000\n"}, None),
        ({"sys/fs/cgroup/cpu.max": "25000 50000\n"}, 0.5),
        ({"sys/fs/cgroup/cpu.max": "nonsense\n"}, None),
        ({"sys/fs/cgroup/cpu.max": "100000 0\n"}, None),
        ({}, None),
    ],
)
def test_the_limit_of_a_container_is_that_of_the_group_it_sees_as_the_root(
    tmp_path: Path, files: dict[str, str], quota: float | None
) -> None:
    assert cpu_quota(machine(tmp_path, "0::/\n", files)) == quota


def test_of_nested_groups_the_least_quota_counts(tmp_path: Path) -> None:
    groups = {"kubepods": "400000 100000", "kubepods/pod7": "200000 100000"}
    files = {f"sys/fs/cgroup/{name}/cpu.max": text for name, text in groups.items()}
    files["sys/fs/cgroup/kubepods/pod7/main/cpu.max"] = "max 100000"
    assert cpu_quota(machine(tmp_path, "0::/kubepods/pod7/main\n", files)) == 2


@pytest.mark.parametrize(
    ("groups", "files", "quota"),
    [
        ("4:cpu:/docker/abc\n0::/\n", v1("cpu/docker/abc", 300_000), 3),
        ("4:cpu,cpuacct:/docker/abc\n", v1("cpu,cpuacct/docker/abc", 300_000), 3),
        # the path is that of the host, and only the container's own group is mounted
        ("4:cpu,cpuacct:/docker/abc\n", v1("cpu", 50_000), 0.5),
        ("4:cpu:/../other\n", v1("cpu", 50_000), 0.5),
        ("4:cpu:/\n3:cpuset:/\n", v1("cpu", -1), None),
        ("3:cpuset:/\n", v1("cpu", 50_000), None),
    ],
)
def test_groups_of_version_1_count_too(
    tmp_path: Path, groups: str, files: dict[str, str], quota: float | None
) -> None:
    assert cpu_quota(machine(tmp_path, groups, files)) == quota


@pytest.mark.parametrize("group", ["café.slice", "a\x0cb:c"])
def test_a_group_may_have_any_name(tmp_path: Path, group: str) -> None:
    files = {f"sys/fs/cgroup/{group}/cpu.max": "200000 100000"}
    assert cpu_quota(machine(tmp_path, f"0::/{group}\n", files)) == 2


def test_without_control_groups_nothing_limits(tmp_path: Path) -> None:
    assert cpu_quota(tmp_path) is None


@pytest.mark.parametrize(
    ("quota", "counted"),
    [("150000", 1), ("200000", 2), ("399999", 3), ("50000", 1), ("1600000", 8), ("max", 8)],
)
def test_a_quota_counts_as_its_whole_cores_and_never_as_none_or_as_more_than_there_are(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, quota: str, counted: int
) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", lambda _process: set(range(8)))
    files = {"sys/fs/cgroup/cpu.max": f"{quota} 100000\n"}
    assert cores(machine(tmp_path, "0::/\n", files)) == counted
