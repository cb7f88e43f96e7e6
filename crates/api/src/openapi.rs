//! REST as it is described for those who generate clients: the OpenAPI document, and the schemas of a session's events.
//!
//! Behind the feature `schema`, so that the product is built without what makes them: the daemon serves `docs/openapi.json`, and
//! a test fails while a file is not what the code says. Invariant: what is described is what is routed and sent, since both are
//! made of [`Op`] and of the same types.

use crate::events::EventsPage;
use crate::operation::{Access, Answer, Body, Header, Spec, Tag, Target, Verb, problem};
use crate::operations::Op;
use crate::problem::ProblemDocument;
use acpd_record::schema::{ShownEvent, definitions, generator, of_body, of_query};
use acpd_record::{SessionMeta, TerminationInfo};
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde_json::{Map, Value, json};
use std::borrow::Cow;

/// Answers of every operation of a form.
const UNAUTHORIZED: Answer = problem(401, "no token, an unknown one, or one that has expired");
const TOO_MANY: Answer = problem(429, "more requests or connections than the token may have");
const UNREADABLE: Answer = problem(400, "a value of the query is not readable");
const TOO_LARGE: Answer = problem(413, "the body is longer than a message may be");
const NOT_JSON: Answer = problem(415, "the body is not sent as application/json");
const UNKNOWN_PARAMETER: Answer =
    problem(400, "the query has a parameter that the operation does not have (`invalid_request`)");

/// The schemas of what an operation takes and gives.
pub(crate) struct Schemas {
    query: fn() -> Value,
    body: fn() -> Value,
    answer: fn(&mut SchemaGenerator) -> Schema,
}

impl Schemas {
    pub(crate) fn of<Input: JsonSchema, Output: JsonSchema>() -> Self {
        Self {
            query: of_query::<Input>,
            body: of_body::<Input>,
            answer: SchemaGenerator::subschema_for::<Output>,
        }
    }
}

impl JsonSchema for EventsPage {
    fn schema_name() -> Cow<'static, str> {
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

/// Makes the OpenAPI document.
pub fn document() -> Value {
    let mut generator = generator("/components/schemas");
    let mut paths = Map::new();
    for op in Op::ALL {
        let spec = op.spec();
        let methods = paths.entry(format!("/v1{}", spec.path)).or_insert_with(|| json!({}));
        methods[spec.verb.as_str().to_lowercase()] = describe(*op, &mut generator);
    }
    let about = "Sessions of coding agents: create, list, look, follow, prompt, answer, end. Clients that want all \
                 of ACP speak it at `/acp`. A query parameter that an operation does not have is refused: 400 `invalid_request`. Every path under `/v1` is served under `/v2` too, which this document leaves out.";
    let license = env!("CARGO_PKG_LICENSE");
    json!({
        "openapi": "3.1.0",
        "info": {
            "title": "acpd", "description": about, "license": {"name": license, "identifier": license},
            "version": env!("CARGO_PKG_VERSION"),
        },
        "paths": paths,
        "components": {
            "schemas": definitions(&mut generator),
            // None is needed where acpd has no tokens.
            "securitySchemes": {"token": {"type": "http", "scheme": "bearer"}},
        },
        "security": [{"token": []}, {}],
    })
}

/// Makes the schema of an event, with those of the records that the log and the index hold.
pub fn event_schema() -> Value {
    let mut generator = generator("/$defs");
    let event = generator.subschema_for::<ShownEvent>();
    let _records = [generator.subschema_for::<SessionMeta>(), generator.subschema_for::<TerminationInfo>()];
    json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "Event",
        "description": "An event of a session, as acpd sends it over REST.",
        "$ref": event.get("$ref"),
        "$defs": definitions(&mut generator),
    })
}

fn describe(op: Op, generator: &mut SchemaGenerator) -> Value {
    let (spec, schemas) = (op.spec(), op.schemas());
    let mut described = Map::new();
    described.insert("tags".into(), json!([tag(spec.tag)]));
    let summary = format!("`{} /v1{}`: {}", spec.verb.as_str(), spec.path, spec.summary);
    described.insert("summary".into(), summary.into());
    if !spec.detail.is_empty() {
        described.insert("description".into(), spec.detail.into());
    }
    described.insert("operationId".into(), spec.id.into());
    let parameters = parameters(spec, &schemas);
    if !parameters.is_empty() {
        described.insert("parameters".into(), parameters.into());
    }
    let body = body(spec, &schemas);
    let has_body = body.is_some();
    if let Some(schema) = body {
        let is_required = schema["required"].is_array();
        let content = json!({"application/json": {"schema": schema}});
        described.insert("requestBody".into(), json!({"required": is_required, "content": content}));
    }
    let answers = answers(spec, has_body, !op.query().is_empty());
    let responses =
        answers.iter().map(|answer| (answer.status.to_string(), response(answer, &schemas, generator)));
    described.insert("responses".into(), Value::Object(responses.collect()));
    if spec.access == Access::Open {
        described.insert("security".into(), json!([{}]));
    }
    described.into()
}

fn tag(tag: Tag) -> &'static str {
    match tag {
        Tag::Agents => "agents",
        Tag::Operation => "operation",
        Tag::Sessions => "sessions",
    }
}

/// The schema of a body; None for an operation without any.
fn body(spec: &Spec, schemas: &Schemas) -> Option<Value> {
    let schema = (spec.verb == Verb::Post).then(schemas.body)?;
    schema["properties"].is_object().then_some(schema)
}

fn parameters(spec: &Spec, schemas: &Schemas) -> Vec<Value> {
    let mut parameters: Vec<Value> = spec.target.map(path_parameter).into_iter().collect();
    if spec.verb != Verb::Post {
        let schema = (schemas.query)();
        let members = schema["properties"].as_object().into_iter().flatten();
        parameters.extend(members.map(|(name, member)| {
            let mut schema = member.clone();
            let description = schema.as_object_mut().and_then(|schema| schema.shift_remove("description"));
            parameter(name, "query", &description.unwrap_or_default(), schema)
        }));
    }
    parameters.extend(spec.headers.iter().map(|header| match header {
        Header::IdempotencyKey => {
            let key = json!({"type": "string", "pattern": "^[!-~]{1,255}$"});
            let words = json!("a name of this request, under which it may be sent again");
            parameter("Idempotency-Key", "header", &words, key)
        }
        Header::LastEventId => {
            let cursor = json!({"type": "string", "pattern": "^[0-9]+(@.+)?$"});
            parameter("Last-Event-ID", "header", &json!("as `after`; goes over it"), cursor)
        }
    }));
    parameters
}

fn path_parameter(target: Target) -> Value {
    let text = json!({"type": "string"});
    match target {
        Target::Session => parameter("id", "path", &json!("the session"), text),
        Target::Agent => parameter("name", "path", &json!("the agent"), text),
        Target::Node => {
            json!({"name": "name", "in": "path", "required": true, "schema": text, "description": "The node's name."})
        }
    }
}

fn parameter(name: &str, place: &str, description: &Value, schema: Value) -> Value {
    json!({
        "name": name, "in": place, "description": description, "required": place == "path", "schema": schema,
    })
}

/// All answers of an operation by status: its own, and those of its form that it says nothing else of.
fn answers(spec: &Spec, has_body: bool, has_query: bool) -> Vec<Answer> {
    let unknown = spec.target.map(|target| match target {
        Target::Session => problem(404, "no such session"),
        Target::Agent => problem(404, "no such agent"),
        Target::Node => problem(404, "no such node"),
    });
    let needs_token = spec.access == Access::Token;
    let of_form = [
        needs_token.then_some(UNAUTHORIZED),
        needs_token.then_some(TOO_MANY),
        unknown,
        has_query.then_some(UNREADABLE),
        has_body.then_some(TOO_LARGE),
        (spec.verb == Verb::Post).then_some(NOT_JSON),
        Some(UNKNOWN_PARAMETER),
    ];
    let mut answers = spec.answers.to_vec();
    for answer in of_form.into_iter().flatten() {
        if answers.iter().all(|other| other.status != answer.status) {
            answers.push(answer);
        }
    }
    answers.sort_by_key(|answer| answer.status);
    answers
}

fn response(answer: &Answer, schemas: &Schemas, generator: &mut SchemaGenerator) -> Value {
    let mut response = Map::new();
    let mut words = answer.words.to_owned();
    if answer.status == UNKNOWN_PARAMETER.status && words != UNKNOWN_PARAMETER.words {
        words = format!("{words}; or {}", UNKNOWN_PARAMETER.words);
    }
    response.insert("description".into(), words.into());
    let json = |schema: Schema| json!({"application/json": {"schema": schema}});
    let content = match answer.body {
        Body::Nothing => None,
        Body::Json => Some(json((schemas.answer)(generator))),
        Body::JsonOrStream => {
            let mut content = json((schemas.answer)(generator));
            content["text/event-stream"] = json!({"schema": {"type": "string"}});
            Some(content)
        }
        Body::File => {
            let text = json!({"schema": {"type": "string"}});
            Some(json!({"application/x-ndjson": text, "text/markdown": text}))
        }
        Body::Problem => {
            let schema = generator.subschema_for::<ProblemDocument>();
            Some(json!({"application/problem+json": {"schema": schema}}))
        }
    };
    response.extend(content.map(|content| ("content".to_owned(), content)));
    response.into()
}

#[cfg(test)]
mod tests;
