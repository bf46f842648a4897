"""How commands end."""

from collections.abc import Callable

import pytest
import typer

from winnow.errors import UnavailableError
from winnow.settings.source import SettingsError
from winnow.tools.exits import exit_code


def failing(error: BaseException) -> Callable[[], None]:
    def run() -> None:
        raise error

    return run


@pytest.mark.parametrize(
    ("error", "code", "said"),
    [
        (UnavailableError("nobody is there"), 1, "error: nobody is there\n"),
        (SettingsError("--x: no"), 2, "error: --x: no\ntry 'winnow up --help'\n"),
        (
            typer.BadParameter("Is not a number.", param_hint="'--x'"),
            2,
            "error: invalid value for '--x': Is not a number\ntry 'winnow up --help'\n",
        ),
        (KeyboardInterrupt(), 130, "interrupted\n"),
        (typer.Abort(), 130, ""),
        (UnavailableError("[bold]x[/bold] " + "long " * 40), 1, None),
    ],
)
def test_what_is_wrong_is_said_in_one_style(
    error: BaseException, code: int, said: str | None, capsys: pytest.CaptureFixture[str]
) -> None:
    assert exit_code(failing(error), "winnow up") == code
    assert capsys.readouterr().err == (f"error: {error}\n" if said is None else said)


@pytest.mark.parametrize(("returned", "code"), [(None, 0), (0, 0), (1, 1), (3, 3)])
def test_a_command_says_its_code(returned: int | None, code: int) -> None:
    assert exit_code(lambda: returned, "winnow up") == code


def test_other_errors_are_bugs_and_keep_their_stack() -> None:
    with pytest.raises(ZeroDivisionError):
        exit_code(failing(ZeroDivisionError()), "winnow up")
