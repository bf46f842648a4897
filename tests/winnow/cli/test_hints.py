"""The commands to try fit the settings of the front."""

from pathlib import Path

from winnow.cli.local.cli import front_requirements
from winnow.cli.local.hints import (
    FrontRequirements,
    activation_command,
    ask_lines,
    feed_line,
    http_line,
    predict_line,
)

ADDRESS = "127.0.0.1:8080"


def test_the_page_is_named_as_something_to_open() -> None:
    said = http_line("127.0.0.1:8088", FrontRequirements())
    assert said.startswith("open http://127.0.0.1:8088 in a browser")
    assert "http://127.0.0.1:8088/docs" in said


def test_without_pages_none_is_named() -> None:
    said = http_line("127.0.0.1:8088", FrontRequirements(pages=False))
    assert "browser" not in said
    assert "/docs" not in said


def test_a_front_with_tls_is_not_called_in_plain_text() -> None:
    locked = FrontRequirements(tls=True, certificates=True, keys=True)
    said = ask_lines(ADDRESS, locked)
    assert "--ca FILE --cert FILE --key FILE --token-file FILE" in said
    assert "-plaintext" not in said
    assert "-cacert FILE -cert FILE -key FILE -H 'authorization: Bearer TOKEN'" in said
    assert predict_line(ADDRESS, locked).endswith("--token-file FILE")
    assert feed_line("127.0.0.1:8081", locked).endswith("--token-file FILE")
    assert http_line("127.0.0.1:8088", locked).startswith("open https://127.0.0.1:8088 ")


def test_an_open_front_needs_nothing() -> None:
    said = ask_lines(ADDRESS, FrontRequirements())
    assert said.splitlines()[0].endswith(f"--address {ADDRESS}")
    assert "grpcurl -plaintext -d" in said


def test_nothing_is_suggested_that_only_the_demo_can_answer() -> None:
    said = ask_lines(ADDRESS, FrontRequirements()) + predict_line(ADDRESS, FrontRequirements())
    assert 'winnow ask "QUESTION"' in said
    assert 'winnow predict "TEXT" --heads HEAD' in said
    assert '{"question": "Who?"}' in ask_lines(ADDRESS, FrontRequirements(), "Who?")


def test_the_demands_of_a_front_are_read_from_its_settings(tmp_path: Path) -> None:
    config = tmp_path / "w.toml"
    config.write_text('[front]\ntls_cert = "c"\ntls_key = "k"\nkeys = "k.json"\n')
    assert front_requirements(config, {}) == FrontRequirements(tls=True, keys=True)
    assert front_requirements(None, {}) == FrontRequirements()
    assert front_requirements(None, {"WINNOW_FRONT_HTTP_PAGES": "false"}) == FrontRequirements(
        pages=False
    )
    config.write_text("[front]\nhttp_pages = false\n")
    assert front_requirements(config, {}) == FrontRequirements(pages=False)


def test_a_new_terminal_is_told_how_to_find_the_command(tmp_path: Path) -> None:
    script = tmp_path / "checkout" / ".venv" / "bin" / "activate"
    script.parent.mkdir(parents=True)
    script.touch()
    prefix = tmp_path / "checkout" / ".venv"
    here = tmp_path / "checkout"
    assert activation_command(False, prefix, here) == "  source .venv/bin/activate"
    assert activation_command(False, prefix, tmp_path / "other") == f"  source {script}"
    assert activation_command(True, prefix, here) == ""
    assert activation_command(False, tmp_path, here) == "", "no virtual environment"
