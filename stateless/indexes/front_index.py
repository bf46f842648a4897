"""The parts of a front that serve one index, and the choice among several indexes by name."""

from collections.abc import Callable
from dataclasses import dataclass

from winnow.domain.catalog import check_is_default
from winnow.domain.cluster_state import ClusterState
from winnow.errors import NotFoundError, NotServedError, UnavailableError
from winnow.stateless.answer.admission import Admission
from winnow.stateless.answer.core import AnswerCore
from winnow.stateless.cluster.status import ClusterReporter
from winnow.stateless.feed.fed_index import FedIndex
from winnow.stateless.passages.core import PassageCore
from winnow.stateless.tenants.tenancy import Tenancy


@dataclass(frozen=True, slots=True, kw_only=True)
class FrontIndex:
    """The parts of a front that serve one index."""

    answers: AnswerCore
    passages: PassageCore
    admission: Admission
    """Admits questions and calls for passages."""
    reporter: ClusterReporter
    """Reports the state of the cluster of the index."""
    tenancy: Tenancy
    """Tells the tenant of each request."""
    feed: FedIndex | None = None
    """Takes writes; None if the front takes none."""

    @property
    def writable(self) -> FedIndex:
        """The part that takes writes; raises NotServedError if there is none."""
        if self.feed is None:
            raise NotServedError("this front takes no writes: start it with --feed-listen")
        return self.feed


@dataclass(frozen=True, slots=True)
class ChosenIndex:
    """The index of a request."""

    parts: FrontIndex
    name: str | None = None
    """Name of the index; None if the front serves a single index."""
    generation: int | None = None
    """Version of the catalog since which the requested name stands for the index."""


ChooseIndex = Callable[[str], ChosenIndex]
"""Chooses the index of a requested name, which is empty for the default index.

Raises NotFoundError if there is none, and UnavailableError if the front does not serve it yet.
"""


def only_index(parts: FrontIndex) -> ChooseIndex:
    """Returns the choice of a front that serves a single index without a name."""
    chosen = ChosenIndex(parts)

    def choose(name: str) -> ChosenIndex:
        check_is_default(name)
        return chosen

    return choose


def state_of_index(choose: ChooseIndex | None, name: str) -> ClusterState:
    """Returns the state of the cluster of an index. `choose` is None for a front without an index.

    The state of the default index is empty if there is none, or it is not open yet: operators still
    see the front. Raises as `choose` for another name.
    """
    if choose is None:
        return ClusterState()
    try:
        return choose(name).parts.reporter.report()
    except (NotFoundError, UnavailableError):
        if name:
            raise
        return ClusterState()
