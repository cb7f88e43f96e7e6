"""Events as types, and values of later daemons. No daemon is needed."""

from __future__ import annotations

import json
from typing import get_args

import pytest
from daemon import ROOT
from pydantic import JsonValue, ValidationError
from typing_extensions import assert_type

from acpd_client import (
    EndedEvent,
    Event,
    EventsPage,
    OtherEvent,
    PromptEvent,
    SessionState,
    TerminalEndedEvent,
    TerminalOutputEvent,
    TerminationInfo,
    UpdateEvent,
    agent_text,
    models,
)
from acpd_client.events import read_event, type_of

AT = "2026-01-02T03:04:05.678Z"


def event(kind: str, **members: JsonValue) -> Event:
    return read_event({"seq": 1, "kind": kind, "at": AT, **members})


def update(text: JsonValue, kind: str = "agent_message_chunk") -> Event:
    said: JsonValue = {"sessionUpdate": kind, "content": text}
    return event("update", message={"method": "session/update", "params": {"update": said}})


def ended(**members: JsonValue) -> Event:
    end: JsonValue = {"reason": "error", "terminatedBy": "agent", "endedAt": AT, "turnActive": True, "leaked": False}
    assert isinstance(end, dict)
    return event("ended", terminationInfo={**end, **members})


# inspector: SDK, precise unions: the type follows from the kind, for all kinds of docs/schema/events.json
def test_each_kind_has_its_type() -> None:
    schema = json.loads((ROOT / "docs" / "schema" / "events.json").read_text())["$defs"]
    named = {ref["$ref"].rpartition("/")[2] for ref in schema["Event"]["oneOf"]}
    assert named == {cls.__name__ for cls in get_args(models.Event.__value__)}
    for name in named - {"OtherEvent", "TerminalOutputEvent", "TerminalEndedEvent"}:
        kind = schema[name]["properties"]["kind"]["const"]
        assert type_of({"kind": kind}).__name__ == name


# inspector: SDK, precise unions: checkers know the type behind `isinstance` and `match`
def test_types_are_told_apart() -> None:
    read: Event = ended(cause="agent_crash", exitCode=3)
    assert isinstance(read, EndedEvent)
    assert_type(read.termination_info, TerminationInfo)
    assert (read.termination_info.cause, read.termination_info.exit_code) == ("agent_crash", 3)
    match event("prompt", turn=1, prompt=["x"]):
        case PromptEvent(turn=turn) as prompt:
            assert_type(prompt.by, str | None)
            assert turn == 1
        case other:
            pytest.fail(f"{other}")


# contract 1.6: both kinds of `terminal`
def test_output_of_a_terminal_is_told_from_its_end() -> None:
    status: JsonValue = {"exitCode": 0, "signal": None}
    final: JsonValue = {"text": "", "truncated": False}
    assert isinstance(event("terminal", terminalId="t", output="x"), TerminalOutputEvent)
    end = event("terminal", terminalId="t", state="finished", exitStatus=status, finalOutput=final)
    assert isinstance(end, TerminalEndedEvent)
    with pytest.raises(ValidationError, match="finalOutput"):
        event("terminal", terminalId="t")


# inspector: SDK, `OtherEvent` for kinds of later daemons; members and words may be added
def test_what_a_later_daemon_adds_is_kept() -> None:
    later = event("hibernated", keeper=7)
    assert isinstance(later, OtherEvent)
    assert (later.kind, later.model_extra) == ("hibernated", {"keeper": 7})
    more = ended(cause="fenced", fencedBy="x")
    assert isinstance(more, EndedEvent)
    assert more.termination_info.model_extra == {"fencedBy": "x"}
    assert str(more.termination_info.cause) == "fenced"
    assert more.model_dump(by_alias=True, mode="json", exclude_none=True)["terminationInfo"]["cause"] == "fenced"


# inspector: SDK, states as literals
def test_words_are_literals() -> None:
    words: tuple[SessionState, ...] = ("starting", "idle", "running", "waiting", "ended")
    assert get_args(get_args(SessionState.__value__)[0]) == words


# contract 1.6: what is no event is an error
@pytest.mark.parametrize("wrong", [{}, {"seq": 0, "kind": "x", "at": AT}, {"seq": 1, "kind": 7, "at": AT}, {"seq": 1}])
def test_what_is_no_event_is_refused(wrong: dict[str, JsonValue]) -> None:
    with pytest.raises(ValidationError):
        read_event(wrong)
    with pytest.raises(ValidationError):
        EventsPage.model_validate({"events": [wrong]})


# contract 1.6: `message` is the raw message of ACP
@pytest.mark.parametrize(
    ("of", "text"),
    [
        (update({"type": "text", "text": "a\u2028b"}), "a\u2028b"),
        (update({"type": "text", "text": 7}), ""),
        (update({"type": "image"}), ""),
        (update({"type": "text", "text": "no"}, "agent_thought_chunk"), ""),
        (ended(), ""),
        (event("update", message={"params": None}), ""),
    ],
)
def test_the_text_of_an_answer(of: Event, text: str) -> None:
    assert agent_text(of) == text
    assert isinstance(of, UpdateEvent | EndedEvent)
