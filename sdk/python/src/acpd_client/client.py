"""The two clients of acpd."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Awaitable, Callable
from functools import cached_property

from ._async.client import Operations
from ._sync.client import Operations as SyncOperations
from .models import TerminationInfo

__all__ = ["AcpdClient", "SyncAcpdClient"]

Handler = Callable[[TerminationInfo], Awaitable[None] | None]


class AcpdClient(Operations):
    """A client of a daemon, for asyncio.

    `url`: `http://HOST:PORT`, `https://HOST:PORT` or `unix:PATH`. `token`: one that `acpd token new` printed. `ca`: a file of
    certificates that the daemon's is checked against, in place of those of the system. `timeout`: seconds for connecting, and
    for an answer that needs no more than a look. `retry_for`: seconds in which a request is sent again, if that is safe, while
    a daemon that was there is away.

    Use it with `async with`, or call `aclose`. Every failure is an `acpd_client.AcpdError`.
    """

    @cached_property
    def _watches(self) -> set[asyncio.Task[None]]:
        return set()

    def on_session_ended(self, session_id: str, handler: Handler) -> asyncio.Task[None]:
        """Calls `handler`, a function or a coroutine function, once, when the session ends: at once for one that has.

        Gives the task that waits for it: cancel it to stop that, await it to see the handler's end, or the error that ended
        the watch. Closing the client cancels it.
        """
        task = asyncio.get_running_loop().create_task(self._watch(session_id, handler))
        # The loop itself keeps no task alive.
        self._watches.add(task)
        task.add_done_callback(self._watches.discard)
        return task

    async def _watch(self, session_id: str, handler: Handler) -> None:
        called = handler(await self.wait_for_end(session_id))
        if inspect.isawaitable(called):
            await called

    async def aclose(self) -> None:
        """Ends all connections and watches. What the daemon does goes on."""
        watches = list(self._watches)
        for task in watches:
            task.cancel()
        await asyncio.gather(*watches, return_exceptions=True)
        await super().aclose()


class SyncAcpdClient(SyncOperations):
    """The same, blocking: every method but `on_session_ended`, and iterators in place of asynchronous ones.

    Use it with `with`, or call `close`. One client serves any number of threads.
    """
