"""The summary of skipped tests, and the profiles of property tests."""

import re
from dataclasses import dataclass, field
from pathlib import Path

import needs
import skipped
from hypothesis import settings

TESTS = Path(__file__).parent
MAKEFILE = (TESTS.parent / "Makefile").read_text(encoding="utf-8")


@dataclass
class Report:
    reason: str

    @property
    def longrepr(self) -> tuple[str, int, str]:
        return "test_it.py", 1, f"Skipped: {self.reason}"


@dataclass
class Terminal:
    """Stands for pytest's own reporter."""

    stats: dict[str, list[Report]]
    said: list[str] = field(default_factory=list)

    def section(self, title: str, sep: str) -> None:
        self.said.append(title)

    def write_line(self, line: str) -> None:
        self.said.extend(line.split("\n"))


def test_each_reason_has_a_line_with_its_count_most_frequent_first(tmp_path: Path) -> None:
    reports = [Report(needs.NATS), *[Report(needs.CHROMIUM)] * 12, Report(needs.NATS)]
    terminal = Terminal({"skipped": reports})
    skipped.tell(terminal, tmp_path / "skipped" / "serving.txt")
    assert terminal.said == [
        "14 skipped, and what they need",
        f"   12  {needs.CHROMIUM}",
        f"    2  {needs.NATS}",
    ]
    written = (tmp_path / "skipped" / "serving.txt").read_text().splitlines()
    assert written == terminal.said[1:]


def test_nothing_is_printed_if_no_test_was_skipped(tmp_path: Path) -> None:
    terminal = Terminal({})
    skipped.tell(terminal, tmp_path / "serving.txt")
    assert terminal.said == []
    assert (tmp_path / "serving.txt").read_text() == ""


def test_every_reason_to_skip_is_in_needs() -> None:
    own = re.compile(r"(skipif|skip|importorskip)\((?!\))[^@]*?reason=f?\"|pytest\.skip\(f?\"")
    files = [path for path in TESTS.rglob("*.py") if path != Path(__file__)]
    assert [path.name for path in files if own.search(path.read_text(encoding="utf-8"))] == []


def test_make_test_prints_the_skipped_tests_of_both_parts_at_its_end() -> None:
    for part in ("serving", "models"):
        assert f"--skipped-to=$(SKIPPED)/{part}.txt" in MAKEFILE
    assert MAKEFILE.index("--no-print-directory test-models,") < MAKEFILE.index("cat $(SKIPPED)/")


def test_property_tests_draw_the_same_examples_in_every_run() -> None:
    fixed, fuzz = settings.get_profile("fixed"), settings.get_profile("fuzz")
    assert fixed.derandomize
    assert fixed.database is None
    assert not fuzz.derandomize
    assert fuzz.database is not None
    assert fixed.deadline is None is fuzz.deadline
