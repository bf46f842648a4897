"""Runs the tests again and again beside two busy loops, and counts the runs that pass.

    python tests/busy.py PYTHON RUNS TESTS [AT_ONCE]

A test that depends on how fast a machine is fails here first. AT_ONCE runs share the machine: they
take each other's processor time, and end sooner than one after another beside the loops. Each takes
up to 4 GB of memory. Logs of ended runs are kept in var/busy by commit and tests. So an interrupted
command continues its count: only the runs that were interrupted are lost. Exits with 1 if a run has
failed.
"""

import contextlib
import shutil
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

_LOOPS = 2
_RESULTS = {0: "passed", 1: "failed", 2: "failed"}  # 2: a process of the tests has crashed
_PYTEST = ["-m", "pytest", "-n", "auto", "--maxprocesses", "4", "--dist", "loadfile"]
_PYTEST += ["--no-loadscope-reorder", "--max-worker-restart", "0", "--ignore=tests/models"]


class Count:
    """The logs of the ended runs of one commit.

    Args:
        commit: as `git describe` names it.
        tests: the tests that are run.
        wanted: the number of runs that are wanted.
    """

    def __init__(self, commit: str, tests: str, wanted: int) -> None:
        self._commit, self._wanted = commit, wanted
        self._kept = Path("var/busy", commit, tests.replace("/", "_"))
        if commit.endswith("-dirty") or commit == "unknown":
            shutil.rmtree(self._kept, ignore_errors=True)  # its earlier runs were of other code
        self._kept.mkdir(parents=True, exist_ok=True)

    @property
    def missing(self) -> int:
        return self._wanted - self._number("passed") - self._number("failed")

    @property
    def failed(self) -> bool:
        return self._number("failed") > 0

    def tell(self) -> None:
        passed, failed = self._number("passed"), self._number("failed")
        ended = f"{passed + failed} of {self._wanted} runs"
        print(f"commit {self._commit}: {ended}, {passed} passed, {failed} failed", flush=True)

    def log(self, slot: int) -> Path:
        """Returns the path for the log of a run that has not ended."""
        return self._kept / f"running.{slot}"

    def keep(self, slot: int, result: str) -> None:
        """Keeps the log of an ended run."""
        self.log(slot).rename(self._kept / f"{time.time_ns()}.{result}.log")

    def failures(self) -> Counter[str]:
        """Returns how often each test failed."""
        lines = (
            line.partition(" - ")[0]
            for log in self._kept.glob("*.failed.log")
            for line in log.read_text(errors="replace").splitlines()
        )
        return Counter(line for line in lines if line.startswith(("FAILED ", "ERROR ")))

    def _number(self, result: str) -> int:
        return len(list(self._kept.glob(f"*.{result}.log")))


def commit() -> str:
    command = ["git", "describe", "--always", "--dirty", "--exclude", "*"]
    described = subprocess.run(command, capture_output=True, text=True, check=False)
    return described.stdout.strip() or "unknown"


@contextlib.contextmanager
def busy_loops(python: str) -> Iterator[None]:
    loops = [subprocess.Popen([python, "-c", "while True: pass"]) for _ in range(_LOOPS)]
    try:
        yield
    finally:
        for loop in loops:
            loop.kill()
            loop.wait()


def run(python: str, tests: str, logs: list[Path]) -> list[int]:
    """Runs the tests once for each log, all at once, and returns their exit codes."""
    running = []
    try:
        for log in logs:
            with log.open("wb") as out:
                command = [python, *_PYTEST, tests]
                running.append(subprocess.Popen(command, stdout=out, stderr=subprocess.STDOUT))
        return [each.wait() for each in running]
    except KeyboardInterrupt:  # it reaches all processes of the terminal
        for each in running:
            each.wait()
        raise


def main(python: str, wanted: str, tests: str, at_once: str = "1") -> int:
    count = Count(commit(), tests, int(wanted))
    count.tell()
    with busy_loops(python):
        while count.missing > 0:
            slots = range(min(int(at_once), count.missing))
            codes = run(python, tests, [count.log(slot) for slot in slots])
            for slot, code in enumerate(codes):
                if code in _RESULTS:
                    count.keep(slot, _RESULTS[code])
                else:  # it was killed, or could not begin
                    print("\n".join(count.log(slot).read_text().splitlines()[-5:]))
            if not _RESULTS.keys() >= set(codes):
                return 2
            count.tell()
    for test, times in count.failures().most_common():
        print(f"{times:7} {test}")
    return int(count.failed)


if __name__ == "__main__":
    with contextlib.suppress(KeyboardInterrupt):
        sys.exit(main(*sys.argv[1:]))
    sys.exit(130)
