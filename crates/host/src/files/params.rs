//! What a request for a file says. An error names the field (FS-1).

use super::FileError;
use serde::Deserialize;
use serde_json::Number;
use serde_json::value::RawValue;

/// The longest path that a system takes, in bytes; also bounds what an error repeats.
const LONGEST_PATH: usize = 4096;

/// `fs/read_text_file`.
#[derive(Debug)]
pub(super) struct ReadRequest {
    /// Absolute.
    pub(super) path: String,
    /// From 1; 0 counts as 1.
    pub(super) line: Option<u64>,
    /// At most so many lines.
    pub(super) limit: Option<u64>,
}

/// `fs/write_text_file`.
#[derive(Debug)]
pub(super) struct WriteRequest {
    /// Absolute.
    pub(super) path: String,
    /// All that the file will hold.
    pub(super) content: String,
}

#[derive(Deserialize)]
struct Fields<'a> {
    #[serde(borrow)]
    path: Option<&'a RawValue>,
    #[serde(borrow)]
    line: Option<&'a RawValue>,
    #[serde(borrow)]
    limit: Option<&'a RawValue>,
    #[serde(borrow)]
    content: Option<&'a RawValue>,
}

impl ReadRequest {
    pub(super) fn parse(params: &[u8]) -> Result<Self, FileError> {
        let fields = fields(params)?;
        let path = path(fields.path)?;
        Ok(Self { path, line: count("line", fields.line)?, limit: count("limit", fields.limit)? })
    }
}

impl WriteRequest {
    pub(super) fn parse(params: &[u8]) -> Result<Self, FileError> {
        let fields = fields(params)?;
        Ok(Self { path: path(fields.path)?, content: text("content", fields.content)? })
    }
}

fn invalid(field: &'static str, problem: impl Into<String>) -> FileError {
    FileError::InvalidParams { field, problem: problem.into() }
}

fn fields(params: &[u8]) -> Result<Fields<'_>, FileError> {
    serde_json::from_slice(params).map_err(|error| invalid("params", error.to_string()))
}

fn text(field: &'static str, raw: Option<&RawValue>) -> Result<String, FileError> {
    let raw = raw.ok_or_else(|| invalid(field, "a string is required"))?;
    if !raw.get().starts_with('"') {
        return Err(invalid(field, "a string is required"));
    }
    // Half a surrogate pair is the one thing a JSON string can say and no text can hold.
    serde_json::from_str(raw.get()).map_err(|error| invalid(field, format!("not a text: {error}")))
}

fn path(raw: Option<&RawValue>) -> Result<String, FileError> {
    let path = text("path", raw)?;
    if path.len() > LONGEST_PATH {
        return Err(invalid("path", format!("longer than {LONGEST_PATH} bytes")));
    }
    if !path.starts_with('/') {
        return Err(invalid("path", format!("{path:?} is not absolute; give the full path")));
    }
    if path.contains('\0') {
        return Err(invalid("path", format!("{path:?} contains a NUL character; no file is called that")));
    }
    Ok(path)
}

/// A count of lines. Those beyond any file are as good as infinite.
fn count(field: &'static str, raw: Option<&RawValue>) -> Result<Option<u64>, FileError> {
    let Some(raw) = raw else { return Ok(None) };
    let number: Option<Number> = serde_json::from_str(raw.get()).ok();
    let whole = number.and_then(|number| {
        let large = || number.as_f64().filter(|number| *number >= 0.0 && number.fract() == 0.0);
        // The conversion saturates.
        number.as_u64().or_else(|| large().map(|number| number as u64))
    });
    match whole {
        Some(count) => Ok(Some(count)),
        None => Err(invalid(field, "a whole number, 0 or more, is required")),
    }
}
