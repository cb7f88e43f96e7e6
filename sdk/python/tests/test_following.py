"""What a follower and a sender decide, as tables. No daemon is needed."""

from __future__ import annotations

import json
from typing import Literal

import pytest

from acpd_client import (
    AcpdError,
    ConnectionFailedError,
    ConnectionLostError,
    HistoryUnreadableError,
    SilenceError,
    UnreadableAnswerError,
)
from acpd_client._following import Deleted, Place
from acpd_client._retries import backoff, may_pass, wait_before_retry
from acpd_client.errors import problem_error
from acpd_client.models import Session

AT = "2026-01-02T03:04:05Z"
FAILED, LOST = ConnectionFailedError("f"), ConnectionLostError("l")


def problem(status: int, name: str, retry_after: str | None = None) -> AcpdError:
    body = {"type": f"urn:sandbox-agent:error:{name}", "title": "t", "status": status, "detail": "d"}
    return problem_error(status, json.dumps(body).encode(), retry_after)


def other(seq: int) -> str:
    return json.dumps({"seq": seq, "kind": "other", "at": AT})


def session(events: int, state: Literal["idle", "ended"]) -> Session:
    members = {"sessionId": "s", "agent": "a", "cwd": "/", "createdAt": AT, "updatedAt": AT, "openQuestions": 0}
    return Session.model_validate(
        {
            **members,
            "metadata": {},
            "eventCount": events,
            "state": state,
            "ended": state == "ended",
        }
    )


# contract 1.6: exactly what is missing; no event twice, none left out
def test_events_come_once_and_in_order() -> None:
    place = Place(4)
    assert place.take("", "") is None
    taken = [place.take("other", other(seq)) for seq in (3, 4, 5, 5, 6)]
    assert [event and not isinstance(event, Deleted) and event.seq for event in taken] == [None, None, 5, None, 6]
    with pytest.raises(ConnectionLostError, match="event 8 follows on 6"):
        place.take("other", other(8))
    assert place.last == 6
    with pytest.raises(UnreadableAnswerError):
        place.take("other", other(8))


# docs/protocol.md, Ends: the reasons for which a stream is closed
@pytest.mark.parametrize("reason", ["stalled", "shutdown", "revoked", "handover", "internal"])
def test_a_closed_stream_is_opened_anew(reason: str) -> None:
    with pytest.raises(ConnectionLostError, match=reason):
        Place(0).take("closed", json.dumps({"reason": reason, "detail": "d"}))


# docs/protocol.md: `deleted` is the end, what cannot be read an error
def test_a_stream_that_is_closed_for_good() -> None:
    assert Place(0).take("closed", '{"reason":"deleted"}') == Deleted()
    with pytest.raises(HistoryUnreadableError, match="block 7"):
        Place(0).take("closed", '{"reason":"history_unreadable","detail":"block 7"}')


@pytest.mark.parametrize("data", [" ", "x", "[]", "7", '{"seq":1}', '{"seq":"x","kind":"k"}'])
def test_what_is_no_event_is_an_error(data: str) -> None:
    with pytest.raises(UnreadableAnswerError):
        Place(0).take("update", data)


# contract 1.6: after `ended` the stream ends; a run that began behind it is followed
def test_the_end_of_a_stream_is_the_end_of_an_ended_session() -> None:
    place = Place(7)
    assert place.is_over(session(7, "ended"))
    assert not place.is_over(session(8, "ended"))
    assert not place.is_over(session(7, "idle"))
    gone = problem(404, "session_not_found")
    assert not place.is_over_without(gone)
    place.opened()
    assert place.is_over_without(gone)
    assert not place.is_over_without(FAILED)
    end = {"reason": "completed", "terminatedBy": "agent", "endedAt": AT, "turnActive": False, "leaked": False}
    place.take("ended", json.dumps({"seq": 8, "kind": "ended", "at": AT, "terminationInfo": end}))
    assert place.is_over_without(FAILED)
    assert not place.is_over_without(problem(401, "unauthorized"))


# inspector: SDK, reconnects by cursor with backoff, once the daemon was there
def test_a_follower_waits_for_a_daemon_that_was_there() -> None:
    place = Place(0)
    assert place.wait_after(FAILED, reached=False, chance=0) is None
    assert place.wait_after(FAILED, reached=True, chance=0) == 0.05
    assert place.wait_after(SilenceError("s"), reached=True, chance=0) == 0.1
    place.take("other", other(1))
    place.opened()
    assert place.wait_after(LOST, reached=False, chance=1) == 0.1
    for final in (problem(409, "cursor_in_the_future"), problem(401, "unauthorized"), UnreadableAnswerError("u")):
        assert place.wait_after(final, reached=True, chance=0) is None


def test_waits_grow_up_to_a_bound() -> None:
    assert [backoff(attempt, 1) for attempt in range(7)] == [0.1, 0.2, 0.4, 0.8, 1.6, 3.2, 5.0]
    assert backoff(10**6, 0) == 2.5


@pytest.mark.parametrize(
    ("error", "passes"),
    [
        (problem(503, "busy"), True),
        (problem(500, "internal"), True),
        (problem(429, "too_many_requests"), True),
        (problem(429, "too_many_sessions"), False),
        (problem(429, "queue_full"), False),
        (problem(502, "agent_failed"), False),
        (problem(500, "history_unreadable"), False),
        (problem_error(502, b"<html>"), True),
        (problem_error(404, b"<html>"), False),
    ],
)
def test_what_may_pass(error: AcpdError, passes: bool) -> None:  # noqa: FBT001
    assert may_pass(error) is passes


# contract 7.3: what would be done twice is not sent twice
@pytest.mark.parametrize(
    ("error", "repeatable", "reached", "left", "wait"),
    [
        (FAILED, False, True, 9.0, 0.05),
        (FAILED, True, False, 9.0, None),
        (FAILED, True, True, 0.04, None),
        (LOST, True, True, 9.0, 0.05),
        (LOST, False, True, 9.0, None),
        (problem(503, "busy", "1"), True, True, 9.0, 1.0),
        (problem(503, "busy", "1"), True, True, 0.9, None),
        (problem(503, "busy", "1"), False, True, 9.0, None),
        (problem(429, "too_many_requests", "soon"), True, True, 9.0, 0.05),
        (problem(429, "queue_full"), True, True, 9.0, None),
        (problem(409, "session_ended"), True, True, 9.0, None),
        (problem(500, "internal"), True, True, 9.0, None),
    ],
)
def test_when_a_request_is_sent_again(
    error: AcpdError,
    repeatable: bool,  # noqa: FBT001
    reached: bool,  # noqa: FBT001
    left: float,
    wait: float | None,
) -> None:
    got = wait_before_retry(error, repeatable=repeatable, reached=reached, attempt=0, left=left, chance=0)
    assert got == wait
