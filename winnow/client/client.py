"""The client for programs with threads."""

import time
from collections.abc import Sequence
from types import TracebackType
from typing import Any, Self, Unpack

import grpc
from grpc_health.v1 import health_pb2

from winnow.client.access import Access
from winnow.client.calls import (
    DEFAULT_ADDRESS,
    DEFAULT_TIMEOUT,
    Metadata,
    caller,
    failure,
    identified,
    seconds,
)
from winnow.client.channels import SERVICE, check_address, open_channel
from winnow.client.connection import Connection, Stubs
from winnow.client.credentials import Credentials
from winnow.client.feeding import (
    DEFAULT_FEED_TIMEOUT,
    Ids,
    PassageFields,
    delete_message,
    put_message,
    results_of,
)
from winnow.client.options import Options, request_message
from winnow.client.predicting import predict_message, predictions_of
from winnow.client.predictions import Predictions
from winnow.client.received import reply_of
from winnow.client.replies import Reply
from winnow.deadline import Deadline
from winnow.domain.write import WriteResult
from winnow.errors import UnavailableError

LOOK_EVERY = 0.1
LOOK_TIMEOUT = 1.0


class Client:
    """Asks a front node, or several alike. Threads may share one; `with` closes it at the end.

    It connects when it first asks, and again after a connection was lost.
    """

    def __init__(
        self,
        address: str = DEFAULT_ADDRESS,
        *,
        client_name: str = "",
        credentials: Credentials | None = None,
    ) -> None:
        """Makes no connection yet.

        Args:
            address: HOST:PORT of a front node; or of several, `dns:///HOST:PORT` or
                `ipv4:ADDRESS:PORT,ADDRESS:PORT`, of which each question takes a healthy one.
            client_name: names the caller to front nodes, which share their time among callers.
                Where they ask for keys, it is the key that names it.
            credentials: certificates and a token, for front nodes that ask for them.

        Raises InvalidRequestError if the address is none, the name is not 1 to 64 letters, digits
        or ._:@-, or the credentials cannot be used.

        """
        self.address = address
        self._caller = caller(client_name)
        check_address(address)
        self._access = access = Access(address, credentials)
        self._connection = Connection(lambda: open_channel(address, access), lambda: access.edition)

    def ask(
        self,
        question: str,
        *,
        timeout: float = DEFAULT_TIMEOUT,
        request_id: str | None = None,
        **options: Unpack[Options],
    ) -> Reply:
        """Asks once, and waits for the reply.

        Args:
            question: 1 to 1000 characters.
            timeout: seconds until the question is given up; shards get less.
            request_id: what logs call the question; a new one if None.
            options: see `winnow.client.Options`.

        Raises InvalidRequestError if `violations` names every field that breaks a rule. Raises
        OverloadedError if the cluster is full; `retry_after` says in how many seconds to try.
        Raises DeadlineExceededError if there was no reply in time. Raises UnavailableError if no
        front node or no shard can be reached. Raises WinnowError if anything else that the front
        node says.

        """
        request, metadata = request_message(question, options), identified(request_id)
        return reply_of(
            question, self._call(self._stubs.answers.Answer, request, timeout, metadata)
        )

    def predict(
        self,
        text: str | Sequence[str],
        heads: str | Sequence[str],
        *,
        ring: str = "",
        timeout: float = DEFAULT_TIMEOUT,
        request_id: str | None = None,
    ) -> Predictions:
        """Applies heads to a text, or to several, and waits for what they say.

        Args:
            text: one of 1 to 2000 characters, or a list of up to 16.
            heads: the id of one head, or up to 32 ids.
            ring: the ring that holds the heads; empty for the front node's default.
            timeout: seconds until the texts are given up.
            request_id: what logs call the request; a new one if None.

        Raises InvalidRequestError if `violations` names every field that breaks a rule. Raises
        NotFoundError if there is no such ring, or no such head in it. Raises OverloadedError if the
        front node is full; `retry_after` says in how many seconds to try. Raises
        DeadlineExceededError if no head was applied in time. Raises UnavailableError if no front
        node can be reached, or it serves no heads. Raises WinnowError if anything else that the
        front node says.

        """
        request, metadata = predict_message(text, heads, ring), identified(request_id)
        return predictions_of(
            request, self._call(self._stubs.heads.Predict, request, timeout, metadata)
        )

    def put(
        self,
        passages: PassageFields | Sequence[PassageFields],
        *,
        timeout: float = DEFAULT_FEED_TIMEOUT,
        request_id: str | None = None,
    ) -> tuple[WriteResult, ...]:
        """Stores a passage, or up to 100, and waits until they are durable.

        The client's address must be that of a front node's --feed-listen. A call that fails may
        have stored a part: send it again, which does no harm.

        Args:
            passages: see `winnow.client.PassageFields`. Of several with one id the last one counts.
            timeout: seconds until the call is given up.
            request_id: what logs call the request; a new one if None.

        Raises InvalidRequestError if `violations` names every field that breaks a rule; nothing was
        stored. Raises OverloadedError if too much is in hand; `retry_after` says in how many
        seconds to try. Raises NotWritableError if the index takes no writes as it is set up; says
        what to change. Raises DeadlineExceededError if it was not stored in time. Raises
        UnavailableError if no front node or a shard cannot be reached. Raises WinnowError if
        anything else that the front node says.

        """
        request, metadata = put_message(passages), identified(request_id)
        return results_of(self._call(self._stubs.feed.Put, request, timeout, metadata))

    def delete(
        self,
        ids: Ids,
        *,
        version: int | None = None,
        timeout: float = DEFAULT_FEED_TIMEOUT,
        request_id: str | None = None,
    ) -> tuple[WriteResult, ...]:
        """Deletes the passage with an id, or up to 1000; an id that is not there is no error.

        Errors and other arguments are those of `put`.

        Args:
            ids: an id, several, or a mapping of ids to versions.
            version: of the deletions that have none of their own. A passage with a higher one
                stays, and no put with a lower one brings it back.
            timeout: seconds until the call is given up.
            request_id: what logs call the request; a new one if None.

        """
        request, metadata = delete_message(ids, version), identified(request_id)
        return results_of(self._call(self._stubs.feed.Delete, request, timeout, metadata))

    def available(self) -> bool:
        """Whether a front node says that it serves."""
        request = health_pb2.HealthCheckRequest(service=SERVICE)
        try:
            reply = self._stubs.health.Check(request, timeout=LOOK_TIMEOUT)
        except grpc.RpcError:
            return False
        return bool(reply.status == health_pb2.HealthCheckResponse.SERVING)

    def wait_ready(self, timeout: float = 60.0) -> None:
        """Waits until a front node serves. Raises UnavailableError if none did within `timeout`
        seconds.
        """
        deadline = Deadline.after(timeout)
        while not self.available():
            if deadline.left() <= 0:
                raise UnavailableError(f"no front node at {self.address} serves")
            time.sleep(LOOK_EVERY)

    def close(self) -> None:
        """Ends the connection; questions still asked are cancelled."""
        self._connection.close()

    def _call(self, method: Any, request: Any, timeout: float, metadata: Metadata) -> Any:
        sent = (*metadata, *self._caller, *self._access.metadata())
        call = method.future(request, timeout=seconds(timeout), metadata=sent)
        try:
            return call.result()
        except grpc.RpcError as error:
            raise failure(error, self.address, timeout, metadata) from error
        except BaseException:  # Ctrl-C: nobody waits for what shards still read
            call.cancel()
            raise

    @property
    def _stubs(self) -> Stubs:
        return self._connection.stubs

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()
