"""From settings to a tracer."""

import subprocess
import sys

import pytest
from prometheus_client import CollectorRegistry

from winnow.errors import UnavailableError
from winnow.settings.errors import SettingsError
from winnow.stateless.settings import FrontSettings
from winnow.telemetry.tracing.opening import tracing
from winnow.telemetry.tracing.tracer import NO_TRACER


@pytest.mark.parametrize("url", ["http://127.0.0.1:4317", "https://collector.example:4317/"])
def test_a_collector_is_a_url_with_a_port(url: str) -> None:
    assert FrontSettings.load({"shards": ["a:1"], "trace_to": url}).trace_to == url


@pytest.mark.parametrize(
    "url",
    [
        "127.0.0.1:4317",
        "http://127.0.0.1",
        "http://:4317",
        "http://a:0",
        "http://a:99999",
        "ftp://a:1",
        "http://a:4318/v1/traces",
        "http://a:4317?x=1",
    ],
)
def test_anything_else_is_refused_and_the_right_form_is_told(url: str) -> None:
    with pytest.raises(SettingsError, match=r"--trace-to .*expected http://HOST:PORT"):
        FrontSettings.load({"shards": ["a:1"], "trace_to": url})


def test_a_secret_in_a_url_is_refused_and_not_repeated() -> None:
    with pytest.raises(SettingsError, match="OTEL_EXPORTER_OTLP_HEADERS") as refused:
        FrontSettings.load({"shards": ["a:1"], "trace_to": "http://me:hunter2@a:4317"})
    assert "hunter2" not in str(refused.value)


def test_without_a_collector_nothing_is_traced_and_nothing_counted() -> None:
    registry = CollectorRegistry()
    with tracing("", 1.0, "winnow-front", registry) as tracer:
        assert tracer is NO_TRACER
    assert list(registry.collect()) == []


def test_without_opentelemetry_it_is_said_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "winnow.telemetry.tracing.otlp", None)
    with (
        pytest.raises(UnavailableError, match=r"needs OpenTelemetry: pip install '.*\[otel\]'"),
        tracing("http://a:4317", 1.0, "winnow-front", CollectorRegistry()),
    ):
        pass


def test_a_process_that_traces_nothing_does_not_import_opentelemetry() -> None:
    code = (
        "import sys, stateless.__main__, content_node.__main__, encoder_node.__main__\n"
        "import head_node.__main__\n"
        "sys.exit(any(name.startswith('opentelemetry') for name in sys.modules))"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
