"""Prints the demo's passages with metadata, as passages of documents have it."""

import json
from pathlib import Path

_DEMO = Path(__file__).parents[2] / "deploy" / "demo" / "passages.jsonl"


def main() -> None:
    """Prints a passage a line. A passage's document has the name of its title."""
    for line in _DEMO.read_text(encoding="utf-8").splitlines():
        passage = json.loads(line)
        document = f"{passage['title'].lower().replace(' ', '-')}.md"
        page = int(passage["id"].rpartition("-")[2])
        passage["metadata"] = {"document": document, "page": page, "lang": "en"}
        print(json.dumps(passage))


if __name__ == "__main__":
    main()
