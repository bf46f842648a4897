"""What each run of the reader is worth at gold paragraphs, and what the mean of their weights is.

    python bench/members.py --data DATA --bundle bundles/whole --work var/models [--limit 1500]

In float32, so that nothing but the weights differs.
"""

import argparse
import json
import tempfile
from pathlib import Path

from models.data.directory import DEVELOPMENT, DataDirectory
from models.measuring.gold import read_gold
from models.measuring.reading import OfflineReader
from models.network.architecture import Reader, load_body
from models.network.averaging import mean
from models.network.export import export
from models.steps.reader import MEMBERS
from models.training import checkpoint
from models.workspace import Workspace
from winnow.bundle import load_bundle


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--data", type=Path, default=Path("../shared/data"))
    parser.add_argument("--bundle", type=Path, required=True, help="for tokenizer and lengths")
    parser.add_argument("--work", type=Path, default=Path("var/models"))
    parser.add_argument("--weights", type=Path, default=Path("var/minilm"))
    parser.add_argument("--limit", type=int, default=1500, help="questions of each set")
    options = parser.parse_args()
    bundle = load_bundle(options.bundle)
    data = DataDirectory(options.data)
    states = {
        path.name: checkpoint.load(path) for path in Workspace(options.work).reader_runs(MEMBERS)
    }
    networks = {name: state["network"] for name, state in states.items() if state is not None}
    networks["mean"] = mean(list(networks.values()))
    with tempfile.TemporaryDirectory() as directory:
        for name, network in networks.items():
            reader = Reader(load_body(options.weights))
            reader.load_state_dict(network)
            graph = Path(directory) / "reader.onnx"
            export(reader.eval(), graph)
            offline = OfflineReader(graph, bundle.tokenizer, bundle.manifest)
            found = {}
            for which in DEVELOPMENT:
                asked = data.development(which)
                chosen = asked[:: max(len(asked) // options.limit, 1)][: options.limit]
                gold = read_gold(offline, chosen, f"{name} {which}")
                found[which] = {"questions": gold.questions, "em": gold.em, "f1": gold.f1}
            print(json.dumps({"reader": name, **found}), flush=True)


if __name__ == "__main__":
    main()
