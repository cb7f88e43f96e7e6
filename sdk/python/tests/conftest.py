"""What tests begin with."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest
from daemon import Daemon, serving

from acpd_client import AcpdClient

# An agent that does not start.
CONFIG = '[agents.broken]\ncommand = "/bin/false"\n'


@pytest.fixture(scope="module")
def guarded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Daemon]:
    """A daemon that has tokens, and an agent that does not start."""
    with serving(tmp_path_factory.mktemp("guarded"), CONFIG) as daemon:
        yield daemon


@pytest.fixture(scope="module")
def tokens(guarded: Daemon) -> dict[str, str]:
    """A token for each scope, and a limited one."""
    limited = ("--scope", "control", "--agent", "example", "--root", str(guarded.work))
    made = {scope: guarded.acpd("token", "new", scope, "--scope", scope) for scope in ("observe", "control", "admin")}
    made["limited"] = guarded.acpd("token", "new", "limited", *limited)
    guarded.acpd("reload", "--state-dir", str(guarded.state))
    return made


@pytest.fixture(scope="session")
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Daemon]:
    """A daemon for the tests of a file, which neither stop nor configure it."""
    with serving(tmp_path_factory.mktemp("shared")) as daemon:
        yield daemon


@pytest.fixture
async def client(shared: Daemon) -> AsyncIterator[AcpdClient]:
    """A client of it."""
    async with AcpdClient(shared.url) as client:
        yield client


@pytest.fixture
def daemon(tmp_path: Path) -> Iterator[Daemon]:
    """A daemon for one test."""
    with serving(tmp_path) as daemon:
        yield daemon
