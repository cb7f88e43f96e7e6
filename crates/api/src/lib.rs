//! The words of REST: what a client sends, what it is answered, and how errors are told.
//!
//! A module for each resource. The server fills these types in, and a client reads them; what REST does not send is in none.
//!
//! Invariant: no type of a body, a query or an answer is declared twice. Boundary: types and their JSON only; no HTTP library, no
//! runtime, no clock; decides nothing.

mod agents;
mod callers;
mod creating;
mod daemon;
mod events;
mod nodes;
mod problem;
mod prompting;
mod pruning;
mod search;
mod sessions;
mod transfer;

pub use agents::{
    Agent, AgentCheck, AgentFacts, AgentHealth, AgentList, AgentOrigin, AgentStatus, NotInstalled,
};
pub use callers::{Code, KnownToken, KnownTokens, Limits, McpLimit, OpenBody, Opened, Scope, Sees, Whoami};
pub use creating::{CreateBody, SetupBody};
pub use daemon::{Counted, HandingOver, Health, HealthStatus, Ready, Reloaded, Standing, Stats, StatsStep};
pub use events::EventsQuery;
pub use nodes::{Node, Nodes, RemovedNode};
pub use problem::{ProblemDocument, ProblemKind};
pub use prompting::{AnswerBody, CancelBody, PromptAccepted, PromptBody};
pub use pruning::{Prunable, PruneBody, Pruned};
pub use search::{Part, SearchHit, SearchPage, TextQuery};
pub use sessions::{
    AgentSummary, HistorySummary, LastTurnSummary, Metadata, OfNode, Session, SessionInfo, SessionState,
    SessionsPage, SessionsQuery,
};
pub use transfer::ExportQuery;
