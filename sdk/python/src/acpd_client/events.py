"""The events of a session, each as its own type.

`Event` is the union of all kinds; `isinstance` or `match` tells them apart, and `OtherEvent` is one of a later version of acpd
(its members are in `model_extra`). Output of a terminal and the end of its command share the kind `terminal`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, get_args

from pydantic import Field, JsonValue, PlainValidator

from . import models
from ._base import Model
from .models import Event, OtherEvent, TerminalEndedEvent, TerminalOutputEvent, UpdateEvent

__all__ = ["EventsPage", "agent_text", "read_event", "type_of"]


def _by_kind() -> dict[str, type[Model]]:
    kinds: dict[str, type[Model]] = {}
    for cls in get_args(models.Event.__value__):
        if cls not in (OtherEvent, TerminalOutputEvent, TerminalEndedEvent):
            (kind,) = get_args(cls.model_fields["kind"].annotation)
            kinds[kind] = cls
    return kinds


_KINDS = _by_kind()


def type_of(value: Mapping[str, JsonValue]) -> type[Model]:
    """The type of the event that a JSON object would be."""
    kind = value.get("kind")
    if kind == "terminal":
        return TerminalOutputEvent if "output" in value else TerminalEndedEvent
    return _KINDS.get(kind, OtherEvent) if isinstance(kind, str) else OtherEvent


def read_event(value: Mapping[str, JsonValue]) -> Event:
    """The event that a JSON object is; `pydantic.ValidationError` if it is none."""
    event: Event = type_of(value).model_validate(value)  # type: ignore[assignment]
    return event


class EventsPage(Model):  # type: ignore[explicit-any]
    """A page of events."""

    events: list[Annotated[Event, PlainValidator(read_event)]]
    """The events in order."""
    next_cursor: Annotated[str | None, Field(alias="nextCursor")] = None
    """Where the next page begins; not there on the last one."""


def agent_text(event: Event) -> str:
    """The text that an event adds to the agent's answer: empty for all but text of an `agent_message_chunk`."""
    if not isinstance(event, UpdateEvent):
        return ""
    match event.message:
        case {
            "params": {
                "update": {
                    "sessionUpdate": "agent_message_chunk",
                    "content": {"type": "text", "text": str(text)},
                }
            }
        }:
            return text
    return ""
