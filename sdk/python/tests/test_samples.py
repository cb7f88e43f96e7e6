"""The examples and the samples of README.md run, and do what they say."""

from __future__ import annotations

import io
import os
import re
import runpy
import subprocess
import sys
from pathlib import Path

import pytest
from daemon import Daemon

from acpd_client import PermissionRequestedEvent, SyncAcpdClient

PROJECT = Path(__file__).resolve().parents[1]


class Terminal:
    """Runs programs here, as the one that runs the tests is slow to start."""

    def __init__(self, patch: pytest.MonkeyPatch, captured: pytest.CaptureFixture[str]) -> None:
        self._patch = patch
        self._captured = captured

    def run(self, name: str, *arguments: str, said: str = "", status: int | None = None) -> str:
        """What an example prints."""
        self._patch.setattr(sys, "argv", [name, *arguments])
        self._patch.setattr(sys, "stdin", io.StringIO(said))
        ended = None
        try:
            runpy.run_path(example(name), run_name="__main__")
        except SystemExit as left:
            ended = left.code
        assert ended == status
        return self._captured.readouterr().out

    def sample(self, text: str) -> str:
        """What a sample prints."""
        exec(compile(text, "README.md", "exec"), {"__name__": "__main__"})
        return self._captured.readouterr().out


@pytest.fixture
def terminal(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Terminal:
    return Terminal(monkeypatch, capsys)


def example(name: str) -> str:
    return str(PROJECT / "examples" / name)


def samples() -> list[str]:
    return re.findall(r"```python\n(.*?)```", (PROJECT / "README.md").read_text(), re.S)


# issue 12: examples that CI runs
def test_a_turn_is_shown(shared: Daemon, terminal: Terminal) -> None:
    place = str(shared.work)
    shown = terminal.run("turn.py", shared.url, place, "hello there", status=0)
    assert shown == "hello there\n[the turn ended: end_turn]\n"
    crash = terminal.run("turn.py", shared.url, place, "crash", status=1)
    assert "the agent ended: agent exited with exit status: 1" in crash
    assert "crash line 250" in crash


# inspector: SDK: answering a question of the agent
def test_questions_are_answered(shared: Daemon, terminal: Terminal) -> None:
    with SyncAcpdClient(shared.url) as client:
        session = client.create_session(shared.work, "ask edit Change it", close_after_turn=True)
        next(e for e in client.events(session.session_id) if isinstance(e, PermissionRequestedEvent))
        out = terminal.run("answer.py", shared.url, said="1\n")
        assert "Change it" in out
        assert client.wait_for_end(session.session_id).last_stop_reason == "end_turn"


# contract 5: onSessionEnded; restarts are waited out
def test_ends_are_told(daemon: Daemon) -> None:
    with SyncAcpdClient(daemon.url) as client:
        made = [client.create_session(daemon.work).session_id for _ in range(2)]
        process = subprocess.Popen(
            [sys.executable, example("ends.py"), daemon.url],
            env={**os.environ, "PYTHONPATH": str(PROJECT / "src")},
            text=True,
            stdout=subprocess.PIPE,
        )
        assert process.stdout is not None
        assert process.stdout.readline() == "2 live\n"
        client.close_session(made[0])
        daemon.kill()
        daemon.start()
        out, _ = process.communicate(timeout=120)
    assert process.returncode == 0
    assert f"{made[0]}: completed (cause client_close" in out
    assert f"{made[1]}: error (cause daemon_lost" in out


# contract 6, inspector: ACP through the official SDK
def test_acp_is_spoken(shared: Daemon, terminal: Terminal) -> None:
    out = terminal.run("acp_turn.py", shared.url, "example", str(shared.work), "hello there\nask edit")
    assert "hello there" in out
    assert "allow-once" in out
    assert "[the turn ended: end_turn]" in out


# issue 12: every sample runs in CI
@pytest.mark.parametrize(
    ("number", "words"), list(enumerate(["it stopped: end_turn", "error 1 250", "404 there is no session", "hello"]))
)
def test_a_sample_of_the_guide_runs(shared: Daemon, terminal: Terminal, number: int, words: str) -> None:
    sample = samples()[number].replace("http://127.0.0.1:2273", shared.url).replace("/srv/project", str(shared.work))
    assert words in terminal.sample(sample)


def test_all_samples_and_examples_are_run() -> None:
    text = Path(__file__).read_text()
    assert len(samples()) == 4
    assert all(f'"{path.name}"' in text for path in (PROJECT / "examples").glob("*.py"))
