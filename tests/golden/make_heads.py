"""Writes the golden store of heads of the present format. Run once, when a format number goes up."""

from pathlib import Path
from tempfile import TemporaryDirectory

from small_heads import small_head

from winnow.heads.manifest import FORMAT
from winnow.heads.store import open_store


def main() -> None:
    store = open_store(Path(__file__).parent / f"heads-format-{FORMAT}")
    with TemporaryDirectory() as directory:
        for version in (1, 2):
            head = small_head(
                Path(directory, f"intent-{version}"),
                version=version,
                says=version,
                threshold=0.5,
                temperature=1.5,
                tenant="golden",
                accuracy={"accuracy": 91.5},
                licences={"data": "CC BY 4.0"},
                trained_on={"data": "texts.csv", "sha256": "0" * 64, "rows": 3, "options": {}},
            )
            store.publish(head)
        store.publish(small_head(Path(directory, "names"), "names", kind="token", says=1))
    store.pin("names", True)
    store.move("names", "german")


if __name__ == "__main__":
    main()
