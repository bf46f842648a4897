"""`make sbom` lists what the image is built from."""

import json
import re
import shlex
import subprocess
import sys
from pathlib import Path

import needs
import pytest

ROOT = Path(__file__).parents[2]


def test_every_locked_distribution_is_listed_with_its_checksums(tmp_path: Path) -> None:
    pytest.importorskip("cyclonedx_py", reason=needs.SBOM)
    subprocess.run(
        [sys.executable, "-m", "cyclonedx_py", *_options(), "--output-file", tmp_path / "sbom"],
        cwd=ROOT, check=True, capture_output=True,
    )  # fmt: skip
    listed = json.loads((tmp_path / "sbom").read_text(encoding="utf-8"))
    assert listed["metadata"]["component"]["name"] == "winnow-qa"
    lock = (ROOT / "requirements.lock").read_text(encoding="utf-8")
    locked = set(re.findall(r"^([\w.-]+)==(\S+)", lock, re.MULTILINE))
    assert {(each["name"], each["version"]) for each in listed["components"]} == locked
    for each in listed["components"]:
        assert each["externalReferences"][0]["hashes"], each["name"]


def _options() -> list[str]:
    """As in the Makefile."""
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8").replace("\\\n", "")
    command = re.search(r"/cyclonedx-py (requirements .*) --output-file", makefile)
    assert command is not None
    return shlex.split(command[1])
