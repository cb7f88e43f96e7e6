//! The record of the end of a session, as it is told to clients.

use serde_json::Value;

/// A record without what differs from run to run, which must be there.
///
/// # Panics
/// When it is not.
pub fn timeless(mut info: Value) -> Value {
    let fields = info.as_object_mut().expect("a record is an object");
    for time in ["endedAt", "startedAt"] {
        let value = fields.remove(time).unwrap_or_default();
        let text = value.as_str().unwrap_or_default();
        assert!(text.len() == 24 && text.ends_with('Z'), "{time}: {value}");
    }
    assert!(fields.remove("lastEventSeq").as_ref().and_then(Value::as_u64) >= Some(2));
    info
}
