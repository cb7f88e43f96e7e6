"""What an agent asks, read from the raw request in an event.

An event that asks has these as `question`. What an agent sent in a way that ACP does not know is left out, and never fails.
"""

from collections.abc import Mapping
from typing import Annotated, Literal

from pydantic import Field, JsonValue

from ._base import OPEN, Model

__all__ = ["AsksForm", "AsksPermission", "FormQuestion", "PermissionOption", "PermissionQuestion"]

PermissionOptionKind = Literal["allow_once", "allow_always", "reject_once", "reject_always"]


class PermissionOption(Model):
    """An answer that the agent offers. `kind` says what it means; its id is the agent's own."""

    option_id: Annotated[str, Field(alias="optionId")]
    name: str
    kind: Annotated[PermissionOptionKind, OPEN]


class PermissionQuestion(Model):
    """A permission that an agent asks for."""

    options: list[PermissionOption]
    """What can be answered."""
    tool_call: dict[str, JsonValue]
    """What it is for, as ACP has it; empty where the agent did not say so."""


class FormQuestion(Model):
    """What an agent wants to be told, in words or by a form."""

    message: str
    requested_schema: dict[str, JsonValue]
    """The fields of a form, as ACP has them; empty where there are none."""


class AsksPermission(Model):
    """An event by which an agent asks for a permission."""

    message: dict[str, JsonValue]

    @property
    def question(self) -> PermissionQuestion:
        """What is asked, and what can be answered."""
        params = _object(self.message.get("params"))
        offered = params.get("options")
        options = [_object(each) for each in offered] if isinstance(offered, list) else []
        return PermissionQuestion(
            options=[PermissionOption.model_validate(option) for option in options if _is_option(option)],
            tool_call=dict(_object(params.get("toolCall"))),
        )


class AsksForm(Model):
    """An event by which an agent asks for words or data."""

    message: dict[str, JsonValue]

    @property
    def question(self) -> FormQuestion:
        """What is asked."""
        params = _object(self.message.get("params"))
        message = params.get("message")
        schema = _object(params.get("requestedSchema"))
        return FormQuestion(message=message if isinstance(message, str) else "", requested_schema=dict(schema))


def _object(value: JsonValue) -> Mapping[str, JsonValue]:
    return value if isinstance(value, dict) else {}


def _is_option(option: Mapping[str, JsonValue]) -> bool:
    return all(isinstance(option.get(name), str) for name in ("optionId", "name", "kind"))
