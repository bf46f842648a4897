"""The status core: reports the state of a front and of its cluster.

The core knows neither gRPC nor HTTP. Both call `show` and convert its result.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from winnow.deadline import Clock
from winnow.domain.cluster_state import ClusterReport, ClusterState, FrontState
from winnow.domain.prediction import EncoderGroupInfo
from winnow.stateless.status.work import FrontWork


@dataclass(frozen=True, slots=True)
class FrontVersion:
    """The version and the bundle of a front."""

    version: str
    """Version of Winnow that the front runs."""
    bundle: str
    """Name of the bundle."""
    fingerprint: str
    """Fingerprint of the bundle."""


class StatusCore:
    """Reports the state of a front and of its cluster."""

    def __init__(
        self,
        version: FrontVersion,
        work: FrontWork,
        *,
        cluster: Callable[[str], ClusterState],
        groups: Callable[[], Sequence[EncoderGroupInfo]],
        clock: Clock,
    ) -> None:
        """Takes the current time of `clock` as the start of the front.

        `cluster` returns the state of the cluster of an index by its name.
        """
        self._version, self._work = version, work
        self._cluster, self._groups = cluster, groups
        self._clock, self._started = clock, clock()

    def show(self, index: str = "") -> ClusterReport:
        """Returns the state of the front and of the cluster of an index.

        The state is in memory: no process is called. `index` is empty for the default index. Raises
        NotFoundError if there is no such index.
        """
        return ClusterReport(self._front(), self._cluster(index), self._groups())

    def _front(self) -> FrontState:
        version, work = self._version, self._work
        state = FrontState(
            version=version.version,
            bundle_name=version.bundle,
            bundle_fingerprint=version.fingerprint,
            up_seconds=self._clock() - self._started,
            feeds=work.passages is not None,
            texts_in_hand=work.texts.in_flight if work.texts else 0,
            passages_in_hand=work.passages.in_flight if work.passages else 0,
            windows_in_hand=work.windows.in_flight if work.windows else None,
        )
        if work.answering is None or work.questions is None:
            return state
        return replace(
            state,
            answers=work.answering.ready,
            questions_answered=work.answering.answered_questions,
            questions_refused=work.questions.refused_questions,
            questions_in_hand=work.questions.in_flight,
            reads_in_hand=work.questions.reads_in_flight,
            seconds_per_read=work.seconds_per_read() or 0.0,
        )
