"""Prometheus accepts the rules, each alert has a test, and each has a runbook."""

import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import needs
import promql_parser
import pytest
import yaml
from declared import declared
from expressions import PROMETHEUS, metrics, of_rules

ALERTS = [rule for rule in of_rules() if "alert" in rule]
RECORDED = {rule["record"] for rule in of_rules() if "record" in rule}
RUNBOOK = Path(__file__).parent.parent.parent / "docs" / "operations.md"
needs_promtool = pytest.mark.skipif(
    shutil.which("promtool") is None,
    reason=needs.PROMETHEUS,
)


@needs_promtool
@pytest.mark.parametrize("command", ["check config prometheus.yml", "test rules rules_test.yml"])
def test_promtool_accepts_the_files_and_the_tests_of_alerts_pass(command: str) -> None:
    done = subprocess.run(
        ["promtool", *command.split()], cwd=PROMETHEUS, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr


def test_every_alert_has_a_test_that_fires_and_one_that_does_not() -> None:
    fires: dict[str, set[bool]] = {}
    for test in yaml.safe_load((PROMETHEUS / "rules_test.yml").read_text())["tests"]:
        for case in test["alert_rule_test"]:
            fires.setdefault(case["alertname"], set()).add(bool(case["exp_alerts"]))
    assert fires == {rule["alert"]: {False, True} for rule in ALERTS}


@pytest.mark.parametrize(
    "rule", list(of_rules()), ids=lambda rule: rule.get("alert", rule.get("record"))
)
def test_rules_are_valid_and_query_existing_metrics(rule: dict[str, Any]) -> None:
    promql_parser.parse(rule["expr"])
    assert metrics(rule["expr"]) <= declared()
    assert set(re.findall(r"\bwinnow:[\w:]+", rule["expr"])) <= RECORDED


@pytest.mark.parametrize("rule", ALERTS, ids=lambda rule: rule["alert"])
def test_an_alert_has_a_severity_a_summary_and_a_runbook(
    rule: dict[str, Any],
) -> None:
    assert rule["labels"]["severity"] in ("page", "ticket")
    assert rule["annotations"]["summary"]
    file, _, anchor = rule["annotations"]["runbook_url"].partition("#")
    assert file == f"docs/{RUNBOOK.name}"
    assert anchor == rule["alert"].lower()
    assert rule["alert"] in headings()


def test_the_runbook_has_no_removed_alerts() -> None:
    named = {heading for heading in headings() if heading.startswith("Winnow")}
    assert named == {rule["alert"] for rule in ALERTS}


def headings() -> set[str]:
    return set(re.findall(r"^#+ (.*)$", RUNBOOK.read_text(encoding="utf-8"), re.MULTILINE))
