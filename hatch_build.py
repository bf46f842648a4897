"""What the wheel does otherwise than the checkout: one top-level package, `winnow`.

In a checkout the services are folders of their own, such as `stateless` and `content_node`. Other
distributions install folders of these names, so that a wheel carries them inside `winnow`, with the
imports rewritten. Editable installations are left as they are.
"""

import re
import tempfile
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

MOVED = ("stateless", "content_node", "encoder_node", "head_node")
"""Folders of the checkout that a wheel carries as `winnow/NAME`."""

_CARRIED = ("*.py", "static/*")
"""What is moved: modules, and files that a service sends as they are."""
_MOVED = rf"(?P<moved>{'|'.join(MOVED)})\b"
_IMPORT = re.compile(rf"^(?P<before>\s*from ){_MOVED}(?P<after>[\w.]* import )", re.MULTILINE)
_PLACE = re.compile(rf'(?P<before>["\']){_MOVED}(?P<after>\.[\w.]+:\w+["\'])')


def rewritten(source: str) -> str:
    """`source` as the wheel has it.

    Two forms are rewritten: `from stateless.cli import front`, and the text "stateless.cli:front".
    A test forbids all others.
    """
    for form in (_IMPORT, _PLACE):
        source = form.sub(r"\g<before>winnow.\g<moved>\g<after>", source)
    return source


class WheelHook(BuildHookInterface[Any]):
    """Adds the moved and the rewritten files to the wheel."""

    PLUGIN_NAME = "custom"

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Called before the wheel is built; `version` is `standard` or `editable`."""
        self._copies = tempfile.TemporaryDirectory()
        if version == "standard":
            for name in MOVED:
                self._add(name, f"winnow/{name}", build_data["force_include"])
            self._add("winnow", "winnow", build_data["force_include"])

    def finalize(self, version: str, build_data: dict[str, Any], artifact_path: str) -> None:
        """Called after the wheel was built."""
        self._copies.cleanup()

    def _add(self, folder: str, place: str, included: dict[str, str]) -> None:
        """Includes the files of a folder that have another place or other text in the wheel."""
        root = Path(self.root) / folder
        for path in sorted(path for form in _CARRIED for path in root.rglob(form)):
            source = path.read_text(encoding="utf-8")
            name = f"{place}/{path.relative_to(root).as_posix()}"
            if place != folder or rewritten(source) != source:
                copy = Path(self._copies.name) / name
                copy.parent.mkdir(parents=True, exist_ok=True)
                copy.write_text(rewritten(source), encoding="utf-8")
                included[str(copy)] = name
