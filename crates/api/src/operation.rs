//! The form of an operation: one row, of which its route and its description are made.
//!
//! Not here: the operations themselves, which stand below the types of their resources; what answers them.

use serde::Deserialize;

/// An operation of REST.
pub trait Operation {
    /// The query of a GET or DELETE, the body of a POST; `()` for none.
    type Input<'a>: Deserialize<'a>;
    /// The body of an answer; `()` for none.
    type Answer;
    /// Its row.
    const SPEC: Spec;
}

/// The row of an operation.
#[derive(Debug)]
pub struct Spec {
    /// Its method.
    pub verb: Verb,
    /// Its path below a version, with the target in braces.
    pub path: &'static str,
    /// Its name in generated clients.
    pub id: &'static str,
    /// Its group in the description.
    pub tag: Tag,
    /// The callers that it is served to.
    pub access: Access,
    /// The kind of thing that its path names.
    pub target: Option<Target>,
    /// The headers that it reads.
    pub headers: &'static [Header],
    /// One sentence on what it does.
    pub summary: &'static str,
    /// More on that; empty for none.
    pub detail: &'static str,
    /// The answers that it gives beside those that every operation of its form gives.
    pub answers: &'static [Answer],
}

impl Spec {
    /// A GET of no target, for callers with a token.
    pub(crate) const NEW: Self = Self {
        verb: Verb::Get,
        path: "",
        id: "",
        tag: Tag::Operation,
        access: Access::Token,
        target: None,
        headers: &[],
        summary: "",
        detail: "",
        answers: &[],
    };

    /// The same of a session.
    pub(crate) const OF_SESSION: Self =
        Self { tag: Tag::Sessions, target: Some(Target::Session), ..Self::NEW };
}

/// A method of HTTP.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verb {
    /// It reads.
    Get,
    /// It has a body of JSON, or none.
    Post,
    /// It removes its target.
    Delete,
}

impl Verb {
    /// The name of the method.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Get => "GET",
            Self::Post => "POST",
            Self::Delete => "DELETE",
        }
    }
}

/// A group of operations.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tag {
    /// Agents.
    Agents,
    /// The operation of a daemon.
    Operation,
    /// Sessions.
    Sessions,
}

/// The callers that an operation is served to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// Callers with a token, where there are tokens.
    Token,
    /// Everybody.
    Open,
}

/// The kind of thing that a path names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Target {
    /// A session, by its id.
    Session,
    /// An agent, by the name of its entry.
    Agent,
    /// A node of the fleet, by its name.
    Node,
}

/// A header that is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Header {
    /// The name of a request that may be sent again.
    IdempotencyKey,
    /// The last event that a stream has given.
    LastEventId,
}

/// A status that an operation is answered with.
#[derive(Clone, Copy, Debug)]
pub struct Answer {
    /// The status.
    pub status: u16,
    /// Its meaning.
    pub words: &'static str,
    /// The body that comes with it.
    pub body: Body,
}

/// The body of an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Body {
    /// None.
    Nothing,
    /// The operation's [`Answer`](Operation::Answer).
    Json,
    /// The same, or a stream where `Accept` asks for one.
    JsonOrStream,
    /// A file in one of the forms of an export.
    File,
    /// A [`ProblemDocument`](crate::ProblemDocument).
    Problem,
}

pub(crate) const fn json(status: u16, words: &'static str) -> Answer {
    Answer { status, words, body: Body::Json }
}

pub(crate) const fn nothing(status: u16, words: &'static str) -> Answer {
    Answer { status, words, body: Body::Nothing }
}

pub(crate) const fn problem(status: u16, words: &'static str) -> Answer {
    Answer { status, words, body: Body::Problem }
}

pub(crate) const FORBIDDEN: Answer =
    problem(403, "the scope of the token does not include this, or a limit of the token does not");
pub(crate) const BAD_BODY: Answer = problem(400, "the body is not as described");
pub(crate) const ELSEWHERE: Answer = problem(409, "another process has it");
