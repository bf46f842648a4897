"""The Helm chart is valid for every supported Kubernetes and matches the processes' settings."""

import re
import shutil
import subprocess
import tomllib
from itertools import pairwise
from pathlib import Path
from typing import Any

import needs
import pytest
import yaml
from expressions import PROMETHEUS, of_rules
from helm_chart import (
    CHART,
    LARGE,
    READ_ONLY,
    READERS,
    SHARED,
    SMALL,
    Manifest,
    chart_of_upgrade,
    containers,
    pods,
    refused,
    rendered,
)

from winnow.cli.commands import build_app
from winnow.cli.help_texts import with_wrapped_help
from winnow.content_node.settings import NodeSettings
from winnow.rpc.health import LIVE
from winnow.settings.common import ServiceSettings
from winnow.stateless.reading.server_settings import ReaderSettings
from winnow.stateless.settings import FrontSettings

ROOT = Path(__file__).parents[2]
ALL = {
    "small": SMALL,
    "large": LARGE,
    "read-only": READ_ONLY,
    "readers": READERS,
    "shared": SHARED,
}
ABOUT = yaml.safe_load((CHART / "Chart.yaml").read_text(encoding="utf-8"))
SERVICE_NAMES = [
    "demo-winnow",
    "demo-winnow.prod",
    "demo-winnow.prod.svc",
    "demo-winnow.prod.svc.cluster.local",
]
"""Names of the fronts' Service, for the release `demo` in the namespace `prod`."""
SERVING: dict[str, type[ServiceSettings]] = {
    "node": NodeSettings,
    "front": FrontSettings,
    "reader": ReaderSettings,
}


@pytest.fixture(params=ALL)
def manifests(request: pytest.FixtureRequest) -> list[Manifest]:
    return rendered(ALL[request.param])


def versions() -> list[str]:
    """The oldest supported Kubernetes and the newest known one."""
    known = pytest.importorskip("kubernetes_validate.utils", reason=needs.KUBERNETES).all_versions()
    oldest = ABOUT["kubeVersion"].removeprefix(">=").removesuffix("-0")
    assert oldest in known
    assert _numbers(oldest) < _numbers(known[-1])
    return [oldest, known[-1]]


def _numbers(version: str) -> tuple[int, ...]:
    return tuple(map(int, version.split(".")))


def test_manifests_are_strictly_valid_from_the_oldest_kubernetes_to_the_newest(
    manifests: list[Manifest],
) -> None:
    validate = pytest.importorskip("kubernetes_validate", reason=needs.KUBERNETES).validate
    core = [each for each in manifests if "coreos" not in each["apiVersion"]]
    for version in versions():
        for each in core:
            validate(each, version, strict=True)


def test_the_chart_has_the_version_of_the_project() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert ABOUT["version"] == str(ABOUT["appVersion"]) == project["version"]


def test_processes_have_no_unneeded_privileges(manifests: list[Manifest]) -> None:
    for pod in pods(manifests):
        spec = pod["spec"]
        assert spec["securityContext"]["runAsNonRoot"]
        assert spec["securityContext"]["runAsUser"] == 10001
        assert spec["automountServiceAccountToken"] is False
        assert spec["enableServiceLinks"] is False
    for container in containers(manifests):
        allowed = container["securityContext"]
        assert allowed["readOnlyRootFilesystem"]
        assert allowed["allowPrivilegeEscalation"] is False
        assert allowed["capabilities"] == {"drop": ["ALL"]}


def test_every_variable_is_a_setting_of_its_process(manifests: list[Manifest]) -> None:
    """A process with an unknown setting does not start."""
    for container in containers(manifests):
        settings = SERVING.get(container["name"])
        for each in container.get("env", []):
            if settings is None or not each["name"].startswith("WINNOW_"):
                assert each["name"] == "XDG_CACHE_HOME"
                continue
            names = {settings.variable(field) for field in settings.model_fields}
            assert each["name"] in names


def test_the_chart_sets_valid_settings(manifests: list[Manifest]) -> None:
    for container in containers(manifests):
        if settings := SERVING.get(container["name"]):
            given = {each["name"]: each.get("value", "nats://host") for each in container["env"]}
            settings.load({}, None, given)


@pytest.mark.parametrize(
    ("values", "named"),
    [
        (SMALL, SERVICE_NAMES),
        ({**SMALL, "front": {"http": {"hosts": ["qa.example"]}}}, [*SERVICE_NAMES, "qa.example"]),
        ({**SMALL, "keys": {"secretName": "keys"}}, []),
    ],
    ids=["the service's", "an ingress', too", "any, with keys"],
)
def test_fronts_accept_the_host_names_of_their_service(values: Manifest, named: list[str]) -> None:
    """Other names are refused over HTTP, unless callers need keys."""
    (front,) = (each for each in containers(rendered(values)) if each["name"] == "front")
    given = {each["name"]: each.get("value", "") for each in front["env"]}
    assert FrontSettings.load({}, None, given).http_hosts == named


def test_readers_accept_the_host_names_of_their_service() -> None:
    """There are readers only if they are wanted."""
    assert not [each for each in containers(rendered(SMALL)) if each["name"] == "reader"]
    wanted = {**SMALL, "reader": {"replicas": 1, "http": {"hosts": ["read.example"]}}}
    (reader,) = (each for each in containers(rendered(wanted)) if each["name"] == "reader")
    given = {each["name"]: each.get("value", "") for each in reader["env"]}
    named = [each.replace("demo-winnow", "demo-winnow-reader") for each in SERVICE_NAMES]
    assert ReaderSettings.load({}, None, given).http_hosts == [*named, "read.example"]


@pytest.mark.parametrize(("values", "expected"), [(SMALL, None), (LARGE, "quotas.json")])
def test_fronts_read_the_quotas_of_a_config_map(values: Manifest, expected: str | None) -> None:
    """The ConfigMap can be changed without a restart, so it is mounted as a directory."""
    manifests = rendered(values)
    (front,) = (each for each in containers(manifests) if each["name"] == "front")
    given = {each["name"]: each.get("value", "nats://host") for each in front["env"]}
    quotas = FrontSettings.load({}, None, given).quotas
    assert (quotas and quotas.name) == expected
    if quotas is not None:
        mounts = {each["mountPath"]: each["name"] for each in front["volumeMounts"]}
        specs = [each["spec"] for each in pods(manifests)]
        (pod,) = (each for each in specs if front in each["containers"])
        (volume,) = (v for v in pod["volumes"] if v["name"] == mounts[str(quotas.parent)])
        assert volume["configMap"] == {"name": "quotas"}


def test_every_step_is_a_command_of_the_image(manifests: list[Manifest]) -> None:
    for container in containers(manifests):
        words = list(container["args"])
        command: Any = with_wrapped_help(build_app(words))
        while hasattr(command, "commands"):
            command = command.commands[words.pop(0)]
        command.make_context("winnow", words)


def test_probes_and_services_use_existing_ports(manifests: list[Manifest]) -> None:
    for container in containers(manifests):
        ports = {each["containerPort"] for each in container.get("ports", [])}
        for name in ("readinessProbe", "startupProbe", "livenessProbe"):
            if ports:
                assert container[name]["grpc"]["port"] in ports
                assert container[name]["grpc"].get("service") == (
                    None if name == "readinessProbe" else LIVE
                )
    for service in (each for each in manifests if each["kind"] == "Service"):
        (selected, *_) = selected_pods(service["spec"]["selector"], manifests)
        names = {each["name"] for each in selected["spec"]["containers"][0]["ports"]}
        assert {each["targetPort"] for each in service["spec"]["ports"]} <= names


def test_budgets_and_policies_select_existing_pods(manifests: list[Manifest]) -> None:
    for each in manifests:
        if each["kind"] in ("PodDisruptionBudget", "NetworkPolicy", "PodMonitor"):
            selector = each["spec"].get("podSelector") or each["spec"]["selector"]
            labels = selector["matchLabels"]
            ours = labels["app.kubernetes.io/name"] == "winnow"
            assert bool(selected_pods(labels, manifests)) == ours, "NATS is of another chart"


def test_there_are_no_prometheus_operator_resources_by_default() -> None:
    assert not [each for each in rendered(SMALL) if "coreos" in each["apiVersion"]]


def test_the_pod_monitor_uses_the_job_names_of_the_rules() -> None:
    manifests = rendered(LARGE)
    monitor = operator_resource("PodMonitor", manifests)
    for each in (monitor, operator_resource("PrometheusRule", manifests)):
        assert each["metadata"]["labels"]["release"] == "prometheus"
    assert monitor["spec"].keys() == {"selector", "podMetricsEndpoints"}
    (endpoint,) = monitor["spec"]["podMetricsEndpoints"]
    assert endpoint.keys() == {"port", "interval", "relabelings"}
    watched = selected_pods(monitor["spec"]["selector"]["matchLabels"], manifests)
    assert len(watched) == 5
    for pod in watched:
        (serving,) = pod["spec"]["containers"]
        assert endpoint["port"] in {port["name"] for port in serving["ports"]}
    instance, job = endpoint["relabelings"]
    assert (instance["targetLabel"], job["targetLabel"]) == ("instance", "job")
    (component,) = job["sourceLabels"]
    assert component == "__meta_kubernetes_pod_label_app_kubernetes_io_component"
    label = "app.kubernetes.io/component"
    found = {job["replacement"].replace("$1", pod["metadata"]["labels"][label]) for pod in watched}
    assert found == {"winnow-front", "winnow-node", "winnow-reader"}


def test_the_prometheus_rule_has_the_rules_of_compose_with_runbooks(
    tmp_path: Path,
) -> None:
    spec = operator_resource("PrometheusRule", rendered(LARGE))["spec"]
    assert spec.keys() == {"groups"}
    given = [rule for group in spec["groups"] for rule in group["rules"]]
    for rule, ours in zip(given, of_rules(), strict=True):
        assert rule.keys() <= {"record", "alert", "expr", "for", "labels", "annotations"}
        here = rule.get("annotations", {}).pop("runbook_url", "")
        there = ours.get("annotations", {}).pop("runbook_url", "")
        assert rule == ours
        assert here == (f"https://example.org/winnow/{there}" if there else "")
    if promtool := shutil.which("promtool"):
        file = tmp_path / "rules.yml"
        file.write_text(yaml.safe_dump(spec), encoding="utf-8")
        subprocess.run([promtool, "check", "rules", str(file)], check=True)


def test_rules_without_an_address_of_runbooks_name_the_document() -> None:
    spec = operator_resource("PrometheusRule", rendered(SMALL | {"monitoring": {"enabled": True}}))[
        "spec"
    ]
    assert spec == {"groups": yaml.safe_load((PROMETHEUS / "rules.yml").read_text())["groups"]}


def operator_resource(kind: str, manifests: list[Manifest]) -> Manifest:
    """The resource of a kind of the Prometheus operator."""
    (found,) = (each for each in manifests if each["kind"] == kind)
    assert found["apiVersion"] == "monitoring.coreos.com/v1"
    return found


def test_an_upgrade_does_not_reset_autoscaled_replicas() -> None:
    manifests = rendered(LARGE)
    there = {(each["kind"], each["metadata"]["name"]): each for each in manifests}
    scaled = [each for each in manifests if each["kind"] == "HorizontalPodAutoscaler"]
    assert len(scaled) == 5
    for each in scaled:
        target = each["spec"]["scaleTargetRef"]
        assert "replicas" not in there[target["kind"], target["name"]]["spec"]


def selected_pods(labels: Manifest, manifests: list[Manifest]) -> list[Manifest]:
    """Pods that a selector matches."""
    return [pod for pod in pods(manifests) if labels.items() <= pod["metadata"]["labels"].items()]


def test_each_shard_has_separate_replicas_that_pull_it() -> None:
    manifests = rendered(LARGE)
    sets = [each for each in manifests if each["kind"] == "StatefulSet"]
    names = [f"shard-{number:05}-of-00003" for number in range(3)]
    for each, name in zip(sets, names, strict=True):
        pod = each["spec"]["template"]["spec"]
        bundle, shard = pod["initContainers"]
        assert bundle["args"] == ["bundle", "pull", "s3://models/mini", "/models/bundle"]
        assert shard["args"][:3] == ["index", "pull", f"s3://bucket/my-index/{name}"]
        assert shard["args"][4:] == ["--snapshot", "20260131T120000000-1a2b3c4d"]
        served = variables(pod["containers"][0])
        assert served["WINNOW_NODE_SHARD"] == shard["args"][3]
        assert served["WINNOW_NODE_JOURNAL"] == "nats://demo-nats:4222"
        assert pod["terminationGracePeriodSeconds"] > 12, "lingering and draining"


def test_nodes_that_share_shards_stay_as_they_are_when_others_are_added() -> None:
    """Else every node would restart whenever their number changes."""
    few, many = (
        content_nodes(rendered(SHARED | {"nodes": {"replicas": number}})) for number in (3, 5)
    )
    assert (few["spec"].pop("replicas"), many["spec"].pop("replicas")) == (3, 5)
    assert few == many


def test_all_shards_are_assigned_to_the_names_and_addresses_of_the_nodes() -> None:
    manifests = rendered(SHARED)
    nodes = content_nodes(manifests)
    (node,) = nodes["spec"]["template"]["spec"]["containers"]
    given = variables(node)
    names = [f"{nodes['metadata']['name']}-{number}" for number in range(3)]
    addresses = [
        given["WINNOW_NODE_ADDRESS"].replace("$(WINNOW_NODE_NAME)", name) for name in names
    ]
    (init,) = (each for each in containers(manifests) if each["name"] == "init")
    assert options(init, "--node") == list(map("=".join, zip(names, addresses, strict=True)))
    assert options(init, "--assignment") == [given["WINNOW_NODE_ASSIGNMENT"]]
    assert options(init, "--snapshot") == [given["WINNOW_NODE_PULL"]]
    assert given["WINNOW_NODE_PEER_NAME"] == "winnow"


def test_shards_are_shared_out_after_each_upgrade() -> None:
    """Not by a hook: Helm can wait for fronts before it runs hooks, and fronts wait for shards."""
    (job,) = (each for each in rendered(SHARED) if each["kind"] == "Job")
    assert "annotations" not in job["metadata"]
    (spread,) = job["spec"]["template"]["spec"]["containers"]
    assert spread["args"][:3] == ["shards", "spread", "--wait"]
    assert options(spread, "--node") == [f"demo-winnow-node-{number}" for number in range(3)]
    assert options(spread, "--replicas") == ["2"]
    assert {"--ca=/tls/ca.crt", "--cert=/tls/tls.crt", "--token-file=/admin/token"} <= {
        *spread["args"]
    }
    assert {each["mountPath"] for each in spread["volumeMounts"]} == {"/tmp", "/tls", "/admin"}
    assert job["spec"]["activeDeadlineSeconds"] == 21_600


def test_shards_leave_nodes_before_an_upgrade_stops_them(tmp_path: Path) -> None:
    manifests = rendered(SHARED, chart=chart_of_upgrade(5, tmp_path))
    before, after = (each for each in manifests if each["kind"] == "Job")
    if "annotations" in after["metadata"]:
        before, after = after, before
    assert before["metadata"]["annotations"]["helm.sh/hook"] == "pre-upgrade"
    first, second = (each["spec"]["template"]["spec"] for each in (before, after))
    assert first["containers"] == second["containers"], "only the nodes that stay are named"
    # `winnow shards init` refuses shards on nodes that are not given
    assert "initContainers" not in first
    assert before["metadata"]["name"] != after["metadata"]["name"]


@pytest.mark.parametrize("number", [2, 3])
def test_no_shards_are_moved_before_an_upgrade_that_stops_no_node(
    tmp_path: Path, number: int
) -> None:
    """It may repair a cluster that cannot move shards."""
    manifests = rendered(SHARED, chart=chart_of_upgrade(number, tmp_path))
    assert sum(each["kind"] == "Job" for each in manifests) == 1


def content_nodes(manifests: list[Manifest]) -> Manifest:
    """The StatefulSet of the nodes that share all shards."""
    (found,) = (each for each in manifests if each["kind"] == "StatefulSet")
    return found


def options(container: Manifest, name: str) -> list[str]:
    """The values of an option of a container's command."""
    words = container["args"]
    return [value for option, value in pairwise(words) if option == name]


def test_another_index_is_pulled_into_another_directory() -> None:
    """A pull never replaces files."""
    places = set()
    for url in ("s3://bucket/one", "s3://bucket/two"):
        nodes = [
            each for each in containers(rendered({"index": {"url": url}})) if is_content_node(each)
        ]
        places |= {variables(each)["WINNOW_NODE_SHARD"] for each in nodes}
    assert len(places) == 2


def test_without_an_index_only_readers_are_started() -> None:
    manifests = rendered(READERS)
    (pod,) = pods(manifests)
    assert [each["name"] for each in pod["spec"]["containers"]] == ["reader"]
    kinds = {each["kind"] for each in manifests}
    assert kinds == {
        "Deployment",
        "NetworkPolicy",
        "PodDisruptionBudget",
        "Service",
        "ServiceAccount",
    }
    assert all("reader" in each["metadata"]["name"] for each in manifests if "spec" in each)


def test_nobody_may_feed_by_default() -> None:
    values = SMALL | {"feed": {"enabled": True}, "node": {"replicas": 1}}
    (front,) = (
        each
        for each in rendered(values)
        if each["kind"] == "NetworkPolicy" and each["metadata"]["name"].endswith("-front")
    )
    open_ports = {port["port"] for rule in front["spec"]["ingress"] for port in rule["ports"]}
    assert open_ports == {8080, 8088, 9100}


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({}, "index.url: set the URL of snapshots"),
        ({"index": {"url": "my-index"}}, "url"),
        (READERS | {"feed": {"enabled": True}}, "feed, nats and heads need an index"),
        (SMALL | {"fronts": {}}, "fronts"),
        (SMALL | {"node": {"replica": 2}}, "replica"),
        (SMALL | {"monitoring": {"runbooks": "wiki"}}, "runbooks"),
        (SMALL | {"feed": {"enabled": True}}, "follow a journal"),
        (SMALL | {"feed": {"archive": {"url": "s3://b/a"}}}, "feed.archive.url: only an index"),
        (READ_ONLY | {"feed": {"enabled": True}}, "writes are kept on disks"),
        (READ_ONLY | {"nodes": {"replicas": 2}}, "nodes keep shards on disks"),
        (SMALL | {"nodes": {"replicas": 1}}, "set node.replicas to at most nodes.replicas"),
        (LARGE | {"nodes": {"replicas": 3}}, "an autoscaler would stop nodes"),
        (SHARED | {"keys": {"secretName": "keys"}}, "set keys.adminSecretName"),
        (SHARED | {"tls": {}}, "with keys.secretName, set tls.secretName"),
        (SHARED | {"index": LARGE["index"]}, "leave out index.snapshot"),
    ],
)
def test_values_that_cannot_work_are_refused(values: Manifest, message: str) -> None:
    assert message in refused(values)


def is_content_node(container: Manifest) -> bool:
    """Whether the container is a content node."""
    return bool(container["name"] == "node")


def variables(container: Manifest) -> Manifest:
    return {each["name"]: each.get("value") for each in container["env"]}


def test_the_journal_is_of_one_version_and_syncs_every_entry() -> None:
    """Earlier versions lost acknowledged entries, and several servers do not replace syncing."""
    (nats,) = (each for each in ABOUT["dependencies"] if each["name"] == "nats")
    assert re.fullmatch(r"\d+\.\d+\.\d+", nats["version"])
    values = yaml.safe_load((CHART / "values.yaml").read_text(encoding="utf-8"))["nats"]
    assert re.fullmatch(r"\d+\.\d+\.\d+-alpine", values["container"]["image"]["tag"])
    assert values["config"]["jetstream"]["merge"] == {"sync_interval": "always"}
