"""A page with parts that are made: between `<!-- NAME: made -->` and `<!-- end -->`. Pure."""

import re
from collections.abc import Iterable


def replaced(page: str, name: str, lines: Iterable[str]) -> str:
    """The page with another content of one part.

    Raises:
        ValueError: the page has no such part.

    """
    part = re.compile(rf"(<!-- {name}: made -->\n).*?(<!-- end -->)", re.DOTALL)
    if not part.search(page):
        raise ValueError(f"the page has no part {name}: add <!-- {name}: made --> and <!-- end -->")
    text = "\n".join(lines)
    return part.sub(lambda found: f"{found[1]}\n{text}\n\n{found[2]}", page, count=1)
