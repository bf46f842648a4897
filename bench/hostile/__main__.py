"""Hostile clients on a real cluster: what must hold, and whether it does.

    python -m bench.hostile --index INDEX --questions FILE
        [--only NAME] [--seconds N] [--minutes N] [--json]

Starts one cluster and attacks it in many ways, one after the other, while a polite client goes on
asking. Everything happens on this machine and through the loopback interface; every attack is
bounded in count and time, and ends early if the cluster grows by more than 1 GB. Phases last until
they have 500 answers, at most four times their seconds. Exits with 1 if something does not hold,
with 3 if that cannot be told of something.
"""

import gc
import resource
import sys
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path

from rich.console import Console
from rich.status import Status

from bench.common.arguments import parser
from bench.common.arguments import questions as read
from bench.faults.judge import LEAST_ANSWERS, Finding, Observed
from bench.faults.report import show, tell
from bench.faults.stage import Shape, Stage, staged
from bench.hostile.table import MINUTES, Scenario, scenarios
from winnow import signals

_SHAPE = Shape(passages=1, least=LEAST_ANSWERS, client="polite", http=True)
_SHARE = 0.5
"""Of the rate that faults are tried at: a polite client, not half a load."""


def main() -> int:
    """Runs the scenarios that were asked for; the exit code."""
    arguments = parser("hostile", __doc__, asks=True)
    names = [scenario.name for scenario in scenarios()]
    arguments.add_argument("--only", choices=names, action="append", help="may be repeated")
    arguments.add_argument("--seconds", type=float, default=20.0, help="of each phase")
    arguments.add_argument("--minutes", type=float, default=MINUTES, help="of the soak")
    options = arguments.parse_args()
    signals.end_on_signals()
    gc.freeze()  # a client that looks for garbage measures itself
    _raise_limit()
    questions = read(options.questions)
    chosen = [each for each in scenarios(options.minutes) if each.name in (options.only or names)]
    console = Console(stderr=True, highlight=False)
    results = signals.run(_play(chosen, options.index, questions, options.seconds, console))
    told = {each.name: each.said for each in chosen}
    return show("attack", told, results, as_json=options.json)


async def _play(
    chosen: Sequence[Scenario],
    index: Path,
    questions: Sequence[str],
    seconds: float,
    console: Console,
) -> dict[str, tuple[Observed, list[Finding]]]:
    """All on one cluster: what one attack leaves behind, the next one finds."""
    results = {}
    with console.status("starting") as status:
        async with staged(index, questions, _SHAPE, seconds, status.update) as stage:
            stage.rate *= _SHARE
            for scenario in chosen:
                seen = await _seen(stage, scenario, questions, status)
                results[scenario.name] = (seen, [judge(seen) for judge in scenario.criteria])
                tell(console, scenario.name, results[scenario.name][1])
    return results


async def _seen(
    stage: Stage, scenario: Scenario, questions: Sequence[str], status: Status
) -> Observed:
    def say(what: str) -> None:
        status.update(f"{scenario.name} ({scenario.said}): {what}")

    stage.say = say
    stage.load.rows.clear()
    stage.marks.clear()
    await scenario.course(stage, questions)
    return Observed(defaultdict(list, stage.load.rows), dict(stage.marks))


def _raise_limit() -> None:
    """As many descriptors as are allowed; the cluster's processes inherit it."""
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))


if __name__ == "__main__":
    sys.exit(main())
