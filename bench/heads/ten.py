"""Row `ten`: ten heads on one text, against one head."""

import time
from pathlib import Path
from random import Random

from bench.common.figures import Figure, quantile, ratio
from bench.heads.house import House, house
from bench.heads.stores import head_ids
from winnow.bundle import Bundle
from winnow.cli.ladder.texts import Ids, made_up

ROW = "ten"
MOST = 1.3
_TEN = 10
_DEADLINE = 30.0


async def ten(bundle: Bundle, store: Path, requests: int) -> list[Figure]:
    """One head and ten in turn, on texts that were not encoded before."""
    texts, ids = made_up(2 * requests, Random(0)), head_ids(_TEN)
    one, all_of_them = list[float](), list[float]()
    with house(bundle, store) as inside:
        await _predict(inside, texts[0], ids)
        for number, text in enumerate(texts):
            # who goes first finds colder caches: one, ten, ten, one
            heads, taken = (ids, all_of_them) if number % 4 in (1, 2) else (ids[:1], one)
            taken.append(await _predict(inside, text, heads))
    return [
        quantile(ROW, "one head on a text", one, 0.5),
        quantile(ROW, "ten heads on a text", all_of_them, 0.5),
        ratio(ROW, "ten heads, of one", all_of_them, one, 0.5, MOST),
    ]


async def _predict(inside: House, text: Ids, ids: list[str]) -> float:
    began = time.perf_counter()
    await inside.predict(text, ids, _DEADLINE)
    return time.perf_counter() - began
