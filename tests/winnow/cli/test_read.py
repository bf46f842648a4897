"""What `winnow read` says before it calls a server."""

from pathlib import Path

import pytest

from winnow.__main__ import main


def test_a_file_in_place_of_the_question_is_a_mistake(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The command would otherwise wait for standard input."""
    file = tmp_path / "policy.txt"
    file.write_text("Ada Lind built the bridge.", encoding="utf-8")
    with pytest.raises(SystemExit) as ended:
        main(["read", str(file)])
    assert ended.value.code == 1
    assert f"error: {file} is a file: write the question before it" in capsys.readouterr().err
