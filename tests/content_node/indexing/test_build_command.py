"""What `winnow index build` prints if it builds nothing."""

from pathlib import Path

import pytest
from in_process import InProcess

from winnow.bundle import Bundle


@pytest.fixture
def command(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> InProcess:
    return InProcess(capsys, monkeypatch)


def build(command: InProcess, bundle: Bundle, out: Path, *arguments: str) -> tuple[int, str]:
    """Returns the exit code and the messages of a build."""
    flags = ("--bundle", str(bundle.directory), "--out", str(out))
    ended = command("index", "build", *arguments, *flags)
    return ended.returncode, ended.stderr


def test_skipped_files_are_named_if_no_document_could_be_converted(
    command: InProcess, bundle: Bundle, tmp_path: Path
) -> None:
    """A folder of scans only, for example, has no index."""
    (tmp_path / "empty.md").write_text("")
    code, messages = build(command, bundle, tmp_path / "index", "--documents", str(tmp_path))
    assert code == 1
    assert "skipped: empty.md: no text: the file is empty" in messages
    assert "has no documents that can be converted" in messages


def test_options_of_documents_need_documents(
    command: InProcess, bundle: Bundle, tmp_path: Path
) -> None:
    code, messages = build(
        command, bundle, tmp_path / "index", "--passages", "rows.jsonl", "--include", "*.md"
    )
    assert code == 2
    assert "need --documents" in messages
