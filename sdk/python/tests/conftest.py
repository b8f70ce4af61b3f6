"""Fixtures: both kinds of clients, scripted gateways, and a real suite (`kafila dev`)."""

from __future__ import annotations

import os

# Tests start programs while gRPC runs: its handlers for forks that go on may abort them.
os.environ["GRPC_ENABLE_FORK_SUPPORT"] = "0"

import queue
import signal
import subprocess
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from driver import Driver
from fake import FakeGateway, free_port

REPOSITORY = Path(__file__).parents[3]
START_SECONDS = 60
TEST_SECONDS = 120
"""Limit of one test: one that waits for ever fails, on a busy machine as well."""


@pytest.fixture(autouse=True)
def limit() -> Iterator[None]:
    def late(number: int, frame: object) -> None:
        raise TimeoutError(f"the test has not ended after {TEST_SECONDS} s")

    signal.signal(signal.SIGALRM, late)
    signal.alarm(TEST_SECONDS)
    yield
    signal.alarm(0)


@pytest.fixture(params=["sync", "async"])
def driver(request: pytest.FixtureRequest) -> Iterator[Driver]:
    driver = Driver(request.param)
    yield driver
    driver.close()


@pytest.fixture
def gateway() -> Iterator[FakeGateway]:
    gateway = FakeGateway()
    yield gateway
    gateway.stop()


@pytest.fixture
def other_gateway() -> Iterator[FakeGateway]:
    gateway = FakeGateway()
    yield gateway
    gateway.stop()


def binary() -> str:
    """Returns the path of the command: KAFILA_BIN, or what `cargo build` made."""
    named = os.environ.get("KAFILA_BIN")
    built = [str(REPOSITORY / "target" / kind / "kafila") for kind in ("debug", "release")]
    for path in [named] if named else built:
        if Path(path).is_file():
            return path
    pytest.fail(f"no kafila at {named or ' or '.join(built)}: run cargo build, or set KAFILA_BIN")


class Suite:
    """A running `kafila dev`."""

    def __init__(self) -> None:
        self.binary = binary()
        self.target = f"127.0.0.1:{free_port()}"
        self.address = f"http://{self.target}"
        self._process = subprocess.Popen(
            [self.binary, "dev", "--listen", self.target],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        lines: queue.Queue[str] = queue.Queue()
        threading.Thread(target=self._read, args=(lines,), daemon=True).start()
        seen = []
        try:
            while not (seen and "==> Ready" in seen[-1]):
                seen.append(lines.get(timeout=START_SECONDS))
                assert seen[-1], "kafila dev has ended"
        except (queue.Empty, AssertionError):
            self._process.kill()
            pytest.fail("kafila dev is not ready:\n" + "".join(seen))

    def _read(self, lines: queue.Queue[str]) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            lines.put(line)
        lines.put("")

    def command(self, *arguments: str) -> str:
        """Runs a command and returns its output."""
        done = subprocess.run(
            [self.binary, *arguments],
            env={**os.environ, "KAFILA_ADDR": self.address},
            capture_output=True,
            text=True,
            timeout=60,
        )
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    def stop(self) -> None:
        self._process.send_signal(signal.SIGINT)
        try:
            self._process.wait(30)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
            raise
        finally:
            assert self._process.stdout is not None
            self._process.stdout.close()


@pytest.fixture(scope="session")
def suite() -> Iterator[Suite]:
    suite = Suite()
    yield suite
    suite.stop()
