"""A live cluster for the tests of an integration: `winnow up` on the demo's passages.

`make test-integrations` sets two variables: the command `winnow` of an environment that has the
server (`INTEGRATIONS_SERVER`), and the index (`INTEGRATIONS_INDEX`).
"""

import os
import socket
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from written import ROOT, Kind, blocks

from winnow import Client

_SHOWN_ADDRESS = "127.0.0.1:8080"
_START_SECONDS, _CHECK_SECONDS = 240, 0.2


@pytest.fixture(scope="session")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of a front node."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{free.getsockname()[1]}"
    command = [os.environ["INTEGRATIONS_SERVER"], "up", "--index", os.environ["INTEGRATIONS_INDEX"]]
    command += ["--listen", address, "--http-listen", ""]
    log = tmp_path_factory.mktemp("cluster") / "log"
    with log.open("wb") as output:
        running = subprocess.Popen(command, stdout=output, stderr=output)
    try:
        with Client(address) as client:
            until = time.monotonic() + _START_SECONDS
            while not client.available() and running.poll() is None and time.monotonic() < until:
                time.sleep(_CHECK_SECONDS)
            assert client.available(), log.read_text(encoding="utf-8")
        yield address
    finally:
        running.terminate()
        running.wait(60)


def shown_programs(package: str) -> list[str]:
    """The programs that use a package: the example, and those of the README and of docs/."""
    integration = Path.cwd().relative_to(ROOT.resolve())
    pages = (f"{integration}/README.md", "docs/integrations.md")
    shown = [each.text for page in pages for each in blocks(page) if each.kind is Kind.PYTHON]
    examples = [path.read_text(encoding="utf-8") for path in Path("examples").glob("*.py")]
    programs = [text for text in (*examples, *shown) if f"from {package}" in text]
    return [text for text in programs if _SHOWN_ADDRESS in text]


@pytest.fixture
def run_program(cluster: str, capsys: pytest.CaptureFixture[str]) -> Callable[[str], str]:
    """Runs a program with the address of the cluster, and returns what it printed."""

    def run(text: str) -> str:
        code = compile(text.replace(_SHOWN_ADDRESS, cluster), "program", "exec")
        exec(code, {"__name__": "__main__"})
        return capsys.readouterr().out

    return run
