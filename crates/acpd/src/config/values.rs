//! Single values of the file: one visitor for all of them, and those with a form of their own: names, commands,
//! addresses, token hashes, lists. What is wrong is said with what to write instead.

use std::collections::BTreeMap;
use std::fmt;
use std::net::SocketAddr;
use std::num::NonZeroU32;
use std::path::PathBuf;

use data_encoding::HEXLOWER_PERMISSIVE;
use serde::Deserialize;
use serde::de::value::SeqAccessDeserializer;
use serde::de::{Deserializer, Error, SeqAccess, Unexpected, Visitor};

use super::sections::{TokenHash, Variables};
use crate::address::is_host_and_port;

/// The longest agent or token name, in bytes.
const LONGEST_NAME: usize = 64;
const ADDRESS: &str = r#"an address and port such as "127.0.0.1:2273""#;

/// A value as it stands there.
pub(super) enum Written<'a> {
    Text(&'a str),
    Number(i128),
}

/// Why a value is not taken.
pub(super) enum Wrong {
    /// It is a text where a number has to be, or the other way round.
    Kind,
    Value(String),
}

struct Reading<F> {
    expected: &'static str,
    read: F,
}

impl<T, F: FnOnce(Written<'_>) -> Result<T, Wrong>> Reading<F> {
    fn take<E: Error>(self, written: Written<'_>, found: Unexpected<'_>) -> Result<T, E> {
        (self.read)(written).map_err(|wrong| match wrong {
            Wrong::Kind => E::invalid_type(found, &self.expected),
            Wrong::Value(message) => E::custom(message),
        })
    }
}

impl<T, F: FnOnce(Written<'_>) -> Result<T, Wrong>> Visitor<'_> for Reading<F> {
    type Value = T;

    fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(self.expected)
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<T, E> {
        self.take(Written::Text(text), Unexpected::Str(text))
    }

    fn visit_i64<E: Error>(self, number: i64) -> Result<T, E> {
        self.take(Written::Number(number.into()), Unexpected::Signed(number))
    }

    fn visit_u64<E: Error>(self, number: u64) -> Result<T, E> {
        self.take(Written::Number(number.into()), Unexpected::Unsigned(number))
    }
}

/// Reads a value; `expected` says what has to be there.
pub(super) fn written<'de, D: Deserializer<'de>, T>(
    from: D,
    expected: &'static str,
    read: impl FnOnce(Written<'_>) -> Result<T, Wrong>,
) -> Result<T, D::Error> {
    from.deserialize_any(Reading { expected, read })
}

/// Reads a text.
pub(super) fn text<'de, D: Deserializer<'de>, T>(
    from: D,
    expected: &'static str,
    read: impl FnOnce(&str) -> Result<T, String>,
) -> Result<T, D::Error> {
    written(from, expected, |written| match written {
        Written::Text(text) => read(text).map_err(Wrong::Value),
        Written::Number(_) => Err(Wrong::Kind),
    })
}

/// Reads the name of an agent or a token: it stands in URLs, on command lines and in file names, so its form is narrow.
///
/// # Errors
/// What a name has to look like.
pub fn agent_name(name: &str) -> Result<String, String> {
    if name.is_empty() || name.len() > LONGEST_NAME {
        return Err(format!("a name has 1 to {LONGEST_NAME} characters"));
    }
    let first = name.starts_with(|c: char| c.is_ascii_alphanumeric());
    match first && name.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-')) {
        true => Ok(name.to_owned()),
        false => Err(format!(
            "\"{}\" is not a name: use letters, digits, \".\", \"_\" and \"-\", and begin with a letter or digit",
            name.escape_debug()
        )),
    }
}

/// The value of `--listen`, or of `listen`; `localhost` is the only host name, because names resolve differently from
/// day to day.
///
/// # Errors
/// When it is not an address and port.
pub fn listen_address(text: &str) -> Result<SocketAddr, String> {
    let address = match text.strip_prefix("localhost:") {
        Some(port) => port.parse().ok().map(|port: u16| SocketAddr::from(([127, 0, 0, 1], port))),
        None => text.parse().ok(),
    };
    address.ok_or_else(|| format!("not {ADDRESS}"))
}

/// A text that a program can be given.
fn argument_text(text: &str) -> Result<String, String> {
    match text.contains('\0') {
        true => Err("must not contain a NUL character; no program can be given one".to_owned()),
        false => Ok(text.to_owned()),
    }
}

/// The same, and not empty; `instead` says what to do.
fn filled(text: &str, instead: &str) -> Result<String, String> {
    match text.trim().is_empty() {
        true => Err(format!("must not be empty; {instead}")),
        false => argument_text(text),
    }
}

/// Keys of tables and parts of lists, so that an error points at the one that is wrong.
#[derive(PartialEq, Eq, PartialOrd, Ord, Deserialize)]
struct Name(#[serde(deserialize_with = "name")] String);

#[derive(PartialEq, Eq, PartialOrd, Ord, Deserialize)]
struct VariableName(#[serde(deserialize_with = "variable_name")] String);

#[derive(Deserialize)]
struct Argument(#[serde(deserialize_with = "argument")] String);

pub(super) fn name<'de, D: Deserializer<'de>>(from: D) -> Result<String, D::Error> {
    text(from, "a name", agent_name)
}

fn variable_name<'de, D: Deserializer<'de>>(from: D) -> Result<String, D::Error> {
    text(from, "the name of an environment variable", |text| {
        match text.is_empty() || text.contains(['=', '\0']) {
            true => {
                Err("the name of an environment variable must not be empty or contain \"=\" or NUL"
                    .to_owned())
            }
            false => Ok(text.to_owned()),
        }
    })
}

fn argument<'de, D: Deserializer<'de>>(from: D) -> Result<String, D::Error> {
    text(from, "a string", argument_text)
}

/// A table whose keys are names.
pub(super) fn named<'de, D, V>(from: D) -> Result<BTreeMap<String, V>, D::Error>
where
    D: Deserializer<'de>,
    V: Deserialize<'de>,
{
    Ok(BTreeMap::<Name, V>::deserialize(from)?.into_iter().map(|(Name(name), value)| (name, value)).collect())
}

pub(super) fn variables<'de, D: Deserializer<'de>>(from: D) -> Result<Variables, D::Error> {
    let table = BTreeMap::<VariableName, Argument>::deserialize(from)?.into_iter();
    Ok(Variables(table.map(|(VariableName(name), Argument(value))| (name, value)).collect()))
}

pub(super) fn arguments<'de, D: Deserializer<'de>>(from: D) -> Result<Vec<String>, D::Error> {
    Ok(Vec::<Argument>::deserialize(from)?.into_iter().map(|Argument(text)| text).collect())
}

pub(super) fn command<'de, D: Deserializer<'de>>(from: D) -> Result<String, D::Error> {
    text(from, "the name or path of a program", |text| filled(text, "write the name or path of a program"))
}

pub(super) fn path<'de, D: Deserializer<'de>>(from: D) -> Result<PathBuf, D::Error> {
    let instead = "leave the key out for the default state directory";
    Ok(text(from, "the path of a directory", |text| filled(text, instead))?.into())
}

pub(super) fn file<'de, D: Deserializer<'de>>(from: D) -> Result<Option<PathBuf>, D::Error> {
    Ok(Some(text(from, "the path of a file", |text| filled(text, "leave the key out for none"))?.into()))
}

pub(super) fn address<'de, D: Deserializer<'de>>(from: D) -> Result<SocketAddr, D::Error> {
    text(from, ADDRESS, |text| {
        listen_address(text).map_err(|wrong| format!("\"{}\" is {wrong}", text.escape_debug()))
    })
}

/// The text is not repeated: it may be the token itself, put here by mistake.
pub(super) fn hash<'de, D: Deserializer<'de>>(from: D) -> Result<TokenHash, D::Error> {
    text(from, r#""sha256:" and 64 hexadecimal digits"#, |text| {
        let digits =
            text.strip_prefix("sha256:").and_then(|hex| HEXLOWER_PERMISSIVE.decode(hex.as_bytes()).ok());
        let hash = digits.and_then(|bytes| bytes.try_into().ok()).map(TokenHash);
        hash.ok_or_else(|| {
            "must be \"sha256:\" and the 64 hexadecimal digits of the token's SHA-256".to_owned()
        })
    })
}

/// A number of things, at least 1; for what may be unlimited.
pub(super) fn some_count<'de, D: Deserializer<'de>>(from: D) -> Result<Option<NonZeroU32>, D::Error> {
    count(from).map(Some)
}

/// A number of things, at least 1.
pub(super) fn count<'de, D: Deserializer<'de>>(from: D) -> Result<NonZeroU32, D::Error> {
    written(from, "a whole number of at least 1", |written| {
        let number = match written {
            Written::Number(number) => number,
            Written::Text(text) => text
                .parse::<u64>()
                .map(i128::from)
                .map_err(|_| Wrong::Value(format!("\"{}\" is not a whole number", text.escape_debug())))?,
        };
        let count = u32::try_from(number).ok().and_then(NonZeroU32::new);
        count.ok_or_else(|| Wrong::Value(format!("{number} is out of range; allowed are 1 to {}", u32::MAX)))
    })
}

/// More than one spare process could only be of use to sessions that begin in the same moment.
pub(super) fn spare<'de, D: Deserializer<'de>>(from: D) -> Result<u8, D::Error> {
    let count = i64::deserialize(from)?;
    let spare = u8::try_from(count).ok().filter(|count| *count < 2);
    spare.ok_or_else(|| D::Error::custom(format_args!("{count} is out of range; allowed are 0 and 1")))
}

/// Names that acpd may be called by.
pub(super) fn hosts<'de, D: Deserializer<'de>>(from: D) -> Result<Vec<String>, D::Error> {
    let is_host = |host: &str| !host.is_empty() && !host.contains(['/', '@', ' ']);
    let instead = "a host name; write the name alone, such as \"acpd.example.org\"";
    list(from, "a list of host names", is_host, instead)
}

/// Origins of pages.
pub(super) fn origins<'de, D: Deserializer<'de>>(from: D) -> Result<Vec<String>, D::Error> {
    let is_origin = |origin: &str| {
        let rest = origin.strip_prefix("http://").or_else(|| origin.strip_prefix("https://"));
        rest.is_some_and(|rest| !rest.contains('*') && is_host_and_port(rest))
    };
    let instead = "an origin; write scheme, host and port, such as \"https://acpd.example.org\"";
    list(from, "a list of origins", is_origin, instead)
}

/// What a node has.
pub(super) fn labels<'de, D: Deserializer<'de>>(from: D) -> Result<Vec<String>, D::Error> {
    let instead = "a label; use letters, digits, \".\", \"_\" and \"-\", such as \"gpu\"";
    list(from, "a list of labels", |label| agent_name(label).is_ok(), instead)
}

fn list<'de, D: Deserializer<'de>>(
    from: D,
    expected: &'static str,
    is_fine: impl Fn(&str) -> bool,
    instead: &str,
) -> Result<Vec<String>, D::Error> {
    let list = from.deserialize_any(List(expected))?;
    match list.iter().find(|part| !is_fine(part)) {
        Some(wrong) => Err(D::Error::custom(format_args!("\"{}\" is not {instead}", wrong.escape_debug()))),
        None => Ok(list),
    }
}

/// Texts in an array, or in one text with commas between them, for variables.
struct List(&'static str);

impl<'de> Visitor<'de> for List {
    type Value = Vec<String>;

    fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(self.0)
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<Vec<String>, E> {
        Ok(text.split(',').map(|part| part.trim().to_owned()).collect())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, parts: A) -> Result<Vec<String>, A::Error> {
        Vec::deserialize(SeqAccessDeserializer::new(parts))
    }
}
