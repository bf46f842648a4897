"""Writes the dashboards: python -m deploy.grafana."""

from pathlib import Path

from deploy.grafana.drawing import drawn
from deploy.grafana.pages import PAGES

PLACE = Path(__file__).parent / "dashboards"


def files() -> dict[str, str]:
    """What is to lie in `PLACE`, by the names of the files."""
    return {f"{page.uid}.json": drawn(page) for page in PAGES}


def main() -> None:
    """Writes every file."""
    PLACE.mkdir(exist_ok=True)
    for name, content in files().items():
        (PLACE / name).write_text(content, encoding="utf-8")


if __name__ == "__main__":
    main()
