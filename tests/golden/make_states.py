"""Writes the golden states of the present format, beside which the shard of format 3 belongs.

Run once, when the format number of states goes up. The states are those of `fake_split_reader`.
"""

import shutil
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

sys.path.insert(0, str(Path(__file__).parent.parent))

from fake_split_reader import lower

from winnow.content_node.states.manifest import FILES
from winnow.content_node.states.writing import StatesWriter


def main() -> None:
    here = Path(__file__).parent
    with TemporaryDirectory() as directory:
        shard = Path(shutil.copytree(here / "shard-format-3", Path(directory) / "shard"))
        manifest = StatesWriter(shard, lower()).write(1, lambda *_: None, lambda _: None)
        target = here / f"states-format-{manifest.format}"
        target.mkdir()
        for name in FILES:
            shutil.copy(shard / name, target / name)


if __name__ == "__main__":
    main()
