"""A folder stays watched after it was removed, replaced or could not be watched."""

from collections.abc import AsyncGenerator
from pathlib import Path, PurePath
from typing import Any

import pytest

from winnow.cli.sync.watching import changes_of, is_watched


async def test_a_folder_that_is_missing_or_replaced_is_watched_again(tmp_path: Path) -> None:
    """Changes while no watch existed count: the new watch yields without a change."""
    folder, older = tmp_path / "folder", tmp_path / "older"
    watches = 0

    async def watch(_root: Path, _polling: bool) -> AsyncGenerator[set[Any], None]:
        nonlocal watches
        watches += 1
        yield set()
        folder.rename(older / str(watches))
        yield {f"removal {watches}"}
        pytest.fail("the watch of a removed folder went on")

    async def make_folder(_seconds: float) -> None:
        folder.mkdir()

    older.mkdir()
    changes = changes_of(folder, watch, make_folder)
    seen = [await anext(changes) for _ in range(4)]
    assert seen == [set(), {"removal 1"}, set(), {"removal 2"}]


async def test_a_folder_is_polled_where_the_system_cannot_watch_it(tmp_path: Path) -> None:
    """The limit of watches is that of all processes of a user."""

    async def watch(_root: Path, polling: bool) -> AsyncGenerator[set[Any], None]:
        if not polling:
            raise OSError("OS file watch limit reached")
        yield {"change"}

    async def sleep(_seconds: float) -> None:
        pass

    assert await anext(changes_of(tmp_path, watch, sleep)) == {"change"}


@pytest.mark.parametrize(
    ("path", "may_be_folder", "watched"),
    [
        ("a.md", False, True),
        ("a/b.md", False, True),
        ("a.log", False, False),
        ("directory", True, True),
        (".winnow/index/a", True, False),
        (".winnow/a.md", False, False),
        (".winnowignore", False, True),
    ],
)
def test_only_documents_and_the_patterns_are_watched(
    path: str, may_be_folder: bool, watched: bool
) -> None:
    """A log in the folder would otherwise be written, and be synced, for ever."""
    assert is_watched(PurePath(path), may_be_folder=may_be_folder) == watched
