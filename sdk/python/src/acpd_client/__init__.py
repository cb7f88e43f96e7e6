"""Client of acpd, a session host for coding agents that speak the Agent Client Protocol (ACP).

`AcpdClient` is for asyncio, `SyncAcpdClient` blocks. `acpd_client.models` has what the daemon answers and sends,
`acpd_client.errors` what can go wrong, `acpd_client.acp` ACP itself (with the extra `acp`).
"""

from . import errors, events, models
from ._calls import (
    CancelledOutcome,
    ContentBlock,
    Directory,
    ElicitationOutcome,
    McpServer,
    Outcome,
    Prompt,
    SelectedOutcome,
)
from ._questions import FormQuestion, PermissionOption, PermissionQuestion
from .client import AcpdClient, SyncAcpdClient
from .errors import *  # noqa: F403
from .events import EventsPage, agent_text
from .models import *  # noqa: F403

__all__ = [
    "AcpdClient",
    "CancelledOutcome",
    "ContentBlock",
    "Directory",
    "ElicitationOutcome",
    "EventsPage",
    "FormQuestion",
    "McpServer",
    "Outcome",
    "PermissionOption",
    "PermissionQuestion",
    "Prompt",
    "SelectedOutcome",
    "SyncAcpdClient",
    "agent_text",
    "errors",
    "events",
    "models",
]
__all__ += errors.__all__
__all__ += models.__all__
