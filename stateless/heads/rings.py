"""The rings of a front."""

from collections.abc import Sequence

from winnow.errors import NotFoundError, UnavailableError, WinnowError
from winnow.quoting import quoted
from winnow.stateless.heads.ring import Ring


class Rings:
    """Rings by name; the first one is the default."""

    def __init__(self, rings: Sequence[Ring] = ()) -> None:
        """`rings`: none where the front serves no heads.

        Raises:
            WinnowError: two have the same name.

        """
        self._rings: dict[str, Ring] = {}
        for ring in rings:
            if ring.name in self._rings:
                raise WinnowError(
                    f"two rings have the name {ring.name}; the default one has that of its "
                    "bundle: give the other one another name"
                )
            self._rings[ring.name] = ring

    @property
    def default(self) -> Ring:
        """The ring of requests that name none; raises UnavailableError if there is no ring."""
        if not self._rings:
            raise UnavailableError("this front serves no heads: start it with --heads STORE")
        return next(iter(self._rings.values()))

    def find(self, name: str) -> Ring:
        """The ring of that name, or the default one if it is empty.

        Raises:
            NotFoundError: there is none; names those that there are.
            UnavailableError: there is no ring at all.

        """
        default = self.default
        if name and name not in self._rings:
            known = ", ".join(self._rings)
            raise NotFoundError(f"there is no ring {quoted(name)} here: there is {known}")
        return self._rings[name] if name else default

    def get(self, name: str) -> Ring | None:
        """The ring of that name, if it is here."""
        return self._rings.get(name)

    def all(self) -> list[Ring]:
        """All rings, the default one first."""
        return list(self._rings.values())

    async def warm_up(self) -> None:
        """Warms up the encoder of each ring."""
        for ring in self.all():
            await ring.warm_up()
