"""Runs commands of `winnow` in the process of the tests, which is faster than a process for each."""

from dataclasses import dataclass

import pytest

from winnow.__main__ import main


@dataclass(frozen=True, slots=True)
class EndedCommand:
    """A command that has ended, and its output."""

    returncode: int
    stdout: str
    stderr: str


@dataclass(frozen=True, slots=True)
class InProcess:
    """Runs commands; a terminal without colours has `columns` columns."""

    capsys: pytest.CaptureFixture[str]
    monkeypatch: pytest.MonkeyPatch
    columns: int = 160

    def __call__(self, *arguments: str, **environment: str) -> EndedCommand:
        """Runs one command with additional environment variables."""
        self.capsys.readouterr()
        with self.monkeypatch.context() as patch:
            variables = {"COLUMNS": str(self.columns), "NO_COLOR": "1", **environment}
            for name, value in variables.items():
                patch.setenv(name, value)
            with pytest.raises(SystemExit) as ended:
                main([*arguments])
        printed = self.capsys.readouterr()
        return EndedCommand(int(ended.value.code or 0), printed.out, printed.err)
