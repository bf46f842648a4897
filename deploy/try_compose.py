"""Tests the compose file: builds it, asks questions, kills a content node, and restarts it.

    python deploy/try_compose.py [--no-build] [--without grafana] [--keep]

Needs a Docker engine with the compose plugin, and this project in the Python environment. Exits
with 0 if every check passed, 1 if one failed, 77 if there is no engine.
"""

import argparse
import json
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable
from pathlib import Path

from winnow import Client
from winnow.errors import WinnowError
from winnow.labelled_questions import read_questions
from winnow.packaged import demo_corpus

_FILE = Path(__file__).with_name("compose.yaml")
_SKIPPED = 77
_TIMEOUT = 300.0
_POLL = 0.25
_FRONT, _HTTP, _PROMETHEUS = "127.0.0.1:8080", "http://127.0.0.1:8088", "http://127.0.0.1:9090"
_VICTIM = "node-1"


def main() -> int:
    """Runs all checks once; returns the exit code."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.add_argument("--no-build", action="store_true", help="use the existing image")
    parser.add_argument("--without", action="append", default=[], help="service not to start")
    parser.add_argument("--keep", action="store_true", help="keep the containers running")
    options = parser.parse_args()
    if subprocess.run(["docker", "info"], capture_output=True, check=False).returncode != 0:
        print("skipped: `docker info` failed, so there is no Docker engine")
        return _SKIPPED
    try:
        _start_services(options.without, build=not options.no_build)
        _run_checks("prometheus" not in options.without)
    except WinnowError as error:
        print(f"FAILED: {error}", file=sys.stderr)
        return 1
    finally:
        if not options.keep:
            _compose("down", "--volumes", "--timeout", "20")
    return 0


def _start_services(left_out: list[str], build: bool) -> None:
    services = [each for each in _compose("config", "--services").split() if each not in left_out]
    began = time.monotonic()
    _compose("up", "--detach", "--build" if build else "--no-build", *services)
    _wait_until(lambda: _healthy("front"), "the front is not healthy")
    print(f"up and healthy after {time.monotonic() - began:.0f} s: {', '.join(services)}")


def _run_checks(with_prometheus: bool) -> None:
    with Client(_FRONT) as client:
        _ask_all(client)
        _ask_by_http()
        if with_prometheus:
            _wait_until(lambda: _count_targets() == {"up": 4}, "some processes are not scraped")
            print("Prometheus scrapes 4 of 4 processes")
        _kill_and_restart_node(client, with_prometheus)


def _ask_all(client: Client) -> None:
    questions = read_questions(demo_corpus() / "questions.jsonl")
    latencies = []
    for each in questions:
        began = time.monotonic()
        reply = client.ask(each.question, timeout=5.0)
        latencies.append(time.monotonic() - began)
        _expect(reply.coverage.complete, f"{each.question}: {reply.coverage}")
    median = sorted(latencies)[len(latencies) // 2]
    print(f"{len(questions)} questions answered, all complete, p50 {median * 1e3:.0f} ms")


def _ask_by_http() -> None:
    body = json.dumps({"question": "Who won the Tour de France in 2015?"}).encode()
    headers = {"content-type": "application/json"}
    request = urllib.request.Request(f"{_HTTP}/v1/answer", body, headers)
    with urllib.request.urlopen(request, timeout=5) as reply:
        print(f"by HTTP: {json.load(reply)['answers'][0]['text']}")


def _kill_and_restart_node(client: Client, with_prometheus: bool) -> None:
    _compose("kill", _VICTIM)
    slowest = 0.0
    for _ in range(20):
        began = time.monotonic()
        reply = client.ask("Who won the Tour de France in 2015?", timeout=5.0, fresh=True)
        slowest = max(slowest, time.monotonic() - began)
        _expect(not reply.coverage.complete, "an answer without a shard has complete coverage")
    share = reply.coverage.searched / reply.coverage.known
    print(f"{_VICTIM} killed: 20 answers from {share:.0%}, slowest {slowest * 1e3:.0f} ms")
    if with_prometheus:
        _wait_until(
            lambda: _count_targets() == {"up": 3, "down": 1},
            "Prometheus still reports the node",
        )
        print("Prometheus reports it as down")
    _compose("start", _VICTIM)
    began = time.monotonic()
    _wait_until(lambda: _complete(client), "answers stay incomplete")
    print(f"{_VICTIM} started: complete again after {time.monotonic() - began:.1f} s")
    if with_prometheus:
        _wait_until(
            lambda: _count_targets() == {"up": 4}, "Prometheus does not find the node again"
        )
        print("Prometheus scrapes it again")


def _complete(client: Client) -> bool:
    question = "Who won the Tour de France in 2015?"
    return bool(client.ask(question, timeout=5.0, fresh=True).coverage.complete)


def _healthy(service: str) -> bool:
    lines = _compose("ps", "--all", "--format", "json", service).splitlines()
    return any(json.loads(line)["Health"] == "healthy" for line in lines)


def _count_targets() -> dict[str, int]:
    """Returns the number of Prometheus targets by health; empty if Prometheus does not reply."""
    counts: dict[str, int] = {}
    try:
        with urllib.request.urlopen(f"{_PROMETHEUS}/api/v1/targets", timeout=5) as reply:
            targets = json.load(reply)["data"]["activeTargets"]
    except OSError:
        return {}
    for each in targets:
        counts[each["health"]] = counts.get(each["health"], 0) + 1
    return counts


def _wait_until(condition: Callable[[], bool], failure: str) -> None:
    deadline = time.monotonic() + _TIMEOUT
    while not condition():
        if time.monotonic() > deadline:
            raise WinnowError(f"{failure} after {_TIMEOUT:g} s")
        time.sleep(_POLL)


def _expect(condition: bool, failure: str) -> None:
    if not condition:
        raise WinnowError(failure)


def _compose(*words: str) -> str:
    """Runs a command of `docker compose`; returns its output, or raises WinnowError."""
    finished = subprocess.run(
        ["docker", "compose", "--file", str(_FILE), *words],
        stdout=subprocess.PIPE,
        text=True,
        check=False,
    )
    _expect(
        finished.returncode == 0,
        f"docker compose {' '.join(words)} ended with {finished.returncode}",
    )
    return finished.stdout


if __name__ == "__main__":
    sys.exit(main())
