"""The client for programs with threads."""

import time
from collections.abc import Sequence
from typing import Any, Self, TypeVar, Unpack

import grpc
from grpc_health.v1 import health_pb2, health_pb2_grpc

from winnow.client.calls import (
    DEFAULT_ADDRESS,
    DEFAULT_TIMEOUT,
    Call,
    CallOptions,
    Metadata,
    failure,
    identified,
)
from winnow.client.channels import SERVICE, ThreadedChannel, check_address
from winnow.client.credentials import Access, Credentials
from winnow.client.feeding import DEFAULT_FEED_TIMEOUT, Ids, PassageFields, delete_call, put_call
from winnow.client.options import Options, answer_call
from winnow.client.predicting import Predictions, predict_call
from winnow.client.replies import Reply
from winnow.deadline import Deadline
from winnow.domain.write import WriteResult
from winnow.errors import UnavailableError

CHECK_EVERY = 0.1
CHECK_TIMEOUT = 1.0
Result = TypeVar("Result")


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
        check_address(address)
        self.address = address
        access = Access(address, credentials)
        self._options = CallOptions(access, client_name)
        self._channel = ThreadedChannel(address, access)

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
        return self._run(answer_call(question, options), timeout, request_id)

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
        return self._run(predict_call(text, heads, ring), timeout, request_id)

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
        return self._run(put_call(passages), timeout, request_id)

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
        return self._run(delete_call(ids, version), timeout, request_id)

    def available(self) -> bool:
        """Whether a front node reports that it serves."""
        request = health_pb2.HealthCheckRequest(service=SERVICE)
        health = health_pb2_grpc.HealthStub(self._channel.newest)
        try:
            reply = health.Check(request, timeout=CHECK_TIMEOUT)
        except grpc.RpcError:
            return False
        return bool(reply.status == health_pb2.HealthCheckResponse.SERVING)

    def wait_ready(self, timeout: float = 60.0) -> None:
        """Waits until a front node serves.

        Raises UnavailableError if none did within `timeout` seconds.
        """
        deadline = Deadline.after(timeout)
        while not self.available():
            if deadline.left() <= 0:
                raise UnavailableError(f"no front node at {self.address} serves")
            time.sleep(CHECK_EVERY)

    def close(self) -> None:
        """Closes the connection and cancels the questions in hand."""
        self._channel.close()

    def _run(self, call: Call[Result], timeout: float, request_id: str | None) -> Result:
        return call.result(self.reply(call, timeout, identified(request_id)))

    def reply(self, call: Call[Result], timeout: float, identity: Metadata) -> Any:
        """The message that a front node replies with. Raises a WinnowError if the call fails."""
        options = self._options.of(timeout, identity)
        running = call.on(self._channel.newest).future(call.request, **options)
        try:
            return running.result()
        except grpc.RpcError as error:
            raise failure(error, self.address, timeout, identity) from error
        except BaseException:  # Ctrl-C: nobody waits for the shards any more
            running.cancel()
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
