"""A cluster of processes with mutual TLS between all parts, and keys on its front."""

import asyncio
import json
import os
import re
import shutil
import ssl
import subprocess
import sys
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import grpc
import httpx
import pytest
from certificates import Authority
from tenacious import LONG, until

from winnow.cli.keys.changing import add_key, remove_key
from winnow.cli.local.cluster import LocalCluster, LocalPlan
from winnow.cli.local.ports import free_ports
from winnow.client import Client, Credentials, Outcome, PassageFields
from winnow.client.channels import open_channel
from winnow.client.credentials import LiveCredentials
from winnow.errors import PermissionDeniedError, UnauthenticatedError, UnavailableError
from winnow.keys.key import Scope
from winnow.packaged import default_bundle
from winnow.security.metrics import expiries
from winnow.v1 import feed_pb2, feed_pb2_grpc

ASKED = "How many hearts does an octopus have?"
NAME = "winnow.test"


@dataclass(frozen=True)
class Secured:
    cluster: LocalCluster
    authority: Authority
    keys: Path
    http: str
    health: str
    own: Credentials
    """Credentials with a certificate and without a token."""

    def credentials(self, token: str) -> Credentials:
        return Credentials(
            ca=self.own.ca, cert=self.own.cert, key=self.own.key, server_name=NAME, token=token
        )

    def new_key(self, name: str, *scopes: Scope) -> Credentials:
        return self.credentials(add_key(self.keys, name, scopes, None))


@pytest.fixture(scope="module")
def secured(
    indexes: dict[int, Path], tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Secured]:
    directory = tmp_path_factory.mktemp("secured")
    index = shutil.copytree(indexes[1], directory / "index")
    authority, keys = Authority(directory), directory / "keys.json"
    files = authority.issue("node", [NAME])
    own = Credentials(ca=files.ca, cert=files.cert, key=files.key, server_name=NAME)
    token = add_key(keys, "first", [Scope.ASK], None)
    http, health = (f"127.0.0.1:{port}" for port in free_ports(2))
    tls = [f"--tls-cert={files.cert}", f"--tls-key={files.key}", f"--tls-client-ca={files.ca}"]
    peers = [f"--peer-cert={files.cert}", f"--peer-key={files.key}", f"--peer-ca={files.ca}"]
    plan = LocalPlan(
        index,
        default_bundle(),
        "127.0.0.1:0",
        front=(*tls, *peers, f"--peer-name={NAME}", f"--keys={keys}", f"--http-listen={http}"),
        node=(*tls,),
        feed_listen="127.0.0.1:0",
        health_listen=health,
        reader_threads=1,
    )
    with LocalCluster(plan) as cluster:
        cluster.start()
        made = Secured(cluster, authority, keys, http, health, own)
        asyncio.run(cluster.wait_ready())
        with Client(cluster.address, credentials=made.credentials(token)) as client:
            client.ask(ASKED)
        yield made


def answers(secured: Secured, credentials: Credentials) -> bool:
    """Whether a question with these credentials is answered."""
    with Client(secured.cluster.address, credentials=credentials) as client:
        try:
            client.ask(ASKED, timeout=LONG)
        except UnauthenticatedError:
            return False
    return True


def test_added_and_removed_keys_take_effect_while_a_front_serves(secured: Secured) -> None:
    credentials = secured.new_key("alice", Scope.ASK)
    until(lambda: answers(secured, credentials))
    remove_key(secured.keys, "alice")
    until(lambda: not answers(secured, credentials))


def test_the_scopes_of_a_key_decide_whether_it_may_feed_or_ask(secured: Secured) -> None:
    feeder, asker = secured.new_key("feeder", Scope.FEED), secured.new_key("asker", Scope.ASK)
    until(lambda: answers(secured, asker))
    passage: PassageFields = {
        "id": "zorblax",
        "title": "Zorblax",
        "text": "Zorblax is a word for tests.",
    }
    with (
        Client(secured.cluster.feed, credentials=asker) as client,
        pytest.raises(PermissionDeniedError, match="lacks the scope 'feed'"),
    ):
        client.put(passage)
    with Client(secured.cluster.feed, credentials=feeder) as client:
        assert [each.outcome for each in client.put(passage)] == [Outcome.STORED]
    with (
        Client(secured.cluster.address, credentials=feeder) as client,
        pytest.raises(PermissionDeniedError, match="lacks the scope 'ask'"),
    ):
        client.ask(ASKED)


def test_an_idle_stream_ends_when_its_key_is_removed(secured: Secured) -> None:
    credentials = secured.new_key("streamer", Scope.FEED, Scope.ASK)
    until(lambda: answers(secured, credentials))
    access = LiveCredentials(secured.cluster.feed, credentials)
    with open_channel(secured.cluster.feed, access) as channel:
        put = feed_pb2_grpc.FeedServiceStub(channel).PutStream
        passage, ended = feed_pb2.FedPassage(id="idle", text="It is idle."), threading.Event()

        def idle() -> Iterator[feed_pb2.PutRequest]:
            yield feed_pb2.PutRequest(passages=[passage])
            remove_key(secured.keys, "streamer")
            ended.wait(LONG)

        call = put.future(idle(), timeout=LONG, metadata=access.metadata())
        call.add_done_callback(lambda _: ended.set())
        with pytest.raises(grpc.RpcError, match="streamer was revoked") as caught:
            call.result()
    assert caught.value.code() is grpc.StatusCode.UNAUTHENTICATED


def test_no_process_accepts_a_connection_without_a_certificate(secured: Secured) -> None:
    for address in (secured.cluster.address, secured.cluster.feed, *secured.cluster.nodes):
        for credentials in (Credentials(), Credentials(ca=secured.own.ca, server_name=NAME)):
            with (
                Client(address, credentials=credentials) as client,
                pytest.raises(UnavailableError),
            ):
                client.ask(ASKED)


def test_http_requires_the_same_certificate_and_key(secured: Secured) -> None:
    token = add_key(secured.keys, "browser", [Scope.ASK], None)
    until(lambda: answers(secured, secured.credentials(token)))
    context = ssl.create_default_context(cafile=str(secured.own.ca))
    context.check_hostname = False
    assert secured.own.cert is not None
    context.load_cert_chain(secured.own.cert, secured.own.key)
    with httpx.Client(base_url=f"https://{secured.http}", verify=context, timeout=LONG) as client:
        assert client.get("/readyz").status_code == 200
        body = {"question": ASKED}
        refused = client.post("/v1/answer", json=body)
        assert refused.status_code == 401
        assert refused.headers["www-authenticate"] == "Bearer"
        headers = {"authorization": f"Bearer {token}"}
        assert client.get("/metrics", headers=headers).status_code == 403
        replied = client.post("/v1/answer", json=body, headers=headers)
        assert replied.status_code == 200
        assert replied.json()["answers"][0]["text"] == "three"
    with pytest.raises(httpx.HTTPError):
        httpx.get(f"http://{secured.http}/readyz", timeout=LONG)


def test_metrics_report_certificate_expiry_and_calls_refused_for_their_keys(
    secured: Secured,
) -> None:
    token = add_key(secured.keys, "watcher", [Scope.ADMIN, Scope.ASK], None)
    until(lambda: answers(secured, secured.credentials(token)))
    context = ssl.create_default_context(cafile=str(secured.own.ca))
    context.check_hostname = False
    assert secured.own.cert is not None
    context.load_cert_chain(secured.own.cert, secured.own.key)
    with httpx.Client(base_url=f"https://{secured.http}", verify=context, timeout=LONG) as client:
        assert client.post("/v1/predict", json={}).status_code == 404  # no heads are served
        assert client.get("/v1/cluster").status_code == 401
        page = client.get("/metrics", headers={"authorization": f"Bearer {token}"}).text
    refused = 'winnow_front_key_refusals_total{reason="unauthenticated",scope="admin"} 1.0'
    assert refused in page
    (end,) = expiries(Path(secured.own.cert).read_bytes())
    shown = dict(re.findall(r'winnow_certificate_expiry_\w+{file="(\w+)"} (\S+)', page))
    assert shown.keys() == {"tls_cert", "tls_client_ca", "peer_cert", "peer_ca"}
    assert float(shown["tls_cert"]) == float(shown["peer_cert"]) == end


def test_commands_read_credentials_from_variables(secured: Secured) -> None:
    """Variables do not show tokens in lists of processes."""
    token = add_key(secured.keys, "shell", [Scope.ASK], None)
    until(lambda: answers(secured, secured.credentials(token)))
    files = secured.authority.issue("shell", ["127.0.0.1"])
    environment = {
        **os.environ,
        "WINNOW_CA": str(files.ca),
        "WINNOW_CERT": str(files.cert),
        "WINNOW_KEY": str(files.key),
        "WINNOW_TOKEN": token,
    }
    words = [sys.executable, "-m", "winnow", "ask", "--json", "--timeout", str(LONG)]
    words += ["--address", secured.cluster.address]

    def asked() -> subprocess.CompletedProcess[bytes]:
        return subprocess.run(
            [*words, ASKED], env=environment, capture_output=True, timeout=LONG, check=False
        )

    done = asked()
    # the name of the front is not that of its address
    assert done.returncode == 1
    assert b"another authority or name" in done.stderr
    secured.authority.issue("node", [NAME, "127.0.0.1"])
    done = asked()
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["answer"] == "three"


def test_no_token_is_in_any_log(secured: Secured) -> None:
    logs = b"".join(os.pread(log.fileno(), 1 << 22, 0) for log in secured.cluster._logs.values())
    assert b"keys read again" in logs
    assert b"wnw_" not in logs
    assert b"PRIVATE" not in logs
    assert b"Handshake failed" not in logs, "a line for a failed connection"
