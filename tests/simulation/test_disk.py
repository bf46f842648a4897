"""A disk forgets what was not synced when its machine loses power."""

import shutil
from pathlib import Path
from random import Random

from simulation.disk import Disk


def survivors(directory: Path, synced: bool) -> set[str]:
    """Returns what power losses leave of a file that is written twice, with other seeds each."""
    found = set()
    for seed in range(30):
        disk = Disk(directory / f"disk-{seed}", Random(seed))
        disk.root.mkdir(parents=True)
        file = disk.root / "file"
        file.write_text("old")
        disk.sync(file)
        disk.sync(disk.root)
        file.write_text("new")
        if synced:
            disk.sync(file)
        root = disk.restart(power_loss=True)
        found.add((root / "file").read_text())
    return found


def test_synced_content_survives_a_power_loss(tmp_path: Path) -> None:
    assert survivors(tmp_path / "a", synced=True) == {"new"}
    assert survivors(tmp_path / "b", synced=False) == {"old", "new"}


def test_a_renamed_file_may_have_its_old_name_until_the_directory_is_synced(tmp_path: Path) -> None:
    found = set()
    for seed in range(30):
        disk = Disk(tmp_path / f"disk-{seed}", Random(seed))
        disk.root.mkdir()
        (disk.root / "old").write_text("content")
        disk.sync_all()
        (disk.root / "old").rename(disk.root / "new")
        root = disk.restart(power_loss=True)
        assert all(each.read_text() == "content" for each in root.iterdir())
        found.add(tuple(sorted(each.name for each in root.iterdir())))
    assert {("old",), ("new",)} <= found


def test_a_kill_loses_nothing_that_was_written(tmp_path: Path) -> None:
    disk = Disk(tmp_path / "disk", Random(1))
    disk.root.mkdir()
    (disk.root / "file").write_text("written")
    assert (disk.restart(power_loss=False) / "file").read_text() == "written"


def test_a_removed_directory_may_come_back_until_the_removal_is_synced(tmp_path: Path) -> None:
    found = set()
    for seed in range(30):
        disk = Disk(tmp_path / f"disk-{seed}", Random(seed))
        (disk.root / "directory").mkdir(parents=True)
        (disk.root / "directory" / "file").write_text("content")
        disk.sync_all()
        shutil.rmtree(disk.root / "directory")
        root = disk.restart(power_loss=True)
        found.add(tuple(sorted(str(each.relative_to(root)) for each in root.rglob("*"))))
    assert found == {(), ("directory", "directory/file")}
