"""Scripts that install: they say what is missing, and do not fail silently."""

import subprocess
import sys
from pathlib import Path

DEPLOY = Path(__file__).parents[2] / "deploy"


def test_without_a_compiler_one_line_names_its_package_for_each_system(tmp_path: Path) -> None:
    """The rest of the installation is complete, so this is no failure."""
    ran = subprocess.run(
        ["/bin/sh", DEPLOY / "install_graph.sh", sys.executable],
        env={"PATH": str(tmp_path)}, capture_output=True, text=True, check=True,
    )  # fmt: skip
    (line,) = ran.stderr.splitlines()
    assert line.startswith("hnswlib was left out: it needs a C++ compiler")
    for package in ("apt install g++", "dnf install gcc-c++", "apk add g++", "xcode-select"):
        assert package in line


def test_an_image_does_not_grow_unnoticed(tmp_path: Path) -> None:
    """A package that moved its files would otherwise keep them."""
    slim = [sys.executable, str(DEPLOY / "slim.py"), str(tmp_path)]
    ran = subprocess.run(slim, capture_output=True, text=True, check=False)
    assert ran.returncode == 1
    assert "no numpy/**/tests in" in ran.stderr
