"""Everything that can go wrong, as types.

`AcpdError` is the base of all. `ProblemError` is an answer of the daemon's, with what it says; its subclasses are what a caller
may want to tell apart. The others say what stood between the caller and an answer.
"""

from __future__ import annotations

from collections.abc import Sequence

from pydantic import JsonValue, ValidationError

from .models import ProblemDocument, TerminationInfo

__all__ = [
    "AcpdError",
    "AgentFailedError",
    "AgentNotFoundError",
    "AuthenticationRequiredError",
    "BadRequestError",
    "BusyError",
    "CertificateError",
    "ConfigurationInvalidError",
    "ConnectionFailedError",
    "ConnectionLostError",
    "CursorError",
    "ForbiddenError",
    "HistoryUnreadableError",
    "IdempotencyKeyReusedError",
    "InvalidArgumentError",
    "NotOfferedError",
    "NotResumableError",
    "NotSupportedError",
    "ProblemError",
    "PromptOverError",
    "QuestionClosedError",
    "QueueFullError",
    "SearchOffError",
    "SessionEndedError",
    "SessionExistsError",
    "SessionLiveElsewhereError",
    "SessionNotFoundError",
    "ShuttingDownError",
    "SilenceError",
    "TokenExpiredError",
    "TokenLimitError",
    "TooManyError",
    "UnauthorizedError",
    "UnreadableAnswerError",
    "problem_error",
]


class AcpdError(Exception):
    """Anything that this package raises."""


class InvalidArgumentError(AcpdError, ValueError):
    """An argument cannot be right; nothing was sent. `field` is its name."""

    def __init__(self, field: str, remedy: str) -> None:
        super().__init__(f"{field}: {remedy}")
        self.field = field


class ConnectionFailedError(AcpdError):
    """No daemon was reached: nothing was done."""


class CertificateError(AcpdError):
    """The daemon's certificate is not accepted; `ca` names a file of trusted ones."""


class ConnectionLostError(AcpdError):
    """The connection ended before the answer did: what was asked may have been done."""


class SilenceError(ConnectionLostError):
    """The daemon said nothing for too long: what was asked may have been done."""


class UnreadableAnswerError(AcpdError):
    """What answers is not acpd, or a version that this package does not understand."""


class ProblemError(AcpdError):
    """The daemon refused, or could not do it.

    `status` is the HTTP status and `name` the kind of problem, such as `session_not_found`. `detail` says what happened and
    what to do about it. The others are there where the daemon gives them: the session that it is about, how the agent or the
    session ended, the agent's ways to log in, and the limit of the token with what it allows.
    """

    def __init__(self, document: ProblemDocument, retry_after: float | None = None) -> None:
        self.status: int = document.status
        self.name: str = document.type.rpartition(":")[2]
        self.title: str = document.title
        self.detail: str = document.detail
        self.session_id: str | None = document.session_id
        self.termination_info: TerminationInfo | None = document.termination_info
        self.auth_methods: Sequence[dict[str, JsonValue]] = document.auth_methods or ()
        self.limit: str | None = document.limit
        self.allowed: Sequence[str] = document.allowed or ()
        self.retry_after: float | None = retry_after
        """Seconds after which the daemon wants to be asked again."""
        super().__init__(f"{self.detail} ({self.status} {self.name})")


class BadRequestError(ProblemError):
    """A value is wrong; `detail` names it and what would be right. Nothing was done."""


class UnauthorizedError(ProblemError):
    """No token, or one that is not known."""


class TokenExpiredError(UnauthorizedError):
    """The token was good until a time that is past."""


class ForbiddenError(ProblemError):
    """The scope of the token does not include it."""


class TokenLimitError(ForbiddenError):
    """It is beyond what the token is limited to: `limit`, `allowed`."""


class SessionNotFoundError(ProblemError):
    """No such session, for this caller."""


class AgentNotFoundError(ProblemError):
    """No agent of that name."""


class SessionEndedError(ProblemError):
    """The session is over; `termination_info` says how it ended."""


class SessionExistsError(ProblemError):
    """A session of that id is here already."""


class SessionLiveElsewhereError(ProblemError):
    """Another process has the session."""


class NotResumableError(ProblemError):
    """The session cannot be taken up again; it can be read."""


class NotSupportedError(ProblemError):
    """The agent, or acpd, cannot do that."""


class PromptOverError(ProblemError):
    """The turn of the prompt is over, or there is no such prompt."""


class QuestionClosedError(ProblemError):
    """The question was answered, or is none."""


class NotOfferedError(ProblemError):
    """The answer is not among those that the agent takes; the question stays open."""


class QueueFullError(ProblemError):
    """As many prompts wait as may."""


class IdempotencyKeyReusedError(ProblemError):
    """The key belongs to another request."""


class AuthenticationRequiredError(ProblemError):
    """The agent wants a login first: `auth_methods`."""


class AgentFailedError(ProblemError):
    """The agent did not start, ended or refused; `termination_info` says how it ended, if it has."""


class CursorError(ProblemError):
    """The place in the events is unreadable, of the future, of another session, or not kept any more."""


class HistoryUnreadableError(ProblemError):
    """The events of the session cannot be read."""


class SearchOffError(ProblemError):
    """The configuration turns search off."""


class ConfigurationInvalidError(ProblemError):
    """The daemon's configuration is wrong; it goes on with the one that it has."""


class TooManyError(ProblemError):
    """More sessions, connections or requests than the token may have."""


class BusyError(ProblemError):
    """Too much is under way; it can be sent again in a moment."""


class ShuttingDownError(BusyError):
    """acpd is about to stop."""


_BY_NAME: dict[str, type[ProblemError]] = {
    "agent_failed": AgentFailedError,
    "agent_not_found": AgentNotFoundError,
    "all_kept": BadRequestError,
    "authentication_required": AuthenticationRequiredError,
    "bad_request": BadRequestError,
    "busy": BusyError,
    "configuration_invalid": ConfigurationInvalidError,
    "cursor_in_the_future": CursorError,
    "cursor_of_another_session": CursorError,
    "cursor_too_old": CursorError,
    "cursor_unreadable": CursorError,
    "forbidden": ForbiddenError,
    "history_unreadable": HistoryUnreadableError,
    "idempotency_key_reused": IdempotencyKeyReusedError,
    "invalid_request": BadRequestError,
    "not_offered": NotOfferedError,
    "not_resumable": NotResumableError,
    "not_supported": NotSupportedError,
    "prompt_over": PromptOverError,
    "question_closed": QuestionClosedError,
    "queue_full": QueueFullError,
    "search_off": SearchOffError,
    "session_ended": SessionEndedError,
    "session_exists": SessionExistsError,
    "session_live_elsewhere": SessionLiveElsewhereError,
    "session_not_found": SessionNotFoundError,
    "shutting_down": ShuttingDownError,
    "token_expired": TokenExpiredError,
    "token_limit": TokenLimitError,
    "too_many_connections": TooManyError,
    "too_many_requests": TooManyError,
    "too_many_sessions": TooManyError,
    "unauthorized": UnauthorizedError,
}

# For kinds that have no type of their own here, those of later daemons among them.
_BY_STATUS: dict[int, type[ProblemError]] = {
    400: BadRequestError,
    401: UnauthorizedError,
    403: ForbiddenError,
    429: TooManyError,
    503: BusyError,
}


def problem_error(status: int, body: bytes, retry_after: str | None = None) -> AcpdError:
    """The error that an answer is: its status, its body, and the header `Retry-After` if it has one."""
    try:
        document = ProblemDocument.model_validate_json(body)
    except ValidationError:
        if status in (502, 503, 504):
            return ConnectionLostError(f"a proxy before the daemon answers {status}")
        return UnreadableAnswerError(f"the answer is {status}, and no problem document of acpd's")
    kind = _BY_NAME.get(document.type.rpartition(":")[2]) or _BY_STATUS.get(status, ProblemError)
    seconds = float(retry_after) if retry_after and retry_after.isdecimal() else None
    return kind(document, seconds)
