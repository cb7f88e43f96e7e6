//! Reads JSON as a shape, and says of a text of another shape what is wrong with it: in words of JSON, without any name of a type.
//!
//! Pure. Members are named by their paths. Not here: which shape a text must have.

use serde::Deserialize;
use serde::de::IgnoredAny;

/// The longest part of a text that is quoted, in characters.
const QUOTED: usize = 60;

/// Why a text is not of a shape.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ShapeError {
    /// It is no JSON.
    #[error("{0}")]
    NotJson(String),
    /// It is JSON of another shape.
    #[error("{}{wrong}", member.as_ref().map(|member| format!("{member}: ")).unwrap_or_default())]
    Other {
        /// The path of the member with which something is wrong; `None` for the whole text.
        member: Option<String>,
        /// The flaw, and what would be right.
        wrong: String,
    },
}

/// Reads a text of JSON.
///
/// # Errors
/// With what is wrong, and what would be right.
pub fn read_shape<'a, T: Deserialize<'a>>(json: &'a [u8]) -> Result<T, ShapeError> {
    // The path costs a second reading, of what is refused only.
    serde_json::from_slice(json).map_err(|error| ShapeError::new(json, &error, path_of::<T>(json)))
}

/// The path of the value that is not of the shape.
fn path_of<'a, T: Deserialize<'a>>(json: &'a [u8]) -> Option<String> {
    let read: Result<T, _> =
        serde_path_to_error::deserialize(&mut serde_json::Deserializer::from_slice(json));
    let path = read.err()?.path().to_string();
    // The library's words for no member.
    (path != "." && path != "?").then_some(path)
}

impl ShapeError {
    fn new(json: &[u8], error: &serde_json::Error, path: Option<String>) -> Self {
        let message = error.to_string();
        let message = match error.line() {
            0 => message.as_str(),
            // The place is one in this text, and not in what it was taken from.
            _ => message.rsplit_once(" at line ").map_or(message.as_str(), |(message, _)| message),
        };
        // Also of what is JSON it may say that a value was expected.
        if !error.is_data() && serde_json::from_slice::<IgnoredAny>(json).is_err() {
            return Self::NotJson(if json.trim_ascii().is_empty() {
                "it is empty".to_owned()
            } else if error.is_eof() {
                "it ends too early".to_owned()
            } else {
                format!("{message} at byte {}", byte_of(json, error))
            });
        }
        let (member, wrong) = explain(message);
        let member = match (path, member) {
            (Some(path), Some(member)) => Some(format!("{path}.{member}")),
            (path, member) => path.or(member.map(str::to_owned)),
        };
        Self::Other { member, wrong }
    }
}

/// The byte of a text at which an error is, from 1.
fn byte_of(json: &[u8], error: &serde_json::Error) -> usize {
    let before = json.split_inclusive(|byte| *byte == b'\n').take(error.line().saturating_sub(1));
    before.map(<[u8]>::len).sum::<usize>() + error.column()
}

/// The member that a message of the reader names itself, and what is wrong, in words of JSON.
fn explain(message: &str) -> (Option<&str>, String) {
    if let Some(member) = message.strip_prefix("missing field ") {
        return (Some(strip_backticks(member)), "it is missing".to_owned());
    }
    if let Some(member) = message.strip_prefix("duplicate field ") {
        return (Some(strip_backticks(member)), "it is there twice".to_owned());
    }
    if let Some((found, known)) = message.strip_prefix("unknown variant ").and_then(split_expectation) {
        let known: Vec<String> =
            known.split('`').skip(1).step_by(2).map(|name| format!("{name:?}")).collect();
        let known = known.join(" or ");
        return (None, format!("{known} is required, and it is {}", quote(strip_backticks(found))));
    }
    // A reader takes an array for the members in their order.
    if let Some((_, expected)) = message.strip_prefix("invalid length ").and_then(split_expectation) {
        return match expected_in_json(expected) {
            "an array" => (None, "an array of another length is required".to_owned()),
            other => (None, format!("{other} is required, and it is an array")),
        };
    }
    let wrong = ["invalid type: ", "invalid value: "].iter().find_map(|prefix| message.strip_prefix(prefix));
    match wrong.and_then(split_expectation) {
        Some((found, expected)) => {
            (None, format!("{} is required, and it is {}", expected_in_json(expected), found_in_json(found)))
        }
        // What our own types say of a value has no names of types.
        None if ["struct ", "enum ", "variant ", "expected value"]
            .iter()
            .any(|name| message.contains(name)) =>
        {
            (None, "another value is required".to_owned())
        }
        None => (None, message.to_owned()),
    }
}

/// The value that was found, and the one that is expected. The former may have any words in it.
fn split_expectation(message: &str) -> Option<(&str, &str)> {
    message.rsplit_once(", expected ")
}

fn strip_backticks(name: &str) -> &str {
    name.trim_matches('`')
}

fn quote(text: &str) -> String {
    match text.chars().count() > QUOTED {
        true => format!("{:?} and more", text.chars().take(QUOTED).collect::<String>()),
        false => format!("{text:?}"),
    }
}

/// The value of JSON that a reader expects, which names it by types of its own.
fn expected_in_json(expected: &str) -> &str {
    match expected {
        "u8" | "u16" | "u32" | "u64" | "usize" => "a whole number from 0",
        "i8" | "i16" | "i32" | "i64" | "isize" => "a whole number",
        "f32" | "f64" => "a number",
        "a boolean" => "true or false",
        "str" | "string" | "a string" | "a borrowed string" | "a character" | "variant identifier" => {
            "a string"
        }
        "a sequence" => "an array",
        "a map" => "an object",
        _ if expected.starts_with("tuple") || expected.starts_with("an array") => "an array",
        _ if expected.contains("struct ") || expected.contains("enum ") => "an object",
        _ if expected.contains("variant ") => "another value",
        words => words,
    }
}

fn found_in_json(found: &str) -> String {
    match found {
        "sequence" => return "an array".to_owned(),
        "map" => return "an object".to_owned(),
        _ => {}
    }
    if let Some(text) = found.strip_prefix("string \"").and_then(|text| text.strip_suffix('"')) {
        // As it is escaped already.
        let cut: String = text.chars().take(QUOTED).collect();
        return if cut.len() < text.len() { format!("\"{cut}\" and more") } else { format!("\"{text}\"") };
    }
    // As in "integer `7`".
    found.split_once('`').map_or(found, |(_, value)| strip_backticks(value)).to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::value::RawValue;
    use std::collections::BTreeMap;

    #[derive(Debug, Deserialize)]
    #[serde(rename_all = "camelCase")]
    #[expect(dead_code, reason = "only its shape is read")]
    struct Inner<'a> {
        at_ms: u64,
        names: Option<Vec<String>>,
        is_on: Option<bool>,
        parts: Option<BTreeMap<String, f64>>,
        way: Option<Way>,
        #[serde(borrow)]
        raw: Option<&'a RawValue>,
    }

    #[derive(Debug, Deserialize)]
    #[serde(rename_all = "camelCase")]
    enum Way {
        There,
        AndBack,
    }

    #[derive(Debug, Deserialize)]
    #[expect(dead_code, reason = "only its shape is read")]
    struct Outer<'a> {
        #[serde(borrow)]
        inner: Vec<Inner<'a>>,
    }

    // contract 7.3: what is wrong is named by its member, with what is expected, in words of JSON
    #[test]
    fn another_shape_is_told_in_words_of_json() {
        let whole =
            r#"{"inner":[{"atMs":1,"names":["a"],"isOn":true,"parts":{"a":1.5},"way":"andBack","raw":{}}]}"#;
        read_shape::<Outer<'_>>(whole.as_bytes()).expect("it is of the shape");
        let long = format!("\"{}\"", "x".repeat(1000));
        for (from, to, expected) in [
            ("\"atMs\":1,", "", "inner[0].atMs: it is missing"),
            ("\"atMs\":1,", "\"atMs\":1,\"atMs\":1,", "inner[0].atMs: it is there twice"),
            (":1,", ":-1,", "inner[0].atMs: a whole number from 0 is required, and it is -1"),
            (":1,", ":1.5,", "inner[0].atMs: a whole number from 0 is required, and it is 1.5"),
            (":1,", ":null,", "inner[0].atMs: a whole number from 0 is required, and it is null"),
            (
                ":1,",
                ":\"at line 7, expected u64\",",
                "inner[0].atMs: a whole number from 0 is required, and it is \"at line 7, expected u64\"",
            ),
            ("[\"a\"]", "{}", "inner[0].names: an array is required, and it is an object"),
            ("[\"a\"]", "[7]", "inner[0].names[0]: a string is required, and it is 7"),
            ("true", "\"yes\"", "inner[0].isOn: true or false is required, and it is \"yes\""),
            ("{\"a\":1.5}", "[]", "inner[0].parts: an object is required, and it is an array"),
            ("1.5", "true", "inner[0].parts.a: a number is required, and it is true"),
            ("andBack", "away", "inner[0].way: \"there\" or \"andBack\" is required, and it is \"away\""),
            ("\"andBack\"", "7", "inner[0].way: another value is required"),
            (&whole[9..whole.len() - 1], "7", "inner: an array is required, and it is 7"),
            (whole, "7", "an object is required, and it is 7"),
            (whole, "[]", "an object is required, and it is an array"),
            (whole, &long, "an object is required, and it is \"xxxxxx"),
            (whole, "", "it is empty"),
            ("}]}", "", "it ends too early"),
            (":1,", ":\n1 1,", "expected `,` or `}` at byte 22"),
        ] {
            let text = whole.replacen(from, to, 1);
            assert_ne!(text, whole, "{from}");
            let error = read_shape::<Outer<'_>>(text.as_bytes()).expect_err(expected).to_string();
            assert!(error.starts_with(expected), "{error}\nand not\n{expected}");
            assert!(error.len() < 150, "{error}");
            for name in ["struct", "enum ", "u64", "Outer", "Inner", "Way", "line 1"] {
                assert!(!error.replace("expected u64\"", "").contains(name), "{error}");
            }
        }
    }
}
