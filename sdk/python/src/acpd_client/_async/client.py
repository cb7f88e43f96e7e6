"""The operations of REST."""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterable, Sequence
from contextlib import aclosing
from dataclasses import replace
from typing import Literal

from pydantic import JsonValue
from typing_extensions import Self

from .. import models
from .._address import Address
from .._calls import (
    Call,
    Directory,
    McpServer,
    Outcome,
    Prompt,
    act,
    directories,
    directory,
    events_of,
    look,
    new_key,
    outcome_value,
    path,
    prompt_value,
    servers,
)
from ..events import EventsPage
from ..models import Event, SessionInfo, TerminationInfo
from .follow import follow
from .transport import Transport

__all__ = ["Operations"]


class Operations:
    """What acpd does over REST."""

    def __init__(
        self,
        url: str,
        *,
        token: str | None = None,
        ca: str | None = None,
        timeout: float = 30.0,
        retry_for: float = 10.0,
    ) -> None:
        self.address = Address.parse(url, ca)
        self.token = token
        self._transport = Transport(self.address, token, timeout, retry_for)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.aclose()

    async def aclose(self) -> None:
        """Ends all connections. What the daemon does goes on."""
        await self._transport.aclose()

    # Sessions

    async def list_sessions(
        self,
        *,
        cwd: Directory | None = None,
        agent: str | None = None,
        ended: bool | None = None,
        state: models.SessionState | None = None,
        q: str | None = None,
        page: int = 100,
    ) -> AsyncGenerator[models.Session, None]:
        """The sessions that exist for the caller, the latest change first; without the `stderr` of their ends.

        Given are those in a directory, of an agent, that have ended or have not, in a state, and of which title, directory,
        agent or id has the words `q`. `page`: how many are asked for at a time, 1 to 500.
        """
        wanted = directory("cwd", cwd)
        call = look("sessions", cwd=wanted, agent=agent, ended=ended, state=state, q=q, limit=page)
        while True:
            got = await self._transport.read(call, models.SessionsPage)
            for session in got.sessions:
                yield session
            if got.next_cursor is None:
                return
            call = replace(call, query={**call.query, "cursor": got.next_cursor})

    async def get_session(self, session_id: str) -> SessionInfo:
        """One session, with what a late viewer needs."""
        return await self._transport.read(look("sessions", session_id), SessionInfo)

    async def create_session(
        self,
        cwd: Directory,
        prompt: Prompt | None = None,
        *,
        agent: str | None = None,
        additional_directories: Sequence[Directory] | None = None,
        mcp_servers: Sequence[McpServer] | None = None,
        permission_mode: models.PermissionMode | None = None,
        partition: models.Partition | None = None,
        title: str | None = None,
        close_after_turn: bool | None = None,
        idempotency_key: str | None = None,
    ) -> SessionInfo:
        """Creates a session, and prompts it if there is a prompt: the turn has begun then.

        It is sent again by itself when the answer is lost, and creates one session all the same. To do so over an end of the
        program, give a key of your own.
        """
        body: dict[str, JsonValue] = {
            "agent": agent,
            "cwd": directory("cwd", cwd),
            "prompt": None if prompt is None else prompt_value(prompt),
            "additionalDirectories": directories("additional_directories", additional_directories),
            "mcpServers": servers(mcp_servers),
            "permissionMode": permission_mode,
            "partition": partition,
            "title": title,
            "closeAfterTurn": close_after_turn,
        }
        key = new_key() if idempotency_key is None else idempotency_key
        return await self._transport.read(act("sessions", body=body, key=key), SessionInfo)

    async def prompt(
        self, session_id: str, prompt: Prompt, *, idempotency_key: str | None = None
    ) -> models.PromptAccepted:
        """Prompts a session: `turn` and `seq` of the turn that has begun, or how many prompts it is `waiting` behind.

        It is sent again by itself when the answer is lost, and runs once all the same. To do so over an end of the program,
        give a key of your own.
        """
        key = new_key() if idempotency_key is None else idempotency_key
        call = act("sessions", session_id, "prompt", body={"prompt": prompt_value(prompt)}, key=key)
        return await self._transport.read(call, models.PromptAccepted)

    async def answer(self, session_id: str, question: int, outcome: Outcome) -> None:
        """Answers what the agent asks. `question` is the `seq` of the event that asks. The first answer counts."""
        body: dict[str, JsonValue] = {"question": question, "outcome": outcome_value(outcome)}
        await self._transport.send(act("sessions", session_id, "answer", body=body))

    async def cancel(self, session_id: str, *, idempotency_key: str | None = None) -> None:
        """Ends the running turn, or takes back the prompt under a key, whether that waits or runs; the session lives on."""
        body: dict[str, JsonValue] | None = None if idempotency_key is None else {"idempotencyKey": idempotency_key}
        await self._transport.send(act("sessions", session_id, "cancel", body=body))

    async def close_session(self, session_id: str) -> None:
        """Stops a session; it can be taken up again. One that has ended stays as it is."""
        await self._transport.send(act("sessions", session_id, "close", repeatable=True))

    async def terminate_session(self, session_id: str) -> None:
        """Ends a session for good. One that has ended stays as it is."""
        await self._transport.send(act("sessions", session_id, "terminate", repeatable=True))

    async def delete_session(self, session_id: str) -> None:
        """Closes a session and removes it with its history."""
        target = path("sessions", session_id)
        await self._transport.send(Call("DELETE", target, gone_is_done=True, quick=False))

    async def fork(
        self,
        session_id: str,
        *,
        cwd: Directory | None = None,
        additional_directories: Sequence[Directory] | None = None,
        mcp_servers: Sequence[McpServer] | None = None,
        permission_mode: models.PermissionMode | None = None,
    ) -> SessionInfo:
        """A new session with a copy of the history. What is absent is as in its source."""
        body = self._run(cwd, additional_directories, mcp_servers, permission_mode)
        call = act("sessions", session_id, "fork", body=body)
        return await self._transport.read(call, SessionInfo)

    async def resume(
        self,
        session_id: str,
        *,
        cwd: Directory | None = None,
        additional_directories: Sequence[Directory] | None = None,
        mcp_servers: Sequence[McpServer] | None = None,
        permission_mode: models.PermissionMode | None = None,
    ) -> SessionInfo:
        """Takes up a session that has ended, in a new run. One that is live goes on undisturbed."""
        body = self._run(cwd, additional_directories, mcp_servers, permission_mode)
        call = act("sessions", session_id, "resume", body=body, repeatable=True)
        return await self._transport.read(call, SessionInfo)

    @staticmethod
    def _run(
        cwd: Directory | None,
        additional_directories: Sequence[Directory] | None,
        mcp_servers: Sequence[McpServer] | None,
        permission_mode: models.PermissionMode | None,
    ) -> dict[str, JsonValue]:
        return {
            "cwd": directory("cwd", cwd),
            "additionalDirectories": directories("additional_directories", additional_directories),
            "mcpServers": servers(mcp_servers),
            "permissionMode": permission_mode,
        }

    # Events

    def events(self, session_id: str, *, after: int = 0) -> AsyncGenerator[Event, None]:
        """The events of a session behind one of them, and what happens, each once, in order, to the end of its run.

        It goes on over losses of the connection and restarts of the daemon, from where it stands; a daemon that was there is
        waited for without end. It is over with the end of the session, or when that is removed. An error is final.
        """
        events_of(session_id, after)
        return follow(self._transport, session_id, after)

    async def events_page(self, session_id: str, *, after: int | str = 0, limit: int = 100) -> EventsPage:
        """Some of the events that are there. `after`: a `seq` or a `next_cursor`; `limit`: 1 to 1000."""
        call = look("sessions", session_id, "events", after=after, limit=limit)
        return await self._transport.read(call, EventsPage)

    async def wait_for_end(self, session_id: str) -> TerminationInfo:
        """Waits for the end of a session, and says how it ended: at once for one that has.

        `SessionNotFoundError` if it is removed meanwhile.
        """
        while True:
            session = await self.get_session(session_id)
            if session.ended and session.termination_info is not None:
                return session.termination_info
            async with aclosing(self.events(session_id, after=session.event_count)) as events:
                async for event in events:
                    if isinstance(event, models.EndedEvent):
                        return event.termination_info

    async def search_page(self, text: str, *, cursor: str | None = None, limit: int = 20) -> models.SearchPage:
        """Some of the turns in which all the words stand, and whether older ones are not indexed yet."""
        call = look("search", text=text, cursor=cursor, limit=limit)
        return await self._transport.read(call, models.SearchPage)

    async def search(self, text: str, *, page: int = 20) -> AsyncGenerator[models.SearchHit, None]:
        """The turns in which all the words stand, the latest first. `page`: how many are asked for at a time, 1 to 100."""
        cursor: str | None = None
        while True:
            got = await self.search_page(text, cursor=cursor, limit=page)
            for hit in got.hits:
                yield hit
            cursor = got.next_cursor
            if cursor is None:
                return

    # Files

    async def export_session(
        self, session_id: str, form: Literal["jsonl", "markdown"] = "jsonl", *, details: bool = False
    ) -> AsyncGenerator[bytes, None]:
        """A session as a file, piece by piece: `jsonl`, which can be imported, or `markdown`, for people.

        With `details`, `markdown` also has what tool calls changed, and what they and terminals wrote.
        `ConnectionLostError` if it breaks off: what came so far is no whole file.
        """
        call = replace(look("sessions", session_id, "export", format=form, details=details or None), quick=False)
        async with self._transport.open(call) as response:
            async for piece in response.aiter_bytes():
                yield piece

    async def import_session(self, pieces: AsyncIterable[bytes]) -> SessionInfo:
        """Takes over a session that was exported as `jsonl`, piece by piece. A wrong one is refused as a whole."""
        form = {"Content-Type": "application/x-ndjson"}
        call = Call("POST", path("import"), headers=form, quick=False)
        return await self._transport.read(call, SessionInfo, pieces)

    # The daemon

    async def whoami(self) -> models.Whoami:
        """The caller, as the daemon sees it."""
        return await self._transport.read(look("whoami"), models.Whoami)

    async def health(self) -> models.Health:
        """Whether the daemon answers and is of use, and its version."""
        return await self._transport.read(look("health"), models.Health)

    async def ready(self) -> models.Ready:
        """Whether it can take on work, and why not."""
        return await self._transport.read(replace(look("ready"), answers=503), models.Ready)

    async def stats(self) -> models.Stats:
        """The last hour of the daemon, in steps, and what is there now."""
        return await self._transport.read(look("stats"), models.Stats)

    async def tokens(self) -> list[models.KnownToken]:
        """The tokens by name, without anything secret."""
        return (await self._transport.read(look("tokens"), models.KnownTokens)).tokens

    async def nodes(self) -> models.Nodes:
        """The nodes of the daemon's fleet. `no_fleet` when it is in none."""
        return await self._transport.read(look("nodes"), models.Nodes)

    async def drain_node(self, name: str) -> models.Node:
        """Has a node of the fleet take no new sessions, until `undrain_node`; those that it has go on."""
        return await self._transport.read(act("nodes", name, "drain", repeatable=True), models.Node)

    async def undrain_node(self, name: str) -> models.Node:
        """Has a node of the fleet take new sessions again."""
        return await self._transport.read(act("nodes", name, "undrain", repeatable=True), models.Node)

    async def remove_node(self, name: str) -> models.RemovedNode:
        """Removes a node of the fleet that is gone for good, with its sessions and their archive.

        Where sessions are `left`, the next call goes on. `node_reachable` when it is there.
        """
        return await self._transport.read(
            Call("DELETE", path("nodes", name), repeatable=True, quick=False), models.RemovedNode
        )

    async def agents(self) -> list[models.Agent]:
        """How each configured agent stands."""
        return (await self._transport.read(look("agents"), models.AgentList)).agents

    async def check_agent(self, name: str) -> models.AgentCheck:
        """Starts an agent, asks it what it is, and stops it."""
        call = act("agents", name, "check", repeatable=True)
        return await self._transport.read(call, models.AgentCheck)

    async def reload(self) -> models.Reloaded:
        """Has the daemon read its configuration anew."""
        return await self._transport.read(act("reload", repeatable=True), models.Reloaded)

    async def hand_over(self) -> models.HandingOver:
        """Has the daemon go on as the acpd that is installed now: its version.

        It takes clients again in a moment, and its sessions end as at a restart.
        """
        return await self._transport.read(act("handover"), models.HandingOver)

    async def prune(
        self,
        *,
        older_than_ms: int | None = None,
        keep_bytes: int | None = None,
        dry_run: bool | None = None,
    ) -> list[models.Prunable]:
        """Removes ended sessions that are old, or while all take too much; by the configuration, if neither is given."""
        body: dict[str, JsonValue] = {
            "olderThanMs": older_than_ms,
            "keepBytes": keep_bytes,
            "dryRun": dry_run,
        }
        return (await self._transport.read(act("prune", body=body), models.Pruned)).sessions
