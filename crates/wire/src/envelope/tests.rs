//! The envelope parser on what peers really send, and against an ordinary JSON tree.

use proptest::prelude::*;
use serde::de::IgnoredAny;
use serde_json::{Map, Value, json};

use super::*;
use crate::codes::{INVALID_REQUEST, PARSE_ERROR};

/// A message in short: kind, id, method, payload.
fn short(line: &str) -> String {
    match Message::parse(line.as_bytes()) {
        Ok(Message::Request { id, method, params }) => {
            format!("request {id} {method} {}", params.map_or("-", RawValue::get))
        }
        Ok(Message::Notification { method, params }) => {
            format!("notification {method} {}", params.map_or("-", RawValue::get))
        }
        Ok(Message::Response { id, outcome }) => {
            let id = id.map_or("-".to_owned(), |id| id.to_string());
            match outcome {
                Ok(result) => format!("result {id} {}", result.get()),
                Err(error) => format!("error {id} {}", error.get()),
            }
        }
        Err(malformed) => format!("{malformed}; answer {:?} {}", malformed.code(), malformed.answer_id()),
    }
}

// FR-2, FR-8: the parts come out as they stand in the line
#[test]
fn messages() {
    for (line, expected) in [
        (
            r#"{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"a": 1.0}}"#,
            r#"request 0 initialize {"a": 1.0}"#,
        ),
        (r#" {"params":[ ],"method":"m","id":"x","jsonrpc":"2.0"} "#, r#"request "x" m [ ]"#),
        (r#"{"id":null,"method":"m"}"#, "request null m -"),
        (
            r#"{"id":123456789012345678901234567890,"method":"m"}"#,
            "request 123456789012345678901234567890 m -",
        ),
        (r#"{"id":1.5,"method":"m"}"#, "request 1.5 m -"),
        (r#"{"\u0069d":1,"m\u0065thod":"a\/b\u0021"}"#, "request 1 a/b! -"),
        (r#"{"jsonrpc":"2\u002e0","method":"m","params":null}"#, "notification m -"),
        (r#"{"method":"m","params":{},"_meta":{"id":1},"x":[{"result":1}]}"#, "notification m {}"),
        (r#"{"jsonrpc":"2.0","id":1,"result":null}"#, "result 1 null"),
        (r#"{"id":null,"error":{"code":-32700}}"#, r#"error null {"code":-32700}"#),
        (r#"{"error":{"code":400}}"#, r#"error - {"code":400}"#),
        (r#"{"id":"1","result":[1, 2],"params":7}"#, r#"result "1" [1, 2]"#),
        ("{\"id\":1,\r\n\"method\":\n\"m\"}", "request 1 m -"),
    ] {
        assert_eq!(short(line), expected, "{line}");
    }
}

// FR-5: JSON that is no envelope gets -32600 with its id if it has a legal one
#[test]
fn json_that_is_no_message() {
    for (line, reason, id) in [
        ("{}", "neither method nor result nor error", "null"),
        (r#"{"jsonrpc":"2.0","id":7}"#, "neither method nor result nor error", "7"),
        (r#"{"level":"info","msg":"hello"}"#, "neither method nor result nor error", "null"),
        (r#"{"jsonrpc":"1.0","id":7,"method":"m"}"#, "jsonrpc is not \"2.0\"", "7"),
        (r#"{"jsonrpc":2.0,"id":7,"method":"m"}"#, "jsonrpc is not \"2.0\"", "7"),
        (r#"{"id":true,"method":"m"}"#, "id is neither string nor number nor null", "null"),
        (r#"{"id":{},"method":"m"}"#, "id is neither string nor number nor null", "null"),
        (r#"{"id":[1],"method":"m"}"#, "id is neither string nor number nor null", "null"),
        (r#"{"id":"\ud800","method":"m"}"#, "id is neither string nor number nor null", "null"),
        (r#"{"method":5,"params":"bar"}"#, "method is not a string", "null"),
        (r#"{"id":1,"method":null}"#, "method is not a string", "1"),
        (r#"{"id":1,"method":"m","params":"bar"}"#, "params are neither object nor array", "1"),
        (r#"{"id":1,"method":"m","params":false}"#, "params are neither object nor array", "1"),
        (r#"{"id":1,"method":"m","result":1}"#, "both a method and an outcome", "1"),
        (r#"{"method":"m","error":{}}"#, "both a method and an outcome", "null"),
        (r#"{"id":1,"id":2,"method":"m"}"#, "a member is there twice", "2"),
        (r#"{"id":1,"method":"m","\u006dethod":"n"}"#, "a member is there twice", "1"),
        ("1", "not an object", "null"),
        ("\"ready\"", "not an object", "null"),
        ("null", "not an object", "null"),
    ] {
        let expected = format!("not a JSON-RPC message: {reason}; answer Some({INVALID_REQUEST}) {id}");
        assert_eq!(short(line), expected, "{line}");
    }
}

// FR-3: notifications never get a response, even malformed ones; nor do responses
#[test]
fn broken_notifications_and_responses_are_not_answered() {
    for line in [
        r#"{"method":"session/cancel","params":5}"#,
        r#"{"jsonrpc":"1.0","method":"session/cancel"}"#,
        r#"{"method":"m","params":{},"params":{}}"#,
        r#"{"id":1,"result":{},"error":{}}"#,
        r#"{"id":[],"result":{}}"#,
        r#"{"jsonrpc":"1.0","error":{}}"#,
    ] {
        let malformed = Message::parse(line.as_bytes()).expect_err("malformed");
        assert_eq!(malformed.code(), None, "{line}");
        assert!(matches!(malformed, Malformed::NotAnEnvelope { answerable: false, .. }), "{line}");
    }
    // The request that a broken response fails can be found by its id.
    let malformed = Message::parse(br#"{"id":1,"result":{},"error":{}}"#).expect_err("malformed");
    assert_eq!(malformed.answer_id().as_raw(), "1");
}

// FR-5: one -32600 with id null for an array, whatever is in it
#[test]
fn batches() {
    for line in ["[]", r#"[{"jsonrpc":"2.0","id":1,"method":"m"}]"#, " [1, [2]]"] {
        let malformed = Message::parse(line.as_bytes()).expect_err("a batch");
        assert!(matches!(malformed, Malformed::Batch), "{line}");
        assert_eq!((malformed.code(), malformed.answer_id().as_raw()), (Some(INVALID_REQUEST), "null"));
    }
}

// FR-5, FR-7: damaged messages and noise are told apart
// quirk not-json
#[test]
fn noise() {
    for (line, at, like_message) in [
        ("npm notice new version", 2, false),
        ("[INFO] ready", 2, false),
        ("\u{feff}{}", 1, false),
        (r#"{"id":1,"method":"#, 17, true),
        (r#"  {"id":1} {"id":2}"#, 12, true),
        ("{ this is a shell prompt }", 3, true),
        ("{\"a\":\"\ttab\"}", 6, true),
    ] {
        let malformed = Message::parse(line.as_bytes()).expect_err("noise");
        assert_eq!((malformed.code(), malformed.answer_id().as_raw()), (Some(PARSE_ERROR), "null"));
        let Malformed::NotJson { column, looks_like_message, .. } = malformed else { panic!("{line}") };
        assert_eq!((column, looks_like_message), (at, like_message), "{line}");
    }
}

// FR-7: an empty line is no error
#[test]
fn blank_lines() {
    for line in ["", " ", "\t \r", "\n"] {
        let malformed = Message::parse(line.as_bytes()).expect_err("blank");
        assert!(matches!(malformed, Malformed::Blank));
        assert_eq!(malformed.code(), None);
    }
}

// issue 2: one invalid byte is tolerated on request
#[test]
fn invalid_utf8_can_be_repaired() {
    let line = b"{\"method\":\"m\",\"params\":{\"text\":\"caf\xe9\"}}";
    let malformed = Message::parse(line).expect_err("not UTF-8");
    assert_eq!(malformed.code(), Some(PARSE_ERROR));
    assert!(matches!(malformed, Malformed::NotUtf8 { valid_up_to: 35 }), "{malformed}");
    let repaired = crate::repair_utf8(line);
    let Ok(Message::Notification { params: Some(params), .. }) = Message::parse(&repaired) else {
        panic!("a notification")
    };
    assert_eq!(params.get(), "{\"text\":\"caf\u{fffd}\"}");
}

// FR-5: nesting costs memory in proportion to the line, never the stack
#[test]
fn deep_nesting_does_not_recurse() {
    const DEPTH: usize = 1_000_000;
    let (open, close) = ("[".repeat(DEPTH), "]".repeat(DEPTH));
    for line in [open.clone(), format!("{{\"method\":\"m\",\"params\":{open}"), "{\"a\":".repeat(DEPTH)] {
        assert!(matches!(Message::parse(line.as_bytes()), Err(Malformed::NotJson { .. })));
    }
    let batch = format!("{open}{close}");
    assert!(matches!(Message::parse(batch.as_bytes()), Err(Malformed::Batch)));
    let line = format!(r#"{{"method":"m","id":{open}{close},"x":{open}{close}}}"#);
    assert!(matches!(Message::parse(line.as_bytes()), Err(Malformed::NotAnEnvelope { .. })));
    let line = format!(r#"{{"method":"m","params":{{"deep":{open}{close},"sessionId":"s"}}}}"#);
    let Ok(Message::Notification { params: Some(params), .. }) = Message::parse(line.as_bytes()) else {
        panic!("a notification")
    };
    assert_eq!(crate::member(params, "sessionId").map(RawValue::get), Some("\"s\""));
}

fn value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        "[a-c\"\\\\\n\u{e9}\u{1f600}]{0,5}".prop_map(Value::from),
        Just(json!("2.0")),
    ];
    leaf.prop_recursive(3, 12, 4, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::btree_map("[a-c\"]{0,3}", inner, 0..4)
                .prop_map(|map| Value::from(Map::from_iter(map))),
        ]
    })
}

fn object() -> impl Strategy<Value = Map<String, Value>> {
    let member = |name: &'static str, likely: BoxedStrategy<Value>| {
        prop::option::of(prop_oneof![3 => likely, 1 => value()])
            .prop_map(move |value| value.map(|v| (name, v)))
    };
    let any_value = || value().boxed();
    let members = (
        member("jsonrpc", Just(json!("2.0")).boxed()),
        member(
            "id",
            prop_oneof![any::<u64>().prop_map(Value::from), "[a-z]{0,3}".prop_map(Value::from)].boxed(),
        ),
        member("method", "[a-z/\"]{0,6}".prop_map(Value::from).boxed()),
        member("params", prop::collection::vec(value(), 0..3).prop_map(Value::from).boxed()),
        prop_oneof![3 => Just(None), 1 => member("result", any_value())],
        prop_oneof![3 => Just(None), 1 => member("error", any_value())],
        member("_meta", any_value()),
    );
    let ordered =
        members.prop_map(|(a, b, c, d, e, f, g)| [a, b, c, d, e, f, g].into_iter().flatten().collect());
    ordered.prop_flat_map(|members: Vec<(&'static str, Value)>| {
        Just(members)
            .prop_shuffle()
            .prop_map(|m| m.into_iter().map(|(name, v)| (name.to_owned(), v)).collect())
    })
}

/// Whether a member is there and says something.
fn tells(object: &Map<String, Value>, name: &str) -> bool {
    object.get(name).is_some_and(|value| !value.is_null())
}

/// What an object is, by the rules in the module's head, told on an ordinary tree.
fn kind(object: &Map<String, Value>) -> &'static str {
    let legal_id = object.get("id").is_none_or(|id| id.is_string() || id.is_number() || id.is_null());
    let legal_version = object.get("jsonrpc").is_none_or(|version| version == "2.0");
    let legal_params = object.get("params").is_none_or(|p| p.is_object() || p.is_array() || p.is_null());
    let (result, error) = (object.contains_key("result"), object.contains_key("error"));
    match object.get("method") {
        _ if !legal_id || !legal_version => "malformed",
        None if (result || error) && !(tells(object, "result") && tells(object, "error")) => "response",
        Some(Value::String(_)) if !result && !error && legal_params => {
            if object.contains_key("id") {
                "request"
            } else {
                "notification"
            }
        }
        _ => "malformed",
    }
}

fn tree(raw: &RawValue) -> Value {
    serde_json::from_str(raw.get()).expect("a part of valid JSON is valid")
}

// FR-5: seen of peers that write every member: the outcome that is null is none
#[test]
fn one_outcome_may_be_null() {
    for (text, succeeded, told) in [
        (r#"{"id":1,"result":null,"error":null}"#, true, "null"),
        (r#"{"id":1,"result":{},"error":null}"#, true, "{}"),
        (r#"{"id":1,"result":null,"error":{}}"#, false, "{}"),
    ] {
        let Ok(Message::Response { outcome, .. }) = Message::parse(text.as_bytes()) else { panic!("{text}") };
        assert_eq!(outcome.is_ok(), succeeded, "{text}");
        assert_eq!(outcome.map_or_else(RawValue::get, RawValue::get), told, "{text}");
    }
    assert!(Message::parse(br#"{"id":1,"result":{},"error":{}}"#).is_err());
}

proptest! {
    // FR-2, FR-5, FR-8: the same verdict and the same parts as an ordinary parser finds
    #[test]
    fn agrees_with_a_tree(object in object(), pretty in any::<bool>()) {
        let whole = Value::Object(object.clone());
        let text = if pretty { serde_json::to_string_pretty(&whole) } else { serde_json::to_string(&whole) }.unwrap();
        // Floats are compared as they read back, since printing and reading may differ in the last digit.
        let object = serde_json::from_str::<Map<String, Value>>(&text).unwrap();
        let payload = |name: &str| object.get(name).filter(|value| !value.is_null()).cloned();
        let id_of = |id: RawId<'_>| Some(tree(id.as_value()));
        match Message::parse(text.as_bytes()) {
            Ok(Message::Request { id, method, params }) => {
                prop_assert_eq!(kind(&object), "request");
                prop_assert_eq!(id_of(id), object.get("id").cloned());
                prop_assert_eq!(Some(&*method), object["method"].as_str());
                prop_assert_eq!(params.map(tree), payload("params"));
            }
            Ok(Message::Notification { method, params }) => {
                prop_assert_eq!(kind(&object), "notification");
                prop_assert_eq!(Some(&*method), object["method"].as_str());
                prop_assert_eq!(params.map(tree), payload("params"));
            }
            Ok(Message::Response { id, outcome }) => {
                prop_assert_eq!(kind(&object), "response");
                prop_assert_eq!(id.and_then(id_of), object.get("id").cloned());
                // A null beside the other one is none.
                let succeeded = object.contains_key("result") && !tells(&object, "error");
                prop_assert_eq!(outcome.is_ok(), succeeded);
                let told = if succeeded { "result" } else { "error" };
                prop_assert_eq!(outcome.map_or_else(tree, tree), object[told].clone());
            }
            Err(malformed) => {
                prop_assert_eq!(kind(&object), "malformed");
                let is_envelope_error = matches!(malformed, Malformed::NotAnEnvelope { .. });
                prop_assert!(is_envelope_error, "{}", malformed);
            }
        }
    }

    // FR-5: no bytes make it panic, and text that no JSON parser reads is no message
    #[test]
    fn arbitrary_bytes(line in prop::collection::vec(any::<u8>(), 0..64), text in "[\\[\\]{}:,\"a01 ]{0,24}") {
        for line in [&line[..], text.as_bytes()] {
            let parsed = Message::parse(line);
            if serde_json::from_slice::<IgnoredAny>(line).is_err() {
                let refused = matches!(parsed, Err(Malformed::NotUtf8 { .. } | Malformed::NotJson { .. } | Malformed::Blank));
                prop_assert!(refused, "{:?}", parsed);
            }
        }
    }
}
