//! JSON Schemas of what clients are sent of a session, made from the types that are stored.
//!
//! For `docs/schema/events.json` and `docs/openapi.json`, which a test of the gateway compares with them. Behind the
//! feature `schema`, which the product does not turn on. Invariant: every kind of event has an arm. Not here: what else
//! REST answers.

use crate::kind::EventKind;
use crate::payload::{
    AgentRequest, CancelRequested, Created, ElicitationCompleted, Prompt, Question, Reattached, Resolution,
    RunStarted, Stalled, StateChanged, TerminalEnded, TerminalOutput, TranscriptFacts, TurnEnded,
};
use crate::snapshot::Shown;
use crate::termination::TerminationInfo;
use schemars::generate::SchemaSettings;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde_json::{Map, Value, json};
use std::borrow::Cow;

/// What makes schemas whose definitions are found at this path of the document: `/$defs`, for example.
pub fn generator(definitions: &'static str) -> SchemaGenerator {
    let settings = SchemaSettings::draft2020_12().for_serialize();
    settings.with(|settings| settings.definitions_path = definitions.into()).into_generator()
}

/// The schema of a type that clients send: what it does not need is not required.
pub fn of_query<T: JsonSchema>() -> Value {
    let mut generator = SchemaSettings::draft2020_12().into_generator();
    let mut schema = T::json_schema(&mut generator).to_value();
    plain(&mut schema);
    schema
}

/// The schema of a body that clients send: what is not known is refused.
pub fn of_body<T: JsonSchema>() -> Value {
    let mut schema = of_query::<T>();
    if let Some(members) = schema.as_object_mut() {
        members.insert("additionalProperties".to_owned(), false.into());
    }
    schema
}

/// All that was named so far, by name.
pub fn definitions(generator: &mut SchemaGenerator) -> Map<String, Value> {
    let mut definitions = generator.take_definitions(false);
    definitions.values_mut().for_each(plain);
    definitions.sort_keys();
    definitions
}

/// An event as REST shows it (contract 1.6): one of its kinds, or one of a later version.
#[derive(Debug)]
pub struct ShownEvent;

impl JsonSchema for ShownEvent {
    fn schema_name() -> Cow<'static, str> {
        "Event".into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let kinds: Vec<EventKind> = (1..).map_while(EventKind::from_number).collect();
        let mut arms: Vec<Value> = kinds.iter().flat_map(|kind| arms(generator, *kind)).collect();
        let known: Vec<&str> = kinds.iter().map(|kind| kind.name()).collect();
        let later = json!({"description": "An event of a later version. Its members depend on its kind."});
        arms.push(arm(generator, "OtherEvent", json!({"type": "string", "not": {"enum": known}}), later));
        json_schema!({"description": "An event of a session. Members may be added.", "oneOf": arms})
    }
}

/// A snapshot as REST and ACP show it (contract 1.5).
#[derive(Debug)]
pub struct ShownSnapshot;

impl JsonSchema for ShownSnapshot {
    fn schema_name() -> Cow<'static, str> {
        "Snapshot".into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        Shown::json_schema(generator)
    }
}

/// The schemas of one kind; a terminal tells two things.
fn arms(generator: &mut SchemaGenerator, kind: EventKind) -> Vec<Value> {
    let words = kind.name().split('_').map(|word| word[..1].to_uppercase() + &word[1..]);
    let name = words.collect::<String>() + "Event";
    let members = match kind {
        EventKind::Created => members::<Created<'_>>(generator),
        EventKind::RunStarted => members::<RunStarted<'_>>(generator),
        EventKind::Prompt => members::<Prompt<'_>>(generator),
        EventKind::Update => raw("The agent sent a `session/update`."),
        EventKind::Notification => raw("The agent sent another notification."),
        EventKind::Echo => raw("The agent repeated a part of the prompt."),
        EventKind::TurnEnded => members::<TurnEnded<'_>>(generator),
        EventKind::CancelRequested => members::<CancelRequested<'_>>(generator),
        EventKind::AgentRequest => members::<AgentRequest<'_>>(generator),
        EventKind::Ended => ended(generator),
        EventKind::Transcript => members::<TranscriptFacts>(generator),
        EventKind::PermissionRequested | EventKind::ElicitationRequested | EventKind::FileForwarded => {
            members::<Question<'_>>(generator)
        }
        EventKind::PermissionResolved | EventKind::ElicitationResolved | EventKind::FileResolved => {
            members::<Resolution<'_>>(generator)
        }
        EventKind::ElicitationCompleted => members::<ElicitationCompleted<'_>>(generator),
        EventKind::Terminal => {
            let output = members::<TerminalOutput<'_>>(generator);
            let ended = members::<TerminalEnded<'_>>(generator);
            let mut put = |name, members| arm(generator, name, of_kind(kind), members);
            return vec![put("TerminalOutputEvent", output), put("TerminalEndedEvent", ended)];
        }
        EventKind::StateChanged => members::<StateChanged<'_>>(generator),
        EventKind::Stalled => members::<Stalled>(generator),
        EventKind::Reattached => members::<Reattached>(generator),
    };
    vec![arm(generator, &name, of_kind(kind), members)]
}

fn of_kind(kind: EventKind) -> Value {
    json!({"type": "string", "const": kind.name()})
}

/// The members that are stored. Those that older logs may lack are not required.
fn members<T: JsonSchema>(generator: &mut SchemaGenerator) -> Value {
    let mut members = T::json_schema(generator).to_value();
    plain(&mut members);
    let needed = of_query::<T>()["required"].take();
    if let Some(required) = members["required"].as_array_mut() {
        required.retain(|name| needed.as_array().is_some_and(|needed| needed.contains(name)));
    }
    members
}

fn raw(description: &str) -> Value {
    let message = json!({"description": "The message, raw.", "type": "object"});
    json!({"description": description, "required": ["message"], "properties": {"message": message}})
}

fn ended(generator: &mut SchemaGenerator) -> Value {
    let record = generator.subschema_for::<TerminationInfo>();
    let description = "The run ended.";
    json!({"description": description, "required": ["terminationInfo"], "properties": {"terminationInfo": record}})
}

/// Names the schema of one arm; gives a reference to it.
fn arm(generator: &mut SchemaGenerator, name: &str, kind: Value, members: Value) -> Value {
    let mut properties = Map::new();
    let seq = "Its number in the session, from 1, without holes.";
    properties.insert(
        "seq".into(),
        json!({"description": seq, "type": "integer", "format": "int64", "minimum": 1}),
    );
    properties.insert("kind".into(), kind);
    let at = json!({"description": "When it happened.", "type": "string", "format": "date-time"});
    properties.insert("at".into(), at);
    let mut required = vec![json!("seq"), json!("kind"), json!("at")];
    required.extend(members["required"].as_array().into_iter().flatten().cloned());
    properties.extend(members["properties"].as_object().cloned().unwrap_or_default());
    let schema = json!({
        "description": members["description"], "type": "object", "required": required, "properties": properties,
    });
    let path = format!("#{}/{name}", generator.settings().definitions_path);
    generator.definitions_mut().insert(name.to_owned(), schema);
    json!({"$ref": path})
}

/// Says a schema as generators of clients understand it best: lists as `enum`, formats that they know, and what is left out
/// when there is none never as null.
fn plain(schema: &mut Value) {
    let Some(members) = schema.as_object_mut() else { return };
    members.shift_remove("default");
    // Members may be added.
    if members.get("additionalProperties").is_some_and(|other| other.is_boolean()) {
        members.shift_remove("additionalProperties");
    }
    if let Some(Value::String(description)) = members.get_mut("description") {
        let paragraphs: Vec<String> = description.split("\n\n").map(|text| text.replace('\n', " ")).collect();
        *description = paragraphs.join("\n\n");
    }
    if let Some(format) = members.get_mut("format") {
        match format.as_str() {
            Some("uint8" | "uint16") => *format = json!("int32"),
            Some("uint" | "uint32" | "uint64") => *format = json!("int64"),
            _ => {}
        }
    }
    list(members);
    let required = members.get("required").cloned().unwrap_or_default();
    let required =
        |name: &str| required.as_array().is_some_and(|names| names.iter().any(|other| other == name));
    for (name, member) in members.get_mut("properties").and_then(Value::as_object_mut).into_iter().flatten() {
        plain(member);
        if !required(name) {
            never_null(member);
        }
    }
    for (name, part) in members.iter_mut() {
        match (name.as_str(), part) {
            ("items" | "additionalProperties", part) => plain(part),
            ("oneOf" | "anyOf" | "allOf", Value::Array(parts)) => parts.iter_mut().for_each(plain),
            _ => {}
        }
    }
}

/// A choice of constants becomes a list of values, with what each means in its description.
fn list(members: &mut Map<String, Value>) {
    let Some(choice) = members.get("oneOf").and_then(Value::as_array) else { return };
    let values: Option<Vec<Value>> = choice.iter().map(|arm| arm.get("const").cloned()).collect();
    let Some(values) = values.filter(|values| values.iter().all(Value::is_string)) else { return };
    let mut description = members.get("description").and_then(Value::as_str).unwrap_or_default().to_owned();
    for arm in choice {
        let (name, what) = (arm["const"].as_str(), arm["description"].as_str());
        description += &format!("\n\n`{}`: {}", name.unwrap_or_default(), what.unwrap_or_default());
    }
    *members = Map::new();
    members.insert("description".into(), json!(description));
    members.insert("type".into(), json!("string"));
    members.insert("enum".into(), Value::Array(values));
}

/// What is absent where there is none.
fn never_null(member: &mut Value) {
    if let Some(types) = member.get_mut("type")
        && let Some([one, other]) = types.as_array().map(Vec::as_slice)
        && other == "null"
    {
        *types = one.clone();
    }
    let null = json!({"type": "null"});
    let choice = member.get("anyOf").and_then(Value::as_array).map(Vec::as_slice);
    if let Some([Value::Object(one), other]) = choice
        && *other == null
    {
        let mut only = one.clone();
        if let Some(description) = member.get("description") {
            only.insert("description".into(), description.clone());
        }
        *member = Value::Object(only);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    // contract 1.6: clients know every kind of event, and that there may be others
    #[test]
    fn every_kind_has_an_arm_and_the_last_one_is_open() {
        let mut generator = generator("/$defs");
        let _event = generator.subschema_for::<ShownEvent>();
        let definitions = definitions(&mut generator);
        let arms = definitions["Event"]["oneOf"].as_array().expect("a choice");
        let kinds: Vec<&Value> = arms
            .iter()
            .map(|arm| arm["$ref"].as_str().and_then(|path| path.rsplit('/').next()).expect("a name"))
            .map(|name| &definitions[name]["properties"]["kind"])
            .collect();
        let named: std::collections::BTreeSet<&str> =
            kinds.iter().filter_map(|kind| kind["const"].as_str()).collect();
        assert_eq!(named, (1..).map_while(EventKind::from_number).map(EventKind::name).collect());
        let last = kinds.last().expect("there are arms");
        assert_eq!(last["not"]["enum"].as_array().map(Vec::len), Some(named.len()));
    }

    // contract 1.6: the connections in a stored event are not shown; what is absent is no null; older logs are described too
    #[test]
    fn events_are_described_as_they_are_shown() {
        let mut generator = generator("/$defs");
        let _event = generator.subschema_for::<ShownEvent>();
        let definitions = definitions(&mut generator);
        let names = |name: &str| {
            let properties = definitions[name]["properties"].as_object().expect("it has members");
            properties.keys().map(String::as_str).collect::<Vec<_>>()
        };
        assert_eq!(names("PromptEvent"), ["seq", "kind", "at", "turn", "by", "idempotencyKey", "prompt"]);
        assert_eq!(names("PermissionRequestedEvent"), ["seq", "kind", "at", "unasked", "request", "message"]);
        let created = &definitions["CreatedEvent"];
        assert_eq!(created["required"], json!(["seq", "kind", "at", "agent", "cwd"]));
        assert_eq!(created["properties"]["by"]["type"], "string");
        assert_eq!(definitions["RunStartedEvent"]["required"], json!(["seq", "kind", "at"]));
        assert_eq!(definitions["ExitStatus"]["properties"]["exitCode"]["type"], json!(["integer", "null"]));
        assert_eq!(definitions["Reason"]["enum"], json!(["completed", "error", "terminated"]));
    }
}
