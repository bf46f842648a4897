"""Converts a folder of documents, and builds an index of it."""

import subprocess
import sys
from pathlib import Path

from winnow.documents.conversion.converter import DocumentConverter
from winnow.documents.document import Document


def convert_folder(folder: Path) -> dict[str, Document]:
    """Converts all files of a folder; returns the converted ones by their path in it."""
    paths = sorted(each for each in folder.rglob("*") if each.is_file())
    with DocumentConverter() as converter:
        return {
            path.relative_to(folder).as_posix(): document
            for path, document in converter.convert(paths)
            if isinstance(document, Document)
        }


def build(folder: Path, out: Path, bundle: Path | None) -> None:
    """Builds an index in `out`, which must not exist; raises CalledProcessError if it fails."""
    chosen = ["--bundle", str(bundle)] if bundle is not None else []
    command = [sys.executable, "-m", "winnow", "index", "build", "--out", str(out)]
    subprocess.run([*command, "--documents", str(folder), *chosen], check=True, stdout=sys.stderr)
