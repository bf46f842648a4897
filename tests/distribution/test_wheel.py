"""The wheel as a stranger has it: in a separate environment, far from any checkout."""

import os
import subprocess
import sys
import sysconfig
import tomllib
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SERVICES = ("stateless", "content_node", "encoder_node", "head_node")
VERSION = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["version"]

HELP = """
from winnow.__main__ import main

commands = "predict up front node encoder evaluate bench demo index pareto".split()
for words in (*([command] for command in commands), ["heads", "serve"]):
    try:
        main([*words, "--help"])
    except SystemExit as ended:
        assert not ended.code, words
    else:
        raise AssertionError(words)
"""
"""Prints the help of commands, in one process; that of `heads serve` is the last."""

pytestmark = pytest.mark.timeout(900)


@pytest.fixture(scope="session")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("wheel")
    build = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(out)]
    subprocess.run(build, cwd=ROOT, check=True, capture_output=True)
    (made,) = out.glob("*.whl")
    return made


class Installation:
    """A virtual environment with the wheel in it, and an empty directory to work in."""

    def __init__(self, wheel: Path, root: Path) -> None:
        self.cache, self.work = root / "cache", root / "work"
        self.work.mkdir()
        environment = root / "venv"
        subprocess.run([sys.executable, "-m", "venv", "--without-pip", environment], check=True)
        self._bin = environment / "bin"
        pip = [sys.executable, "-m", "pip", "--python", str(self._bin / "python"), "install"]
        pip += ["--quiet", "--no-deps", "--no-index", "--disable-pip-version-check"]
        subprocess.run([*pip, str(wheel)], check=True)
        # its dependencies, without the checkout, which a file beside them would also name
        (site,) = environment.glob("lib/python*/site-packages")
        shared = {sysconfig.get_path(name) for name in ("purelib", "platlib")}
        (site / "dependencies.pth").write_text("".join(f"{path}\n" for path in sorted(shared)))

    def run(self, program: str, *arguments: str) -> subprocess.CompletedProcess[str]:
        environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
        environment |= {"XDG_CACHE_HOME": str(self.cache), "COLUMNS": "160", "NO_COLOR": "1"}
        return subprocess.run(
            [self._bin / program, *arguments],
            cwd=self.work, env=environment, capture_output=True, text=True, check=False,
        )  # fmt: skip


@pytest.fixture(scope="session")
def installed(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Installation:
    return Installation(wheel, tmp_path_factory.mktemp("installed"))


def test_its_one_top_level_package_is_winnow(wheel: Path) -> None:
    names = zipfile.ZipFile(wheel).namelist()
    assert {name.split("/")[0] for name in names} == {"winnow", f"winnow_qa-{VERSION}.dist-info"}
    assert len(names) == len(set(names))
    shipped = ("default_bundle/reader-lower.onnx", "default_heads/store.json")
    for name in (*(f"{service}/cli.py" for service in SERVICES), *shipped):
        assert f"winnow/{name}" in names


def test_it_holds_every_module_of_the_checkout(wheel: Path) -> None:
    names = set(zipfile.ZipFile(wheel).namelist())
    for folder, place in (("winnow", ""), *((service, "winnow/") for service in SERVICES)):
        for file in (ROOT / folder).rglob("*.py"):
            assert place + file.relative_to(ROOT).as_posix() in names


def test_it_holds_the_page_and_can_serve_it(wheel: Path, installed: Installation) -> None:
    names = set(zipfile.ZipFile(wheel).namelist())
    for file in (ROOT / "stateless" / "page" / "static").iterdir():
        assert f"winnow/{file.relative_to(ROOT).as_posix()}" in names
    code = "from winnow.stateless.page.routes import page_routes; assert len(page_routes()) > 10"
    assert installed.run("python", "-c", code).returncode == 0


def test_the_services_are_imported_from_winnow_alone(installed: Installation) -> None:
    assert installed.run("python", "-c", "import winnow.stateless.cli").returncode == 0
    for folder in (*SERVICES, "models"):
        assert installed.run("python", "-c", f"import {folder}").returncode == 1, folder


def test_nothing_can_switch_its_fault_points_on(
    installed: Installation, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("WINNOW_TEST_KILL_AT", "merge.begun")
    code = "from winnow.faultpoints import reach; reach('merge.begun'); print('goes on')"
    assert installed.run("python", "-c", code).stdout == "goes on\n"


def test_its_commands_are_listed_but_those_that_need_a_checkout(installed: Installation) -> None:
    shown = installed.run("winnow", "--help")
    assert shown.returncode == 0, shown.stderr
    assert " front " in shown.stdout
    assert " models " not in shown.stdout
    helped = installed.run("python", "-c", HELP)
    assert helped.returncode == 0, helped.stderr
    assert "--store" in helped.stdout
    assert installed.run("winnow", "--version").stdout == f"winnow {VERSION}\n"


def test_a_command_that_needs_a_checkout_says_so(installed: Installation) -> None:
    asked = installed.run("winnow", "models", "build")
    assert asked.returncode == 1
    assert "training needs a checkout of the project" in asked.stderr
    assert "Traceback" not in asked.stderr


def test_the_demo_runs_in_an_empty_directory_and_leaves_it_empty(installed: Installation) -> None:
    addresses = ["--listen", "127.0.0.1:0", "--http-listen", "127.0.0.1:0"]
    asked = installed.run("winnow", "demo", "--once", *addresses)
    assert asked.returncode == 0, asked.stdout + asked.stderr
    assert "answers as expected" in asked.stdout
    assert not list(installed.work.iterdir())
    assert len(list((installed.cache / "winnow").iterdir())) == 1
