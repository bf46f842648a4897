"""Settings of a content node."""

import pytest

from winnow.content_node.settings import NodeSettings
from winnow.settings.errors import SettingsError


def test_the_default_address_is_the_loopback() -> None:
    assert NodeSettings.load({"shard": "x"}, None, {}).listen == "127.0.0.1:9000"


@pytest.mark.parametrize("given", ["127.0.0.1", "127.0.0.1:99999", ":9000"])
def test_an_invalid_address_is_refused_when_settings_are_read(given: str) -> None:
    with pytest.raises(SettingsError, match=r"--listen \(or WINNOW_NODE_LISTEN\): .*HOST:PORT"):
        NodeSettings.load({"shard": "x", "listen": given}, None, {})


def test_a_journal_is_followed_only_by_a_shard_that_is_fed() -> None:
    given = {"shard": "x", "journal": "nats://127.0.0.1:4222"}
    assert NodeSettings.load({**given, "feed": True}, None, {}).journal == given["journal"]
    with pytest.raises(SettingsError, match="--journal needs --feed"):
        NodeSettings.load(given, None, {})
    with pytest.raises(SettingsError, match=r"--journal .*expected nats://HOST:PORT"):
        NodeSettings.load({**given, "feed": True, "journal": "kafka:1"}, None, {})
