"""The variables by which OpenTelemetry is set up everywhere."""

from pathlib import Path

import pytest

from winnow.settings.errors import SettingsError
from winnow.telemetry.tracing.otel_settings import OtelSettings, parse_pairs, read_otel_settings


def test_without_them_nothing_is_said() -> None:
    assert read_otel_settings({}) == OtelSettings(
        resource={}, headers=(), authority=None, certificate=None, key=None
    )


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a=1,b=2", {"a": "1", "b": "2"}),
        (" a = 1 , b=x%20y%2C", {"a": "1", "b": "x y,"}),
        ("a=b==", {"a": "b=="}),
        ("a,=1,,b=", {}),
        ("", {}),
    ],
)
def test_a_list_of_pairs(text: str, expected: dict[str, str]) -> None:
    assert parse_pairs(text) == expected


def test_what_a_process_says_of_itself() -> None:
    said = {"OTEL_RESOURCE_ATTRIBUTES": "service.name=a,host=b", "OTEL_SERVICE_NAME": "c"}
    assert read_otel_settings(said).resource == {"service.name": "c", "host": "b"}


def test_variables_of_traces_go_before_those_of_everything() -> None:
    said = {
        "OTEL_EXPORTER_OTLP_HEADERS": "X-Key=all",
        "OTEL_EXPORTER_OTLP_TRACES_HEADERS": "X-Key=traces",
    }
    assert read_otel_settings(said).headers == (("x-key", "traces"),)


@pytest.mark.parametrize("header", ["x y=hunter2", "x-bin=hunter2", "x=hunter2%0A", "x=hunter2ü"])
def test_a_header_that_cannot_be_sent_is_refused_and_its_value_not_repeated(header: str) -> None:
    with pytest.raises(SettingsError, match="is not a valid header") as refused:
        read_otel_settings({"OTEL_EXPORTER_OTLP_HEADERS": header})
    assert "hunter2" not in str(refused.value)


def test_a_certificate_is_read_from_its_file(tmp_path: Path) -> None:
    path = tmp_path / "authority.pem"
    path.write_bytes(b"certificate")
    assert (
        read_otel_settings({"OTEL_EXPORTER_OTLP_CERTIFICATE": str(path)}).authority
        == b"certificate"
    )


def test_a_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    missing = str(tmp_path / "missing.pem")
    with pytest.raises(SettingsError, match=r"OTLP_CLIENT_KEY cannot be read: .*missing\.pem"):
        read_otel_settings({"OTEL_EXPORTER_OTLP_CLIENT_KEY": missing})
