//! The words and the operations of REST: what a client sends, what it is answered, how errors are told, and where.
//!
//! A module for each resource, its types above its operations. The server fills these types in; what REST does not send is in none. [`Op`] has the operations: routes and the description are made of it.
//!
//! Invariant: what is described is what is routed; the server declares no other type of a body, a query or an answer. Boundary: types,
//! their JSON, and rows; no HTTP library, no runtime, no clock; decides nothing.

mod agents;
mod callers;
mod creating;
mod daemon;
mod events;
mod hook;
mod members;
mod nodes;
#[cfg(feature = "schema")]
mod openapi;
mod operation;
mod operations;
mod problem;
mod prompting;
mod pruning;
mod search;
mod sessions;
mod transfer;

pub use agents::{
    Agent, AgentCheck, AgentFacts, AgentHealth, AgentList, AgentOrigin, AgentStatus, CheckAgent, ListAgents,
    NotInstalled,
};
pub use callers::{
    Code, GetWhoami, IssueCode, KnownToken, KnownTokens, Limits, ListTokens, McpLimit, OpenBody, OpenByCode,
    Opened, Scope, Sees, Whoami,
};
pub use creating::{CreateBody, CreateSession, ForkSession, ResumeSession, SetupBody};
pub use daemon::{
    Counted, GetHealth, GetReady, GetStats, HandOver, HandingOver, Health, HealthStatus, Ready,
    ReloadConfiguration, Reloaded, Standing, Stats, StatsStep,
};
pub use events::{EventsPage, EventsQuery, GetSessionEvents};
pub use hook::{HookBody, HookError, HookEvent, HookOption, HookQuestion, HookSession};
pub use members::{Members, member_names};
pub use nodes::{DrainNode, ListNodes, Node, Nodes, RemoveNode, RemovedNode, UndrainNode};
#[cfg(feature = "schema")]
pub use openapi::{document, event_schema};
pub use operation::{Access, Answer, Body, Header, Operation, Spec, Tag, Target, Verb};
pub use operations::Op;
pub use problem::{ProblemDocument, ProblemKind};
pub use prompting::{
    AnswerBody, AnswerQuestion, CancelBody, CancelTurn, PromptAccepted, PromptBody, PromptSession,
};
pub use pruning::{Prunable, PruneBody, PruneSessions, Pruned};
pub use search::{Part, Search, SearchHit, SearchPage, TextQuery};
pub use sessions::{
    AgentSummary, CloseSession, DeleteSession, GetSession, HistorySummary, LastTurnSummary, ListSessions,
    Metadata, OfNode, Session, SessionInfo, SessionState, SessionsPage, SessionsQuery, TerminateSession,
};
pub use transfer::{ExportQuery, ExportSession, ImportSession};
