//! What a front end puts into messages, and takes out of them. Pure; everything else in a line stays as it is.

use acpd_host::META;
use acpd_wire::{Message, member, put_member, span_of, splice, take_member};
use bytes::{Bytes, BytesMut};
use serde_json::value::RawValue;

/// A member of acpd's own in an object of ACP.
pub(super) fn own<'a>(object: Option<&'a RawValue>, name: &str) -> Option<&'a RawValue> {
    member(member(member(object?, "_meta")?, META)?, name).filter(|own| own.get() != "null")
}

/// The text of a member.
pub(super) fn text(object: Option<&RawValue>, name: &str) -> Option<String> {
    serde_json::from_str(member(object?, name)?.get()).ok()
}

/// The line with a member of `part`, its params or result, as it is.
pub(super) fn with(line: Bytes, part: &str, path: &[&str], value: &str) -> Bytes {
    let raw: Option<&RawValue> = serde_json::from_slice(&line).ok();
    let object = raw.and_then(|raw| member(raw, part));
    let Some((span, new)) = object.and_then(|object| put_member(&line, object, path, value)) else {
        return line;
    };
    let mut out = BytesMut::with_capacity(line.len() + new.len());
    splice(&mut out, &line, &[(span, &new)]);
    out.freeze()
}

/// What stands at the place in `part` of the line, its params or result, and the line without it.
pub(super) fn without(line: &[u8], part: Option<&RawValue>, path: &[&str]) -> Option<(String, Bytes)> {
    let (value, cut) = take_member(line, part?, path)?;
    let mut out = BytesMut::with_capacity(line.len());
    splice(&mut out, line, &[(cut, b"")]);
    Some((value.get().to_owned(), out.freeze()))
}

/// The line with another id: that of the message itself, or the `requestId` that it is about.
pub(super) fn with_id(line: &[u8], id: u64) -> Bytes {
    let place = match Message::parse(line) {
        Ok(Message::Request { id, .. } | Message::Response { id: Some(id), .. }) => {
            span_of(line, id.as_value())
        }
        Ok(Message::Notification { params: Some(params), .. }) => {
            member(params, "requestId").and_then(|id| span_of(line, id))
        }
        _ => None,
    };
    let mut out = BytesMut::with_capacity(line.len() + 8);
    match place {
        Some(span) => splice(&mut out, line, &[(span, id.to_string().as_bytes())]),
        None => out.extend_from_slice(line),
    }
    out.freeze()
}
