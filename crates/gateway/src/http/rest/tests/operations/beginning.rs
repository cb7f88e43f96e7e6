//! What begins a session, a run of one, or the process of an agent.

use super::{
    Answer, FORBIDDEN, NOT_JSON, Operation, TOO_LARGE, TOO_MANY, UNAUTHORIZED, UNKNOWN, keyed, of, parameter,
    problem, session,
};
use acpd_api::{AgentCheck, CreateBody, SessionInfo, SetupBody};
use acpd_record::schema::of_body;
use http::Method;
use serde_json::{Value, json};

const LOGIN: Answer = problem(424, "the agent wants a login first; `authMethods` says how");
const FAILED: Answer = problem(
    502,
    "the agent did not start, ended, or refused: `terminationInfo` says how it ended, if it has",
);
const NO_ROOM: Answer =
    problem(429, "the token has as many live sessions as it may, or sends too many requests");

/// All of them, in the order of their paths.
pub(super) const OPERATIONS: &[Operation] = &[
    Operation {
        method: Method::POST,
        path: "/v1/agents/{name}/check",
        id: "checkAgent",
        tag: "agents",
        summary: "`POST /v1/agents/{name}/check`: starts an agent as for a session, asks it what it is, and stops it.",
        description: None,
        parameters: agent,
        request: None,
        answers: &[
            of::<AgentCheck>(200, "whether it works, and why not"),
            FORBIDDEN,
            problem(404, "no such agent"),
            UNAUTHORIZED,
            TOO_MANY,
        ],
        is_open: false,
    },
    Operation {
        method: Method::POST,
        path: "/v1/sessions",
        id: "createSession",
        tag: "sessions",
        summary: "`POST /v1/sessions`: creates a session, and prompts it if there is a prompt.",
        description: Some(
            "With a prompt, a 201 stands behind the commit of the turn's first event. With an `Idempotency-Key` it may be \
             sent again: the same\nrequest under the same key is answered with the same session, also after restarts of \
             acpd, as long as that is not deleted.",
        ),
        parameters: keyed,
        request: Some(of_body::<CreateBody<'_>>),
        answers: &[
            of::<SessionInfo>(201, "the session"),
            problem(
                400,
                "a member or the key is not as described, there is no such agent or directory, or the agent does not \
                 take such content; nothing is created",
            ),
            FORBIDDEN,
            problem(
                409,
                "under this key: the session has ended before its prompt began, or another process has it",
            ),
            TOO_LARGE,
            NOT_JSON,
            problem(422, "the key belongs to another request"),
            LOGIN,
            UNAUTHORIZED,
            NO_ROOM,
            FAILED,
        ],
        is_open: false,
    },
    Operation {
        method: Method::POST,
        path: "/v1/sessions/{id}/fork",
        id: "forkSession",
        tag: "sessions",
        summary: "`POST /v1/sessions/{id}/fork`: a new session with a copy of the history, forked by the agent.",
        description: None,
        parameters: session,
        request: Some(of_body::<SetupBody<'_>>),
        answers: &[
            of::<SessionInfo>(201, "the new session"),
            problem(400, "a member is not as described, or the directory is not there"),
            FORBIDDEN,
            UNKNOWN,
            problem(409, "the agent cannot fork it, or another process has it"),
            TOO_LARGE,
            NOT_JSON,
            LOGIN,
            UNAUTHORIZED,
            NO_ROOM,
            FAILED,
        ],
        is_open: false,
    },
    Operation {
        method: Method::POST,
        path: "/v1/sessions/{id}/resume",
        id: "resumeSession",
        tag: "sessions",
        summary: "`POST /v1/sessions/{id}/resume`: takes up a session that has ended. One that is live goes on undisturbed.",
        description: None,
        parameters: session,
        request: Some(of_body::<SetupBody<'_>>),
        answers: &[
            of::<SessionInfo>(200, "the session, which is live"),
            problem(400, "a member is not as described, or the directory is not there"),
            FORBIDDEN,
            UNKNOWN,
            problem(409, "it cannot be taken up again, and why; or another process has it"),
            TOO_LARGE,
            NOT_JSON,
            LOGIN,
            UNAUTHORIZED,
            NO_ROOM,
            FAILED,
        ],
        is_open: false,
    },
];

fn agent() -> Vec<Value> {
    vec![parameter("name", "path", &json!("the agent"), json!({"type": "string"}))]
}
