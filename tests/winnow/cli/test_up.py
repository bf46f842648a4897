"""What `winnow up` tells the processes that it starts."""

import socket
from pathlib import Path

import pytest

from winnow.cli.local.cli import health_address, log_flags, run
from winnow.cli.local.documents import ServedFolder
from winnow.cli.local.hints import FrontRequirements
from winnow.cli.local.settings import UpSettings
from winnow.cli.sync.job import FolderSync, SyncOptions
from winnow.errors import ArtefactError, UnavailableError, WinnowError
from winnow.settings.errors import SettingsError


@pytest.mark.parametrize(
    ("at_terminal", "variables", "file", "flags"),
    [
        (True, {}, "", ("--log-format", "text")),
        (False, {}, "", ()),
        (True, {"WINNOW_NODE_LOG_FORMAT": "json"}, "", ()),
        (True, {"WINNOW_FRONT_LOG_FORMAT": "json"}, "", ("--log-format", "text")),
        (True, {}, '[node]\nlog_format = "json"', ()),
    ],
)
def test_logs_are_for_people_at_a_terminal_unless_the_user_chose(
    at_terminal: bool, variables: dict[str, str], file: str, flags: tuple[str, ...], tmp_path: Path
) -> None:
    config = tmp_path / "w.toml"
    config.write_text(file, encoding="utf-8")
    assert log_flags("node", config, at_terminal, variables) == flags


def test_a_store_of_heads_that_is_not_there_is_said_before_anything_starts(tmp_path: Path) -> None:
    given = {"index": tmp_path / "index", "heads": str(tmp_path / "typo")}
    with pytest.raises(UnavailableError, match=r"cannot use .*typo.* for heads"):
        run(UpSettings.load(given, None, {}))


def test_a_store_of_heads_may_be_empty_yet(tmp_path: Path) -> None:
    given = {"index": tmp_path / "index", "heads": str(tmp_path)}
    with pytest.raises(WinnowError, match="index"):
        run(UpSettings.load(given, None, {}))


def test_http_uses_the_chosen_address_or_any_free_port() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        address = f"127.0.0.1:{taken.getsockname()[1]}"
        chosen = UpSettings.load({"index": "index", "http_listen": address}, None, {})
        assert chosen.http == address, "and says that it is in use"
    assert UpSettings.load({"index": "index", "http_listen": ""}, None, {}).http == ""
    assert UpSettings.load({"index": "index"}, None, {}).http.startswith("127.0.0.1:")


@pytest.mark.parametrize(
    ("flags", "variables"),
    [
        ({"listen": "127.0.0.1:8088"}, {}),
        ({"feed_listen": "0.0.0.0:8088"}, {}),
        ({}, {"WINNOW_FRONT_HEALTH_LISTEN": "127.0.0.1:8088"}),
        ({}, {"WINNOW_FRONT_METRICS_LISTEN": "127.0.0.1:8088"}),
        ({"nodes": 1}, {"WINNOW_NODE_HEALTH_LISTEN": "127.0.0.1:8088"}),
        ({"nodes": 1}, {"WINNOW_NODE_METRICS_LISTEN": "127.0.0.1:8088"}),
        ({"nodes": 2}, {"WINNOW_NODE_METRICS_LISTEN": "127.0.0.1:8087"}),
    ],
)
def test_the_default_port_of_http_gives_way_to_every_address_of_the_command(
    flags: dict[str, object], variables: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    http = UpSettings.load({"index": "index", **flags}, None, {}).http
    assert http.startswith("127.0.0.1:")
    assert not http.endswith((":8088", ":0"))


def test_content_nodes_cannot_share_an_address_for_health_checks(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "index.json").write_text('{"shards": 2}', encoding="utf-8")
    monkeypatch.setenv("WINNOW_NODE_HEALTH_LISTEN", "127.0.0.1:9555")
    given = {"index": tmp_path, "listen": "127.0.0.1:0", "nodes": 2}
    with pytest.raises(SettingsError, match=r"WINNOW_NODE_HEALTH_LISTEN\): 2 content nodes cannot"):
        run(UpSettings.load(given, None, {}))


@pytest.mark.parametrize("setting", ["listen", "feed_listen", "http_listen", "metrics_listen"])
def test_the_flag_of_a_port_that_is_in_use_is_named(setting: str, tmp_path: Path) -> None:
    (tmp_path / "index.json").write_text('{"shards": 1}', encoding="utf-8")
    with socket.create_server(("127.0.0.1", 0)) as taken:
        address = f"127.0.0.1:{taken.getsockname()[1]}"
        given = {"index": tmp_path, "listen": "127.0.0.1:0", setting: address}
        flag = f"--{setting.replace('_', '-')}"
        with pytest.raises(UnavailableError, match=f"{address} is in use: .* with {flag}"):
            run(UpSettings.load(given, None, {}))


@pytest.mark.parametrize(
    ("name", "problem"), [("typo", "typo does not exist"), ("a.txt", "a.txt is not a folder")]
)
def test_a_missing_folder_of_documents_is_not_made(name: str, problem: str, tmp_path: Path) -> None:
    """The index would be in it, so its parent was made before the folder was read."""
    (tmp_path / "a.txt").write_text("text")
    given = {"documents": tmp_path / name, "listen": "127.0.0.1:0"}
    with pytest.raises(ArtefactError, match=problem):
        run(UpSettings.load(given, None, {}))
    assert not (tmp_path / "typo").exists()


async def test_a_folder_that_is_no_longer_followed_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Unexpected errors are told, too: nobody awaits the result while the cluster serves."""

    async def fail(*_: object, **__: object) -> None:
        raise KeyError("unexpected")

    monkeypatch.setattr("winnow.cli.local.documents.keep_synced", fail)
    folder = ServedFolder(tmp_path, UpSettings.load({"documents": tmp_path}, None, {}))
    said: list[str] = []
    await folder.follow("127.0.0.1:1", FrontRequirements(), said.append)
    assert said == [
        f"the index no longer follows {tmp_path} (KeyError: 'unexpected'): start the command again"
    ]


@pytest.mark.parametrize(("flags", "replaces"), [({}, True), ({"index": "other"}, False)])
async def test_only_the_folders_own_index_may_lose_all_documents(
    flags: dict[str, object], replaces: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another index may be of another folder, whose documents would be removed."""
    given: list[SyncOptions] = []

    async def end(sync: FolderSync, *_: object, **__: object) -> None:
        given.append(sync.options)

    monkeypatch.setattr("winnow.cli.local.documents.keep_synced", end)
    settings = UpSettings.load({"documents": tmp_path, **flags}, None, {})
    said: list[str] = []
    await ServedFolder(tmp_path, settings).follow("127.0.0.1:1", FrontRequirements(), said.append)
    assert [each.replace_all for each in given] == [replaces], said


def test_replicas_of_one_machine_cannot_be_fed() -> None:
    given = {"index": "index", "nodes": 1, "replicas": 2, "feed_listen": "127.0.0.1:8081"}
    with pytest.raises(SettingsError, match="is not allowed with --feed-listen"):
        UpSettings.load(given, None, {})


def test_a_front_that_serves_over_tls_is_asked_for_its_health_in_plain_text(
    tmp_path: Path,
) -> None:
    """The command has no certificate to ask with."""
    config = tmp_path / "w.toml"
    config.write_text("")
    assert health_address(config) == ""
    config.write_text('[front]\ntls_cert = "c"\ntls_key = "k"\n')
    assert health_address(config).startswith("127.0.0.1:")
    config.write_text('[front]\ntls_cert = "c"\nhealth_listen = "127.0.0.1:7"\n')
    assert health_address(config) == "127.0.0.1:7"


def test_writes_over_http_need_keys_or_the_own_machine(tmp_path: Path) -> None:
    """By default HTTP listens on 127.0.0.1, and the page can add documents with one flag."""
    local = UpSettings.load({"index": "index", "http_feed": True}, None, {})
    assert local.feed == "127.0.0.1:0", "HTTP feeds by way of this port"
    given = {"index": tmp_path, "http_feed": True, "http_listen": "0.0.0.0:0"}
    with pytest.raises(SettingsError, match="set WINNOW_FRONT_KEYS, or"):
        run(UpSettings.load(given, None, {}))
    with pytest.raises(SettingsError, match="--http-feed needs --http-listen"):
        UpSettings.load({**given, "http_listen": ""}, None, {})
