"""Which runtime a float model gets at start, and how steady that choice is.

    python bench/runtimes.py --bundle DIR [--starts 10]

Opens reader and question encoder of a float bundle as a node and a front do, again and again.
Prints the medians of every start, in milliseconds of processor time, and how often each runtime
was taken: equal replicas should agree. Needs the extra `openvino`; nothing is tried for int8
models.
"""

import argparse
from collections import Counter
from pathlib import Path

from winnow.bundle import Bundle, load_bundle
from winnow.content_node.reader import open_reader
from winnow.inference.choosing import Choice, Choosing
from winnow.inference.encoder import open_question_encoder
from winnow.inference.runtime import InferenceOptions
from winnow.settings.common import cores
from winnow.text.tokenizer import SpecialTokens, Tokenizer


def started(bundle: Bundle, special: SpecialTokens) -> list[Choice]:
    choices: list[Choice] = []
    options = InferenceOptions(runs=cores(), choosing=Choosing(choices.append))
    open_reader(bundle, special, options)
    open_question_encoder(bundle, special, options)
    return choices


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--bundle", type=Path, required=True, help="with float models")
    parser.add_argument("--starts", type=int, default=10)
    options = parser.parse_args()
    bundle = load_bundle(options.bundle)
    special = Tokenizer(bundle.tokenizer).special
    taken: Counter[tuple[str, str, str]] = Counter()
    for _ in range(options.starts):
        for choice in started(bundle, special):
            spent = ", ".join(f"{name} {ms:.2f} ms" for name, ms in choice.milliseconds.items())
            print(f"{choice.model}: {choice.runtime} ({choice.by.value}) {spent}")
            taken[choice.model, choice.runtime, choice.by.value] += 1
    for (model, runtime, by), times in sorted(taken.items()):
        print(f"{model}: {runtime} in {times} of {options.starts} starts ({by})")


if __name__ == "__main__":
    main()
