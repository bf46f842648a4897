"""`make busy` counts complete runs by commit, in one sitting or in several."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

BUSY = Path(__file__).with_name("busy.py")
PYTHON = """#!/bin/sh
# stands for a busy loop, and for pytest: every run takes the next line of `results`
[ "$1" = -c ] && exit
read -r code said < results
tail -n +2 results > rest && mv rest results
echo "$said"
exit "$code"
"""


@pytest.fixture
def checkout(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Makes a directory whose commit is in the file `commit`."""
    for name, text in (("git", "#!/bin/sh\ncat commit\n"), ("python", PYTHON)):
        (tmp_path / name).write_text(text)
        (tmp_path / name).chmod(0o755)
    (tmp_path / "commit").write_text("1234abc")
    monkeypatch.setenv("PATH", str(tmp_path), prepend=":")
    return tmp_path


def busy(checkout: Path, runs: int, *results: str, at_once: int = 1) -> tuple[int, list[str]]:
    """Runs the script; returns its exit code and the last lines of its output."""
    (checkout / "results").write_text("".join(f"{each}\n" for each in results))
    command = [
        sys.executable,
        str(BUSY),
        str(checkout / "python"),
        str(runs),
        "tests",
        str(at_once),
    ]
    ended = subprocess.run(command, cwd=checkout, capture_output=True, text=True, check=False)
    return ended.returncode, ended.stdout.splitlines()


def test_failures_are_counted_by_test(checkout: Path) -> None:
    slow = "FAILED tests/test_a.py::test_slow - AssertionError"
    code, said = busy(checkout, 3, f"1 {slow}", "0 2 passed", f"1 {slow}")
    assert code == 1
    assert said[0] == "commit 1234abc: 0 of 3 runs, 0 passed, 0 failed"
    assert said[-2] == "commit 1234abc: 3 of 3 runs, 1 passed, 2 failed"
    assert said[-1].split() == ["2", "FAILED", "tests/test_a.py::test_slow"]


def test_a_killed_run_is_not_counted_and_the_next_command_continues(checkout: Path) -> None:
    code, said = busy(checkout, 3, "0 2 passed", "137 Killed")
    assert (code, said[-1]) == (2, "Killed")
    code, said = busy(checkout, 3, "0 2 passed", "0 2 passed")
    assert (code, said[0]) == (0, "commit 1234abc: 1 of 3 runs, 1 passed, 0 failed")
    assert said[-1] == "commit 1234abc: 3 of 3 runs, 3 passed, 0 failed"


@pytest.mark.parametrize("commit", ["5678def", "1234abc-dirty"])
def test_runs_of_other_code_do_not_count(checkout: Path, commit: str) -> None:
    (checkout / "commit").write_text("1234abc-dirty")
    assert busy(checkout, 1, "0 2 passed")[0] == 0
    (checkout / "commit").write_text(commit)
    code, said = busy(checkout, 1, "0 2 passed")
    assert (code, said[0]) == (0, f"commit {commit}: 0 of 1 runs, 0 passed, 0 failed")


def test_runs_at_once_are_counted_each(checkout: Path) -> None:
    code, said = busy(checkout, 2, "0 2 passed", "0 2 passed", at_once=2)
    assert (code, said[0]) == (0, "commit 1234abc: 0 of 2 runs, 0 passed, 0 failed")
    assert said[1:] == ["commit 1234abc: 2 of 2 runs, 2 passed, 0 failed"]


def test_no_deadline_of_a_test_is_counted_from_the_import() -> None:
    """On a busy machine it would pass before the test begins. `tenacious.LATER` does not."""
    tests = Path(__file__).parent
    counted = [
        f"{path.relative_to(tests)}: {line}"
        for path in tests.rglob("*.py")
        for line in path.read_text(encoding="utf-8").splitlines()
        if re.match(r"\w.*Deadline\.after\(", line)
    ]
    assert [each.split(" = ")[0] for each in counted] == ["tenacious.py: LATER"]
