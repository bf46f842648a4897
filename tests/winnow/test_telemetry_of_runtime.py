"""Nothing of what is served is told to anybody."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from winnow.bundle import Bundle


@pytest.mark.bundle
def test_a_model_that_is_opened_leaves_no_record_in_the_users_home(
    bundle: Bundle, tmp_path: Path
) -> None:
    """ONNX Runtime would keep one there, and send it home."""
    home = tmp_path / "home"
    home.mkdir()
    code = (
        "from pathlib import Path; from winnow.inference.onnx import OnnxSession; "
        f"OnnxSession(Path({str(bundle.question_encoder)!r}), ['embedding'])"
    )
    quiet = {"ORT_DISABLE_TELEMETRY", "XDG_CACHE_HOME", "CI"}  # it says nothing where CI is set
    environment = {name: value for name, value in os.environ.items() if name not in quiet}
    subprocess.run([sys.executable, "-c", code], env={**environment, "HOME": str(home)}, check=True)
    assert not list(home.rglob("*"))
