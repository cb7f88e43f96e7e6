"""Requests as values: what is sent, and what may be done when no answer comes. Nothing is sent here."""

from __future__ import annotations

import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from os import PathLike, fspath
from typing import Literal, cast
from urllib.parse import quote

from pydantic import JsonValue
from typing_extensions import NotRequired, TypeAliasType, TypedDict

from .errors import InvalidArgumentError

__all__ = [
    "Call",
    "CancelledOutcome",
    "ContentBlock",
    "Directory",
    "ElicitationOutcome",
    "McpServer",
    "Outcome",
    "Prompt",
    "SelectedOutcome",
    "act",
    "directories",
    "directory",
    "events_of",
    "look",
    "new_key",
    "outcome_value",
    "path",
    "prompt_value",
    "servers",
]

ContentBlock = TypeAliasType("ContentBlock", Mapping[str, JsonValue])
"""A content block as in ACP: `{"type": "text", "text": ...}` or another that the agent takes."""

McpServer = TypeAliasType("McpServer", Mapping[str, JsonValue])
"""An MCP server as in ACP."""

Prompt = TypeAliasType("Prompt", str | Sequence[ContentBlock])
"""Text, or content blocks."""


class SelectedOutcome(TypedDict):
    """An option of a permission request is chosen."""

    outcome: Literal["selected"]
    optionId: str


class CancelledOutcome(TypedDict):
    """A permission request is left without a choice."""

    outcome: Literal["cancelled"]


class ElicitationOutcome(TypedDict):
    """A form is filled in, or not."""

    action: Literal["accept", "decline", "cancel"]
    content: NotRequired[Mapping[str, JsonValue]]


Outcome = TypeAliasType("Outcome", SelectedOutcome | CancelledOutcome | ElicitationOutcome)
"""An answer to a question of an agent, as in ACP."""

Directory = TypeAliasType("Directory", str | PathLike[str])
"""An absolute path where the daemon runs."""

Value = str | int | bool | None


@dataclass(frozen=True)
class Call:
    """A request."""

    method: Literal["GET", "POST", "DELETE"]
    path: str
    query: Mapping[str, str] = field(default_factory=dict)
    body: Mapping[str, JsonValue] | None = None
    headers: Mapping[str, str] = field(default_factory=dict)
    repeatable: bool = True
    """Sent twice it does what it does once, so it may be sent again when the answer was lost."""
    gone_is_done: bool = False
    """That there is no such session says, of one that is sent again, that it was done."""
    answers: int | None = None
    """A status that is an answer though it is no success."""
    quick: bool = True
    """The answer needs no more than a look. Anything else takes as long as it takes, which the daemon bounds."""


def path(*parts: str) -> str:
    """A path of REST. An empty part would name something else: `InvalidArgumentError`."""
    if not all(parts):
        raise InvalidArgumentError("id", "an id or a name cannot be empty")
    if any(set(part) == {"."} for part in parts):
        raise InvalidArgumentError("id", "an id or a name is not a step in a path")
    return "/".join(("/v1", *(quote(part, safe="") for part in parts)))


def _text(value: str | int | bool) -> str:  # noqa: FBT001
    return str(value).lower() if isinstance(value, bool) else str(value)


def look(*parts: str, **query: Value) -> Call:
    """A request that only looks; members of the query that are None are left out."""
    return Call("GET", path(*parts), {k: _text(v) for k, v in query.items() if v is not None})


def act(
    *parts: str,
    body: Mapping[str, JsonValue] | None = None,
    key: str | None = None,
    repeatable: bool = False,
) -> Call:
    """A request that does something. Members of the body that are None are left out; under a key it is repeatable."""
    sent = {k: v for k, v in body.items() if v is not None} if body is not None else None
    headers = {"Idempotency-Key": _checked(key)} if key is not None else {}
    return Call("POST", path(*parts), {}, sent, headers, repeatable or key is not None, quick=False)


def events_of(session_id: str, after: int) -> Call:
    """A request for the stream of a session's events, behind one of them."""
    if after < 0:
        raise InvalidArgumentError("after", "give the `seq` of an event, or 0 for all")
    stream = {"Accept": "text/event-stream"}
    return Call("GET", path("sessions", session_id, "events"), {"after": str(after)}, headers=stream)


def new_key() -> str:
    """A key under which a request may be sent again."""
    return uuid.uuid4().hex


def _checked(key: str) -> str:
    if not 1 <= len(key) <= 255 or not all("!" <= char <= "~" for char in key):
        raise InvalidArgumentError("idempotency_key", "1 to 255 visible ASCII characters are required")
    return key


def directory(name: str, value: Directory | None) -> str | None:
    """A directory as JSON; one that is not absolute is an `InvalidArgumentError` of that name."""
    text = fspath(value) if value is not None else None
    if text is not None and not text.startswith("/"):
        raise InvalidArgumentError(name, f"an absolute path is required, and not {text!r}")
    return text


def directories(name: str, values: Sequence[Directory] | None) -> JsonValue:
    """The same for several."""
    return None if values is None else [directory(name, value) for value in values]


def servers(values: Sequence[McpServer] | None) -> JsonValue:
    """MCP servers as JSON."""
    return None if values is None else [dict(value) for value in values]


def outcome_value(outcome: Outcome) -> JsonValue:
    """An answer as JSON."""
    return dict(cast("Mapping[str, JsonValue]", outcome))


def prompt_value(prompt: Prompt) -> JsonValue:
    """A prompt as JSON. An empty one is an `InvalidArgumentError`."""
    if not prompt:
        raise InvalidArgumentError("prompt", "text or at least one content block is required")
    return prompt if isinstance(prompt, str) else [dict(block) for block in prompt]
