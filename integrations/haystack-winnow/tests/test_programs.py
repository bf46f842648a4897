"""The programs of the pages and the example run against a live cluster."""

from collections.abc import Callable

import pytest
from live_cluster import shown_programs


@pytest.mark.parametrize("program", shown_programs("haystack_integrations"))
def test_a_program_prints_the_answer(program: str, run_program: Callable[[str], str]) -> None:
    assert "Junko Tabei" in run_program(program)
