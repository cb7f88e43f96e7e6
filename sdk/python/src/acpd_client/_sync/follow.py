# Written by tools/generate.py from _async.
"""Follows a session's events, across losses of the connection and restarts of the daemon."""

from __future__ import annotations

import random
import time
from collections.abc import Generator
from contextlib import closing

import httpx
from httpx_sse import EventSource, SSEError

from .._calls import events_of, look
from .._following import Deleted, Place
from ..errors import AcpdError, ConnectionLostError, UnreadableAnswerError
from ..models import Event, SessionInfo
from .transport import Transport

__all__ = ["follow"]


def follow(transport: Transport, session_id: str, after: int) -> Generator[Event, None]:
    """The events behind `after`, each once, in order, until the session has ended or is removed."""
    place = Place(after)
    while True:
        try:
            with closing(_once(transport, session_id, place)) as events:
                for event in events:
                    if isinstance(event, Deleted):
                        return
                    yield event
            session = transport.read(look("sessions", session_id), SessionInfo)
            if place.is_over(session):
                return
            error: AcpdError = ConnectionLostError("the daemon ended the stream")
        except AcpdError as raised:
            error = raised
        if place.is_over_without(error):
            return
        wait = place.wait_after(error, reached=transport.reached, chance=random.random())  # noqa: S311
        if wait is None:
            raise error
        time.sleep(wait)


def _once(transport: Transport, session_id: str, place: Place) -> Generator[Event | Deleted, None]:
    """What one stream has."""
    with transport.open(events_of(session_id, place.last)) as response:
        place.opened()
        if response.status_code == httpx.codes.NO_CONTENT:
            # The session has ended, and there is nothing behind.
            return
        try:
            for message in EventSource(response).iter_sse():
                taken = place.take(message.event, message.data)
                if taken is not None:
                    yield taken
        except SSEError as error:
            raise UnreadableAnswerError(str(error)) from error
