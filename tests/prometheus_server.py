"""A Prometheus server with the configuration of `deploy/prometheus`."""

import json
import math
import shutil
import subprocess
import time
import urllib.parse
import urllib.request
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import needs
import pytest
import yaml
from expressions import PROMETHEUS
from tenacious import LONG, until

from winnow.cli.local.ports import free_ports

PROGRAM = shutil.which("prometheus")
needs_prometheus = pytest.mark.skipif(PROGRAM is None, reason=needs.PROMETHEUS)


def _features() -> list[str]:
    """Returns the feature flags that the compose file sets."""
    compose = yaml.safe_load((PROMETHEUS.parent / "compose.yaml").read_text(encoding="utf-8"))
    command = compose["services"]["prometheus"]["command"]
    return [word for word in command if word.startswith("--enable-feature=")]


class PrometheusServer:
    """A server on a free port, with its data in a directory."""

    def __init__(self, directory: Path, jobs: Mapping[str, Sequence[str]]) -> None:
        """`jobs` has the addresses to scrape for each job of the configuration."""
        assert PROGRAM is not None
        config = yaml.safe_load((PROMETHEUS / "prometheus.yml").read_text())
        assert [each["job_name"] for each in config["scrape_configs"]] == list(jobs)
        config["global"] = {"scrape_interval": "500ms", "evaluation_interval": "1s"}
        config["rule_files"] = [str(PROMETHEUS / name) for name in config["rule_files"]]
        config["scrape_configs"] = [
            {"job_name": job, "static_configs": [{"targets": list(addresses)}]}
            for job, addresses in jobs.items()
        ]
        file = directory / "prometheus.yml"
        file.write_text(yaml.safe_dump(config))
        address = f"127.0.0.1:{free_ports(1)[0]}"
        self._url = f"http://{address}"
        self._log = directory / "log"
        command = [
            PROGRAM,
            f"--config.file={file}",
            f"--web.listen-address={address}",
            *_features(),
        ]
        with self._log.open("wb") as log:
            self._process = subprocess.Popen(
                [*command, f"--storage.tsdb.path={directory / 'data'}"], stdout=log, stderr=log
            )
        until(lambda: self._process.poll() is not None or self._ready())
        assert self._process.poll() is None, self._log.read_text()
        targets = sum(map(len, jobs.values()))
        # rates ignore growth before the first scrape
        until(lambda: sum(self.values("up")) == targets)

    def values(self, expr: str) -> list[float]:
        """Evaluates an expression now; leaves out NaN, the result of a division of 0 by 0."""
        result = self._get("query", {"query": expr})["result"]
        found = [float(each["value"][1]) for each in result]
        return [value for value in found if not math.isnan(value)]

    def label_values(self, metric: str, label: str) -> set[str]:
        """Returns the values of a metric's label, as for a variable of a dashboard."""
        return {each[label] for each in self._get("series", {"match[]": metric}) if label in each}

    def traces(self, expr: str) -> set[str]:
        """Returns the trace ids of an expression's exemplars."""
        query = {"query": expr, "start": "0", "end": str(time.time() + 60)}
        series = self._get("query_exemplars", query)
        points = [point for each in series for point in each["exemplars"]]
        return {point["labels"]["trace_id"] for point in points}

    def rules(self) -> list[dict[str, Any]]:
        """Returns every rule with its state."""
        return [rule for group in self._get("rules", {})["groups"] for rule in group["rules"]]

    def close(self) -> None:
        self._process.kill()
        self._process.wait(LONG)

    def _ready(self) -> bool:
        try:
            with urllib.request.urlopen(f"{self._url}/-/ready", timeout=LONG) as reply:
                return bool(reply.status == 200)
        except OSError:
            return False

    def _get(self, what: str, query: Mapping[str, str]) -> Any:
        url = f"{self._url}/api/v1/{what}?{urllib.parse.urlencode(query)}"
        with urllib.request.urlopen(url, timeout=LONG) as reply:
            return json.loads(reply.read())["data"]
