"""Builds an index of a folder of documents, cut by structure or into blind passages."""

import json
import subprocess
import sys
from enum import StrEnum
from pathlib import Path

from winnow.documents.conversion.converter import DocumentConverter
from winnow.documents.document import Document


class Cut(StrEnum):
    """How documents are cut into passages."""

    STRUCTURE = "structure"
    """Along headings, paragraphs, list items and table rows."""
    WORDS = "words"
    """Into 100 words, wherever they end."""


def convert_folder(folder: Path) -> dict[str, Document]:
    """Converts all files of a folder; returns the converted ones by their path in it."""
    paths = sorted(each for each in folder.rglob("*") if each.is_file())
    with DocumentConverter() as converter:
        return {
            path.relative_to(folder).as_posix(): document
            for path, document in converter.convert(paths)
            if isinstance(document, Document)
        }


def build(folder: Path, cut: Cut, out: Path, bundle: Path | None) -> None:
    """Builds an index in `out`, which must not exist; raises CalledProcessError if it fails."""
    if cut is Cut.STRUCTURE:
        source = ["--documents", str(folder)]
    else:
        source = ["--cut", "--passages", str(_write_rows(folder, out.with_suffix(".jsonl")))]
    chosen = ["--bundle", str(bundle)] if bundle is not None else []
    command = [sys.executable, "-m", "winnow", "index", "build", "--out", str(out)]
    subprocess.run([*command, *source, *chosen], check=True, stdout=sys.stderr)


def _write_rows(folder: Path, path: Path) -> Path:
    """Writes each converted document as one row."""
    with path.open("w", encoding="utf-8") as file:
        for name, document in convert_folder(folder).items():
            row = {"id": name, "title": document.title or Path(name).stem, "text": document.text}
            file.write(json.dumps(row, ensure_ascii=False) + "\n")
    return path
