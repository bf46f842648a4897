"""A misspelt setting is named, with the one that was meant."""

from pathlib import Path

import pytest

from winnow.cli.local.settings import UpSettings
from winnow.content_node.settings import NodeSettings
from winnow.encoder_node.settings import EncoderSettings
from winnow.head_node.settings import HeadNodeSettings
from winnow.settings.errors import SettingsError
from winnow.settings.names import TABLES
from winnow.settings.source import configured_value
from winnow.stateless.reading.server_settings import ReaderSettings
from winnow.stateless.settings import FrontSettings

FLAGS = {"shards": ["127.0.0.1:9000"]}


def load(variables: dict[str, str], config: Path | None = None) -> FrontSettings:
    return FrontSettings.load(FLAGS, config, variables)


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("WINNOW_FRONT_PASAGES", "did you mean WINNOW_FRONT_PASSAGES_TO_READ?"),
        ("WINNOW_FRONT_LISTN", "did you mean WINNOW_FRONT_LISTEN?"),
        ("WINNOW_FRONT_XYZZY", "there is no such setting"),
        ("WINNOW_FRNT_LISTEN", "did you mean WINNOW_FRONT_LISTEN?"),
        ("WINNOW_NODES_SHARD", "did you mean WINNOW_NODE_SHARD?"),
        ("WINNOW_XYZZY", "no command has such a setting"),
        ("WINNOW_FRONT", "did you mean WINNOW_FRONT_…?"),
        ("WINNOW_FRONT_PORT", "there is no such setting"),
        ("WINNOW_FRONT_CACHE_ENTRIES", "did you mean WINNOW_FRONT_CACHE_MB?"),
    ],
)
def test_a_variable_that_no_setting_has_is_named(name: str, said: str) -> None:
    with pytest.raises(SettingsError) as caught:
        load({name: "8080"})
    assert str(caught.value).startswith(f"{name}: ")
    assert said in str(caught.value)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("WINNOW_NODE_SHARD", "x"),
        ("WINNOW_CONFIG", ""),
        ("WINDOW_FRONT_LISTN", "x"),
        # Kubernetes sets these in every container where a service is called winnow or winnow-front
        ("WINNOW_SERVICE_HOST", "10.0.0.1"),
        ("WINNOW_FRONT_SERVICE_PORT", "8080"),
        ("WINNOW_FRONT_SERVICE_PORT_GRPC", "8080"),
        ("WINNOW_FRONT_PORT", "tcp://10.0.0.1:8080"),
        ("WINNOW_FRONT_PORT_8080_TCP_ADDR", "10.0.0.1"),
    ],
)
def test_what_others_read_or_set_is_left_alone(name: str, value: str) -> None:
    assert load({name: value}).listen == "127.0.0.1:8080"


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ("[frnt]\nanswers = 3", r"there is no table \[frnt\]; did you mean \[front\]\?"),
        ("answers = 3", r"w.toml: answers is in no table: put it below a line \[front\]"),
        ("[front]\nanswers = 'x'", r"w.toml: --answers \(or WINNOW_FRONT_ANSWERS\): "),
        (
            "[front]\npasages_to_read = 3",
            r"w.toml: pasages_to_read: .* in \[front\]; did you mean passages_to_read\?",
        ),
        ("[front]\npassages-to-read = 3", r"did you mean passages_to_read\?"),
        ("front = 3", r"\[front\] must be a table"),
    ],
)
def test_what_the_file_has_that_nobody_reads_is_named(
    content: str, said: str, tmp_path: Path
) -> None:
    config = tmp_path / "w.toml"
    config.write_text(content, encoding="utf-8")
    with pytest.raises(SettingsError, match=said):
        load({}, config)


def test_a_file_is_not_blamed_for_what_a_variable_says(tmp_path: Path) -> None:
    config = tmp_path / "w.toml"
    config.write_text("[front]\nanswers = 2", encoding="utf-8")
    with pytest.raises(SettingsError) as caught:
        load({"WINNOW_FRONT_ANSWERS": "x"}, config)
    assert str(caught.value).startswith("--answers (or WINNOW_FRONT_ANSWERS): ")


def test_a_file_may_have_the_tables_of_every_command(tmp_path: Path) -> None:
    config = tmp_path / "w.toml"
    config.write_text("[up]\n[front]\nanswers = 2\n[node]\nef = 64\n", encoding="utf-8")
    settings = load({}, config)
    assert settings.answers == 2
    assert settings.file == config
    assert load({}).file is None
    kinds = (
        FrontSettings,
        NodeSettings,
        EncoderSettings,
        HeadNodeSettings,
        ReaderSettings,
        UpSettings,
    )
    assert {kind.table for kind in kinds} == set(TABLES)


def test_a_setting_of_another_process_is_found_where_that_process_finds_it(tmp_path: Path) -> None:
    config = tmp_path / "w.toml"
    config.write_text("[node]\nef = 64\n", encoding="utf-8")
    assert configured_value("node", "ef", config, {}) == 64
    assert configured_value("node", "ef", config, {"WINNOW_NODE_EF": "32"}) == "32"
    assert configured_value("node", "ef", None, {}) is None
