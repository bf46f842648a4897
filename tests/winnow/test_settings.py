"""One declaration is flag, variable, file key and help."""

import re
from pathlib import Path
from typing import ClassVar

import pytest
import typer
from pydantic import Field
from typer.testing import CliRunner

from winnow.settings.command import settings_command
from winnow.settings.common import ServiceSettings
from winnow.settings.errors import SettingsError
from winnow.settings.source import Settings


class Oven(Settings):
    """Bake."""

    table: ClassVar[str] = "oven"

    heat: int = Field(180, ge=20, le=300, description="Degrees.")
    rack: Path = Field(description="Where things stand.")
    fans: list[str] = Field([], description="Fans.")
    share: float = Field(0.5, description="Share.")
    light: bool = Field(False, description="Light.")
    note: str = Field("", description="Note.")


class Service(ServiceSettings):
    """Bake for others."""

    table: ClassVar[str] = "oven"


def test_flags_win_over_variables_over_the_file_over_defaults(tmp_path: Path) -> None:
    config = tmp_path / "w.toml"
    config.write_text('[oven]\nheat = 100\nrack = "file"\n', encoding="utf-8")
    variables = {"WINNOW_OVEN_HEAT": "150", "WINNOW_OVEN_FANS": "a, b"}
    assert Oven.load({}, config, {}).heat == 100
    assert Oven.load({}, config, variables).heat == 150
    assert Oven.load({"heat": 200}, config, variables).heat == 200
    assert Oven.load({}, config, variables).fans == ["a", "b"]
    assert Oven.load({"rack": "r"}, None, {}).heat == 180


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        ({"rack": "r", "heat": 999}, r"--heat \(or WINNOW_OVEN_HEAT\): .*300, not 999"),
        ({}, r"--rack \(or WINNOW_OVEN_RACK\): field required"),
        ({"rack": "r", "heat": "hot"}, "--heat"),
    ],
)
def test_a_wrong_value_is_named_with_its_flag_and_variable(
    flags: dict[str, object], message: str
) -> None:
    with pytest.raises(SettingsError, match=message):
        Oven.load(flags, None, {})


@pytest.mark.parametrize("seconds", ["inf", "nan"])
def test_a_number_is_finite(seconds: str) -> None:
    with pytest.raises(SettingsError, match=f"--drain-grace .*finite number, not '{seconds}'"):
        Service.load({}, None, {"WINNOW_OVEN_DRAIN_GRACE": seconds})


def test_a_deadline_that_grpc_takes_for_none_is_refused() -> None:
    with pytest.raises(SettingsError, match=r"--default-deadline .*less than or equal to 86400"):
        Service.load({"default_deadline": 1e300}, None, {})


@pytest.mark.parametrize(
    ("name", "value", "said"),
    [
        ("metrics_listen", "9100", r"'9100' has no port: expected HOST:PORT"),
        ("bundle", "s3://models/mini", "expected a directory, not a URL: copy the bundle to a"),
        ("drain_grace", "abc", "input should be a valid number, not 'abc'"),
        ("log_level", "loud", "expected debug, info, warning or error, not 'loud'"),
    ],
)
def test_what_a_value_should_be_is_said_in_words(name: str, value: str, said: str) -> None:
    variable = Service.variable(name)
    place = f"--{name.replace('_', '-')} (or {variable}): "
    with pytest.raises(SettingsError) as caught:
        Service.load({}, None, {variable: value})
    assert re.fullmatch(f"{re.escape(place)}{said}.*", str(caught.value))


def test_the_url_of_a_bundle_is_refused_also_where_a_flag_names_it() -> None:
    """The command line makes a path of what a flag says, before it comes here."""
    assert Service.load({"bundle": Path("my/mini")}, None, {}).bundle == Path("my/mini")
    with pytest.raises(SettingsError, match="a directory, not a URL"):
        Service.load({"bundle": Path("s3://models/mini")}, None, {})


def test_no_metrics_and_any_case_of_a_log_level_are_fine() -> None:
    settings = Service.load({"metrics_listen": "", "log_level": "Debug"}, None, {})
    assert (settings.metrics_listen, settings.log_level) == ("", "debug")


def test_an_unknown_key_in_the_file_is_refused(tmp_path: Path) -> None:
    config = tmp_path / "w.toml"
    config.write_text('[oven]\nheta = 100\nrack = "x"\n', encoding="utf-8")
    with pytest.raises(SettingsError, match="heta: there is no such setting"):
        Oven.load({}, config, {})


@pytest.mark.parametrize("name", ["heat", "share"])
def test_true_in_the_file_is_no_number(name: str, tmp_path: Path) -> None:
    """It was 1, such as `max_loss = true`."""
    config = tmp_path / "w.toml"
    config.write_text(f'[oven]\n{name} = true\nrack = "x"\nlight = true\n', encoding="utf-8")
    with pytest.raises(SettingsError, match=rf"--{name} \(or .*\): true is not a number$"):
        Oven.load({}, config, {})


def test_an_unreadable_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match=r"missing\.toml: No such file or directory$"):
        Oven.load({}, tmp_path / "missing.toml", {})


def test_a_path_that_no_system_can_have_is_named(tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match="cannot read the settings file"):
        Oven.load({"rack": "x"}, Path("a\0b"), {})
    config = tmp_path / "w.toml"
    config.write_text('[oven]\nrack = "a\\u0000b"\n', encoding="utf-8")
    with pytest.raises(
        SettingsError, match=r"--rack \(or WINNOW_OVEN_RACK\): 'a\?b' is not a path"
    ):
        Oven.load({}, config, {})


def test_the_command_has_an_option_and_help_for_every_field() -> None:
    got: list[Oven] = []
    app = typer.Typer()
    app.command()(settings_command(Oven, got.append))
    runner = CliRunner(env={"COLUMNS": "200"})
    result = runner.invoke(app, ["--rack", "here", "--light", "--fans", "x", "--fans", "y"])
    assert result.exit_code == 0, result.output
    assert got == [
        Oven(heat=180, rack=Path("here"), share=0.5, light=True, fans=["x", "y"], note="")
    ]
    help_text = runner.invoke(app, ["--help"]).output
    for words in (
        "--heat",
        "Degrees.",
        "WINNOW_OVEN_HEAT",
        "180",
        "--no-light",
        "default none",
        "table 'oven'",
    ):
        assert words in help_text
