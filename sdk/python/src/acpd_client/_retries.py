"""When to try again, and after how long. Decides only: no clock, no IO; seconds throughout."""

from __future__ import annotations

from .errors import (
    AcpdError,
    BusyError,
    ConnectionFailedError,
    ConnectionLostError,
    HistoryUnreadableError,
    ProblemError,
    TooManyError,
)

__all__ = ["backoff", "may_pass", "wait_before_retry"]

_SHORTEST = 0.1
_LONGEST = 5.0


def backoff(attempt: int, chance: float) -> float:
    """The wait before another attempt, counted from 0; `chance` is a number from 0 to 1.

    From 0.1 s on, as a daemon that restarts is back in less than a second; doubled up to 5 s. Half of it is chance, so that
    the clients of one daemon do not all come back in the same moment.
    """
    whole = min(_LONGEST, _SHORTEST * 2 ** min(attempt, 10))
    return float(whole * (0.5 + 0.5 * chance))


def may_pass(error: AcpdError) -> bool:
    """Whether it may well go away by itself."""
    if isinstance(error, ProblemError):
        server = error.status >= 500 and error.status != 502
        return not isinstance(error, HistoryUnreadableError) and (server or error.name == "too_many_requests")
    return isinstance(error, ConnectionFailedError | ConnectionLostError)


def wait_before_retry(
    error: AcpdError, *, repeatable: bool, reached: bool, attempt: int, left: float, chance: float
) -> float | None:
    """The wait before a request is sent again; None if it is not.

    `repeatable`: twice does what once does. `reached`: the daemon was there before, so it may come back. `left`: the time that
    is left for waiting.
    """
    match error:
        case ConnectionFailedError():
            again = reached
        case ConnectionLostError():
            again = repeatable
        case BusyError() | TooManyError():
            again = may_pass(error) and repeatable
        case _:
            again = False
    wait = backoff(attempt, chance)
    if isinstance(error, ProblemError) and error.retry_after is not None:
        wait = max(wait, error.retry_after)
    return wait if again and wait <= left else None
