"""Small file systems that tests can fill, where they may mount one, and limits of files."""

import contextlib
import os
import resource
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import needs
import pytest


@contextlib.contextmanager
def mounted(place: Path, megabytes: int) -> Iterator[Path]:
    """Mounts a separate file system in the new directory `place`; skips the test if it may not."""
    place.mkdir()
    if os.geteuid() or not shutil.which("mount"):
        pytest.skip(needs.SMALL_DISK)
    command = ["mount", "-t", "tmpfs", "-o", f"size={megabytes}m", "tmpfs", str(place)]
    if subprocess.run(command, check=False, capture_output=True).returncode:
        pytest.skip(needs.SMALL_DISK)
    try:
        yield place
    finally:
        subprocess.run(["umount", "-l", str(place)], check=True)


@contextlib.contextmanager
def limited_files(most: int) -> Iterator[None]:
    """Lets files of this process and its children grow to `most` bytes, as on a full disk."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (most, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


def take_all(disk: Path, but: int = 0) -> Path:
    """Fills a disk except for `but` bytes; returns the file that occupies the space."""
    ballast = disk / "ballast"
    free = os.statvfs(disk)
    with contextlib.suppress(OSError):
        ballast.write_bytes(bytes(free.f_bavail * free.f_bsize - but))
    return ballast
