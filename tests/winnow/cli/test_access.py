"""The options by which tools prove who they are."""

from pathlib import Path
from typing import Annotated, Any

import typer
from typer.testing import CliRunner

from winnow.cli.access import credential_flags, with_credentials
from winnow.client import Credentials
from winnow.settings.names import unknown_variables


def given(*words: str, **variables: str) -> Any:
    """What a command with these options is called with; its exit code if it is not called."""
    called: list[Any] = []

    @with_credentials
    def command(
        word: Annotated[str, typer.Argument()] = "", credentials: Credentials | None = None
    ) -> None:
        called.append((word, credentials))

    app = typer.Typer()
    app.command()(command)
    ended = CliRunner(env=variables).invoke(app, [*words])
    return called[0] if called else ended.exit_code


def test_without_options_calls_are_plain() -> None:
    word, credentials = given("word")
    assert word == "word"
    assert credentials == Credentials()


def test_options_become_credentials() -> None:
    _, credentials = given("--ca", "a", "--cert", "c", "--key", "k", "--token-file", "t")
    assert credentials == Credentials(
        ca=Path("a"), cert=Path("c"), key=Path("k"), token_file=Path("t")
    )


def test_variables_become_credentials_and_a_token_file_takes_precedence() -> None:
    _, credentials = given(WINNOW_CA="a", WINNOW_TOKEN="t")
    assert credentials == Credentials(ca=Path("a"), token="t")
    _, credentials = given("--token-file", "f", WINNOW_TOKEN="t")
    assert credentials == Credentials(token_file=Path("f"))


def test_variables_of_tools_are_no_settings_of_services() -> None:
    names = ("CA", "CERT", "KEY", "TLS", "TOKEN", "TOKEN_FILE", "INDEXES", "ASSIGNMENT")
    assert unknown_variables("front", [], {f"WINNOW_{name}": "x" for name in names}) == []


def test_options_that_contradict_are_wrong_usage() -> None:
    assert given("--cert", "c") == 2


def test_a_command_can_be_repeated_without_showing_its_token() -> None:
    credentials = Credentials(ca="a", cert="c", key="k", token="hidden")
    assert credential_flags(credentials) == ["--ca", "a", "--cert", "c", "--key", "k"]
    assert credential_flags(Credentials(tls=True, token_file="t")) == ["--tls", "--token-file", "t"]
