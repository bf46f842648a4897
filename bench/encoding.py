"""How near index building comes to the encoder's own throughput.

    python bench/encoding.py --passages FILE [--limit 3000] [--rounds 3]

Interleaved in one run: the encoder alone on the tokens of the staged passages, with the builder's
threads, against the builder's encoding stage with its database.
"""

import argparse
import json
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from itertools import chain
from pathlib import Path
from statistics import median

from winnow.bundle import default_bundle, load_bundle
from winnow.content_node.indexing.encode import encode_pending
from winnow.content_node.indexing.staging import Staging
from winnow.inference.encoder import open_passage_encoder
from winnow.passages.encoding import PassageEncoder
from winnow.passages.rows import Row, read_rows
from winnow.settings.common import cores
from winnow.text.tokenizer import Tokenizer


def stage(path: Path, source: Path, limit: int, tokenizer: Tokenizer) -> Staging:
    staging = Staging(path)
    rows = [row for row in read_rows(source) if isinstance(row, Row)]
    for row in rows[:: max(len(rows) // limit, 1)][:limit]:
        title, text = (tokenizer.tokenise(t) for t in (row.passage.title, row.passage.text))
        staging.add(row, title, text, 0)
    staging.note(staged=True)
    return staging


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--passages", type=Path, required=True)
    parser.add_argument("--limit", type=int, default=3000)
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    bundle = load_bundle(default_bundle())
    tokenizer = Tokenizer(bundle.tokenizer)
    model = open_passage_encoder(bundle, tokenizer.special)
    encoder = PassageEncoder(model, bundle.manifest.encoder)
    raw, built = [], []
    for number in range(options.rounds):
        with tempfile.TemporaryDirectory() as directory:
            path = Path(directory) / "staging.sqlite"
            staging = stage(path, options.passages, options.limit, tokenizer)
            work = list(chain.from_iterable(staging.pending(1024)))
            started = time.perf_counter()
            with ThreadPoolExecutor(cores()) as pool:
                list(pool.map(lambda row: encoder.encode(row[1], row[2]), work))
            raw.append(len(work) / (time.perf_counter() - started))
            started = time.perf_counter()
            encode_pending(staging, encoder, cores(), lambda _: None)
            built.append(len(work) / (time.perf_counter() - started))
            staging.close()
        print(f"round {number + 1}: raw {raw[-1]:.1f}/s, building {built[-1]:.1f}/s", flush=True)
    shares = [b / r for b, r in zip(built, raw, strict=True)]
    print(
        json.dumps(
            {
                "passages": options.limit,
                "raw_per_second": round(median(raw), 1),
                "building_per_second": round(median(built), 1),
                "share": round(median(shares), 3),
                "shares": [round(share, 3) for share in shares],
            },
            indent=2,
        )
    )


if __name__ == "__main__":
    main()
