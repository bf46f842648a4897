"""`python -m bench NAME`: one way to start every benchmark."""

import pytest

from bench.__main__ import BENCHMARKS, main


@pytest.mark.parametrize("name", BENCHMARKS)
def test_every_benchmark_prints_its_flags_and_can_print_json(
    name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit, match="0"):
        main([name, "--help"])
    out = capsys.readouterr().out
    assert f"python -m bench {name}" in out
    assert "--json" in out


def test_an_unknown_benchmark_is_refused_by_name(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit, match="2"):
        main(["speed"])
    assert "invalid choice: 'speed'" in capsys.readouterr().err
