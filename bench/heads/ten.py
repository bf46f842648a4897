"""Row `ten`: ten heads on one text, against one head."""

import time
from pathlib import Path
from random import Random

from bench.heads.figures import Figure, quantile, ratio
from bench.heads.house import House, house
from bench.heads.stores import head_ids
from winnow.bundle import Bundle
from winnow.deadline import Deadline
from winnow.tools.ladder.texts import Ids, made_up

ROW = "ten"
MOST = 1.3
_TEN = 10


async def ten(bundle: Bundle, store: Path, requests: int) -> list[Figure]:
    """One head and ten in turn, on texts that were not encoded before."""
    texts, ids = made_up(2 * requests, Random(0)), head_ids(_TEN)
    one, all_of_them = list[float](), list[float]()
    with house(bundle, store) as inside:
        await _predict(inside, texts[0], ids)
        for first, second in zip(texts[::2], texts[1::2], strict=True):
            one.append(await _predict(inside, first, ids[:1]))
            all_of_them.append(await _predict(inside, second, ids))
    return [
        quantile(ROW, "one head on a text", one, 0.5),
        quantile(ROW, "ten heads on a text", all_of_them, 0.5),
        ratio(ROW, "ten heads, of one", all_of_them, one, 0.5, MOST),
    ]


async def _predict(inside: House, text: Ids, ids: list[str]) -> float:
    began = time.perf_counter()
    encoding = await inside.texts.encode(text)
    assert encoding.states is not None
    for applied in await inside.heads.apply(encoding.states, ids, Deadline.after(30.0)):
        if applied.failure is not None:
            raise applied.failure
    return time.perf_counter() - began
