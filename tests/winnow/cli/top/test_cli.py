"""`winnow top` beside a real server that shows a cluster."""

import http.server
import json
import os
import pty
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator

import pytest
from shown_cluster import ShowingFront, front_metrics, showing
from tenacious import LONG, until

from winnow.__main__ import main
from winnow.telemetry.endpoint import MetricsEndpoint


@pytest.fixture
def front() -> Iterator[tuple[ShowingFront, str]]:
    with showing() as served:
        yield served


def run(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str, str]:
    capsys.readouterr()
    with pytest.raises(SystemExit) as ended:
        main(["top", "--timeout", str(LONG), *arguments])
    said = capsys.readouterr()
    return int(ended.value.code or 0), said.out, said.err


def test_once_prints_a_table_of_two_samples(
    front: tuple[ShowingFront, str], capsys: pytest.CaptureFixture[str]
) -> None:
    code, out, err = run(capsys, "--address", front[1], "--once", "--every", "0.1")
    assert (code, err) == (0, "")
    assert front[0].looks == 2
    assert "no replica serves shard 1" in out
    assert " questions/s" in out
    assert "- questions/s" not in out


def test_a_key_is_shown_to_the_front(
    front: tuple[ShowingFront, str],
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("WINNOW_TOKEN", "a-token")
    code, out, err = run(capsys, "--address", front[1], "--once", "--every", "0.1")
    assert (code, err) == (0, "")
    assert front[0].told["authorization"] == "Bearer a-token"
    assert "a-token" not in out


def test_json_is_a_line_with_the_cluster_and_what_metrics_tell(
    front: tuple[ShowingFront, str], capsys: pytest.CaptureFixture[str]
) -> None:
    port = MetricsEndpoint(front_metrics(3)).start("127.0.0.1", 0)
    metrics = ["--metrics", f"127.0.0.1:{port}", "--metrics", "127.0.0.1:1"]
    code, out, _ = run(
        capsys, "--address", front[1], "--once", "--json", "--every", "0.1", *metrics
    )
    assert code == 0
    (line,) = out.splitlines()
    said = json.loads(line)
    assert said["cluster"]["shards"][1]["replicas"][0]["state"] == "STATE_UNREACHABLE"
    assert said["cluster"]["front"]["textsInHand"] == 0
    assert said["figures"]["questions"] > 0
    known, away = said["figures"]["processes"]
    assert (known["part"], known["ready"]) == ("front", True)
    assert "refused" in away["fault"]


@pytest.mark.parametrize(
    ("answer", "said"),
    [(b"nonsense {", "not a page of metrics"), (None, "404")],
)
def test_an_address_without_metrics_of_winnow_is_reported(
    front: tuple[ShowingFront, str],
    capsys: pytest.CaptureFixture[str],
    answer: bytes | None,
    said: str,
) -> None:
    class Other(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            if answer is None:
                self.send_error(404)
                return
            self.send_response(200)
            self.end_headers()
            self.wfile.write(answer)

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002
            pass

    server = http.server.HTTPServer(("127.0.0.1", 0), Other)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        metrics = f"127.0.0.1:{server.server_port}"
        code, out, _ = run(
            capsys, "--address", front[1], "--once", "--every", "0.1", "--metrics", metrics
        )
    finally:
        server.shutdown()
        server.server_close()
    assert code == 0
    assert said in out


def test_without_a_front_it_says_so_and_fails(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, err = run(capsys, "--address", "127.0.0.1:1", "--once")
    assert (code, out) == (1, "")
    assert "cannot reach a front node at 127.0.0.1:1" in err


@pytest.mark.parametrize("option", ["--address", "--metrics"])
@pytest.mark.parametrize("value", ["nowhere", "dns:///front:8080"])
def test_one_address_is_one_process(
    capsys: pytest.CaptureFixture[str], option: str, value: str
) -> None:
    code, _, err = run(capsys, option, value)
    assert code == 2
    assert "expected HOST:PORT" in err


@pytest.mark.parametrize("option", ["--every", "--timeout"])
@pytest.mark.parametrize("value", ["inf", "1e12", "nan"])
def test_a_time_that_no_clock_has_is_wrong_usage(
    capsys: pytest.CaptureFixture[str], option: str, value: str
) -> None:
    """gRPC takes the largest numbers for no time at all, and `sleep` for an error."""
    code, _, err = run(capsys, "--once", option, value)
    assert code == 2
    assert f"'{option}': should be" in err


def test_on_a_terminal_it_goes_on_where_the_front_is_away_and_ctrl_c_ends_it_cleanly(
    front: tuple[ShowingFront, str],
) -> None:
    controller, terminal = pty.openpty()
    command = ["-m", "winnow", "top", "--address", front[1], "--every", "0.1"]
    process = subprocess.Popen(
        [sys.executable, *command, "--timeout", str(LONG)],
        stdout=terminal,
        stderr=terminal,
        stdin=terminal,
        env={**os.environ, "TERM": "xterm", "COLUMNS": "160", "LINES": "40"},
    )
    os.close(terminal)
    screen = Screen(controller)
    try:
        until(lambda: "a:9000" in screen.text, LONG)
        front[0].away = True
        until(lambda: "trying again" in screen.text, LONG)
        front[0].away = False
        looks = front[0].looks
        until(lambda: front[0].looks > looks + 2, LONG)
        process.send_signal(signal.SIGINT)
        assert process.wait(LONG) == 0
        until(lambda: screen.ended, LONG)
    finally:
        process.kill()
        process.wait(LONG)
        os.close(controller)
    # the cursor is there again, and what the terminal had shown
    assert screen.text.endswith("\x1b[?25h\x1b[?1049l")
    assert "Traceback" not in screen.text


def test_a_terminal_that_cannot_draw_has_lines(front: tuple[ShowingFront, str]) -> None:
    """Such as the shell of an editor: TERM=dumb."""
    controller, terminal = pty.openpty()
    command = ["-m", "winnow", "top", "--address", front[1], "--every", "0.1"]
    process = subprocess.Popen(
        [sys.executable, *command, "--timeout", str(LONG)],
        stdout=terminal,
        stderr=terminal,
        stdin=terminal,
        env={**os.environ, "TERM": "dumb"},
    )
    os.close(terminal)
    screen = Screen(controller)
    try:
        until(lambda: "a:9000" in screen.text, LONG)
        process.send_signal(signal.SIGINT)
        assert process.wait(LONG) == 0
        until(lambda: screen.ended, LONG)  # else its thread would read from the next descriptor
    finally:
        process.kill()
        process.wait(LONG)
        os.close(controller)
    assert "\x1b" not in screen.text


class Screen:
    """Reads what a terminal is sent."""

    def __init__(self, controller: int) -> None:
        self._controller = controller
        self.text, self.ended = "", False
        threading.Thread(target=self._read, daemon=True).start()

    def _read(self) -> None:
        try:
            while data := os.read(self._controller, 1 << 16):
                self.text += data.decode(errors="replace")
        except OSError:  # the other end was closed
            pass
        self.ended = True
