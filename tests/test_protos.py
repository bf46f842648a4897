"""The committed stubs and docs/api.md match the protos."""

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parent.parent


def test_stubs_are_fresh(tmp_path: Path) -> None:
    script = ROOT / "proto" / "generate.sh"
    subprocess.run(["sh", str(script), sys.executable, str(tmp_path)], check=True)
    made = sorted((tmp_path / "winnow" / "v1").iterdir())
    assert made
    for stub in made:
        committed = ROOT / "winnow" / "v1" / stub.name
        assert committed.read_bytes() == stub.read_bytes(), f"{stub.name} is stale: run make proto"


def test_the_reference_of_the_api_is_fresh(tmp_path: Path) -> None:
    made = tmp_path / "api.md"
    script = ROOT / "proto" / "reference.py"
    subprocess.run([sys.executable, str(script), str(made)], check=True)
    committed = (ROOT / "docs" / "api.md").read_text(encoding="utf-8")
    assert committed == made.read_text(encoding="utf-8"), "docs/api.md is stale: run make api"


def test_the_import_name_proto_stays_free() -> None:
    assert not list((ROOT / "proto").rglob("__init__.py"))
