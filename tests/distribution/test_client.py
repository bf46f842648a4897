"""The client on its own: a distribution of the modules that it imports, and of no others."""

import asyncio
import os
import subprocess
import sys
import tomllib
import zipfile
from pathlib import Path
from typing import Any

import pytest
from scripted_front import full_reply, scripted_front

ROOT = Path(__file__).parents[2]
ASK = """
import importlib.abc, sys

ALLOWED = {"winnow", "grpc", "grpc_health", "grpc_status", "google", "structlog",
           "typing_extensions", "cython_runtime", *sys.stdlib_module_names}

class Blocker(importlib.abc.MetaPathFinder):
    def find_spec(self, name, path, target=None):
        if name.partition(".")[0] not in ALLOWED and not name.startswith("_cython"):
            raise ModuleNotFoundError(f"{name} is not installed here", name=name)

for name in [name for name in sys.modules if name.partition(".")[0] not in ALLOWED]:
    del sys.modules[name]
sys.meta_path.insert(0, Blocker())

import winnow
from winnow import Client

assert winnow.__file__.startswith(sys.argv[1]), winnow.__file__
with Client(sys.argv[2]) as client:
    print(client.ask("Who opened the cafe?", timeout=300.0).answer)
"""


def project(folder: Path) -> dict[str, Any]:
    found: dict[str, Any] = tomllib.loads((folder / "pyproject.toml").read_text("utf-8"))["project"]
    return found


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("client")
    build = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(out)]
    subprocess.run(build, cwd=ROOT / "client", check=True, capture_output=True)
    (made,) = out.glob("*.whl")
    return made


@pytest.fixture(scope="module")
def unpacked(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("unpacked")
    zipfile.ZipFile(wheel).extractall(place)
    return place


@pytest.mark.parametrize("which", ["checkout", "wheel"])
async def test_it_answers_where_nothing_of_the_server_is_installed(
    which: str, unpacked: Path, tmp_path: Path
) -> None:
    place = str(ROOT if which == "checkout" else unpacked)
    async with scripted_front() as front:
        front.reply = full_reply()
        asking = await asyncio.create_subprocess_exec(
            sys.executable, "-c", ASK, place, front.address,
            cwd=tmp_path, env={**os.environ, "PYTHONPATH": place},
            stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        )  # fmt: skip
        out, err = await asking.communicate()
    assert (out.decode(), err.decode()) == ("Zoe\u0308 Nowak\n", "")


def test_its_wheel_has_the_client_and_no_server(wheel: Path) -> None:
    version = project(ROOT)["version"]
    names = zipfile.ZipFile(wheel).namelist()
    assert {name.split("/")[0] for name in names} == {
        "winnow",
        f"winnow_qa_client-{version}.dist-info",
    }
    assert {"winnow/client/client.py", "winnow/py.typed", "winnow/v1/answer_pb2.pyi"} <= set(names)
    rooms = {name.split("/")[1] for name in names if name.count("/") > 1}
    assert not rooms & {"cli", "inference", "bundle", "settings", "stateless", "default_bundle"}
    assert wheel.stat().st_size < 200_000


def test_it_needs_some_of_what_the_server_needs_in_the_same_versions() -> None:
    assert set(project(ROOT / "client")["dependencies"]) < set(project(ROOT)["dependencies"])
