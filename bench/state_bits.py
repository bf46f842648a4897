"""How right a reader in halves stays when its passages' states are stored in fewer bits.

    python bench/state_bits.py --bundle DIR --data DATA [--bits 8 4] [--group 384 32] [--limit 1000]

Reads the gold paragraphs of the development sets' first questions, with states that are rounded to
so many bits, one scale for each group of values. Prints exact match and bytes a token.
"""

import argparse
import json
from itertools import product
from pathlib import Path
from unittest.mock import patch

import numpy as np
from numpy.typing import NDArray

from models.data.directory import DEVELOPMENT, DataDirectory
from models.measuring.gold import read_gold
from models.measuring.reading import OfflineReader
from winnow.bundle import load_bundle
from winnow.content_node.reader import lower
from winnow.content_node.states.states import States, rounded

_SCALE = 2
"""Bytes of a group's scale, as float16."""
_LEAST = 1e-8


def coarse(states: NDArray[np.float32], bits: int, group: int) -> NDArray[np.float32]:
    """float32 [tokens, width] on the grid of so many bits."""
    parts = states.reshape(len(states), -1, group)
    scales = np.abs(parts).max(2, keepdims=True, initial=_LEAST) / (2 ** (bits - 1) - 1)
    on_grid: NDArray[np.float32] = (np.rint(parts / scales) * scales).astype(np.float32)
    return on_grid.reshape(states.shape)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--bundle", type=Path, required=True, help="with a reader in halves")
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--bits", type=int, nargs="+", default=[8, 4])
    parser.add_argument("--group", type=int, nargs="+", default=[384, 32], help="values")
    parser.add_argument("--limit", type=int, default=1000, help="questions of each set")
    options = parser.parse_args()
    bundle = load_bundle(options.bundle)
    apart = bundle.manifest.reader.apart
    if apart is None:
        parser.error(f"{options.bundle} has a whole reader, which stores nothing")
    data, width = DataDirectory(options.data), apart.width
    sets = {name: data.development(name)[: options.limit] for name in DEVELOPMENT}
    for bits, group in product(options.bits, options.group):

        def as_stored(states: NDArray[np.float32], bits: int = bits, group: int = group) -> States:
            return rounded(coarse(states, bits, group))

        reader = OfflineReader(bundle.reader, bundle.tokenizer, bundle.manifest)
        with patch.object(lower, "rounded", as_stored):
            gold = {name: read_gold(reader, asked, name).em for name, asked in sets.items()}
        size = width * bits / 8 + _SCALE * width / group
        print(json.dumps({"bits": bits, "group": group, "bytes a token": size, **gold}), flush=True)


if __name__ == "__main__":
    main()
