"""Speaks ACP to an agent through acpd: acp_turn.py URL AGENT DIRECTORY PROMPT. It needs `acpd-client[acp]`."""

import asyncio
import sys

from acp import PROTOCOL_VERSION, RequestPermissionResponse, text_block
from acp.helpers import SessionUpdate
from acp.schema import (
    AgentMessageChunk,
    AllowedOutcome,
    DeniedOutcome,
    PermissionOption,
    TextContentBlock,
    ToolCallStart,
    ToolCallUpdate,
)

from acpd_client import AcpdClient
from acpd_client.acp import connect_agent


class Printer:
    """Shows what happens, and allows edits once."""

    async def session_update(self, session_id: str, update: SessionUpdate, **_: object) -> None:
        """Shows text, and the titles of tool calls."""
        match update:
            case AgentMessageChunk(content=TextContentBlock(text=text)):
                print(text, end="", flush=True)
            case ToolCallStart(title=title):
                print(f"\n[{session_id[-6:]}: {title}]")

    async def request_permission(
        self, session_id: str, tool_call: ToolCallUpdate, options: list[PermissionOption], **_: object
    ) -> RequestPermissionResponse:
        """Takes the first option that allows an edit once."""
        for option in options:
            if tool_call.kind == "edit" and option.kind == "allow_once":
                print(f"\n[{session_id[-6:]}: {option.name}]")
                return RequestPermissionResponse(outcome=AllowedOutcome(outcome="selected", option_id=option.option_id))
        return RequestPermissionResponse(outcome=DeniedOutcome(outcome="cancelled"))


async def main(url: str, name: str, directory: str, prompt: str) -> None:
    """Runs one turn in a session of its own."""
    async with AcpdClient(url) as client, connect_agent(client, Printer(), agent=name) as agent:
        await agent.initialize(PROTOCOL_VERSION)
        session = await agent.new_session(directory)
        answer = await agent.prompt(session.session_id, [text_block(prompt)])
        print(f"\n[the turn ended: {answer.stop_reason}]")
        # The session would outlive its connection.
        await agent.close_session(session.session_id)


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
