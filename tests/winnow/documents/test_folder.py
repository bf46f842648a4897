"""A folder's documents are listed by patterns, and everything else is named or left out."""

from pathlib import Path

import pytest

from winnow.documents.folder import FilePatterns, FolderListing, list_files
from winnow.errors import ArtefactError


def listing(folder: Path, include: str = "", exclude: str = "") -> FolderListing:
    include_patterns, exclude_patterns = tuple(include.split()), tuple(exclude.split())
    return list_files(
        folder, FilePatterns(include_patterns, exclude_patterns), lambda path: path.suffix != ".zip"
    )


def names(folder: Path, include: str = "", exclude: str = "") -> list[str]:
    return [each.name for each in listing(folder, include, exclude).files]


def write(folder: Path, *names: str) -> None:
    for name in names:
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("text")


def test_files_of_all_subdirectories_are_listed_by_name(tmp_path: Path) -> None:
    """Names are relative paths, and sorted."""
    write(tmp_path, "b.md", "a/c.txt", "a/b/d.pdf", "a/pictures.zip")
    assert names(tmp_path) == ["a/b/d.pdf", "a/c.txt", "b.md"]
    assert listing(tmp_path).other_files == 1


def test_hidden_files_are_left_out(tmp_path: Path) -> None:
    """An index in `.winnow` inside the folder is no document."""
    write(tmp_path, ".winnow/index.json", ".notes.md", "a.md")
    assert names(tmp_path) == ["a.md"]


@pytest.mark.parametrize(
    ("include", "exclude", "expected"),
    [
        ("*.md", "", ["a.md", "docs/b.md"]),
        ("", "docs/", ["a.md", "c.txt"]),
        ("docs/** c.txt", "*.pdf", ["c.txt", "docs/b.md"]),
        ("/*.md", "", ["a.md"]),
    ],
)
def test_patterns_choose_files(
    tmp_path: Path, include: str, exclude: str, expected: list[str]
) -> None:
    """Patterns have the syntax of .gitignore."""
    write(tmp_path, "a.md", "c.txt", "docs/b.md", "docs/d.pdf")
    assert names(tmp_path, include, exclude) == expected


def test_winnowignore_leaves_files_out(tmp_path: Path) -> None:
    """`!` takes a file in again."""
    write(tmp_path, "a.md", "drafts/b.md", "c.log", "keep.log")
    (tmp_path / ".winnowignore").write_text("# notes\ndrafts/\n*.log\n!keep.log\n")
    assert names(tmp_path) == ["a.md", "keep.log"]


def test_a_byte_order_mark_is_no_part_of_the_first_pattern(tmp_path: Path) -> None:
    """Editors of Windows begin UTF-8 files with it."""
    write(tmp_path, "a.md", "drafts/b.md")
    (tmp_path / ".winnowignore").write_text("drafts/\n", "utf-8-sig")
    assert names(tmp_path) == ["a.md"]


def test_links_out_of_the_folder_are_skipped(tmp_path: Path) -> None:
    """A link to a file of the folder is a document; other links are named with a reason."""
    write(tmp_path, "docs/a.md", "secret.txt")
    docs = tmp_path / "docs"
    (docs / "inside.md").symlink_to(docs / "a.md")
    (docs / "outside.txt").symlink_to(tmp_path / "secret.txt")
    (docs / "broken.txt").symlink_to(docs / "missing.txt")
    (docs / "loop.txt").symlink_to(docs / "loop.txt")
    (docs / "up").symlink_to(tmp_path, target_is_directory=True)
    listed = listing(docs)
    assert [each.name for each in listed.files] == ["a.md", "inside.md"]
    assert {each.name: each.reason for each in listed.skipped} == {
        "outside.txt": "is a link to a file outside the folder",
        "broken.txt": "is a link to a missing file",
        "loop.txt": "is a link to a missing file",
    }


def test_a_folder_that_cannot_be_read_is_an_error(tmp_path: Path) -> None:
    """A missing folder, a file in its place, and a wrong pattern are named."""
    write(tmp_path, "file")
    with pytest.raises(ArtefactError, match="does not exist"):
        listing(tmp_path / "missing")
    with pytest.raises(ArtefactError, match="is not a folder"):
        listing(tmp_path / "file")
    with pytest.raises(ArtefactError, match="invalid pattern"):
        listing(tmp_path, exclude="!")
