"""Where a follower of a session's events stands, and what it does with what comes. Decides only: no IO, no clock."""

from __future__ import annotations

import json
from dataclasses import dataclass

from pydantic import JsonValue, ValidationError

from ._retries import backoff, may_pass
from .errors import (
    AcpdError,
    ConnectionLostError,
    HistoryUnreadableError,
    SessionNotFoundError,
    UnreadableAnswerError,
)
from .events import read_event
from .models import EndedEvent, Event, ProblemDocument, Session, SessionInfo

__all__ = ["Deleted", "Place"]


@dataclass(frozen=True)
class Deleted:
    """The session was removed."""


class Place:
    """A place in the events of a session.

    Invariant: `take` gives each event behind `after` once, in order, or raises.
    """

    def __init__(self, after: int) -> None:
        self.last = after
        """The last event that was given."""
        self._at_end = False
        self._opened = False
        self._gaps = 0
        self._attempt = 0

    def opened(self) -> None:
        """The daemon has begun to answer."""
        self._opened = True

    def take(self, name: str, data: str) -> Event | Deleted | None:
        """What a message of the stream is: an event, the news that the session was removed, or nothing.

        `ConnectionLostError` if the stream is to be opened anew, behind `last`.
        """
        if not data:
            # A comment that keeps the stream alive.
            return None
        if name == "closed":
            return self._closed(_object(data))
        try:
            event = read_event(_object(data))
        except ValidationError as error:
            raise UnreadableAnswerError(f"event {name!r} cannot be read: {error}") from error
        if event.seq <= self.last:
            return None
        if event.seq > self.last + 1:
            self._missing(event.seq)
        self.last = event.seq
        self._gaps = self._attempt = 0
        self._at_end = isinstance(event, EndedEvent)
        return event

    def _missing(self, seq: int) -> None:
        self._gaps += 1
        gap = f"event {seq} follows on {self.last}"
        raise ConnectionLostError(gap) if self._gaps == 1 else UnreadableAnswerError(gap)

    @staticmethod
    def _closed(told: dict[str, JsonValue]) -> Deleted:
        reason, detail = told.get("reason"), told.get("detail")
        if reason == "deleted":
            return Deleted()
        if reason == "history_unreadable":
            raise HistoryUnreadableError(_unreadable(str(detail)))
        raise ConnectionLostError(f"the daemon closed the stream: {reason}, {detail}")

    def is_over(self, session: Session | SessionInfo) -> bool:
        """Whether a stream that ended well is the end, as the session stands now."""
        return session.ended and session.event_count <= self.last

    def is_over_without(self, error: AcpdError) -> bool:
        """The same when the session could not be asked for."""
        if isinstance(error, SessionNotFoundError):
            return self._opened
        # A daemon that is gone by now has nothing to add to the end of a run.
        return self._at_end and may_pass(error)

    def wait_after(self, error: AcpdError, *, reached: bool, chance: float) -> float | None:
        """Seconds until the stream is opened anew; None if the error is final.

        Once the daemon was there (`reached`), whatever may pass is waited out, without end.
        """
        if not ((reached or self._opened) and may_pass(error)):
            return None
        self._attempt += 1
        return backoff(self._attempt - 1, chance)


def _object(data: str) -> dict[str, JsonValue]:
    try:
        value = json.loads(data)
    except ValueError as error:
        raise UnreadableAnswerError(f"the stream has what is no JSON: {data[:100]!r}") from error
    if not isinstance(value, dict):
        raise UnreadableAnswerError(f"the stream has what is no object: {data[:100]!r}")
    return value


def _unreadable(detail: str) -> ProblemDocument:
    return ProblemDocument(
        type="urn:sandbox-agent:error:history_unreadable",
        title="Internal Server Error",
        status=500,
        detail=detail,
    )
