"""Composes the service of passages: search, listing, lookup, count and export."""

from collections.abc import Callable
from dataclasses import dataclass

from winnow.inference.fair_threads import FairThreads
from winnow.stateless.answer.admission import Admission
from winnow.stateless.answer.calls import SearchLimits
from winnow.stateless.answer.validation import QuestionDefaults
from winnow.stateless.cluster.cluster import Cluster
from winnow.stateless.composing.front import Front
from winnow.stateless.encoding import QuestionEncoder, Weigh
from winnow.stateless.http.call import OperationLimits
from winnow.stateless.http.stored_passages import passage_operations
from winnow.stateless.passages.core import PassageCore, PassageIndex
from winnow.stateless.passages.searching import PassageSearch
from winnow.stateless.passages.servicer import SERVICE, PassageMessages, PassageServicer
from winnow.v1 import passage_pb2_grpc


@dataclass(frozen=True, slots=True)
class OpenPassages:
    """The passage core, the threads that convert its results, and its servicer."""

    core: PassageCore
    threads: FairThreads
    servicer: PassageServicer

    def set_cluster(
        self,
        cluster: Cluster,
        encoder: QuestionEncoder,
        limits: SearchLimits,
        weigh: Weigh,
    ) -> None:
        """Makes all later calls use `cluster`."""
        search = PassageSearch(encoder, cluster, limits=limits, threads=self.threads, weigh=weigh)
        self.core.set_index(PassageIndex(cluster, search))


def open_passages(
    front: Front,
    defaults: QuestionDefaults,
    admission: Admission,
    on_call: Callable[[], None],
) -> OpenPassages:
    """Adds the service of passages to the front. Its calls are admitted together with questions.

    `on_call` is called for every call.
    """
    threads = FairThreads(1, "passages")
    front.stack.callback(threads.close)
    core = PassageCore(defaults, admission, on_call)
    messages = PassageMessages(core, threads)
    limits = OperationLimits(front.settings.default_deadline, admission.refusal)
    front.rejection.add(SERVICE, admission.refusal)
    servicer = PassageServicer(messages, limits.default_deadline)
    passage_pb2_grpc.add_PassageServiceServicer_to_server(servicer, front.services)
    front.http_operations.extend(passage_operations(messages, limits))
    return OpenPassages(core, threads, servicer)
