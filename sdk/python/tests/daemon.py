"""A real daemon in a directory of its own, which ends with its test."""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import subprocess
from collections.abc import Iterator, Mapping
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]


def binary() -> Path:
    """The program under test: `ACPD_BIN`, else what `cargo build` makes."""
    path = Path(os.environ.get("ACPD_BIN") or ROOT / "target" / "debug" / "acpd")
    if not os.access(path, os.X_OK):
        raise RuntimeError(f"there is no program {path}; run `cargo build`, or name one with ACPD_BIN")
    return path.absolute()


class Daemon:
    """`acpd serve` with a state directory. Killed and started again, it has the same port and the same state."""

    def __init__(self, scratch: Path, config: str = "") -> None:
        self.scratch = scratch
        self.state = scratch / "state"
        self.work = scratch / "work"
        self.work.mkdir()
        self.config = scratch / "config.toml"
        self.config.write_text(config)
        # Held, so that nobody takes the port between its end and its next start.
        self._port = socket.socket()
        self._port.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        self._port.bind(("127.0.0.1", 0))
        self._listen = f"127.0.0.1:{self._port.getsockname()[1]}"
        self.url = ""
        self._process: subprocess.Popen[str] | None = None
        self.start()

    def environment(self) -> Mapping[str, str]:
        """Of every acpd here: nothing of the machine's own configuration or state."""
        kept = {name: value for name, value in os.environ.items() if not name.startswith(("ACPD_", "XDG_"))}
        here = {**kept, "HOME": str(self.scratch), "XDG_RUNTIME_DIR": str(self.scratch)}
        # One that is killed ends its agents, unless the test's configuration is asked for something else.
        return here if "[continuity]" in self.config.read_text() else {**here, "ACPD_CONTINUITY_KEEP": "0s"}

    def start(self) -> None:
        """Begins to serve; returns when it listens."""
        command = [str(binary()), "serve", "--listen", self._listen]
        command += ["--state-dir", str(self.state), "--config", str(self.config)]
        with (self.scratch / "log").open("a") as log:
            process = subprocess.Popen(
                command, env=self.environment(), stdout=subprocess.PIPE, stderr=log, text=True, cwd=self.scratch
            )
        self._process = process
        assert process.stdout is not None
        for line in process.stdout:
            if line.startswith("listening on http"):
                self.url = line.removeprefix("listening on ").strip()
                return
        raise RuntimeError(f"acpd did not start: {(self.scratch / 'log').read_text()}")

    @property
    def socket(self) -> Path:
        """Its Unix socket."""
        return next(path for path in self.state.iterdir() if path.is_socket())

    def kill(self) -> None:
        """As `kill -9` does."""
        self._end(signal.SIGKILL)

    def stop(self) -> None:
        """As an operator does; for good if it takes too long."""
        try:
            self._end(signal.SIGTERM)
        except subprocess.TimeoutExpired:
            self.kill()
            raise

    def release(self) -> None:
        """Gives up its port; it is not started again."""
        self._port.close()

    def _end(self, number: signal.Signals) -> None:
        process = self._process
        if process is None:
            return
        process.send_signal(number)
        process.wait(60)
        assert process.stdout is not None
        process.stdout.close()
        self._process = None

    def acpd(self, *arguments: str) -> str:
        """What a command of acpd prints."""
        command = [str(binary()), *arguments, "--config", str(self.config)]
        done = subprocess.run(command, env=self.environment(), capture_output=True, text=True, check=True)
        return done.stdout.strip()


@contextlib.contextmanager
def serving(scratch: Path, config: str = "") -> Iterator[Daemon]:
    """A daemon for as long as the block takes."""
    daemon = Daemon(scratch, config)
    try:
        yield daemon
    finally:
        daemon.stop()
        daemon.release()
