"""The blocking client: the same operations, generated from the other one."""

from __future__ import annotations

import inspect
import time
from collections.abc import Iterator

import pytest
from daemon import Daemon
from typing_extensions import assert_type

from acpd_client import (
    AcpdClient,
    PermissionRequestedEvent,
    Session,
    SessionInfo,
    SessionNotFoundError,
    SyncAcpdClient,
    TurnEndedEvent,
    agent_text,
)


@pytest.fixture
def blocking(shared: Daemon) -> Iterator[SyncAcpdClient]:
    with SyncAcpdClient(shared.url) as client:
        yield client


# inspector: SDK Python: an asynchronous and a blocking client of one shape
def test_both_clients_have_the_same_operations() -> None:
    def shape(client: type[object]) -> dict[str, list[str]]:
        members = inspect.getmembers(client, inspect.isfunction)
        return {name: list(inspect.signature(f).parameters) for name, f in members if not name.startswith("_")}

    asynchronous, blocking = shape(AcpdClient), shape(SyncAcpdClient)
    assert asynchronous.pop("on_session_ended")
    assert asynchronous.pop("aclose") == blocking.pop("close")
    assert asynchronous == blocking


# contract 7.3, 1.6: from a session's creation to its removal
def test_a_session_from_its_beginning_to_its_end(shared: Daemon, blocking: SyncAcpdClient) -> None:
    session = blocking.create_session(shared.work, "ask edit")
    assert_type(session, SessionInfo)
    text = ""
    for event in blocking.events(session.session_id):
        text += agent_text(event)
        if isinstance(event, PermissionRequestedEvent):
            blocking.answer(session.session_id, event.seq, {"outcome": "selected", "optionId": "reject-once"})
        if isinstance(event, TurnEndedEvent):
            break
    assert "reject-once" in text
    for listed in blocking.list_sessions(cwd=shared.work):
        assert_type(listed, Session)
    blocking.close_session(session.session_id)
    assert blocking.wait_for_end(session.session_id).cause == "client_close"
    file = list(blocking.export_session(session.session_id))
    blocking.delete_session(session.session_id)
    assert blocking.import_session(file).session_id == session.session_id
    # It is indexed behind the answer.
    deadline = time.monotonic() + 60
    while blocking.search_page("ask edit").incomplete:
        assert time.monotonic() < deadline
    assert [hit.session_id for hit in blocking.search("ask edit")] == [session.session_id]
    blocking.delete_session(session.session_id)
    with pytest.raises(SessionNotFoundError):
        blocking.get_session(session.session_id)
    assert [agent.name for agent in blocking.agents()] == ["example"]
