//! Names and strings with a form of their own: agent names, variable names, commands, addresses, token hashes.

use std::collections::BTreeMap;
use std::fmt;
use std::net::SocketAddr;
use std::path::PathBuf;

use serde::Deserialize;
use serde::de::{Deserializer, Error, Visitor};
use thiserror::Error as ThisError;

use super::sections::{Agent, TokenHash};

/// The longest agent or token name, in bytes.
const LONGEST_NAME: usize = 64;

/// Why a text cannot name an agent.
#[derive(Debug, Clone, PartialEq, Eq, ThisError)]
pub enum NameError {
    /// No character at all, or more than 64.
    #[error("a name has 1 to {LONGEST_NAME} characters")]
    Length,
    /// A character outside `A-Z a-z 0-9 . _ -`, or a first one that is not a letter or digit.
    #[error(
        "\"{name}\" is not a name: use letters, digits, \".\", \"_\" and \"-\", and begin with a letter or digit"
    )]
    Characters {
        /// What was written, escaped.
        name: String,
    },
}

/// Checks an agent's name: it stands in URLs, on command lines and in file names, so its form is narrow.
pub fn check_agent_name(name: &str) -> Result<(), NameError> {
    if name.is_empty() || name.len() > LONGEST_NAME {
        return Err(NameError::Length);
    }
    let first = name.starts_with(|c: char| c.is_ascii_alphanumeric());
    if first && name.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-')) {
        return Ok(());
    }
    Err(NameError::Characters { name: name.escape_debug().to_string() })
}

/// A table whose keys are names; the check runs on the key, so the error points at the key.
pub(super) fn named<'de, D, V>(from: D) -> Result<BTreeMap<String, V>, D::Error>
where
    D: Deserializer<'de>,
    V: Deserialize<'de>,
{
    let table = BTreeMap::<Checked<AgentNameForm>, V>::deserialize(from)?;
    Ok(table.into_iter().map(|(name, value)| (name.text, value)).collect())
}

pub(super) fn name<'de, D: Deserializer<'de>>(from: D) -> Result<String, D::Error> {
    Ok(Checked::<AgentNameForm>::deserialize(from)?.text)
}

pub(super) fn command<'de, D: Deserializer<'de>>(from: D) -> Result<String, D::Error> {
    Ok(Checked::<CommandForm>::deserialize(from)?.text)
}

pub(super) fn arguments<'de, D: Deserializer<'de>>(from: D) -> Result<Vec<String>, D::Error> {
    let arguments = Vec::<Checked<ArgumentForm>>::deserialize(from)?;
    Ok(arguments.into_iter().map(|argument| argument.text).collect())
}

pub(super) fn variables<'de, D: Deserializer<'de>>(from: D) -> Result<BTreeMap<String, String>, D::Error> {
    let table = BTreeMap::<Checked<VariableForm>, Checked<ArgumentForm>>::deserialize(from)?;
    Ok(table.into_iter().map(|(name, value)| (name.text, value.text)).collect())
}

pub(super) fn path<'de, D: Deserializer<'de>>(from: D) -> Result<PathBuf, D::Error> {
    Ok(Checked::<PathForm>::deserialize(from)?.text.into())
}

pub(super) fn file<'de, D: Deserializer<'de>>(from: D) -> Result<Option<PathBuf>, D::Error> {
    Ok(Some(Checked::<FileForm>::deserialize(from)?.text.into()))
}

pub(super) fn address<'de, D: Deserializer<'de>>(from: D) -> Result<SocketAddr, D::Error> {
    let text = Checked::<AddressForm>::deserialize(from)?.text;
    read_address(&text).ok_or_else(|| D::Error::custom("not an address"))
}

/// The value of `--listen`.
///
/// # Errors
/// When it is not an address and port.
pub fn read_listen_address(text: &str) -> Result<SocketAddr, String> {
    read_address(text).ok_or_else(|| format!("not {}", AddressForm::EXPECTED))
}

/// An address and port; `localhost` is the only host name, because names resolve differently from day to day.
fn read_address(text: &str) -> Option<SocketAddr> {
    match text.strip_prefix("localhost:") {
        Some(port) => port.parse().ok().map(|port: u16| SocketAddr::from(([127, 0, 0, 1], port))),
        None => text.parse().ok(),
    }
}

/// What a string must look like, and how to say so. The text itself is repeated only if it cannot be a secret.
trait Form {
    const EXPECTED: &'static str;
    fn check(text: &str) -> Result<(), String>;
}

/// A string that has its form.
struct Checked<F> {
    text: String,
    form: std::marker::PhantomData<F>,
}

impl<F> PartialEq for Checked<F> {
    fn eq(&self, other: &Self) -> bool {
        self.text == other.text
    }
}

impl<F> Eq for Checked<F> {}

impl<F> PartialOrd for Checked<F> {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl<F> Ord for Checked<F> {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        self.text.cmp(&other.text)
    }
}

impl<'de, F: Form> Deserialize<'de> for Checked<F> {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        from.deserialize_str(FormVisitor(std::marker::PhantomData))
    }
}

struct FormVisitor<F>(std::marker::PhantomData<F>);

impl<F: Form> Visitor<'_> for FormVisitor<F> {
    type Value = Checked<F>;

    fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(F::EXPECTED)
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<Checked<F>, E> {
        F::check(text).map_err(E::custom)?;
        Ok(Checked { text: text.to_owned(), form: self.0 })
    }
}

struct AgentNameForm;

impl Form for AgentNameForm {
    const EXPECTED: &'static str = "a name";
    fn check(text: &str) -> Result<(), String> {
        check_agent_name(text).map_err(|error| error.to_string())
    }
}

struct CommandForm;

impl Form for CommandForm {
    const EXPECTED: &'static str = "the name or path of a program";
    fn check(text: &str) -> Result<(), String> {
        if text.trim().is_empty() {
            return Err("must not be empty; write the name or path of a program".to_owned());
        }
        ArgumentForm::check(text)
    }
}

struct ArgumentForm;

impl Form for ArgumentForm {
    const EXPECTED: &'static str = "a string";
    fn check(text: &str) -> Result<(), String> {
        if text.contains('\0') {
            return Err("must not contain a NUL character; no program can be given one".to_owned());
        }
        Ok(())
    }
}

struct VariableForm;

impl Form for VariableForm {
    const EXPECTED: &'static str = "the name of an environment variable";
    fn check(text: &str) -> Result<(), String> {
        if text.is_empty() || text.contains(['=', '\0']) {
            return Err(
                "the name of an environment variable must not be empty or contain \"=\" or NUL".to_owned()
            );
        }
        Ok(())
    }
}

struct PathForm;

impl Form for PathForm {
    const EXPECTED: &'static str = "the path of a directory";
    fn check(text: &str) -> Result<(), String> {
        if text.is_empty() {
            return Err("must not be empty; leave the key out for the default state directory".to_owned());
        }
        ArgumentForm::check(text)
    }
}

struct FileForm;

impl Form for FileForm {
    const EXPECTED: &'static str = "the path of a file";
    fn check(text: &str) -> Result<(), String> {
        if text.is_empty() {
            return Err("must not be empty; leave the key out for none".to_owned());
        }
        ArgumentForm::check(text)
    }
}

struct AddressForm;

impl Form for AddressForm {
    const EXPECTED: &'static str = r#"an address and port such as "127.0.0.1:2273""#;
    fn check(text: &str) -> Result<(), String> {
        match read_address(text) {
            Some(_) => Ok(()),
            None => Err(format!("\"{}\" is not {}", text.escape_debug(), Self::EXPECTED)),
        }
    }
}

impl<'de> Deserialize<'de> for TokenHash {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        struct HashVisitor;
        impl Visitor<'_> for HashVisitor {
            type Value = TokenHash;

            fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
                out.write_str(r#""sha256:" and 64 hexadecimal digits"#)
            }

            // The text is not repeated: it may be the token itself, put here by mistake.
            fn visit_str<E: Error>(self, text: &str) -> Result<TokenHash, E> {
                read_hash(text).ok_or_else(|| {
                    E::custom("must be \"sha256:\" and the 64 hexadecimal digits of the token's SHA-256")
                })
            }
        }
        from.deserialize_str(HashVisitor)
    }
}

fn read_hash(text: &str) -> Option<TokenHash> {
    let digits = text.strip_prefix("sha256:")?.as_bytes();
    if digits.len() != 64 {
        return None;
    }
    let mut hash = [0; 32];
    for (byte, pair) in hash.iter_mut().zip(digits.chunks_exact(2)) {
        let nibble = |digit: u8| char::from(digit).to_digit(16);
        *byte = u8::try_from(nibble(pair[0])? * 16 + nibble(pair[1])?).ok()?;
    }
    Some(TokenHash(hash))
}

impl fmt::Debug for TokenHash {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("TokenHash(..)")
    }
}

/// The values of `env` are often keys to an account; only the names may reach a log.
impl fmt::Debug for Agent {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("Agent")
            .field("command", &self.command)
            .field("args", &self.args)
            .field("env", &self.env.keys())
            .field("share_process", &self.share_process)
            .field("permission_mode", &self.permission_mode)
            .field("spare", &self.spare)
            .field("resume_with_transcript", &self.resume_with_transcript)
            .field("stderr_log", &self.stderr_log)
            .field("control_daemon", &self.control_daemon)
            .field("files", &self.files)
            .field("terminals", &self.terminals)
            .finish()
    }
}
