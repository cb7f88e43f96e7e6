//! JSON in a form that every reader takes, for readers that make values of it.
//!
//! The grammar bounds neither numbers nor nesting, so a line can be routed and recorded that serde_json refuses to make a value
//! of. Such a line is told apart only once it was refused: reading costs the others nothing. Not here: what is passed on, which
//! stays as it came.

use super::reader::{Invalid, Reader};
use crate::raw::repair_halves;
use crate::splice::splice;
use serde::de::DeserializeOwned;
use serde_json::Value;
use std::borrow::Cow;
use std::ops::Range;

/// Objects and arrays within one another that are kept; serde_json takes 127, and what is read may become part of another
/// value.
const LEVELS: usize = 100;

/// A part of a text, and what stands there instead.
type Edit = (Range<usize>, Vec<u8>);

/// The same JSON in a form that every reader takes: a number out of the range of a double becomes its text as a string, an
/// object or array that has 100 others around it becomes null, and half of a surrogate pair becomes U+FFFD. Borrowed when
/// nothing has to change, and when it is no JSON.
pub fn readable(json: &[u8]) -> Cow<'_, [u8]> {
    let Ok((edits, has_halves)) = edits(json) else { return Cow::Borrowed(json) };
    if edits.is_empty() && !has_halves {
        return Cow::Borrowed(json);
    }
    let repaired = if has_halves { Cow::Owned(repair_halves(json, None)) } else { Cow::Borrowed(json) };
    let edits: Vec<(Range<usize>, &[u8])> =
        edits.iter().map(|(span, new)| (span.clone(), new.as_slice())).collect();
    let mut form = Vec::with_capacity(json.len());
    splice(&mut form, &repaired, &edits);
    Cow::Owned(form)
}

/// Reads JSON of agents and clients as a type that has values in it: as it is, or if it is refused so, in its
/// [`readable`] form.
///
/// # Errors
/// When it is no JSON, or not of the type in that form either.
pub fn read<T: DeserializeOwned>(json: &[u8]) -> serde_json::Result<T> {
    serde_json::from_slice(json).or_else(|error| match readable(json) {
        Cow::Owned(form) => serde_json::from_slice(&form),
        Cow::Borrowed(_) => Err(error),
    })
}

/// Reads JSON of agents and clients as a value, as [`read`] does; null when it is none.
pub fn value(json: &[u8]) -> Value {
    read(json).unwrap_or_default()
}

/// What has to change, and whether there are halves of surrogate pairs.
fn edits(json: &[u8]) -> Result<(Vec<Edit>, bool), Invalid> {
    let mut all = Reader::new(json);
    all.skip_space();
    all.value()?;
    all.end()?;
    // From here on each token is known to be whole.
    let (mut edits, mut depth, mut reader) = (Vec::new(), 0, Reader::new(json));
    loop {
        match reader.skip_space() {
            0 => return Ok((edits, all.has_halves())),
            b'"' => drop(reader.string()?),
            b'{' | b'[' if depth == LEVELS => {
                let start = reader.position();
                reader.value()?;
                edits.push((start..reader.position(), b"null".to_vec()));
            }
            b'-' | b'0'..=b'9' => {
                let start = reader.position();
                reader.number()?;
                let span = start..reader.position();
                let text = &json[span.clone()];
                if serde_json::from_slice::<f64>(text).is_err() {
                    edits.push((span, [b"\"", text, b"\""].concat()));
                }
            }
            byte => {
                match byte {
                    b'{' | b'[' => depth += 1,
                    b'}' | b']' => depth -= 1,
                    _ => {}
                }
                reader.step();
            }
        }
    }
}

#[cfg(test)]
mod tests;
