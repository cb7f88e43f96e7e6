"""Requests to a daemon: sent, sent again where that is right, and their failures told."""

from __future__ import annotations

import random
import time
from collections.abc import AsyncIterable, AsyncIterator
from contextlib import asynccontextmanager
from typing import TypeVar

import anyio
import httpx
from pydantic import BaseModel, ValidationError

from .._address import Address
from .._calls import Call
from .._retries import wait_before_retry
from .._transport import SILENCE, failure, headers
from ..errors import AcpdError, SessionNotFoundError, UnreadableAnswerError, problem_error

__all__ = ["Transport"]

Read = TypeVar("Read", bound=BaseModel)


class Transport:
    """The way to one daemon.

    `timeout`: seconds for connecting, and for an answer that needs no more than a look. `retry_for`: seconds for waiting until
    a request is sent again.
    """

    def __init__(self, address: Address, token: str | None, timeout: float, retry_for: float) -> None:
        self._at = address
        self._timeout = timeout
        self._retry_for = retry_for
        self.reached = False
        """The daemon was there: from then on it is waited for."""
        tls = address.tls()
        self._http = httpx.AsyncClient(
            base_url=address.base,
            headers=headers(token),
            transport=httpx.AsyncHTTPTransport(
                verify=tls if tls is not None else False,
                uds=address.socket,
                limits=httpx.Limits(max_connections=None, max_keepalive_connections=8),
            ),
            trust_env=False,
        )

    async def aclose(self) -> None:
        """Ends all connections."""
        await self._http.aclose()

    async def read(self, call: Call, kind: type[Read], content: AsyncIterable[bytes] | None = None) -> Read:
        """Sends a request, with what comes in pieces if there is something, and reads the answer."""
        body = await self.send(call, content)
        try:
            return kind.model_validate_json(body)
        except ValidationError as error:
            raise UnreadableAnswerError(f"the answer to {call.path} cannot be read: {error}") from error

    async def send(self, call: Call, content: AsyncIterable[bytes] | None = None) -> bytes:
        """Sends a request, again if that is right; the body of the answer."""
        began, attempt = time.monotonic(), 0
        while True:
            try:
                async with self.open(call, content) as response:
                    return await response.aread()
            except AcpdError as error:
                if attempt and call.gone_is_done and isinstance(error, SessionNotFoundError):
                    return b""
                wait = wait_before_retry(
                    error,
                    repeatable=call.repeatable and content is None,
                    reached=self.reached and content is None,
                    attempt=attempt,
                    left=self._retry_for - (time.monotonic() - began),
                    chance=random.random(),  # noqa: S311
                )
                if wait is None:
                    raise
            await anyio.sleep(wait)
            attempt += 1

    @asynccontextmanager
    async def open(self, call: Call, body: AsyncIterable[bytes] | None = None) -> AsyncIterator[httpx.Response]:
        """Sends a request once; the answer, whose body is still to be read. One that is no success is an error."""
        within = self._timeout if call.quick else None
        silence = SILENCE if "Accept" in call.headers else within
        try:
            async with self._http.stream(
                call.method,
                call.path,
                params=call.query,
                headers=call.headers,
                json=call.body,
                content=body,
                timeout=httpx.Timeout(self._timeout, read=silence, write=within),
            ) as response:
                self.reached = True
                if not response.is_success and response.status_code != call.answers:
                    content = await response.aread()
                    raise problem_error(response.status_code, content, response.headers.get("retry-after"))
                yield response
        except httpx.RequestError as error:
            told = failure(error, str(self._at))
            raise told from error
