"""The compose file has valid settings and exact versions."""

import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from winnow.address import Address
from winnow.content_node.settings import NodeSettings
from winnow.settings.common import ServiceSettings
from winnow.stateless.http.hosts import host_check
from winnow.stateless.reading.server_settings import ReaderSettings
from winnow.stateless.settings import FrontSettings

DEPLOY = Path(__file__).parents[2] / "deploy"
COMPOSE: dict[str, Any] = yaml.safe_load((DEPLOY / "compose.yaml").read_text(encoding="utf-8"))
SERVING: dict[str, type[ServiceSettings]] = {
    "node": NodeSettings,
    "front": FrontSettings,
    "reader": ReaderSettings,
}
OURS = {name: each for name, each in COMPOSE["services"].items() if each["image"] == "winnow"}
OTHERS = {name: each for name, each in COMPOSE["services"].items() if name not in OURS}
TRACING: dict[str, Any] = yaml.safe_load((DEPLOY / "compose.tracing.yaml").read_text())["services"]
PROVISIONING = "/etc/grafana/provisioning"


def test_compose_sets_valid_settings() -> None:
    """A process with an unknown setting does not start."""
    served = [each for each in OURS.values() if each["command"][0] in SERVING]
    assert len(served) == 5
    for each in served:
        settings = SERVING[each["command"][0]]
        known = {settings.variable(field) for field in settings.model_fields}
        assert set(each["environment"]) <= known
        settings.load({}, None, each["environment"])


@pytest.mark.parametrize(("name", "kind"), [("front", FrontSettings), ("reader", ReaderSettings)])
def test_other_containers_may_call_a_server_by_its_name(
    name: str, kind: type[FrontSettings] | type[ReaderSettings]
) -> None:
    """A server that listens on every interface refuses unknown host names."""
    settings = kind.load({}, None, OURS[name]["environment"])
    check = host_check(Address.parse(settings.http_listen).host, settings.http_hosts)
    assert check(f"{name}:8088")


def test_only_parts_that_an_index_needs_start_without_a_profile() -> None:
    assert [name for name, each in OURS.items() if "profiles" in each] == ["reader"]


@pytest.mark.parametrize("name", [name for name, each in OURS.items() if "environment" in each])
def test_the_health_check_of_the_image_finds_the_address(name: str) -> None:
    text = (DEPLOY / "healthcheck.py").read_text(encoding="utf-8")
    listens = {each for each in OURS[name]["environment"] if f'"{each}"' in text}
    assert listens


def test_with_traces_processes_have_valid_settings_and_send_to_jaeger() -> None:
    served = {name: each for name, each in OURS.items() if each["command"][0] in SERVING}
    assert served.keys() | {"jaeger", "grafana"} == TRACING.keys()
    for name, each in served.items():
        settings = SERVING[each["command"][0]]
        loaded = settings.load({}, None, each["environment"] | TRACING[name]["environment"])
        assert loaded.trace_to == "http://jaeger:4317"


def mounted(service: dict[str, Any]) -> dict[str, Path]:
    """The project's files in a container, by their paths there."""
    found = (each.split(":") for each in service["volumes"])
    return {to: DEPLOY / source for source, to, *_ in found if source.startswith("./")}


def test_exemplars_link_to_traces_if_there_are_traces() -> None:
    """Without traces there is no data source for them."""
    alone, traced = mounted(OTHERS["grafana"]), mounted(TRACING["grafana"])
    assert PROVISIONING not in alone, (
        "a read-only mount of the folder would allow no second data source"
    )
    for place, file in (alone | traced).items():
        assert file.exists(), place
    (metrics,) = sources(alone)
    (traces,) = sources(traced)
    (destination,) = metrics["jsonData"]["exemplarTraceIdDestinations"]
    assert destination == {"name": "trace_id", "datasourceUid": traces["uid"]}
    assert traces["url"] == "http://jaeger:16686"
    assert "--enable-feature=exemplar-storage" in OTHERS["prometheus"]["command"]


def sources(files: dict[str, Path]) -> list[dict[str, Any]]:
    """Data sources of Grafana."""
    return [
        source
        for place, file in files.items()
        if place.startswith(f"{PROVISIONING}/datasources/")
        for source in yaml.safe_load(file.read_text(encoding="utf-8"))["datasources"]
    ]


def test_every_process_is_scraped() -> None:
    config = yaml.safe_load((DEPLOY / "prometheus" / "prometheus.yml").read_text(encoding="utf-8"))
    scraped = {
        target
        for job in config["scrape_configs"]
        for static in job.get("static_configs", [])
        for target in static["targets"]
    } | {
        f"{name}:{found['port']}"
        for job in config["scrape_configs"]
        for found in job.get("dns_sd_configs", [])
        for name in found["names"]
    }
    serving = {f"{name}:9100" for name, each in OURS.items() if each["command"][0] in SERVING}
    assert serving <= scraped


def test_processes_have_no_unneeded_privileges() -> None:
    for each in OURS.values():
        assert each["read_only"]
        assert each["cap_drop"] == ["ALL"]
        assert each["security_opt"] == ["no-new-privileges:true"]


@pytest.mark.parametrize("name", [*OTHERS, "jaeger"])
def test_third_party_images_have_an_exact_version(name: str) -> None:
    image = (TRACING | OTHERS)[name]["image"]
    assert re.fullmatch(r"[\w./-]+:v?\d+\.\d+\.\d+", image)


def test_ports_are_published_on_the_loopback_interface() -> None:
    for each in (*COMPOSE["services"].values(), *TRACING.values()):
        for port in each.get("ports", []):
            assert port.startswith("127.0.0.1:")


def test_the_base_image_has_an_exact_version() -> None:
    text = (DEPLOY / "Dockerfile").read_text(encoding="utf-8")
    (base,) = re.findall(r"^ARG PYTHON_IMAGE=(\S+)$", text, re.MULTILINE)
    assert re.fullmatch(r"python:\d+\.\d+\.\d+-slim-bookworm", base)
    assert set(re.findall(r"^FROM (\S+)", text, re.MULTILINE)) == {"${PYTHON_IMAGE}"}
