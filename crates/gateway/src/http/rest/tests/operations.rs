//! The table of operations: what each route is for, what it takes and what it answers.

use acpd_api::{
    AgentList, AnswerBody, CancelBody, Code, EventsQuery, ExportQuery, HandingOver, Health, KnownTokens,
    OpenBody, Opened, PromptAccepted, PromptBody, PruneBody, Pruned, Ready, Reloaded, SearchPage,
    SessionInfo, SessionsPage, SessionsQuery, Stats, TextQuery, Whoami,
};
use acpd_record::schema::{ShownEvent, of_body, of_query};
use http::Method;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde_json::{Map, Value, json};

mod beginning;
mod nodes;

/// One method of one path.
pub(super) struct Operation {
    pub(super) method: Method,
    pub(super) path: &'static str,
    /// How generated clients call it.
    pub(super) id: &'static str,
    pub(super) tag: &'static str,
    pub(super) summary: &'static str,
    pub(super) description: Option<&'static str>,
    pub(super) parameters: fn() -> Vec<Value>,
    /// The body of a request, which is required if a member of it is.
    pub(super) request: Option<fn() -> Value>,
    pub(super) answers: &'static [Answer],
    /// No token is needed.
    pub(super) is_open: bool,
}

/// One status that an operation is answered with.
pub(super) struct Answer {
    pub(super) status: u16,
    pub(super) description: &'static str,
    pub(super) body: Body,
}

/// What comes with it.
pub(super) enum Body {
    Nothing,
    Of(fn(&mut SchemaGenerator) -> Schema),
    /// A page, or a stream where `Accept` asks for one.
    PageOrStream(fn(&mut SchemaGenerator) -> Schema),
    /// A file in one of the forms of an export.
    File,
    Problem,
}

const fn of<T: JsonSchema>(status: u16, description: &'static str) -> Answer {
    Answer { status, description, body: Body::Of(SchemaGenerator::subschema_for::<T>) }
}

const fn nothing(status: u16, description: &'static str) -> Answer {
    Answer { status, description, body: Body::Nothing }
}

const fn problem(status: u16, description: &'static str) -> Answer {
    Answer { status, description, body: Body::Problem }
}

const UNAUTHORIZED: Answer = problem(401, "no token, an unknown one, or one that has expired");
const TOO_MANY: Answer = problem(429, "more requests or connections than the token may have");
const FORBIDDEN: Answer =
    problem(403, "the scope of the token does not include this, or a limit of the token does not");
const UNKNOWN: Answer = problem(404, "no such session");
const UNREADABLE: Answer = problem(400, "a value of the query is not readable");
const TOO_LARGE: Answer = problem(413, "the body is longer than a message may be");
pub(super) const UNKNOWN_PARAMETER: Answer =
    problem(400, "the query has a parameter that the operation does not have (`invalid_request`)");
pub(super) const NOT_JSON: Answer = problem(415, "the body is not sent as application/json");
const ELSEWHERE: Answer = problem(409, "another process has it");

/// All of them, in the order of their paths.
pub(super) fn all() -> Vec<&'static Operation> {
    let mut all: Vec<_> = OPERATIONS.iter().chain(beginning::OPERATIONS).chain(nodes::OPERATIONS).collect();
    all.sort_by_key(|operation| operation.path);
    all
}

/// Those that begin nothing new.
const OPERATIONS: &[Operation] = &[
    Operation {
        method: Method::GET,
        path: "/v1/agents",
        id: "listAgents",
        tag: "agents",
        summary: "`GET /v1/agents`: how each agent stands, and what is found of it on its machine.",
        description: Some(
            "Known agents that are installed are as if they were configured; the others are in `notInstalled`.",
        ),
        parameters: Vec::new,
        request: None,
        answers: &[of::<AgentList>(200, "all agents"), FORBIDDEN, UNAUTHORIZED, TOO_MANY],
        is_open: false,
    },
    Operation {
        method: Method::POST,
        path: "/v1/codes",
        id: "issueCode",
        tag: "operation",
        summary: "`POST /v1/codes`: a code for a browser of the daemon's owner, who is let in by it once.",
        description: Some("Only over the Unix socket, to a caller without a token."),
        parameters: Vec::new,
        request: None,
        answers: &[
            of::<Code>(201, "the code, which is good for 60 seconds"),
            problem(403, "the caller is not the owner of the daemon at its Unix socket"),
            UNAUTHORIZED,
            TOO_MANY,
        ],
        is_open: false,
    },
    Operation {
        method: Method::POST,
        path: "/v1/open",
        id: "openByCode",
        tag: "operation",
        summary: "`POST /v1/open`: a token for a code.",
        description: Some(
            "The token may do what the owner of the daemon may, for 12 hours, and not after the end of the daemon.",
        ),
        parameters: Vec::new,
        request: Some(of_body::<OpenBody>),
        answers: &[
            of::<Opened>(200, "the token"),
            problem(400, "the body is not readable"),
            problem(401, "the code is unknown, was used, or is too old"),
            problem(408, "the body did not come in time"),
            TOO_LARGE,
            NOT_JSON,
        ],
        is_open: true,
    },
    Operation {
        method: Method::GET,
        path: "/v1/health",
        id: "getHealth",
        tag: "operation",
        summary: "`GET /v1/health`: this process answers, and says whether it is of use. Restarting it would not help \
                  where it is not, so the status is 200 either way.",
        description: None,
        parameters: Vec::new,
        request: None,
        answers: &[of::<Health>(200, "the process answers")],
        is_open: true,
    },
    Operation {
        method: Method::POST,
        path: "/v1/import",
        id: "importSession",
        tag: "sessions",
        summary: "`POST /v1/import`: takes over a session that was exported as `jsonl`.",
        description: Some("The body is the file, `application/x-ndjson`, of any length."),
        parameters: Vec::new,
        request: None,
        answers: &[
            of::<SessionInfo>(201, "the session, which has ended and belongs to the caller"),
            problem(
                400,
                "it is no export, or not one that may be taken over: which line, which member, and what would be right",
            ),
            FORBIDDEN,
            problem(408, "the body did not come in time"),
            problem(409, "a session of that id is here"),
            UNAUTHORIZED,
            TOO_MANY,
        ],
        is_open: false,
    },
    Operation {
        method: Method::POST,
        path: "/v1/prune",
        id: "pruneSessions",
        tag: "sessions",
        summary: "`POST /v1/prune`: removes ended sessions that are old, or while all together take too much.",
        description: Some(
            "Without `olderThanMs` and `keepBytes` it goes by `keep_for` and `keep_bytes` in `[storage]` of the \
             configuration. Sessions that are live, or being\ntaken up, are never removed.",
        ),
        parameters: Vec::new,
        request: Some(of_body::<PruneBody>),
        answers: &[
            of::<Pruned>(200, "the sessions that were removed, or with `dryRun` would be"),
            problem(400, "the body is not as described"),
            FORBIDDEN,
            problem(409, "neither the request nor the configuration says which are not to be kept"),
            TOO_LARGE,
            NOT_JSON,
            UNAUTHORIZED,
            TOO_MANY,
        ],
        is_open: false,
    },
    Operation {
        method: Method::GET,
        path: "/v1/ready",
        id: "getReady",
        tag: "operation",
        summary: "`GET /v1/ready`: it can write its log and is not about to stop.",
        description: None,
        parameters: Vec::new,
        request: None,
        answers: &[of::<Ready>(200, "new sessions can be taken"), of::<Ready>(503, "they cannot, and why")],
        is_open: true,
    },
    Operation {
        method: Method::GET,
        path: "/v1/search",
        id: "search",
        tag: "sessions",
        summary: "`GET /v1/search`: turns of sessions that exist for the caller, by the words of prompts, answers and \
                  titles of tool calls.",
        description: None,
        parameters: query::<TextQuery>,
        request: None,
        answers: &[
            of::<SearchPage>(200, "a page of turns"),
            UNREADABLE,
            FORBIDDEN,
            problem(409, "the configuration turns search off"),
            UNAUTHORIZED,
            TOO_MANY,
        ],
        is_open: false,
    },
    Operation {
        method: Method::GET,
        path: "/v1/sessions",
        id: "listSessions",
        tag: "sessions",
        summary: "`GET /v1/sessions`: those that exist for the caller.",
        description: None,
        parameters: query::<SessionsQuery>,
        request: None,
        answers: &[of::<SessionsPage>(200, "a page of sessions"), UNREADABLE, UNAUTHORIZED, TOO_MANY],
        is_open: false,
    },
    Operation {
        method: Method::GET,
        path: "/v1/sessions/{id}",
        id: "getSession",
        tag: "sessions",
        summary: "`GET /v1/sessions/{id}`: one, with its snapshot.",
        description: None,
        parameters: session,
        request: None,
        answers: &[of::<SessionInfo>(200, "the session"), UNKNOWN, UNAUTHORIZED, TOO_MANY],
        is_open: false,
    },
    Operation {
        method: Method::DELETE,
        path: "/v1/sessions/{id}",
        id: "deleteSession",
        tag: "sessions",
        summary: "`DELETE /v1/sessions/{id}`: closes it and removes it with its history.",
        description: None,
        parameters: session,
        request: None,
        answers: &[nothing(204, "it is gone"), FORBIDDEN, UNKNOWN, ELSEWHERE, UNAUTHORIZED, TOO_MANY],
        is_open: false,
    },
    Operation {
        method: Method::POST,
        path: "/v1/sessions/{id}/answer",
        id: "answerQuestion",
        tag: "sessions",
        summary: "`POST /v1/sessions/{id}/answer`: answers a question of the agent. The first answer counts.",
        description: None,
        parameters: session,
        request: Some(of_body::<AnswerBody<'_>>),
        answers: &[
            nothing(204, "the agent has the answer"),
            problem(400, "the body is not as described"),
            FORBIDDEN,
            UNKNOWN,
            problem(409, "the question is not open, the session has ended, or another process has it"),
            TOO_LARGE,
            NOT_JSON,
            problem(422, "the agent has not offered that, or the question is of another kind; it stays open"),
            UNAUTHORIZED,
            TOO_MANY,
        ],
        is_open: false,
    },
    Operation {
        method: Method::POST,
        path: "/v1/sessions/{id}/cancel",
        id: "cancelTurn",
        tag: "sessions",
        summary: "`POST /v1/sessions/{id}/cancel`: ends the running turn, as `session/cancel` does, or the prompt under a key.",
        description: Some(
            "A prompt that waits in line leaves it, one that runs is cancelled; its key says which. What waits has no number of a turn yet.",
        ),
        parameters: session,
        request: Some(of_body::<CancelBody>),
        answers: &[
            nothing(
                202,
                "the agent is told to end its turn, if it has one; a prompt that waited has left the line",
            ),
            problem(400, "the body is not as described"),
            FORBIDDEN,
            UNKNOWN,
            problem(
                409,
                "no prompt under the key waits or runs, the session has ended, or another process has it",
            ),
            TOO_LARGE,
            NOT_JSON,
            UNAUTHORIZED,
            TOO_MANY,
        ],
        is_open: false,
    },
    Operation {
        method: Method::POST,
        path: "/v1/sessions/{id}/close",
        id: "closeSession",
        tag: "sessions",
        summary: "`POST /v1/sessions/{id}/close`: stops it; it can be taken up again.",
        description: None,
        parameters: session,
        request: None,
        answers: &[ENDED, FORBIDDEN, UNKNOWN, ELSEWHERE, UNAUTHORIZED, TOO_MANY],
        is_open: false,
    },
    Operation {
        method: Method::GET,
        path: "/v1/sessions/{id}/events",
        id: "getSessionEvents",
        tag: "sessions",
        summary: "`GET /v1/sessions/{id}/events`: everything that happened, and what happens.",
        description: Some(
            "`Accept` chooses the body of a 200. With `text/event-stream` in it: a stream that begins behind the cursor, \
             follows the\nsession and ends with its run; each event of it has the number as `id`, the kind as `event` and \
             one `Event` as\n`data`, and `limit` has no meaning; 204 behind the last event of a session that has ended. \
             With anything else, or without `Accept`: one `EventsPage`.",
        ),
        parameters: events,
        request: None,
        answers: &[
            Answer {
                status: 200,
                description: "with `Accept: text/event-stream` a stream of events, else a page of them",
                body: Body::PageOrStream(SchemaGenerator::subschema_for::<EventsPage>),
            },
            nothing(204, "a stream was asked for behind the last event of a session that has ended"),
            UNREADABLE,
            UNKNOWN,
            problem(409, "the cursor is of the future, or of another session"),
            problem(410, "the cursor is older than what is kept"),
            UNAUTHORIZED,
            TOO_MANY,
        ],
        is_open: false,
    },
    Operation {
        method: Method::GET,
        path: "/v1/sessions/{id}/export",
        id: "exportSession",
        tag: "sessions",
        summary: "`GET /v1/sessions/{id}/export`: a session as a file.",
        description: None,
        parameters: export,
        request: None,
        answers: &[
            Answer { status: 200, description: "the session up to its last event", body: Body::File },
            UNREADABLE,
            UNKNOWN,
            UNAUTHORIZED,
            TOO_MANY,
        ],
        is_open: false,
    },
    Operation {
        method: Method::POST,
        path: "/v1/sessions/{id}/prompt",
        id: "promptSession",
        tag: "sessions",
        summary: "`POST /v1/sessions/{id}/prompt`: begins a turn, or puts the prompt in line.",
        description: Some(
            "A 202 stands behind the commit of the turn's first event, unless the prompt waits. With an `Idempotency-Key` \
             it may be sent again:\nthe same prompt under the same key is answered with what became of the first one and \
             runs once, also after restarts of acpd. The last 256\nkeys of a session are remembered, and those of \
             prompts that wait.",
        ),
        parameters: keyed_session,
        request: Some(of_body::<PromptBody<'_>>),
        answers: &[
            of::<PromptAccepted>(202, "its turn began, or it waits in line"),
            problem(400, "the body or the key is not as described, or the agent does not take such content"),
            FORBIDDEN,
            UNKNOWN,
            problem(409, "the session has ended, or another process has it"),
            TOO_LARGE,
            NOT_JSON,
            problem(422, "the key belongs to another prompt"),
            UNAUTHORIZED,
            problem(429, "as many prompts wait as may, or the token sends too many requests"),
        ],
        is_open: false,
    },
    Operation {
        method: Method::POST,
        path: "/v1/sessions/{id}/terminate",
        id: "terminateSession",
        tag: "sessions",
        summary: "`POST /v1/sessions/{id}/terminate`: ends it for good.",
        description: None,
        parameters: session,
        request: None,
        answers: &[ENDED, FORBIDDEN, UNKNOWN, ELSEWHERE, UNAUTHORIZED, TOO_MANY],
        is_open: false,
    },
    Operation {
        method: Method::POST,
        path: "/v1/reload",
        id: "reloadConfiguration",
        tag: "operation",
        summary: "`POST /v1/reload`: reads the configuration anew, as SIGHUP does. What was in force stays when it is wrong.",
        description: None,
        parameters: Vec::new,
        request: None,
        answers: &[
            of::<Reloaded>(200, "what the daemon goes by from now on"),
            FORBIDDEN,
            problem(422, "the configuration is wrong, and everything stays as it was"),
            UNAUTHORIZED,
            TOO_MANY,
            problem(503, "others have the configuration read, or acpd is about to stop"),
        ],
        is_open: false,
    },
    Operation {
        method: Method::POST,
        path: "/v1/handover",
        id: "handOver",
        tag: "operation",
        summary: "`POST /v1/handover`: hands over to the binary that is on disk now, as SIGUSR2 does. The daemon goes on when that would not start.",
        description: None,
        parameters: Vec::new,
        request: None,
        answers: &[
            of::<HandingOver>(
                202,
                "the binary has accepted configuration and log, and takes the daemon's place",
            ),
            FORBIDDEN,
            problem(409, "it would not start, and the daemon goes on; `detail` says why"),
            UNAUTHORIZED,
            TOO_MANY,
            problem(503, "others ask the daemon for something, or acpd is about to stop"),
        ],
        is_open: false,
    },
    Operation {
        method: Method::GET,
        path: "/v1/stats",
        id: "getStats",
        tag: "operation",
        summary: "`GET /v1/stats`: the last hour of the daemon, in steps of 10 s.",
        description: None,
        parameters: Vec::new,
        request: None,
        answers: &[of::<Stats>(200, "the steps, and what is there now"), FORBIDDEN, UNAUTHORIZED, TOO_MANY],
        is_open: false,
    },
    Operation {
        method: Method::GET,
        path: "/v1/tokens",
        id: "listTokens",
        tag: "operation",
        summary: "`GET /v1/tokens`: the tokens that are known, and when they were last used; never a secret.",
        description: None,
        parameters: Vec::new,
        request: None,
        answers: &[of::<KnownTokens>(200, "the tokens"), FORBIDDEN, UNAUTHORIZED, TOO_MANY],
        is_open: false,
    },
    Operation {
        method: Method::GET,
        path: "/v1/whoami",
        id: "whoami",
        tag: "operation",
        summary: "`GET /v1/whoami`: what the caller may do, and sees.",
        description: None,
        parameters: Vec::new,
        request: None,
        answers: &[of::<Whoami>(200, "the caller"), UNAUTHORIZED, TOO_MANY],
        is_open: false,
    },
];

const ENDED: Answer = nothing(204, "it has ended, or had before");

/// A page of events, which is written without a type: stored bytes are copied into it.
struct EventsPage;

impl JsonSchema for EventsPage {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "EventsPage".into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let event = generator.subschema_for::<ShownEvent>();
        json_schema!({
            "description": "A page of events.",
            "type": "object",
            "required": ["events"],
            "properties": {
                "events": {"description": "The events in order.", "type": "array", "items": event},
                "nextCursor": {
                    "description": "Where the next page begins; not there on the last one.", "type": "string",
                },
            },
        })
    }
}

fn parameter(name: &str, place: &str, description: &Value, schema: Value) -> Value {
    json!({
        "name": name, "in": place, "description": description, "required": place == "path", "schema": schema,
    })
}

fn session() -> Vec<Value> {
    vec![parameter("id", "path", &json!("the session"), json!({"type": "string"}))]
}

fn keyed() -> Vec<Value> {
    let key = json!({"type": "string", "pattern": "^[!-~]{1,255}$"});
    let words = json!("a name of this request, under which it may be sent again");
    vec![parameter("Idempotency-Key", "header", &words, key)]
}

fn keyed_session() -> Vec<Value> {
    [session(), keyed()].concat()
}

fn query<T: JsonSchema>() -> Vec<Value> {
    let schema = of_query::<T>();
    let none = Map::new();
    let members = schema["properties"].as_object().unwrap_or(&none);
    let parameters = members.iter().map(|(name, member)| {
        let mut schema = member.clone();
        let description = schema.as_object_mut().and_then(|schema| schema.shift_remove("description"));
        parameter(name, "query", &description.unwrap_or_default(), schema)
    });
    parameters.collect()
}

fn export() -> Vec<Value> {
    let mut parameters = session();
    parameters.extend(query::<ExportQuery>());
    parameters
}

fn events() -> Vec<Value> {
    let mut parameters = session();
    parameters.extend(query::<EventsQuery>());
    let cursor = json!({"type": "string", "pattern": "^[0-9]+(@.+)?$"});
    parameters.push(parameter("Last-Event-ID", "header", &json!("as `after`; goes over it"), cursor));
    parameters
}
