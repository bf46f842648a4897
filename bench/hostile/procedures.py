"""Procedures that attack a cluster.

Each procedure asks questions with `stage.load`, which keeps a row for each question. The other
measured values go to `stage.values`.
"""

import asyncio
import contextlib
import signal

from bench.hostile.attacker import attack_process
from bench.hostile.attacks.target import Target
from bench.hostile.criteria import CHANGED, LABEL, outcome_values
from bench.hostile.invariants import baseline_answers, cluster_resources, unexpected_metric_labels
from bench.scenarios.criteria import MIN_ANSWERS
from bench.scenarios.stage import MAX_PHASE_FACTOR, Stage
from winnow.client.messages import AnswerClient
from winnow.errors import UnavailableError

_MEGABYTE = 1 << 20
_MEMORY_TOLERANCE = 64 * _MEGABYTE
_DESCRIPTOR_TOLERANCE = 8
"""Growth of memory in bytes, and of descriptors, up to which they count as released."""
_RELEASE_TIMEOUT = 30.0
"""Maximum time in seconds for a cluster to release memory and descriptors after an attack."""
_ATTACK_SECONDS = 30.0
"""Duration in seconds of the attack during which a process is restarted."""
_OPENING_SECONDS = 7.0
"""Seconds after the start of an attack until all its connections are open."""


async def run_attack(stage: Stage, name: str) -> None:
    """Runs an attack, while a polite client asks questions before and during the attack."""
    answers_before = await baseline_answers(stage)
    async with stage.load.ask_at_rate(stage.rate):
        await stage.run_until_enough_answers("quiet")
        before_attack = cluster_resources(stage)
        stage.begin_phase("attack")
        # long enough for `MIN_ANSWERS`, but at most `MAX_PHASE_FACTOR` phases
        seconds = max(stage.seconds, MIN_ANSWERS * 1.05 / stage.rate)
        target = build_attack_target(stage, min(seconds, stage.seconds * MAX_PHASE_FACTOR))

        def growth() -> int:
            for process, code in stage.cluster.processes.exit_codes().items():
                log = stage.cluster.last_log_lines(process)
                raise UnavailableError(f"{process} ended during the attack, exit code {code}{log}")
            return cluster_resources(stage).memory - before_attack.memory

        end = stage.load.now + target.seconds
        async with attack_process(name, target, growth) as attack:
            stage.values |= outcome_values(await attack.outcomes(target.seconds))
        # a burst ends immediately, but its effect on other clients lasts
        await asyncio.sleep(max(end - stage.load.now, 0.0))
        stage.begin_phase("after")
    stage.values["memory at most"] = attack.max_growth / _MEGABYTE
    stage.values["attacks ended early"] = float(attack.ended_early)
    stage.show_progress("waiting until memory and descriptors are released")

    def resources_are_released() -> bool:
        now = cluster_resources(stage)
        descriptors_released = now.descriptors <= before_attack.descriptors + _DESCRIPTOR_TOLERANCE
        return descriptors_released and now.memory <= before_attack.memory + _MEMORY_TOLERANCE

    with contextlib.suppress(TimeoutError):
        await stage.wait_until(resources_are_released, _RELEASE_TIMEOUT)
    now = cluster_resources(stage)
    stage.values["memory kept"] = (now.memory - before_attack.memory) / _MEGABYTE
    stage.values["descriptors kept"] = now.descriptors - before_attack.descriptors
    await _compare_answers(stage, answers_before)


async def run_soak_attacks(stage: Stage, minutes: float) -> None:
    """Runs several attacks at a low rate for `minutes`, while a polite client asks."""
    answers_before = await baseline_answers(stage)
    seconds = minutes * 60
    async with stage.load.ask_at_rate(stage.rate):
        stage.begin_phase("settling")
        await asyncio.sleep(min(_OPENING_SECONDS, seconds / 10))
        async with attack_process("mixed", build_attack_target(stage, seconds)) as attack:
            stage.begin_phase("first tenth")
            await asyncio.sleep(seconds / 10)
            early_memory = cluster_resources(stage).memory
            stage.begin_phase("between")
            await asyncio.sleep(seconds * 0.8)
            stage.begin_phase("last tenth")
            stage.values |= outcome_values(await attack.outcomes(seconds / 10))
    stage.values["memory growth"] = cluster_resources(stage).memory / early_memory - 1
    await _compare_answers(stage, answers_before)


async def time_shutdown_under_attack(stage: Stage, attack: str) -> None:
    """Restarts a front node and a content node by SIGTERM, each without and during an attack."""
    for process, address in (
        ("front", stage.cluster.fronts[0]),
        ("node 0", stage.cluster.nodes[0]),
    ):
        stage.begin_phase(f"{process} leaves")
        stage.values[f"{process}, seconds when quiet"] = await _time_shutdown(stage, process)
        target = Target(
            front=address, node=address, http=stage.cluster.http, seconds=_ATTACK_SECONDS
        )
        async with attack_process(attack, target):
            await asyncio.sleep(_OPENING_SECONDS)
            stage.values[f"{process}, seconds while attacked"] = await _time_shutdown(
                stage, process
            )


def build_attack_target(stage: Stage, seconds: float) -> Target:
    """Returns the target of an attack: the first front node and the first content node."""
    cluster = stage.cluster
    return Target(
        front=cluster.fronts[0], node=cluster.nodes[0], http=cluster.http, seconds=seconds
    )


async def _time_shutdown(stage: Stage, process: str) -> float:
    """Restarts a process; returns the seconds from SIGTERM to the end of the process."""
    began = stage.load.now
    stage.cluster.processes.send(process, signal.SIGTERM)
    await asyncio.to_thread(stage.cluster.processes.wait, process)
    took = stage.load.now - began
    stage.cluster.processes.restart(process)
    await stage.wait_ready(0)
    async with AnswerClient(stage.cluster.address) as client:
        await stage.wait_until(client.available)
    return took


async def _compare_answers(stage: Stage, answers_before: dict[str, bytes]) -> None:
    """Adds a value to the stage for each changed answer and each unexpected label."""
    stage.show_progress("comparing answers from before and after the attack")
    now = await baseline_answers(stage)
    changed = [question for question, answer in answers_before.items() if now[question] != answer]
    stage.values |= {CHANGED + question: 1.0 for question in changed}
    stage.values |= {LABEL + each: 1.0 for each in await unexpected_metric_labels(stage)}
