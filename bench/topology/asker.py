"""A client of the cluster, on a host of its own: asks at a fixed rate, prints a line for each end.

    python -m bench.topology.asker TARGET QUESTIONS RATE

Every line is one JSON object: how a question ended, and when it was due, on the machine's clock.
"""

import asyncio
import json
import sys
import time
from dataclasses import asdict, replace
from pathlib import Path

from bench.faults.asking import Asking
from bench.faults.load import Load
from bench.faults.rows import Row
from winnow.cli.questions import read_questions
from winnow.client.messages import AnswerClient
from winnow.parent import die_with_parent

DEADLINE = 2.0
"""Seconds that every question has."""
_PASSAGES = 2
"""Few, since all hosts share the processors: it counts whether answers come, not how fast."""


async def main(target: str, questions: Path, rate: float) -> None:
    """Asks until it is ended."""
    async with AnswerClient(target) as client:
        asking = Asking(client, DEADLINE, _PASSAGES)

        async def told(question: str) -> Row:
            began = time.monotonic()
            row = await asking(question)
            ended = replace(row, at=began, seconds=time.monotonic() - began)
            print(json.dumps(asdict(ended)), flush=True)
            return row

        load = Load(told, [each.question for each in read_questions(questions)])
        async with load.at(rate):
            await asyncio.Event().wait()


if __name__ == "__main__":
    die_with_parent()
    asyncio.run(main(sys.argv[1], Path(sys.argv[2]), float(sys.argv[3])))
