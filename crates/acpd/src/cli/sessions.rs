//! What can be typed behind `acpd sessions` to do something with sessions.

use super::run::permission_modes;
use super::{One, Which};
use crate::config::{PermissionMode, age, byte_count};
use acpd_host::ExportForm;
use clap::builder::{NonEmptyStringValueParser, PossibleValue, PossibleValuesParser, TypedValueParser};
use clap::{ArgGroup, Args};
use std::path::PathBuf;
use std::time::Duration;

/// Some sessions of a daemon.
#[derive(Debug, Clone, PartialEq, Args)]
pub struct Several {
    /// The sessions' ids, or ends or beginnings that no others have
    #[arg(value_name = "ID", required = true, value_parser = NonEmptyStringValueParser::new())]
    pub ids: Vec<String>,

    /// Print JSON, an object per session
    #[arg(long)]
    pub json: bool,

    /// The daemon.
    #[command(flatten)]
    pub which: Which,
}

/// `acpd sessions prompt`
#[derive(Debug, Clone, PartialEq, Args)]
pub struct SessionPrompt {
    /// Leave when the prompt is taken, and print its turn
    #[arg(long)]
    pub no_wait: bool,

    /// Which one, and how.
    #[command(flatten)]
    pub one: One,

    /// The prompt; several words are joined by spaces, and stdin is read behind them when it is not a terminal. `-`
    /// alone reads stdin only
    #[arg(value_name = "PROMPT")]
    pub prompt: Vec<String>,
}

/// `acpd sessions answer`
#[derive(Debug, Clone, PartialEq, Args)]
#[command(group(ArgGroup::new("answer").args(["option", "fields", "allow", "decline"])))]
pub struct Answer {
    /// Which one, and how.
    #[command(flatten)]
    pub one: One,

    /// The option, by its id, its name or a beginning of these; or yes, no, always
    #[arg(value_name = "OPTION", value_parser = NonEmptyStringValueParser::new())]
    pub option: Option<String>,

    /// The question, by its number; needed when more than one is open
    #[arg(long, value_name = "N")]
    pub question: Option<u64>,

    /// Fill in a field of a form; may be given several times
    #[arg(long = "field", value_name = "NAME=VALUE", value_parser = field)]
    pub fields: Vec<(String, String)>,

    /// Allow it once, or accept a form as it is
    #[arg(long)]
    pub allow: bool,

    /// Decline a form, or refuse a permission
    #[arg(long, visible_alias = "deny")]
    pub decline: bool,
}

/// `acpd sessions fork`
#[derive(Debug, Clone, PartialEq, Args)]
pub struct Fork {
    /// The directory that the new session works in; default: that of the session
    #[arg(short = 'C', long, value_name = "DIR")]
    pub cwd: Option<PathBuf>,

    /// Who answers when its agent asks for permission; default: as in the session
    #[arg(short, long, value_name = "MODE", value_parser = permission_modes())]
    pub permission_mode: Option<PermissionMode>,

    /// Which one, and how.
    #[command(flatten)]
    pub one: One,
}

/// `acpd sessions export`
#[derive(Debug, Clone, PartialEq, Args)]
pub struct Export {
    /// The sessions' ids, or ends or beginnings that no others have
    #[arg(value_name = "ID", required = true, value_parser = NonEmptyStringValueParser::new())]
    pub ids: Vec<String>,

    /// The form
    #[arg(long, value_name = "FORMAT", default_value = "jsonl", hide_default_value = true, value_parser = export_form())]
    pub format: ExportForm,

    /// With --format markdown: also what tool calls changed, and what they and terminals wrote
    #[arg(long)]
    pub details: bool,

    /// Write this file instead of stdout, once all of it is there
    #[arg(short, long, value_name = "FILE")]
    pub output: Option<PathBuf>,

    /// The daemon.
    #[command(flatten)]
    pub which: Which,
}

fn export_form() -> impl TypedValueParser<Value = ExportForm> {
    let forms = [("jsonl", "One event per line; can be imported"), ("markdown", "What was said, for people")];
    PossibleValuesParser::new(forms.map(|(name, help)| PossibleValue::new(name).help(help)))
        .try_map(|name| name.parse())
}

/// `acpd sessions prune`
#[derive(Debug, Clone, Default, PartialEq, Args)]
pub struct Prune {
    /// Those that have not changed for longer, such as 30d or 12h
    #[arg(long, value_name = "DURATION", value_parser = age)]
    pub older_than: Option<Duration>,

    /// The oldest ones, while the stored events of all sessions take more than this, such as 1GiB
    #[arg(long, value_name = "BYTES", value_parser = byte_count)]
    pub keep_bytes: Option<u64>,

    /// Show what would go, and remove nothing
    #[arg(long)]
    pub dry_run: bool,

    /// Print JSON: {"sessions": [...], "bytes": ...}
    #[arg(long)]
    pub json: bool,

    /// The daemon.
    #[command(flatten)]
    pub which: Which,
}

/// `acpd sessions import`
#[derive(Debug, Clone, PartialEq, Args)]
pub struct Import {
    /// The file, or `-` for stdin
    #[arg(value_name = "FILE")]
    pub file: PathBuf,

    /// Print JSON, an object per session
    #[arg(long)]
    pub json: bool,

    /// The daemon.
    #[command(flatten)]
    pub which: Which,
}

/// `NAME=VALUE`; a value may have more of `=`, and may be empty.
fn field(text: &str) -> Result<(String, String), &'static str> {
    match text.split_once('=') {
        Some((name, value)) if !name.is_empty() => Ok((name.to_owned(), value.to_owned())),
        _ => Err("NAME=VALUE is required, such as size=3"),
    }
}
