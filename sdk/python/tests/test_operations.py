"""Each operation of REST, against a real daemon."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterable

import pytest
from daemon import Daemon

from acpd_client import (
    AcpdClient,
    BadRequestError,
    ElicitationRequestedEvent,
    EndedEvent,
    Event,
    NotOfferedError,
    PermissionRequestedEvent,
    PermissionResolvedEvent,
    ProblemError,
    PromptEvent,
    PromptOverError,
    QuestionClosedError,
    SessionEndedError,
    SessionNotFoundError,
    TerminationInfo,
    TurnEndedEvent,
    agent_text,
)


async def until(client: AcpdClient, session_id: str, kind: type[Event], after: int = 0) -> list[Event]:
    """The events up to one of a kind."""
    found: list[Event] = []
    async for event in client.events(session_id, after=after):
        found.append(event)
        if isinstance(event, kind):
            return found
    raise AssertionError(f"the session ended without {kind}: {found[-1]}")


# contract 7.3: POST /v1/sessions, 1.6: events; a title that is chosen stays
async def test_a_session_is_created_prompted_and_followed(shared: Daemon, client: AcpdClient) -> None:
    session = await client.create_session(shared.work, "hello there", agent="example", title="A talk")
    assert (session.agent, session.cwd, session.title) == ("example", str(shared.work), "A talk")
    events = await until(client, session.session_id, TurnEndedEvent)
    assert "".join(map(agent_text, events)).strip() == "hello there"
    assert [event.seq for event in events] == list(range(1, len(events) + 1))
    assert events[0].kind == "created"
    assert events[-1].model_dump(include={"stop_reason"}) == {"stop_reason": "end_turn"}


# contract 7.3: a prompt is text or content blocks; turn and seq are those of its event
async def test_a_prompt_tells_its_turn_and_event(shared: Daemon, client: AcpdClient) -> None:
    session = await client.create_session(shared.work)
    accepted = await client.prompt(session.session_id, [{"type": "text", "text": "one"}])
    assert (accepted.turn, accepted.waiting) == (1, None)
    assert accepted.seq is not None
    events = await until(client, session.session_id, TurnEndedEvent, after=accepted.seq - 1)
    assert isinstance(events[0], PromptEvent)
    assert events[0].prompt == [{"type": "text", "text": "one"}]


# contract 7.3: prompts wait in line; cancel ends the turn and not the session
async def test_a_prompt_waits_and_a_turn_is_cancelled(shared: Daemon, client: AcpdClient) -> None:
    session = await client.create_session(shared.work, "hang")
    assert (await client.prompt(session.session_id, "next")).waiting == 1
    await client.cancel(session.session_id)
    events = await until(client, session.session_id, TurnEndedEvent)
    last = events[-1]
    assert isinstance(last, TurnEndedEvent)
    assert last.stop_reason == "cancelled"
    events = await until(client, session.session_id, TurnEndedEvent, after=last.seq)
    assert "".join(map(agent_text, events)).strip() == "next"


# contract 7.3: a prompt is taken back by its key, whether it waits or runs
async def test_a_prompt_is_taken_back(shared: Daemon, client: AcpdClient) -> None:
    session = await client.create_session(shared.work)
    await client.prompt(session.session_id, "hang", idempotency_key="runs")
    assert (await client.prompt(session.session_id, "next", idempotency_key="waits")).waiting == 1
    await client.cancel(session.session_id, idempotency_key="waits")
    with pytest.raises(PromptOverError):
        await client.cancel(session.session_id, idempotency_key="waits")
    await client.cancel(session.session_id, idempotency_key="runs")
    events = await until(client, session.session_id, TurnEndedEvent)
    assert [event.idempotency_key for event in events if isinstance(event, PromptEvent)] == ["runs"]


# contract 7.3: the first answer counts; what was not offered leaves the question open
async def test_a_permission_request_is_answered(shared: Daemon, client: AcpdClient) -> None:
    session = await client.create_session(shared.work, "ask edit")
    asked = (await until(client, session.session_id, PermissionRequestedEvent))[-1]
    assert isinstance(asked, PermissionRequestedEvent)
    # Options by what they mean: their ids are the agent's own.
    options = {option.kind: option.option_id for option in asked.question.options}
    assert list(options) == ["allow_once", "allow_always", "reject_once", "reject_always"]
    assert asked.question.tool_call["kind"] == "edit"
    shown = await client.get_session(session.session_id)
    assert (shown.state, shown.open_questions) == ("waiting", 1)
    with pytest.raises(NotOfferedError):
        await client.answer(session.session_id, asked.seq, {"outcome": "selected", "optionId": "maybe"})
    await client.answer(session.session_id, asked.seq, {"outcome": "selected", "optionId": options["allow_once"]})
    events = await until(client, session.session_id, TurnEndedEvent, after=asked.seq)
    assert any(isinstance(event, PermissionResolvedEvent) for event in events)
    assert "allow-once" in "".join(map(agent_text, events))
    with pytest.raises(QuestionClosedError):
        await client.answer(session.session_id, asked.seq, {"outcome": "cancelled"})


# contract 7.3: elicitations are answered in the same way
async def test_a_form_is_declined(shared: Daemon, client: AcpdClient) -> None:
    session = await client.create_session(shared.work, "elicit your name?")
    asked = (await until(client, session.session_id, ElicitationRequestedEvent))[-1]
    assert isinstance(asked, ElicitationRequestedEvent)
    assert asked.question.message == "your name?"
    await client.answer(session.session_id, asked.seq, {"action": "decline"})
    await until(client, session.session_id, TurnEndedEvent, after=asked.seq)


# contract 1: three different ends, and taking up again
async def test_closing_resuming_forking_and_terminating(shared: Daemon, client: AcpdClient) -> None:
    session_id = (await client.create_session(shared.work, "one")).session_id
    await until(client, session_id, TurnEndedEvent)
    fork = await client.fork(session_id)
    assert fork.session_id != session_id
    await client.close_session(session_id)
    await client.close_session(session_id)
    end = await client.wait_for_end(session_id)
    assert (end.reason, end.cause, end.terminated_by) == ("completed", "client_close", "daemon")
    with pytest.raises(SessionEndedError) as ended:
        await client.prompt(session_id, "two")
    assert ended.value.termination_info is not None
    assert ended.value.termination_info.cause == "client_close"
    assert not (await client.resume(session_id)).ended
    await client.terminate_session(session_id)
    assert (await client.wait_for_end(session_id)).reason == "terminated"
    await client.terminate_session(fork.session_id)


# contract 1.2: how an agent ended, to the last line of its stderr
async def test_a_crash_is_told(shared: Daemon, client: AcpdClient) -> None:
    session = await client.create_session(shared.work, "crash")
    events = await until(client, session.session_id, EndedEvent)
    assert isinstance(events[-1], EndedEvent)
    end = events[-1].termination_info
    assert (end.reason, end.exit_code, end.turn_active) == ("error", 1, True)
    assert end.stderr is not None
    assert (end.stderr.truncated, end.stderr.total_lines) == (True, 250)
    assert (await client.get_session(session.session_id)).termination_info == end


# contract 1.3, 7.3: pages are gone through; filters
async def test_sessions_are_listed_page_by_page(shared: Daemon, client: AcpdClient) -> None:
    place = shared.work / "listed"
    place.mkdir()
    made = [(await client.create_session(place)).session_id for _ in range(3)]
    await client.close_session(made[0])
    listed = [session.session_id async for session in client.list_sessions(cwd=place, page=1)]
    assert sorted(listed) == sorted(made)
    live = {session.session_id async for session in client.list_sessions(cwd=place, ended=False, state="idle")}
    assert live == set(made[1:])
    found = [s.session_id async for s in client.list_sessions(agent="example", q=made[0][-8:])]
    assert found == [made[0]]


# contract 1.3: what is removed is not there any more; waiting for its end says so
async def test_a_deleted_session_is_gone(shared: Daemon, client: AcpdClient) -> None:
    session_id = (await client.create_session(shared.work)).session_id
    await client.delete_session(session_id)
    for gone in (client.get_session(session_id), client.wait_for_end(session_id)):
        with pytest.raises(SessionNotFoundError) as error:
            await gone
        assert (error.value.status, error.value.session_id) == (404, session_id)
    with pytest.raises(SessionNotFoundError):
        await client.delete_session(session_id)


# contract 1.6: a page of the log, and the next one by its cursor
async def test_events_are_read_in_pages(shared: Daemon, client: AcpdClient) -> None:
    session_id = (await client.create_session(shared.work, "stream 20")).session_id
    events = await until(client, session_id, TurnEndedEvent)
    page = await client.events_page(session_id, limit=15)
    assert page.next_cursor is not None
    rest = await client.events_page(session_id, after=page.next_cursor, limit=1000)
    assert [*page.events, *rest.events] == events
    assert rest.next_cursor is None


# contract 7.3: the export of an import is byte-equal; a wrong file is refused as a whole
async def test_a_session_is_exported_and_imported(shared: Daemon, client: AcpdClient) -> None:
    session_id = (await client.create_session(shared.work, "hello")).session_id
    await until(client, session_id, TurnEndedEvent)
    await client.close_session(session_id)
    file = b"".join([piece async for piece in client.export_session(session_id)])
    text = b"".join([piece async for piece in client.export_session(session_id, "markdown")])
    assert b"hello" in text
    await client.delete_session(session_id)

    async def pieces(data: bytes) -> AsyncIterable[bytes]:
        for start in range(0, len(data), 100):
            yield data[start : start + 100]

    with pytest.raises(BadRequestError, match="line 2"):
        await client.import_session(pieces(file.replace(b"}\n{", b"}\n[", 1)))
    assert (await client.import_session(pieces(file))).session_id == session_id
    assert b"".join([piece async for piece in client.export_session(session_id)]) == file


# issue 28, RA10: with what tool calls and terminals wrote, where that is asked for
async def test_a_session_is_exported_with_details(shared: Daemon, client: AcpdClient) -> None:
    session_id = (await client.create_session(shared.work, "run echo quokka")).session_id
    await until(client, session_id, TurnEndedEvent)
    output = b"\n```\nquokka\n```\n"
    plain = b"".join([piece async for piece in client.export_session(session_id, "markdown")])
    detailed = b"".join([piece async for piece in client.export_session(session_id, "markdown", details=True)])
    assert output in detailed
    assert output not in plain
    with pytest.raises(BadRequestError, match="format=markdown"):
        _ = [piece async for piece in client.export_session(session_id, details=True)]


# contract 7.3: turns in which all the words stand
async def test_turns_are_found_by_their_words(shared: Daemon, client: AcpdClient) -> None:
    made = [(await client.create_session(shared.work, "a quokka went by")).session_id for _ in range(2)]
    for session_id in made:
        await until(client, session_id, TurnEndedEvent)
        await client.close_session(session_id)
    # They are indexed behind the turn.
    deadline = time.monotonic() + 60
    while (await client.search_page("quokka went")).incomplete:
        assert time.monotonic() < deadline
    hits = [hit async for hit in client.search("quokka went", page=1)]
    assert {hit.session_id for hit in hits} == set(made)
    assert hits[0].part in ("prompt", "answer")
    assert not (await client.search_page("nowhere-to-be-found")).hits


# contract 7.3, 1.7: the daemon tells of itself
async def test_the_daemon_tells_of_itself(client: AcpdClient) -> None:
    caller = await client.whoami()
    assert (caller.scope, caller.sees, caller.name) == ("admin", "all", None)
    assert (await client.health()).status == "ok"
    # A log that is slow to say so is a reason against it.
    deadline = time.monotonic() + 60
    while not (await client.ready()).ready:
        assert time.monotonic() < deadline
    assert (await client.stats()).now.memory_bytes > 0
    assert await client.tokens() == []
    assert [agent.name for agent in await client.agents()] == ["example"]
    check = await client.check_agent("example")
    assert check.ok
    assert (await client.reload()).agents == 1


# contract 7.3: a daemon of its own is in no fleet, and says so
async def test_a_daemon_of_its_own_has_no_nodes(client: AcpdClient) -> None:
    for asked in (client.nodes(), client.drain_node("a"), client.undrain_node("a"), client.remove_node("a")):
        with pytest.raises(ProblemError) as refused:
            await asked
        assert (refused.value.status, refused.value.name) == (409, "no_fleet")


# contract 7.1: the daemon goes on as what is installed
async def test_a_daemon_hands_over(daemon: Daemon) -> None:
    async with AcpdClient(daemon.url) as client:
        version = (await client.health()).version
        assert (await client.hand_over()).version == version
    async with AcpdClient(daemon.url) as client:
        assert (await client.health()).version == version


# contract 7.2: what would be removed; nothing is
async def test_pruning_is_tried(shared: Daemon, client: AcpdClient) -> None:
    session_id = (await client.create_session(shared.work, "one")).session_id
    await until(client, session_id, TurnEndedEvent)
    await client.close_session(session_id)
    would = await client.prune(older_than_ms=0, dry_run=True)
    assert session_id in {session.session_id for session in would}
    assert (await client.get_session(session_id)).ended


# contract 5: onSessionEnded
async def test_a_handler_is_told_of_the_end_once(shared: Daemon, client: AcpdClient) -> None:
    ends: list[TerminationInfo] = []

    async def told(end: TerminationInfo) -> None:
        ends.append(end)

    session_id = (await client.create_session(shared.work)).session_id
    watches = [client.on_session_ended(session_id, told), client.on_session_ended(session_id, ends.append)]
    stopped = client.on_session_ended(session_id, ends.append)
    stopped.cancel()
    await client.terminate_session(session_id)
    for watch in watches:
        await watch
    assert [end.reason for end in ends] == ["terminated", "terminated"]
    await asyncio.wait([stopped])
    assert stopped.cancelled()


# contract 5: an end that cannot be waited for is an error of the watch
async def test_a_watch_of_what_is_not_there_fails(client: AcpdClient) -> None:
    with pytest.raises(SessionNotFoundError):
        await client.on_session_ended("not-there", lambda _end: None)
