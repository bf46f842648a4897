"""Faults on a real cluster: what must hold, and whether it does.

    python -m bench.faults --index INDEX --questions FILE [--only NAME] [--seconds N] [--json]

Starts a cluster for every scenario, finds out how much it can answer, asks half of that, and does
harm to it. Everything happens on this machine and through the loopback interface. Where a p99 is
judged, a phase lasts until it has 500 answers, at most four times its seconds; the interval beside
it holds 95 times in 100. Exits with 1 if something does not hold, with 3 if that cannot be told of
something. A run with few seconds only tries the scenarios out: p99 and the 2 000 questions of the
rolling restart need twenty or more.
"""

import gc
import sys
from collections.abc import Sequence
from pathlib import Path

from rich.console import Console

from bench.common.arguments import parser
from bench.common.arguments import questions as read
from bench.faults.judge import Observed
from bench.faults.report import show, tell
from bench.faults.stage import staged
from bench.faults.table import SCENARIOS, Scenario
from winnow import signals


def main() -> int:
    """Runs the scenarios that were asked for; the exit code."""
    arguments = parser("faults", __doc__, asks=True)
    names = [scenario.name for scenario in SCENARIOS]
    arguments.add_argument("--only", choices=names, action="append", help="may be repeated")
    arguments.add_argument("--seconds", type=float, default=20.0, help="of each phase")
    options = arguments.parse_args()
    signals.end_on_signals()
    gc.freeze()  # a client that looks for garbage measures itself
    console = Console(stderr=True, highlight=False)
    questions = read(options.questions)
    results = {}
    for scenario in SCENARIOS:
        if scenario.name in (options.only or names):
            seen = signals.run(_play(scenario, options.index, questions, options.seconds, console))
            results[scenario.name] = (seen, [judge(seen) for judge in scenario.criteria])
            tell(console, scenario.name, results[scenario.name][1])
    told = {each.name: each.fault for each in SCENARIOS}
    return show("fault", told, results, as_json=options.json)


async def _play(
    scenario: Scenario, index: Path, questions: Sequence[str], seconds: float, console: Console
) -> Observed:
    with console.status(scenario.name) as status:

        def say(what: str) -> None:
            status.update(f"{scenario.name} ({scenario.fault}): {what}")

        async with staged(index, questions, scenario.shape, seconds, say) as stage:
            await scenario.course(stage)
            return stage.seen


if __name__ == "__main__":
    sys.exit(main())
