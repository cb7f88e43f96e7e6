"""ACP itself, through the official Python SDK, over acpd's WebSocket. It needs the extra: `acpd-client[acp]`.

The socket is this package's: the SDK's own reads no message over 1 MiB and knows no Unix sockets.
"""

from __future__ import annotations

import json
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Protocol, cast

from pydantic import JsonValue

from ._transport import headers
from .client import AcpdClient
from .errors import AcpdError, CertificateError, ConnectionFailedError, problem_error

try:
    from acp import Client, RequestPermissionResponse, connect_to_agent
    from acp.client import ClientSideConnection
    from acp.helpers import SessionUpdate
    from acp.schema import PermissionOption, ToolCallUpdate
    from websockets.asyncio.client import ClientConnection, connect, unix_connect
    from websockets.exceptions import ConnectionClosed, InvalidHandshake, InvalidStatus
except ImportError as missing:
    raise ImportError("acpd_client.acp needs the extra: pip install 'acpd-client[acp]'") from missing

__all__ = ["Handler", "connect_agent"]


class Handler(Protocol):
    """What a client of acpd has to have. Files and terminals are acpd's, so the SDK's `Client` asks for more than that.

    Other methods of the SDK's `Client`, such as `create_elicitation`, are called where they are there.
    """

    async def session_update(self, session_id: str, update: SessionUpdate, **meta: object) -> None:
        """Takes what happens in a session."""

    async def request_permission(
        self, session_id: str, tool_call: ToolCallUpdate, options: list[PermissionOption], **meta: object
    ) -> RequestPermissionResponse:
        """Chooses one of the options, or none."""
        ...


class _Socket:
    """What the SDK moves messages through."""

    def __init__(self, socket: ClientConnection) -> None:
        self._socket = socket

    async def send(self, message: dict[str, JsonValue]) -> None:
        try:
            await self._socket.send(json.dumps(message, separators=(",", ":")))
        except ConnectionClosed as closed:
            raise ConnectionError(f"the daemon closed the connection: {closed}") from closed

    async def receive(self) -> dict[str, JsonValue] | None:
        """The next message; None behind the last."""
        try:
            message: dict[str, JsonValue] = json.loads(await self._socket.recv())
        except ConnectionClosed:
            return None
        return message

    async def close(self) -> None:
        await self._socket.close()


@asynccontextmanager
async def connect_agent(
    client: AcpdClient, handler: Handler, *, agent: str | None = None, use_unstable_protocol: bool = False
) -> AsyncIterator[ClientSideConnection]:
    """Connects to an agent by its name, or to the daemon's default one; `initialize` is to be called first.

    `handler` gets what the agent sends and asks; `use_unstable_protocol` is the SDK's switch of that name.

    What the agent answers with an error is an `acp.RequestError`; what waits for an answer when the connection ends, or is
    asked later, is a `ConnectionError`. A session outlives its connection: with a new one, `load_session` goes on with it.
    `AcpdError` if no connection comes about.
    """
    socket = await _open(client, agent)
    # The SDK looks for each method by its name.
    person = cast("Client", handler)
    connection = connect_to_agent(person, _Socket(socket), use_unstable_protocol=use_unstable_protocol)
    try:
        yield connection
    finally:
        await connection.close()


async def _open(client: AcpdClient, agent: str | None) -> ClientConnection:
    at = client.address
    try:
        if at.socket is not None:
            return await unix_connect(
                at.socket,
                at.acp(agent),
                additional_headers=headers(client.token),
                max_size=None,
                user_agent_header=None,
            )
        return await connect(
            at.acp(agent),
            additional_headers=headers(client.token),
            max_size=None,
            proxy=None,
            ssl=at.tls(),
            user_agent_header=None,
        )
    except InvalidStatus as refused:
        answer = refused.response
        raise problem_error(
            answer.status_code, bytes(answer.body or b""), answer.headers.get("Retry-After")
        ) from refused
    except ssl.SSLCertVerificationError as error:
        raise CertificateError(f"the certificate of {at} is not accepted: {error}") from error
    except (OSError, InvalidHandshake, TimeoutError) as error:
        told: AcpdError = ConnectionFailedError(f"no WebSocket at {at}: {error}")
        raise told from error
