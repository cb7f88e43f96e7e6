"""A way to a daemon that loses answers."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator
from urllib.parse import urlsplit


class Cutter:
    """Passes connections on. While `cut` is above 0, an answer is lost with its connection, and `cut` counts down."""

    def __init__(self, daemon: str) -> None:
        self._daemon = urlsplit(daemon)
        self.url = ""
        self.cut = 0

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Passes one connection on."""
        there, back = await asyncio.open_connection(self._daemon.hostname, self._daemon.port)
        sending = asyncio.create_task(_pass(reader, back))
        try:
            while data := await there.read(65536):
                if self.cut > 0:
                    self.cut -= 1
                    return
                writer.write(data)
                await writer.drain()
        finally:
            sending.cancel()
            back.close()
            writer.close()


async def _pass(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    while data := await reader.read(65536):
        writer.write(data)
        await writer.drain()


@contextlib.asynccontextmanager
async def cutting(daemon: str) -> AsyncIterator[Cutter]:
    """A `Cutter` before a daemon."""
    cutter = Cutter(daemon)
    server = await asyncio.start_server(cutter.serve, "127.0.0.1", 0)
    cutter.url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    try:
        yield cutter
    finally:
        server.close()
