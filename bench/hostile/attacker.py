"""The process that attacks: apart from the polite client, which it must not make slow itself.

    python -m bench.hostile.attacker NAME FRONT NODE HTTP SECONDS SEED

Prints how often each outcome came, as JSON. Gives way to all others, as if it were a machine of its
own.
"""

import asyncio
import json
import os
import sys

from bench.hostile.attacks import Attack, Target, calls, half, http, mixed, sockets
from winnow.parent import die_with_parent

ATTACKS: dict[str, Attack] = {
    "questions": calls.questions,
    "shards": calls.shards,
    "bombs": calls.bombs,
    "connections": sockets.connections,
    "watches": calls.watches,
    "reflections": calls.reflections,
    "streams": calls.streams,
    "others": sockets.others,
    "cancels": calls.cancels,
    "half-sent": half.half_sent,
    "burst": calls.burst,
    "mixed": mixed.mixed,
    "held": mixed.held,
    "http": http.requests_at_random,
    "http-held": http.connections,
    "http-bodies": http.bodies,
}
_NICE = 10


def main() -> None:
    """Attacks once."""
    die_with_parent()
    os.nice(_NICE)
    name, front, node, face, seconds, seed = sys.argv[1:]
    target = Target(front, node, float(seconds), int(seed), face)
    print(json.dumps(asyncio.run(ATTACKS[name](target))))


if __name__ == "__main__":
    main()
