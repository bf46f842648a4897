"""Only one `winnow sync` of a folder to an index runs at a time."""

from pathlib import Path

import pytest
from in_process import InProcess

from winnow.cli.sync.cli import lock_sync

_ADDRESS = "127.0.0.1:1"


def test_a_second_sync_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two syncs of a folder that changes could mix two versions of a document."""
    (tmp_path / "a.md").write_text("# A")
    with lock_sync(tmp_path, _ADDRESS):
        command = InProcess(capsys, monkeypatch)
        ended = command("sync", str(tmp_path / "../" / tmp_path.name), "--address", _ADDRESS)
    assert ended.returncode == 1
    assert "another sync of" in ended.stderr
