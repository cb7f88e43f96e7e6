"""ACP through the official SDK, over acpd's WebSocket and through its front end."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import cast

import acp
import pytest
from acp import schema
from acp.client import ClientSideConnection
from acp.helpers import SessionUpdate
from daemon import Daemon, binary

from acpd_client import AcpdClient, ConnectionFailedError, UnauthorizedError
from acpd_client.acp import connect_agent


class Person:
    """Allows what it is asked for, and remembers what it is told."""

    def __init__(self) -> None:
        self.heard = ""
        self.asked: list[str] = []

    async def session_update(self, session_id: str, update: SessionUpdate, **_: object) -> None:
        if isinstance(update, schema.AgentMessageChunk | schema.UserMessageChunk):
            content = update.content
            self.heard += content.text if isinstance(content, schema.TextContentBlock) else ""

    async def request_permission(
        self, session_id: str, tool_call: schema.ToolCallUpdate, options: list[schema.PermissionOption], **_: object
    ) -> acp.RequestPermissionResponse:
        self.asked.append(tool_call.tool_call_id)
        chosen = schema.AllowedOutcome(outcome="selected", option_id=options[0].option_id)
        return acp.RequestPermissionResponse(outcome=chosen)


async def prompt(agent: ClientSideConnection, session_id: str, text: str) -> str:
    return (await agent.prompt(session_id, [acp.text_block(text)])).stop_reason


Address = Callable[[Daemon], str]


# contract 6, inspector: ACP through the official SDK: a question is answered; a message of 3 MB arrives
@pytest.mark.parametrize("address", [lambda daemon: daemon.url, lambda daemon: f"unix:{daemon.socket}"])
async def test_a_turn_with_a_question(shared: Daemon, address: Address) -> None:
    person = Person()
    async with AcpdClient(address(shared)) as client, connect_agent(client, person, agent="example") as agent:
        await agent.initialize(acp.PROTOCOL_VERSION)
        session = await agent.new_session(str(shared.work))
        assert await prompt(agent, session.session_id, "hello there\nask edit") == "end_turn"
        assert "hello there" in person.heard
        assert len(person.asked) == 1
        assert await prompt(agent, session.session_id, "big 3000000") == "end_turn"
        assert len(person.heard) > 2_900_000
        assert not (await client.get_session(session.session_id)).ended


# contract 1: a session outlives its connection, and acpd; a new connection loads it
async def test_a_session_is_taken_up_after_a_restart(daemon: Daemon) -> None:
    async with AcpdClient(daemon.url) as client:
        async with connect_agent(client, Person()) as agent:
            await agent.initialize(acp.PROTOCOL_VERSION)
            session_id = (await agent.new_session(str(daemon.work))).session_id
            await prompt(agent, session_id, "remember me")
            daemon.kill()
            with pytest.raises(ConnectionError):
                await prompt(agent, session_id, "lost")
        with pytest.raises(ConnectionFailedError, match=re.escape(daemon.url)):
            async with connect_agent(client, Person()):
                pytest.fail("there is no daemon")
        daemon.start()
        person = Person()
        async with connect_agent(client, person) as agent:
            await agent.initialize(acp.PROTOCOL_VERSION)
            await agent.load_session(str(daemon.work), session_id)
            assert person.heard.startswith("remember me")
            assert await prompt(agent, session_id, "again") == "end_turn"


# contract 1.7: a refused connection is as typed as a refused request
async def test_a_wrong_token_is_refused(guarded: Daemon, tokens: dict[str, str]) -> None:
    async with AcpdClient(guarded.url, token="wrong") as client:
        with pytest.raises(UnauthorizedError):
            async with connect_agent(client, Person()):
                pytest.fail("it is not known")
    async with AcpdClient(guarded.url, token=tokens["control"]) as client, connect_agent(client, Person()) as agent:
        assert (await agent.initialize(acp.PROTOCOL_VERSION)).agent_info is not None


# contract 6: `acpd stdio` is an agent that the SDK can start
async def test_the_front_end_is_an_agent(daemon: Daemon) -> None:
    person = Person()
    front_end = (str(binary()), "stdio", "--agent", "example", "--connect", daemon.url)
    async with acp.spawn_agent_process(cast("acp.Client", person), *front_end, env=daemon.environment()) as (agent, _):
        await agent.initialize(acp.PROTOCOL_VERSION)
        session = await agent.new_session(str(daemon.work))
        assert await prompt(agent, session.session_id, "hello there") == "end_turn"
    assert "hello there" in person.heard
