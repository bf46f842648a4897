"""The image is built from `requirements.lock`, and from all that the wheel's build reads."""

import re
import tomllib
from pathlib import Path

import pytest
from packaging.markers import Marker
from packaging.requirements import Requirement

ROOT = Path(__file__).parents[2]
LOCK = (ROOT / "requirements.lock").read_text(encoding="utf-8")
PYPROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
ENTRY = re.compile(
    r"^(?P<name>[\w.-]+)==(?P<version>\S+)(?: ; (?P<marker>.+?))? \\\n"
    r"(?P<hashes>(?:    --hash=sha256:[0-9a-f]{64}(?: \\)?\n)+)",
    re.MULTILINE,
)


def locked() -> dict[str, str]:
    """The version of every distribution that the lock has for this machine."""
    entries = [entry.groupdict() for entry in ENTRY.finditer(LOCK)]
    here = [each for each in entries if not each["marker"] or Marker(each["marker"]).evaluate()]
    return {each["name"]: each["version"] for each in here}


@pytest.mark.parametrize("wanted", PYPROJECT["project"]["dependencies"])
def test_every_dependency_is_locked_at_a_version_that_fits(wanted: str) -> None:
    requirement = Requirement(wanted)
    assert requirement.name in locked(), "run make lock"
    assert locked()[requirement.name] in requirement.specifier, "run make lock"


def test_every_locked_distribution_has_a_hash_and_names_no_index() -> None:
    names = [line for line in LOCK.splitlines() if line and line[0] not in " #"]
    assert len(names) == len(ENTRY.findall(LOCK)) > len(PYPROJECT["project"]["dependencies"])
    assert "://" not in LOCK
    assert not re.search(
        r"^\s*-(i|-index-url|-extra-index-url|f|-find-links)\b", LOCK, re.MULTILINE
    )


def test_the_image_is_built_from_the_lock_and_runs_as_a_numbered_user() -> None:
    dockerfile = (ROOT / "deploy" / "Dockerfile").read_text(encoding="utf-8")
    assert "--require-hashes -r /wheelhouse/requirements.lock" in dockerfile
    assert re.search(r"^USER \d+:\d+$", dockerfile, re.MULTILINE)


def test_the_image_gets_every_file_that_the_wheel_is_built_from() -> None:
    let_in = (ROOT / ".dockerignore").read_text(encoding="utf-8").splitlines()
    wheel = PYPROJECT["tool"]["hatch"]["build"]["targets"]["wheel"]
    needed = ["pyproject.toml", "README.md", "LICENSE", "requirements.lock"]
    needed += [*wheel["packages"], *wheel["force-include"], "stateless", "content_node"]
    assert not [path for path in needed if f"!{path}" not in let_in]
