"""Continuous integration runs what a stranger runs."""

from pathlib import Path

ROOT = Path(__file__).parents[2]


def test_continuous_integration_runs_the_two_commands_and_nothing_besides() -> None:
    """Other packages or variables would hide what a stranger lacks."""
    lines = (ROOT / ".ci" / "run").read_text(encoding="utf-8").splitlines()
    commands = [line for line in lines if line and not line.startswith(("#", "set ", "cd "))]
    assert commands == ["make test", "make demo ONCE=1"]
