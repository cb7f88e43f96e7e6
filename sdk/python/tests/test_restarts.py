"""Lost answers, cut streams, daemons that are killed.

`ACPD_SDK_KILLS` and `ACPD_SDK_EVENTS` say how often the daemon is killed, and in how many events.
"""

from __future__ import annotations

import asyncio
import os
from pathlib import Path

import pytest
from cutting import cutting
from daemon import Daemon, serving

from acpd_client import (
    AcpdClient,
    ConnectionFailedError,
    ConnectionLostError,
    CreatedEvent,
    EndedEvent,
    Event,
    PromptEvent,
    SyncAcpdClient,
    TurnEndedEvent,
)

KILLS = int(os.environ.get("ACPD_SDK_KILLS", "3"))
EVENTS = int(os.environ.get("ACPD_SDK_EVENTS", "3000"))
# Seconds in which a busy machine starts a daemon, and an agent.
PATIENCE = 60.0


async def log(client: AcpdClient, session_id: str) -> list[Event]:
    """All events of a session, from its pages."""
    found: list[Event] = []
    cursor: int | str | None = 0
    while cursor is not None:
        page = await client.events_page(session_id, after=cursor, limit=1000)
        found += page.events
        cursor = page.next_cursor
    return found


# issue 12: over kills of the daemon in a stream of events, each event comes once and in order
async def test_each_event_comes_once_over_kills(daemon: Daemon) -> None:
    seen: list[Event] = []
    async with AcpdClient(daemon.url) as client:
        session_id = (await client.create_session(daemon.work)).session_id
        for _ in range(KILLS):
            await client.prompt(session_id, f"stream {2 * EVENTS // KILLS}")
            killing = len(seen) + EVENTS // KILLS
            async for event in client.events(session_id, after=len(seen)):
                seen.append(event)
                if len(seen) == killing:
                    daemon.kill()
                    daemon.start()
            assert isinstance(seen[-1], EndedEvent)
            assert seen[-1].termination_info.cause == "daemon_lost"
            await client.resume(session_id)
        await client.close_session(session_id)
        kept = await log(client, session_id)
    assert len(seen) >= EVENTS
    assert [event.seq for event in seen] == list(range(1, len(seen) + 1))
    assert kept[: len(seen)] == seen


# contract 1.6: the same through one iterator, over a Unix socket, blocking
def test_one_stream_outlives_its_daemons(daemon: Daemon) -> None:
    with SyncAcpdClient(f"unix:{daemon.socket}") as client:
        # Far more than sockets hold.
        session = client.create_session(daemon.work, "stream 1000 2000", close_after_turn=True)
        client.wait_for_end(session.session_id)
        numbers = []
        for event in client.events(session.session_id):
            numbers.append(event.seq)
            if event.seq in (10, 500):
                daemon.kill()
                daemon.start()
        # Behind the last event there is nothing to follow: the daemon answers 204.
        assert list(client.events(session.session_id, after=numbers[-1])) == []
    assert numbers == list(range(1, len(numbers) + 1))
    assert len(numbers) > 1000


# docs/protocol.md, Ends: `shutdown`; the end of the session comes before it, or behind the restart
async def test_a_daemon_that_is_stopped_and_started(daemon: Daemon) -> None:
    async with AcpdClient(daemon.url) as client:
        session_id = (await client.create_session(daemon.work, "hang")).session_id
        causes = []
        async for event in client.events(session_id):
            if isinstance(event, PromptEvent):
                await asyncio.to_thread(daemon.stop)
                daemon.start()
            if isinstance(event, EndedEvent):
                causes.append(event.termination_info.cause)
        assert causes == ["daemon_shutdown"]


# docs/protocol.md: a stream that is closed with `deleted` is over
async def test_a_stream_ends_with_the_removal_of_its_session(daemon: Daemon) -> None:
    async with AcpdClient(daemon.url) as client:
        session_id = (await client.create_session(daemon.work)).session_id
        kinds = []
        async for event in client.events(session_id):
            kinds.append(event.kind)
            if event.kind == "run_started":
                await client.delete_session(session_id)
        assert kinds[:2] == ["created", "run_started"]


# contract 7.3: prompts and creations that are sent again are done once
async def test_what_has_lost_its_answer_is_sent_again_and_done_once(daemon: Daemon) -> None:
    async with cutting(daemon.url) as cutter, AcpdClient(cutter.url, retry_for=PATIENCE) as client:
        cutter.cut = 2
        session = await client.create_session(daemon.work, title="once")
        assert [s.session_id async for s in client.list_sessions()] == [session.session_id]
        cutter.cut = 2
        accepted = await client.prompt(session.session_id, "hello")
        assert (accepted.turn, cutter.cut) == (1, 0)
        cutter.cut = 1
        assert (await client.get_session(session.session_id)).title == "once"
        cutter.cut = 1
        await client.close_session(session.session_id)
        prompts = [event async for event in client.events(session.session_id) if isinstance(event, PromptEvent)]
        assert len(prompts) == 1
        cutter.cut = 1
        await client.delete_session(session.session_id)


# contract 7.3: what may not be done twice is not sent twice
async def test_what_would_be_done_twice_is_not_sent_again(daemon: Daemon) -> None:
    async with cutting(daemon.url) as cutter, AcpdClient(cutter.url, retry_for=PATIENCE) as client:
        session = await client.create_session(daemon.work)
        cutter.cut = 1
        with pytest.raises(ConnectionLostError):
            await client.fork(session.session_id)
        cutter.cut = 1
        with pytest.raises(ConnectionLostError):
            await client.cancel(session.session_id)
        assert len([s async for s in client.list_sessions()]) == 2


# contract 1.6: a stream that is cut goes on behind the last event
async def test_a_stream_that_is_cut_goes_on(daemon: Daemon) -> None:
    async with cutting(daemon.url) as cutter, AcpdClient(cutter.url, retry_for=PATIENCE) as client:
        session_id = (await client.create_session(daemon.work, "stream 300 1000")).session_id
        numbers = []
        async for event in client.events(session_id):
            numbers.append(event.seq)
            if event.seq % 50 == 0:
                cutter.cut = 1
            if isinstance(event, TurnEndedEvent):
                break
        assert numbers == list(range(1, len(numbers) + 1))


# inspector: SDK: a daemon that was there is waited for, one that never was is an error at once
async def test_requests_wait_for_a_daemon_that_restarts(tmp_path: Path) -> None:
    with serving(tmp_path) as daemon:
        async with AcpdClient(daemon.url, retry_for=PATIENCE) as client:
            session_id = (await client.create_session(daemon.work)).session_id
            daemon.kill()
            waiting = asyncio.create_task(client.get_session(session_id))
            await asyncio.to_thread(daemon.start)
            assert (await waiting).ended
            daemon.kill()
            async with AcpdClient(daemon.url) as stranger:
                with pytest.raises(ConnectionFailedError, match="no daemon answers at http:"):
                    await stranger.whoami()
                with pytest.raises(ConnectionFailedError):
                    await anext(stranger.events(session_id))
                with pytest.raises(ConnectionFailedError):
                    await stranger.wait_for_end(session_id)
        async with AcpdClient(daemon.url, retry_for=0.1) as client:
            daemon.start()
            await client.health()
            daemon.kill()
            with pytest.raises(ConnectionFailedError):
                await client.whoami()


# contract 1.6: a follower that is left, or cancelled, leaves nothing behind
async def test_a_follower_can_be_left(daemon: Daemon) -> None:
    async with AcpdClient(daemon.url) as client:
        session_id = (await client.create_session(daemon.work)).session_id
        events = client.events(session_id)
        assert isinstance(await anext(events), CreatedEvent)
        await events.aclose()
        task = asyncio.create_task(client.wait_for_end(session_id))
        await client.whoami()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert not (await client.get_session(session_id)).ended
