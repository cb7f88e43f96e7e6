"""What the daemon answers and sends. Written by tools/generate.py from docs/openapi.json."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import AwareDatetime, Field, JsonValue
from typing_extensions import TypeAliasType

from acpd_client._base import OPEN, Model
from acpd_client._questions import AsksForm, AsksPermission

AgentOrigin = TypeAliasType("AgentOrigin", Annotated[Literal["configured", "found", "builtin"], OPEN])
"""
Where an agent comes from.

`configured`: It has an entry in the configuration.

`found`: It is known to acpd, and its program was found in `PATH`.

`builtin`: It is in acpd itself.
"""

__all__ = [
    "Agent",
    "AgentCheck",
    "AgentList",
    "AgentOrigin",
    "AgentRequestEvent",
    "AgentState",
    "AgentStatus",
    "AnsweredBy",
    "AnsweredByCause",
    "AnsweredByClient",
    "AnsweredByMode",
    "CancelRequestedEvent",
    "Cause",
    "Code",
    "Containment",
    "Continuity",
    "CreatedEvent",
    "EchoEvent",
    "ElicitationCompletedEvent",
    "ElicitationRequestedEvent",
    "ElicitationResolvedEvent",
    "EndedEvent",
    "Event",
    "ExitStatus",
    "FileForwardedEvent",
    "FileResolvedEvent",
    "FinalOutput",
    "HandingOver",
    "Health",
    "HealthStatus",
    "KnownToken",
    "KnownTokens",
    "LastTurn",
    "Limits",
    "McpLimit",
    "Node",
    "Nodes",
    "NotInstalled",
    "NotificationEvent",
    "Opened",
    "OtherEvent",
    "Part",
    "Partition",
    "PermissionMode",
    "PermissionRequestedEvent",
    "PermissionResolvedEvent",
    "ProblemDocument",
    "ProblemType",
    "PromptAccepted",
    "PromptEvent",
    "Prunable",
    "Pruned",
    "QuestionNumber",
    "Ready",
    "Reason",
    "ReattachedEvent",
    "Reloaded",
    "RemovedNode",
    "RunStartedEvent",
    "Scope",
    "SearchHit",
    "SearchPage",
    "Sees",
    "Session",
    "SessionId",
    "SessionInfo",
    "SessionState",
    "SessionsPage",
    "Snapshot",
    "StalledEvent",
    "Standing",
    "StateChangedEvent",
    "Stats",
    "StatsStep",
    "StderrInfo",
    "TerminalEndedEvent",
    "TerminalOutputEvent",
    "TerminatedBy",
    "TerminationInfo",
    "TokensAdditionalProperty",
    "TranscriptEvent",
    "TranscriptFacts",
    "TurnEndedEvent",
    "TurnNumber",
    "UpdateEvent",
    "Usage",
    "Whoami",
]


class AgentRequestEvent(Model):
    """
    A request of the agent that acpd answered.
    """

    seq: Annotated[int, Field(ge=1)]
    """
    Its number in the session, from 1, without holes.
    """
    kind: Literal["agent_request"]
    at: AwareDatetime
    """
    When it happened.
    """
    answer: JsonValue
    """
    What it was answered, as far as it is worth keeping.
    """
    message: dict[str, JsonValue]
    """
    The request; a write without the content.
    """


class AgentState(Model):
    """
    What an agent says of a session's state in the answer to a request: its own values, unchanged. What is absent was not said.
    """

    modes: JsonValue | None = None
    """
    The modes that it offers, and the current one.
    """
    config_options: Annotated[JsonValue | None, Field(alias="configOptions")] = None
    """
    The options that it offers, with their values.
    """
    models: JsonValue | None = None
    """
    The models that it offers, and the current one.
    """
    current_mode_id: Annotated[JsonValue | None, Field(alias="currentModeId")] = None
    """
    The id of its mode.
    """
    tools: JsonValue | None = None
    """
    Its tools.
    """


AgentStatus = TypeAliasType("AgentStatus", Annotated[Literal["running", "stopped", "error"], OPEN])
"""
Whether an agent works.

`running`: A process of it runs.

`stopped`: None runs, and nothing is wrong with that.

`error`: None runs: the last start failed, or the last process crashed.
"""


class AnsweredByClient(Model):
    """
    A client, by its name.
    """

    client: str


class AnsweredByMode(Model):
    """
    The permission mode of the session.
    """

    mode: str


class AnsweredByCause(Model):
    """
    An event that made an answer needless or impossible: `cancel`, `turn_ended`, `end`, `agent`, `timeout`, `declined`, `nobody`.
    """

    cause: str


AnsweredBy = TypeAliasType("AnsweredBy", AnsweredByClient | AnsweredByMode | AnsweredByCause)
"""
What answered a question.
"""


class CancelRequestedEvent(Model):
    """
    A client asked for the running turn to end.
    """

    seq: Annotated[int, Field(ge=1)]
    """
    Its number in the session, from 1, without holes.
    """
    kind: Literal["cancel_requested"]
    at: AwareDatetime
    """
    When it happened.
    """
    by: str | None = None
    """
    The client.
    """


Cause = TypeAliasType(
    "Cause",
    Annotated[
        Literal[
            "agent_exit",
            "agent_crash",
            "spawn_failed",
            "initialize_timeout",
            "protocol_error",
            "client_close",
            "client_terminate",
            "idle_timeout",
            "daemon_shutdown",
            "daemon_lost",
            "daemon_upgrade",
            "fenced",
            "superseded",
            "out_of_memory",
        ],
        OPEN,
    ],
)
"""
The exact cause.

`agent_exit`: Exited with code 0.

`agent_crash`: Exited with another code or by a signal.

`spawn_failed`: Could not be started.

`initialize_timeout`: Did not answer `initialize` in time.

`protocol_error`: What it sent cannot be understood, or it broke the connection and lived on.

`client_close`: A client closed the session.

`client_terminate`: A client terminated the session.

`idle_timeout`: Nothing happened for too long.

`daemon_shutdown`: The daemon, or the front end with a host inside, shut down in good order.

`daemon_lost`: The daemon died while the session was live.

`daemon_upgrade`: The next daemon does not speak with what kept the agent for it, and ended it.

`fenced`: The fleet had not heard of this node in time, so that another node may take the session up.

`superseded`: Another daemon, or another program of the same user, has taken the agent over; or another node of the fleet the session.

`out_of_memory`: It ran out of memory: the kernel killed it for that, or its own runtime gave up.
"""


class Code(Model):
    """
    A code.
    """

    code: str
    """
    What `POST /v1/open` takes, once.
    """
    expires_at: Annotated[AwareDatetime, Field(alias="expiresAt")]
    """
    Until when, ISO 8601.
    """


Containment = TypeAliasType("Containment", Annotated[Literal["subreaper", "group"], OPEN])
"""
What of the processes that an agent starts acpd sees, and ends with it.

`subreaper`: All of them.

`group`: Those that stay in the agent's process group.
"""


Continuity = TypeAliasType("Continuity", Annotated[Literal["exact", "graceful", "none"], OPEN])
"""
How far a run can be carried on when its daemon is gone.

`exact`: However the daemon ends, nothing that the agent writes is lost or doubled.

`graceful`: The same where the daemon ends in good order.

`none`: Agents end with their daemon.
"""


class EchoEvent(Model):
    """
    The agent repeated a part of the prompt.
    """

    seq: Annotated[int, Field(ge=1)]
    """
    Its number in the session, from 1, without holes.
    """
    kind: Literal["echo"]
    at: AwareDatetime
    """
    When it happened.
    """
    message: dict[str, JsonValue]
    """
    The message, raw.
    """


class ElicitationCompletedEvent(Model):
    """
    What the user was asked to do at a URL is done.
    """

    seq: Annotated[int, Field(ge=1)]
    """
    Its number in the session, from 1, without holes.
    """
    kind: Literal["elicitation_completed"]
    at: AwareDatetime
    """
    When it happened.
    """
    message: dict[str, JsonValue]
    """
    The agent's notification, raw.
    """


class ExitStatus(Model):
    """
    The code or the signal with which a command ended; null for the other.
    """

    exit_code: Annotated[int | None, Field(alias="exitCode")]
    """
    The exit code.
    """
    signal: str | None
    """
    The name of the signal.
    """


class FinalOutput(Model):
    """
    The end of a terminal's output.
    """

    text: str
    """
    The text.
    """
    truncated: bool
    """
    There was more before it.
    """


class HandingOver(Model):
    """
    What takes the daemon's place.
    """

    version: str
    """
    The version of acpd that takes its place.
    """


HealthStatus = TypeAliasType("HealthStatus", Annotated[Literal["ok", "degraded"], OPEN])
"""
`degraded` while it could take on no work.
"""


class LastTurn(Model):
    """
    How the last turn of a session ended.
    """

    stop_reason: Annotated[str | None, Field(alias="stopReason")] = None
    """
    Why; absent when it failed, or when its run ended first.
    """
    duration_ms: Annotated[int, Field(alias="durationMs", ge=0)]
    """
    How long it took, in milliseconds.
    """
    ended_at: Annotated[AwareDatetime, Field(alias="endedAt")]
    """
    When, ISO 8601.
    """


McpLimit = TypeAliasType("McpLimit", Annotated[Literal["http", "none"], OPEN])
"""
The MCP servers that a session may be given.

`http`: Those that are reached over HTTP: none is a command.

`none`: None.
"""


class Node(Model):
    """
    A node.
    """

    name: str
    """
    Its name.
    """
    here: bool
    """
    Whether it is the one that answers.
    """
    address: str | None = None
    """
    Where other nodes reach it.
    """
    version: str
    """
    Its version of acpd; empty where this daemon has not heard it.
    """
    labels: list[str]
    """
    What its operator says of it.
    """
    agents: list[str]
    """
    The names of its agents.
    """
    room: Annotated[int, Field(ge=0)]
    """
    Live sessions that it has room for.
    """
    draining: bool
    """
    Whether it takes no new sessions.
    """
    sessions: Annotated[int, Field(ge=0)]
    """
    Sessions in its log.
    """
    live: Annotated[int, Field(ge=0)]
    """
    Those that have not ended.
    """
    reachable: bool
    """
    Whether it is there.
    """
    unreachable_since: Annotated[AwareDatetime | None, Field(alias="unreachableSince")] = None
    """
    Since when it is not, ISO 8601.
    """


class Nodes(Model):
    """
    The nodes of a fleet.
    """

    nodes: list[Node]
    """
    All that have joined the fleet and were not removed since, by name.
    """
    stale: bool
    """
    Whether this may be old, because the engine does not answer.
    """
    reason: str | None = None
    """
    Why the fleet does not know of this node.
    """


class NotInstalled(Model):
    """
    A known agent that is not installed.
    """

    name: str
    """
    Its name.
    """
    title: str
    """
    What its makers call it.
    """
    install: str
    """
    The command that installs it, on the machine of acpd.
    """


class NotificationEvent(Model):
    """
    The agent sent another notification.
    """

    seq: Annotated[int, Field(ge=1)]
    """
    Its number in the session, from 1, without holes.
    """
    kind: Literal["notification"]
    at: AwareDatetime
    """
    When it happened.
    """
    message: dict[str, JsonValue]
    """
    The message, raw.
    """


class Opened(Model):
    """
    A token for one browser.
    """

    token: str
    """
    The token: all that the owner of the daemon may do.
    """
    expires_at: Annotated[AwareDatetime, Field(alias="expiresAt")]
    """
    It is refused from then on, and after the end of the daemon; ISO 8601.
    """


class OtherEvent(Model):
    """
    An event of a later version. Its members depend on its kind.
    """

    seq: Annotated[int, Field(ge=1)]
    """
    Its number in the session, from 1, without holes.
    """
    kind: str
    at: AwareDatetime
    """
    When it happened.
    """


Part = TypeAliasType("Part", Annotated[Literal["prompt", "answer", "tool"], OPEN])
"""
A part of a turn.

`prompt`: What the client said.

`answer`: What the agent said.

`tool`: The titles of its tool calls.
"""


Partition = TypeAliasType("Partition", Annotated[Literal["local", "failover"], OPEN])
"""
What becomes of a session whose node the engine of its fleet has lost.

`local`: It belongs to its node, where it goes on.

`failover`: Its node ends it in time, and another one takes it up.
"""


PermissionMode = TypeAliasType(
    "PermissionMode", Annotated[Literal["default", "acceptEdits", "bypassPermissions", "deny"], OPEN]
)
"""
Who answers an agent's permission requests.

`default`: Ask the viewers.

`acceptEdits`: Allow edits, deletions and moves, ask for the rest.

`bypassPermissions`: Allow whatever can be allowed.

`deny`: Reject.
"""


ProblemType = TypeAliasType(
    "ProblemType",
    Annotated[
        Literal[
            "urn:sandbox-agent:error:all_kept",
            "urn:sandbox-agent:error:agent_process",
            "urn:sandbox-agent:error:agent_failed",
            "urn:sandbox-agent:error:agent_not_found",
            "urn:sandbox-agent:error:authentication_required",
            "urn:sandbox-agent:error:bad_request",
            "urn:sandbox-agent:error:busy",
            "urn:sandbox-agent:error:configuration_invalid",
            "urn:sandbox-agent:error:connection_id_missing",
            "urn:sandbox-agent:error:connection_not_found",
            "urn:sandbox-agent:error:cursor_in_the_future",
            "urn:sandbox-agent:error:cursor_of_another_session",
            "urn:sandbox-agent:error:cursor_of_another_stream",
            "urn:sandbox-agent:error:cursor_too_old",
            "urn:sandbox-agent:error:cursor_unreadable",
            "urn:sandbox-agent:error:draining",
            "urn:sandbox-agent:error:forbidden",
            "urn:sandbox-agent:error:fenced",
            "urn:sandbox-agent:error:foreign_host",
            "urn:sandbox-agent:error:foreign_origin",
            "urn:sandbox-agent:error:foreign_user",
            "urn:sandbox-agent:error:handover_refused",
            "urn:sandbox-agent:error:history_unreadable",
            "urn:sandbox-agent:error:idempotency_key_reused",
            "urn:sandbox-agent:error:internal",
            "urn:sandbox-agent:error:invalid_request",
            "urn:sandbox-agent:error:method_not_allowed",
            "urn:sandbox-agent:error:no_fleet",
            "urn:sandbox-agent:error:no_node",
            "urn:sandbox-agent:error:node_reachable",
            "urn:sandbox-agent:error:node_unreachable",
            "urn:sandbox-agent:error:not_acceptable",
            "urn:sandbox-agent:error:not_found",
            "urn:sandbox-agent:error:not_here",
            "urn:sandbox-agent:error:not_initialized",
            "urn:sandbox-agent:error:not_supported",
            "urn:sandbox-agent:error:not_resumable",
            "urn:sandbox-agent:error:not_offered",
            "urn:sandbox-agent:error:prompt_over",
            "urn:sandbox-agent:error:question_closed",
            "urn:sandbox-agent:error:queue_full",
            "urn:sandbox-agent:error:request_timeout",
            "urn:sandbox-agent:error:search_off",
            "urn:sandbox-agent:error:session_ended",
            "urn:sandbox-agent:error:session_id",
            "urn:sandbox-agent:error:session_exists",
            "urn:sandbox-agent:error:session_live_elsewhere",
            "urn:sandbox-agent:error:session_not_found",
            "urn:sandbox-agent:error:shutting_down",
            "urn:sandbox-agent:error:token_expired",
            "urn:sandbox-agent:error:token_limit",
            "urn:sandbox-agent:error:too_large",
            "urn:sandbox-agent:error:too_many_connections",
            "urn:sandbox-agent:error:too_many_requests",
            "urn:sandbox-agent:error:too_many_sessions",
            "urn:sandbox-agent:error:too_many_streams",
            "urn:sandbox-agent:error:unauthorized",
            "urn:sandbox-agent:error:unsupported_media_type",
            "urn:sandbox-agent:error:websocket_version",
        ],
        OPEN,
    ],
)
"""
What an error is: these and no others.
"""


class Prunable(Model):
    """
    An ended session that is removed.
    """

    session_id: Annotated[str, Field(alias="sessionId")]
    """
    Its id.
    """
    agent: str
    """
    Its agent's name.
    """
    cwd: str
    """
    Its working directory.
    """
    title: str | None = None
    """
    Its title, if it has one.
    """
    updated_at: Annotated[AwareDatetime, Field(alias="updatedAt")]
    """
    When it last changed, ISO 8601.
    """
    bytes: Annotated[int, Field(ge=0)]
    """
    What its stored blocks take, in bytes.
    """


class Pruned(Model):
    """
    Sessions that were removed, or would be.
    """

    sessions: list[Prunable]
    """
    The one that changed longest ago first.
    """


QuestionNumber = TypeAliasType("QuestionNumber", Annotated[int, Field(ge=0)])
"""
A question of the agent: the sequence number of the event that shows it.
"""


class Ready(Model):
    """
    Whether new sessions can be taken.
    """

    ready: bool
    """
    It can.
    """
    reason: str | None = None
    """
    Why not, or what is wrong beside that: a fleet whose engine does not answer.
    """


Reason = TypeAliasType("Reason", Annotated[Literal["completed", "error", "terminated"], OPEN])
"""
Why a run ended.

`completed`: In good order: the agent left while idle, the session was closed, the daemon shut down.

`error`: Something went wrong.

`terminated`: A client ended it for good.
"""


class ReattachedEvent(Model):
    """
    Another host goes on with the agent process. What the agent wrote meanwhile follows.
    """

    seq: Annotated[int, Field(ge=1)]
    """
    Its number in the session, from 1, without holes.
    """
    kind: Literal["reattached"]
    at: AwareDatetime
    """
    When it happened.
    """
    gap_ms: Annotated[int, Field(alias="gapMs", ge=0)]
    """
    How long the session had no host, in milliseconds.
    """


class Reloaded(Model):
    """
    What the daemon goes by from now on.
    """

    config: str | None = None
    """
    The configuration that was read; not there when the daemon goes by none.
    """
    tokens: Annotated[int, Field(ge=0)]
    """
    How many tokens there are.
    """
    agents: Annotated[int, Field(ge=0)]
    """
    How many agents there are.
    """


class RemovedNode(Model):
    """
    What was removed with a node.
    """

    sessions: Annotated[int, Field(ge=0)]
    """
    Its sessions that were.
    """
    left: Annotated[int, Field(ge=0)]
    """
    Those that are still to be: the next request goes on.
    """


Scope = TypeAliasType("Scope", Annotated[Literal["observe", "control", "admin"], OPEN])
"""
What the bearer of a token may do; each scope includes the one before.

`observe`: List, inspect and watch.

`control`: Also prompt, answer, cancel and close.

`admin`: Also terminate any session, delete, and see agents and metrics.
"""


class SearchHit(Model):
    """
    A turn in which all the words stand.
    """

    session_id: Annotated[str, Field(alias="sessionId")]
    """
    Its session.
    """
    agent: str
    """
    The name of the session's agent.
    """
    cwd: str
    """
    The session's working directory.
    """
    title: str | None = None
    """
    The session's title, if its agent gave one.
    """
    seq: Annotated[int, Field(ge=0)]
    """
    The event of the turn's prompt.
    """
    at: AwareDatetime
    """
    When that happened, ISO 8601.
    """
    part: Part
    """
    The part of the turn that the snippet is of: the one with the most of the words.
    """
    snippet: str
    """
    The text around the first of the words in it, in one line.
    """


class SearchPage(Model):
    """
    A page of turns, the latest first.
    """

    hits: list[SearchHit]
    """
    The turns.
    """
    incomplete: bool
    """
    Some sessions are not indexed yet, so there may be more later.
    """
    next_cursor: Annotated[str | None, Field(alias="nextCursor")] = None
    """
    Where the next page begins; not there on the last one.
    """


Sees = TypeAliasType("Sees", Annotated[Literal["own", "all"], OPEN])
"""
Which sessions exist for a caller.

`own`: Those that were created under its token.

`all`: All.
"""


SessionId = TypeAliasType("SessionId", Annotated[str, Field(pattern="^[A-Za-z0-9._-]{1,128}$")])
"""
acpd's own id of a session.
"""


SessionState = TypeAliasType(
    "SessionState", Annotated[Literal["starting", "idle", "running", "waiting", "ended"], OPEN]
)
"""
What a session is doing.

`starting`: Its agent has it, and it is about to be there for clients.

`idle`: Nothing; it waits for a prompt.

`running`: A turn is running.

`waiting`: A question of the agent is to be answered first.

`ended`: Its run is over.
"""


class Snapshot(Model):
    """
    A snapshot as clients see it: the latest of what the agent said of its state, and what is open.
    """

    available_commands: Annotated[JsonValue | None, Field(alias="availableCommands")] = None
    config_options: Annotated[JsonValue | None, Field(alias="configOptions")] = None
    current_mode_id: Annotated[JsonValue | None, Field(alias="currentModeId")] = None
    models: JsonValue | None = None
    modes: JsonValue | None = None
    plan: JsonValue | None = None
    tools: JsonValue | None = None
    usage: JsonValue | None = None
    title: str | None = None
    open_tool_calls: Annotated[list[JsonValue], Field(alias="openToolCalls")]
    """
    Tool calls that are not finished, as the agent described them.
    """
    open_permission_requests: Annotated[list[JsonValue], Field(alias="openPermissionRequests")]
    """
    Permission requests that wait for an answer: `request` is the number, `message` the raw request.
    """
    open_elicitations: Annotated[list[JsonValue] | None, Field(alias="openElicitations")] = None
    """
    Forms that wait to be filled in, likewise; left out when there is none. What one client alone is asked is not here.
    """


class Standing(Model):
    """
    What is there at a moment.
    """

    sessions: Annotated[int, Field(ge=0)]
    """
    Live sessions.
    """
    running: Annotated[int, Field(ge=0)]
    """
    Those with a turn that runs.
    """
    waiting: Annotated[int, Field(ge=0)]
    """
    Those that wait for an answer.
    """
    agent_processes: Annotated[int, Field(alias="agentProcesses", ge=0)]
    """
    Processes of agents, without what these started.
    """
    viewers: Annotated[int, Field(ge=0)]
    """
    Streams of events that clients have open.
    """
    memory_bytes: Annotated[int, Field(alias="memoryBytes", ge=0)]
    """
    Memory of the daemon that is resident.
    """
    open_files: Annotated[int, Field(alias="openFiles", ge=0)]
    """
    Files and sockets that the daemon has open.
    """
    queue_bytes: Annotated[int, Field(alias="queueBytes", ge=0)]
    """
    Bytes of events that wait to be written.
    """


class StateChangedEvent(Model):
    """
    What the agent said of its state in the answer to a request, and not in an update.
    """

    seq: Annotated[int, Field(ge=1)]
    """
    Its number in the session, from 1, without holes.
    """
    kind: Literal["state_changed"]
    at: AwareDatetime
    """
    When it happened.
    """
    modes: JsonValue | None = None
    """
    The modes that it offers, and the current one.
    """
    config_options: Annotated[JsonValue | None, Field(alias="configOptions")] = None
    """
    The options that it offers, with their values.
    """
    models: JsonValue | None = None
    """
    The models that it offers, and the current one.
    """
    current_mode_id: Annotated[JsonValue | None, Field(alias="currentModeId")] = None
    """
    The id of its mode.
    """
    tools: JsonValue | None = None
    """
    Its tools.
    """
    by: str | None = None
    """
    The client whose request it was; absent in a fork, which begins with the state of its source.
    """


class StatsStep(Model):
    """
    A step.
    """

    at: AwareDatetime
    """
    When it ended, ISO 8601.
    """
    sessions: Annotated[int, Field(ge=0)]
    """
    Live sessions.
    """
    running: Annotated[int, Field(ge=0)]
    """
    Those with a turn that runs.
    """
    waiting: Annotated[int, Field(ge=0)]
    """
    Those that wait for an answer.
    """
    agent_processes: Annotated[int, Field(alias="agentProcesses", ge=0)]
    """
    Processes of agents, without what these started.
    """
    viewers: Annotated[int, Field(ge=0)]
    """
    Streams of events that clients have open.
    """
    memory_bytes: Annotated[int, Field(alias="memoryBytes", ge=0)]
    """
    Memory of the daemon that is resident.
    """
    open_files: Annotated[int, Field(alias="openFiles", ge=0)]
    """
    Files and sockets that the daemon has open.
    """
    queue_bytes: Annotated[int, Field(alias="queueBytes", ge=0)]
    """
    Bytes of events that wait to be written.
    """
    turns: Annotated[int, Field(ge=0)]
    """
    Turns that began.
    """
    turns_ended: Annotated[int, Field(alias="turnsEnded", ge=0)]
    """
    Turns that ended.
    """
    runs: Annotated[int, Field(ge=0)]
    """
    Runs of agents that began.
    """
    events: Annotated[int, Field(ge=0)]
    """
    Events that were committed.
    """
    event_bytes: Annotated[int, Field(alias="eventBytes", ge=0)]
    """
    Their bytes, before they were packed.
    """
    requests: Annotated[int, Field(ge=0)]
    """
    HTTP requests that were answered.
    """
    commits: Annotated[int, Field(ge=0)]
    """
    Commits to the log.
    """
    commit_us: Annotated[int, Field(alias="commitUs", ge=0)]
    """
    What they took, all together, in microseconds.
    """


class StderrInfo(Model):
    """
    Head and tail of stderr.
    """

    head: str | None = None
    """
    All of it when not truncated, else the first 50 lines.
    """
    tail: str | None = None
    """
    The last 50 lines, only when truncated.
    """
    truncated: bool
    """
    More than 100 lines were written.
    """
    total_lines: Annotated[int, Field(alias="totalLines", ge=0)]
    """
    Lines in all.
    """


class TerminalEndedEvent(Model):
    """
    The end of a terminal's command.
    """

    seq: Annotated[int, Field(ge=1)]
    """
    Its number in the session, from 1, without holes.
    """
    kind: Literal["terminal"]
    at: AwareDatetime
    """
    When it happened.
    """
    terminal_id: Annotated[str, Field(alias="terminalId")]
    """
    The terminal.
    """
    state: str
    """
    How it ended: `finished`, `killed`, `timed_out` or `released`.
    """
    exit_status: Annotated[ExitStatus, Field(alias="exitStatus")]
    """
    The code or the signal, as the operating system says it.
    """
    final_output: Annotated[FinalOutput, Field(alias="finalOutput")]
    """
    The end of all that it wrote.
    """


class TerminalOutputEvent(Model):
    """
    Some output of a terminal.
    """

    seq: Annotated[int, Field(ge=1)]
    """
    Its number in the session, from 1, without holes.
    """
    kind: Literal["terminal"]
    at: AwareDatetime
    """
    When it happened.
    """
    terminal_id: Annotated[str, Field(alias="terminalId")]
    """
    The terminal.
    """
    output: str
    """
    The text.
    """
    dropped_bytes: Annotated[int | None, Field(alias="droppedBytes", ge=0)] = None
    """
    Output before it that came faster than it could be recorded.
    """


TerminatedBy = TypeAliasType("TerminatedBy", Annotated[Literal["agent", "daemon"], OPEN])
"""
What caused the end.

`agent`: The agent, by itself.

`daemon`: acpd, by itself or because it was asked to.
"""


class TerminationInfo(Model):
    """
    The record of one end.
    """

    reason: Reason
    """
    Why the run ended.
    """
    terminated_by: Annotated[TerminatedBy, Field(alias="terminatedBy")]
    """
    What ended it.
    """
    message: str | None = None
    """
    In words; with reason `error`.
    """
    exit_code: Annotated[int | None, Field(alias="exitCode")] = None
    """
    With reason `error`, when the process exited by itself.
    """
    signal: str | None = None
    """
    With reason `error`, when a signal killed it.
    """
    stderr: StderrInfo | None = None
    """
    With reason `error`, when stderr was not empty.
    """
    ended_at: Annotated[AwareDatetime, Field(alias="endedAt")]
    """
    When, ISO 8601.
    """
    cause: Cause | None = None
    """
    The exact cause; absent when acpd itself failed in a way that has no name.
    """
    initiator: str | None = None
    """
    The client that asked, by its name, or `daemon`.
    """
    turn_active: Annotated[bool, Field(alias="turnActive")]
    """
    A turn was running.
    """
    last_stop_reason: Annotated[str | None, Field(alias="lastStopReason")] = None
    """
    The stop reason of the last turn that ended.
    """
    leaked: bool
    """
    A descendant outlived the agent and was killed.
    """
    escalation: list[str] | None = None
    """
    The rungs of the stop ladder that were used.
    """
    containment: Containment | None = None
    """
    What acpd saw of the processes that the agent started: how much `leaked` can say. Absent when there was no process of its own, and in records of earlier versions.
    """
    started_at: Annotated[AwareDatetime | None, Field(alias="startedAt")] = None
    """
    When the run began, ISO 8601.
    """
    last_event_seq: Annotated[int | None, Field(alias="lastEventSeq", ge=0)] = None
    """
    The last event before the end.
    """


TurnNumber = TypeAliasType("TurnNumber", Annotated[int, Field(ge=0)])
"""
A turn of a session, from 1, counted over all runs.
"""


class UpdateEvent(Model):
    """
    The agent sent a `session/update`.
    """

    seq: Annotated[int, Field(ge=1)]
    """
    Its number in the session, from 1, without holes.
    """
    kind: Literal["update"]
    at: AwareDatetime
    """
    When it happened.
    """
    message: dict[str, JsonValue]
    """
    The message, raw.
    """


TokensAdditionalProperty = TypeAliasType("TokensAdditionalProperty", Annotated[int, Field(ge=0)])


class Usage(Model):
    """
    What a session has used, as clients see it: the sums over its turns. A kind or currency that its agent never told is absent.
    """

    tokens: dict[str, TokensAdditionalProperty] | None = None
    """
    Tokens by kind, as its agent names them: `input`, `output`, `thought`, `cachedRead`, `cachedWrite`, and `total`, which is the agent's own sum.
    """
    cost: dict[str, float] | None = None
    """
    What they cost by currency, as its agent names it: `USD`, or a unit such as `credits`.
    """


class Agent(Model):
    """
    An agent.
    """

    default: bool
    """
    It serves clients that name none.
    """
    name: str
    """
    The name of its entry.
    """
    status: AgentStatus
    """
    Whether it works.
    """
    uptime_ms: Annotated[int | None, Field(alias="uptimeMs", ge=0)] = None
    """
    How long its oldest process has been running, in milliseconds.
    """
    restart_count: Annotated[int, Field(alias="restartCount", ge=0)]
    """
    Processes that were started after one that had ended by itself.
    """
    last_error: Annotated[str | None, Field(alias="lastError")] = None
    """
    What went wrong with the last start that failed, or the last process that crashed; it stays.
    """
    last_error_at: Annotated[AwareDatetime | None, Field(alias="lastErrorAt")] = None
    """
    When that was, ISO 8601.
    """
    processes: Annotated[int, Field(ge=0)]
    """
    Its processes that run, spares and those that are being started among them.
    """
    containment: Containment
    """
    What acpd sees of the processes that it starts, by what the system allows.
    """
    continuity: Continuity
    """
    How far its runs could be carried on, by what the system allows.
    """
    agent_info: Annotated[dict[str, JsonValue] | None, Field(alias="agentInfo")] = None
    """
    `agentInfo` of its last answer to `initialize`, if it gave one since this process began: its name and version.
    """
    auth_methods: Annotated[list[JsonValue] | None, Field(alias="authMethods")] = None
    """
    `authMethods` of that answer.
    """
    capabilities: dict[str, JsonValue] | None = None
    """
    `agentCapabilities` of that answer.
    """
    title: str | None = None
    """
    What its makers call it, if it is a known one.
    """
    origin: AgentOrigin
    """
    Where it comes from.
    """
    command: str
    """
    Its program, as it is configured or known.
    """
    args: list[str]
    """
    The arguments of that.
    """
    installed: bool
    """
    The program is there, and can be run.
    """
    program: str | None = None
    """
    The program's file.
    """
    version: str | None = None
    """
    The version of what is installed, where that can be told.
    """
    logged_in: Annotated[bool | None, Field(alias="loggedIn")] = None
    """
    Whether it is logged in, as far as variables and files show; absent where that cannot be told.
    """


class AgentCheck(Model):
    """
    What a check of an agent has shown.
    """

    name: str
    """
    The name of its entry.
    """
    ok: bool
    """
    It started and said what it is.
    """
    containment: Containment | None = None
    """
    What acpd saw of the processes that it started; absent when it could not be started.
    """
    continuity: Continuity
    """
    How far its runs could be carried on, by what the system allows.
    """
    start_ms: Annotated[int | None, Field(alias="startMs", ge=0)] = None
    """
    How long that took, in milliseconds.
    """
    initialize: dict[str, JsonValue] | None = None
    """
    Its answer to `initialize`.
    """
    end: str | None = None
    """
    How it ended when it was stopped.
    """
    error: str | None = None
    """
    Why it does not work.
    """
    termination_info: Annotated[TerminationInfo | None, Field(alias="terminationInfo")] = None
    """
    The same as a record, with what it wrote to stderr.
    """


class AgentList(Model):
    """
    All agents.
    """

    agents: list[Agent]
    """
    Those that sessions can have, by name.
    """
    not_installed: Annotated[list[NotInstalled], Field(alias="notInstalled")]
    """
    The other known agents: none of them is installed where acpd runs.
    """


class CreatedEvent(Model):
    """
    The session was created. The client's parameters are not recorded: the environment of MCP servers may hold secrets.
    """

    seq: Annotated[int, Field(ge=1)]
    """
    Its number in the session, from 1, without holes.
    """
    kind: Literal["created"]
    at: AwareDatetime
    """
    When it happened.
    """
    agent: str
    """
    The name of its agent.
    """
    cwd: str
    """
    Its working directory.
    """
    by: str | None = None
    """
    The client that asked.
    """
    forked_from: Annotated[SessionId | None, Field(alias="forkedFrom")] = None
    """
    The session whose history it begins with.
    """


class ElicitationRequestedEvent(AsksForm):
    """
    The agent asks its clients something: a permission, data, or a file.
    """

    seq: Annotated[int, Field(ge=1)]
    """
    Its number in the session, from 1, without holes.
    """
    kind: Literal["elicitation_requested"]
    at: AwareDatetime
    """
    When it happened.
    """
    unasked: bool | None = None
    """
    It was answered at once, without asking any client.
    """
    request: QuestionNumber
    """
    Its number.
    """
    message: dict[str, JsonValue]
    """
    The agent's request, raw.
    """


class ElicitationResolvedEvent(Model):
    """
    A question was answered.
    """

    seq: Annotated[int, Field(ge=1)]
    """
    Its number in the session, from 1, without holes.
    """
    kind: Literal["elicitation_resolved"]
    at: AwareDatetime
    """
    When it happened.
    """
    request: QuestionNumber
    """
    Its number.
    """
    by: AnsweredBy | None = None
    """
    By whom or what.
    """
    result: JsonValue | None = None
    """
    The result for the agent, raw; none for a file, which is in the file.
    """


class EndedEvent(Model):
    """
    The run ended.
    """

    seq: Annotated[int, Field(ge=1)]
    """
    Its number in the session, from 1, without holes.
    """
    kind: Literal["ended"]
    at: AwareDatetime
    """
    When it happened.
    """
    termination_info: Annotated[TerminationInfo, Field(alias="terminationInfo")]


class FileForwardedEvent(Model):
    """
    The agent asks its clients something: a permission, data, or a file.
    """

    seq: Annotated[int, Field(ge=1)]
    """
    Its number in the session, from 1, without holes.
    """
    kind: Literal["file_forwarded"]
    at: AwareDatetime
    """
    When it happened.
    """
    unasked: bool | None = None
    """
    It was answered at once, without asking any client.
    """
    request: QuestionNumber
    """
    Its number.
    """
    message: dict[str, JsonValue]
    """
    The agent's request, raw.
    """


class FileResolvedEvent(Model):
    """
    A question was answered.
    """

    seq: Annotated[int, Field(ge=1)]
    """
    Its number in the session, from 1, without holes.
    """
    kind: Literal["file_resolved"]
    at: AwareDatetime
    """
    When it happened.
    """
    request: QuestionNumber
    """
    Its number.
    """
    by: AnsweredBy | None = None
    """
    By whom or what.
    """
    result: JsonValue | None = None
    """
    The result for the agent, raw; none for a file, which is in the file.
    """


class Health(Model):
    """
    The answer of a process that runs.
    """

    status: HealthStatus
    """
    Whether it is of use.
    """
    reason: str | None = None
    """
    Why it is degraded.
    """
    version: str
    """
    The version of acpd.
    """
    uptime_ms: Annotated[int, Field(alias="uptimeMs", ge=0)]
    """
    Since it began to listen, in milliseconds.
    """


class Limits(Model):
    """
    What the bearer of a token may use. What is absent is not limited.
    """

    agents: list[str] | None = None
    """
    The names of agents.
    """
    roots: list[str] | None = None
    """
    Directories in which sessions may work, and below which; absolute paths.
    """
    permission_modes: Annotated[list[PermissionMode] | None, Field(alias="permissionModes")] = None
    """
    The permission modes that a session may be in.
    """
    mcp: McpLimit | None = None
    """
    The MCP servers that a session may be given.
    """


class PermissionRequestedEvent(AsksPermission):
    """
    The agent asks its clients something: a permission, data, or a file.
    """

    seq: Annotated[int, Field(ge=1)]
    """
    Its number in the session, from 1, without holes.
    """
    kind: Literal["permission_requested"]
    at: AwareDatetime
    """
    When it happened.
    """
    unasked: bool | None = None
    """
    It was answered at once, without asking any client.
    """
    request: QuestionNumber
    """
    Its number.
    """
    message: dict[str, JsonValue]
    """
    The agent's request, raw.
    """


class PermissionResolvedEvent(Model):
    """
    A question was answered.
    """

    seq: Annotated[int, Field(ge=1)]
    """
    Its number in the session, from 1, without holes.
    """
    kind: Literal["permission_resolved"]
    at: AwareDatetime
    """
    When it happened.
    """
    request: QuestionNumber
    """
    Its number.
    """
    by: AnsweredBy | None = None
    """
    By whom or what.
    """
    result: JsonValue | None = None
    """
    The result for the agent, raw; none for a file, which is in the file.
    """


class ProblemDocument(Model):
    """
    An error: `application/problem+json`.
    """

    type: ProblemType
    """
    A URN that names the kind of error.
    """
    title: str
    """
    The status in words.
    """
    status: Annotated[int, Field(ge=0, le=65535)]
    """
    The status code, again.
    """
    detail: str
    """
    What happened and what to do about it.
    """
    session_id: Annotated[str | None, Field(alias="sessionId")] = None
    """
    The session that it is about.
    """
    node: str | None = None
    """
    The node of the fleet that has it.
    """
    termination_info: Annotated[TerminationInfo | None, Field(alias="terminationInfo")] = None
    """
    How the agent or the session ended.
    """
    auth_methods: Annotated[list[dict[str, JsonValue]] | None, Field(alias="authMethods")] = None
    """
    The ways in which the agent can be logged in to, as in ACP.
    """
    limit: str | None = None
    """
    The limit of the token that it is beyond, as the configuration calls it.
    """
    allowed: list[str] | None = None
    """
    What that limit allows.
    """


class PromptAccepted(Model):
    """
    Where a prompt is.
    """

    turn: TurnNumber | None = None
    """
    Its turn, which has begun.
    """
    seq: Annotated[int | None, Field(ge=0)] = None
    """
    The event that began it.
    """
    waiting: Annotated[int | None, Field(ge=0)] = None
    """
    Instead, for a prompt that waits in line and is no event yet: the prompts before it, with the one that runs.
    """


class PromptEvent(Model):
    """
    A turn began.
    """

    seq: Annotated[int, Field(ge=1)]
    """
    Its number in the session, from 1, without holes.
    """
    kind: Literal["prompt"]
    at: AwareDatetime
    """
    When it happened.
    """
    turn: TurnNumber
    """
    Its number.
    """
    by: str | None = None
    """
    The client that prompted.
    """
    idempotency_key: Annotated[str | None, Field(alias="idempotencyKey")] = None
    """
    The client's key: the same prompt under it does not begin another turn.
    """
    prompt: list[JsonValue]
    """
    The content blocks, raw.
    """


class Session(Model):
    """
    A session, as a list shows it.
    """

    session_id: Annotated[SessionId, Field(alias="sessionId")]
    """
    Its id.
    """
    agent: str
    """
    Its agent's name.
    """
    cwd: str
    """
    Its working directory.
    """
    title: str | None = None
    """
    Its title, if its agent gave one.
    """
    ended: bool
    """
    Whether its last run is over.
    """
    state: SessionState
    """
    What it is doing.
    """
    created_at: Annotated[AwareDatetime, Field(alias="createdAt")]
    """
    When it was created, ISO 8601.
    """
    updated_at: Annotated[AwareDatetime, Field(alias="updatedAt")]
    """
    When it last changed, ISO 8601.
    """
    event_count: Annotated[int, Field(alias="eventCount", ge=0)]
    """
    Events in its log.
    """
    usage: Usage | None = None
    """
    What its turns have used, as far as its agent tells; those of the source of a fork do not count.
    """
    first_prompt: Annotated[str | None, Field(alias="firstPrompt")] = None
    """
    The words that it began with: at most 80 characters of its first prompt's text.
    """
    turn_started_at: Annotated[AwareDatetime | None, Field(alias="turnStartedAt")] = None
    """
    When the turn that runs began, ISO 8601.
    """
    last_turn: Annotated[LastTurn | None, Field(alias="lastTurn")] = None
    """
    How its last turn ended, if one has; that of the source of a fork does not count.
    """
    open_questions: Annotated[int, Field(alias="openQuestions", ge=0)]
    """
    Permission requests and elicitations of its agent that wait for an answer.
    """
    partition: Partition | None = None
    """
    What becomes of it when its node is cut off, in a fleet; absent: it belongs to its node.
    """
    node: str | None = None
    """
    The name of its node.
    """
    reachable: bool | None = None
    """
    Whether its node is there.
    """
    unreachable_since: Annotated[AwareDatetime | None, Field(alias="unreachableSince")] = None
    """
    Since when it is not, ISO 8601.
    """
    model: str | None = None
    """
    The model that it works with, if its agent names it.
    """
    mode: str | None = None
    """
    The id of its mode, if its agent has modes.
    """
    native_session_id: Annotated[str | None, Field(alias="nativeSessionId")] = None
    """
    The agent's own id of it.
    """
    detached_since: Annotated[AwareDatetime | None, Field(alias="detachedSince")] = None
    """
    Since when the agent has no daemon and waits for the next one, ISO 8601.
    """
    termination_info: Annotated[TerminationInfo | None, Field(alias="terminationInfo")] = None
    """
    How its last run ended; in a list without `stderr`.
    """
    metadata: dict[str, JsonValue]
    """
    What else acpd knows: the `client` and the token (`createdBy`) that created it, `permissionMode`, `runs`, `forkedFrom`, `setAsideFrom`, and of a live one `agentPid`.
    """


class SessionInfo(Model):
    """
    One session, with everything that a late viewer needs.
    """

    session_id: Annotated[SessionId, Field(alias="sessionId")]
    """
    Its id.
    """
    agent: str
    """
    Its agent's name.
    """
    cwd: str
    """
    Its working directory.
    """
    title: str | None = None
    """
    Its title, if its agent gave one.
    """
    ended: bool
    """
    Whether its last run is over.
    """
    state: SessionState
    """
    What it is doing.
    """
    created_at: Annotated[AwareDatetime, Field(alias="createdAt")]
    """
    When it was created, ISO 8601.
    """
    updated_at: Annotated[AwareDatetime, Field(alias="updatedAt")]
    """
    When it last changed, ISO 8601.
    """
    event_count: Annotated[int, Field(alias="eventCount", ge=0)]
    """
    Events in its log.
    """
    usage: Usage | None = None
    """
    What its turns have used, as far as its agent tells; those of the source of a fork do not count.
    """
    first_prompt: Annotated[str | None, Field(alias="firstPrompt")] = None
    """
    The words that it began with: at most 80 characters of its first prompt's text.
    """
    turn_started_at: Annotated[AwareDatetime | None, Field(alias="turnStartedAt")] = None
    """
    When the turn that runs began, ISO 8601.
    """
    last_turn: Annotated[LastTurn | None, Field(alias="lastTurn")] = None
    """
    How its last turn ended, if one has; that of the source of a fork does not count.
    """
    open_questions: Annotated[int, Field(alias="openQuestions", ge=0)]
    """
    Permission requests and elicitations of its agent that wait for an answer.
    """
    partition: Partition | None = None
    """
    What becomes of it when its node is cut off, in a fleet; absent: it belongs to its node.
    """
    node: str | None = None
    """
    The name of its node.
    """
    reachable: bool | None = None
    """
    Whether its node is there.
    """
    unreachable_since: Annotated[AwareDatetime | None, Field(alias="unreachableSince")] = None
    """
    Since when it is not, ISO 8601.
    """
    model: str | None = None
    """
    The model that it works with, if its agent names it.
    """
    mode: str | None = None
    """
    The id of its mode, if its agent has modes.
    """
    native_session_id: Annotated[str | None, Field(alias="nativeSessionId")] = None
    """
    The agent's own id of it.
    """
    detached_since: Annotated[AwareDatetime | None, Field(alias="detachedSince")] = None
    """
    Since when the agent has no daemon and waits for the next one, ISO 8601.
    """
    termination_info: Annotated[TerminationInfo | None, Field(alias="terminationInfo")] = None
    """
    How its last run ended; in a list without `stderr`.
    """
    metadata: dict[str, JsonValue]
    """
    What else acpd knows: the `client` and the token (`createdBy`) that created it, `permissionMode`, `runs`, `forkedFrom`, `setAsideFrom`, and of a live one `agentPid`.
    """
    prompts_waiting: Annotated[int, Field(alias="promptsWaiting", ge=0)]
    """
    Prompts that wait behind the one whose turn runs.
    """
    agent_capabilities: Annotated[dict[str, JsonValue] | None, Field(alias="agentCapabilities")] = None
    """
    `agentCapabilities` of its agent's last answer to `initialize`, if it gave one since this process began.
    """
    snapshot: Snapshot
    """
    The latest of what its agent said of its state, and what is open.
    """


class SessionsPage(Model):
    """
    A page of sessions, the latest change first.
    """

    sessions: list[Session]
    """
    The sessions; in a fleet those of all nodes.
    """
    next_cursor: Annotated[str | None, Field(alias="nextCursor")] = None
    """
    Where the next page begins; not there on the last one.
    """
    stale: bool | None = None
    """
    Whether what it has of other nodes may be old, or lack some: the fleet's engine does not answer, a node is not heard, or has not told all that it has; not there without a fleet.
    """
    here: str | None = None
    """
    The name of the node that has answered, for `node`; not there without a fleet.
    """


class StalledEvent(Model):
    """
    Nothing came from the agent for long, or it goes on after that.
    """

    seq: Annotated[int, Field(ge=1)]
    """
    Its number in the session, from 1, without holes.
    """
    kind: Literal["stalled"]
    at: AwareDatetime
    """
    When it happened.
    """
    turn: TurnNumber
    """
    The turn in which it was waited for.
    """
    silent_ms: Annotated[int | None, Field(alias="silentMs", ge=0)] = None
    """
    How long nothing came, in milliseconds.
    """
    goes_on: Annotated[bool | None, Field(alias="goesOn")] = None
    """
    Something comes again: this tells the end of the silence.
    """


class Stats(Model):
    """
    The last hour of the daemon, in steps.
    """

    step_ms: Annotated[int, Field(alias="stepMs", ge=0)]
    """
    How long a step is, in milliseconds.
    """
    now: Standing
    """
    What is there now.
    """
    steps: list[StatsStep]
    """
    The steps of the last hour, or since the daemon began; the oldest first.
    """


class TranscriptEvent(Model):
    """
    How much of a history a transcript has.
    """

    seq: Annotated[int, Field(ge=1)]
    """
    Its number in the session, from 1, without holes.
    """
    kind: Literal["transcript"]
    at: AwareDatetime
    """
    When it happened.
    """
    messages: Annotated[int | None, Field(ge=0)] = None
    """
    Messages in it.
    """
    omitted_messages: Annotated[int | None, Field(alias="omittedMessages", ge=0)] = None
    """
    Messages before them.
    """
    bytes: Annotated[int | None, Field(ge=0)] = None
    """
    Its length in bytes.
    """
    truncated: bool | None = None
    """
    It does not hold the whole conversation.
    """
    turn: TurnNumber | None = None
    """
    The turn with whose prompt the agent was given it.
    """


class TranscriptFacts(Model):
    """
    How much of a history a transcript has.
    """

    messages: Annotated[int, Field(ge=0)]
    """
    Messages in it.
    """
    omitted_messages: Annotated[int, Field(alias="omittedMessages", ge=0)]
    """
    Messages before them.
    """
    bytes: Annotated[int, Field(ge=0)]
    """
    Its length in bytes.
    """
    truncated: bool
    """
    It does not hold the whole conversation.
    """
    turn: TurnNumber | None = None
    """
    The turn with whose prompt the agent was given it.
    """


class TurnEndedEvent(Model):
    """
    A turn ended: with the agent's result, with an error, or without the agent.
    """

    seq: Annotated[int, Field(ge=1)]
    """
    Its number in the session, from 1, without holes.
    """
    kind: Literal["turn_ended"]
    at: AwareDatetime
    """
    When it happened.
    """
    turn: TurnNumber
    """
    Its number.
    """
    stop_reason: Annotated[str | None, Field(alias="stopReason")] = None
    """
    Why it ended, unless with an error.
    """
    result: JsonValue | None = None
    """
    The agent's result, raw.
    """
    error: JsonValue | None = None
    """
    The error that answered the prompt.
    """
    agent_ignored_cancel: Annotated[bool | None, Field(alias="agentIgnoredCancel")] = None
    """
    The agent was asked to cancel and went on; it may still work on this turn.
    """


class Whoami(Model):
    """
    The caller.
    """

    name: str | None = None
    """
    The name of its token; not there for a caller that needs none.
    """
    scope: Scope
    """
    What it may do.
    """
    sees: Sees
    """
    Which sessions exist for it.
    """
    limits: Limits | None = None
    """
    What it may use with that scope; not there for a caller without limits.
    """
    agents: list[str]
    """
    The names of the agents that it may use, the default one first.
    """
    cwd: str | None = None
    """
    A directory where acpd runs in which a session of its may work; not there for a caller that may begin none.
    """


class KnownToken(Model):
    """
    A token, without anything secret.
    """

    name: str
    """
    Its name.
    """
    scope: Scope
    """
    What its bearer may do.
    """
    sees: Sees
    """
    Which sessions exist for its bearer.
    """
    limits: Limits | None = None
    """
    What its bearer may use with that scope; not there without limits.
    """
    expires: AwareDatetime | None = None
    """
    When it is refused from, if ever.
    """
    expired: bool
    """
    Whether it is refused for that already.
    """
    last_used: Annotated[AwareDatetime | None, Field(alias="lastUsed")] = None
    """
    When a request last came with it, up to a minute early after a crash of the daemon; not there before the first.
    """


class KnownTokens(Model):
    """
    All tokens that are known.
    """

    tokens: list[KnownToken]
    """
    By name.
    """


class RunStartedEvent(Model):
    """
    An agent process goes on with the session.
    """

    seq: Annotated[int, Field(ge=1)]
    """
    Its number in the session, from 1, without holes.
    """
    kind: Literal["run_started"]
    at: AwareDatetime
    """
    When it happened.
    """
    pid: Annotated[int | None, Field(ge=0)] = None
    """
    Its process id.
    """
    agent_info: Annotated[JsonValue | None, Field(alias="agentInfo")] = None
    """
    What it calls itself, raw; null when it does not.
    """
    by: str | None = None
    """
    The client that asked, unless the session was created with this run.
    """
    method: str | None = None
    """
    The method by which the agent goes on with the session.
    """
    transcript: TranscriptFacts | None = None
    """
    The transcript that the agent is given with the next prompt.
    """
    state: AgentState | None = None
    """
    What the agent said of its state in its answer.
    """


Event = TypeAliasType(
    "Event",
    CreatedEvent
    | RunStartedEvent
    | PromptEvent
    | UpdateEvent
    | NotificationEvent
    | TurnEndedEvent
    | CancelRequestedEvent
    | AgentRequestEvent
    | EndedEvent
    | EchoEvent
    | TranscriptEvent
    | PermissionRequestedEvent
    | PermissionResolvedEvent
    | ElicitationRequestedEvent
    | ElicitationResolvedEvent
    | ElicitationCompletedEvent
    | TerminalOutputEvent
    | TerminalEndedEvent
    | FileForwardedEvent
    | FileResolvedEvent
    | StateChangedEvent
    | StalledEvent
    | ReattachedEvent
    | OtherEvent,
)
"""
An event of a session. Members may be added.
"""
