//! The record of the end of a session, as it is told to clients.

use serde_json::Value;

/// What a record says of what acpd saw of an agent's processes.
pub fn containment_here() -> &'static str {
    if cfg!(target_os = "linux") { "subreaper" } else { "group" }
}

/// A record without what differs from run to run, which must be there, and from system to system.
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
    // What is seen depends on the system, and on whether there was a process.
    if let Some(containment) = fields.remove("containment") {
        assert_eq!(containment, containment_here());
    }
    assert!(fields.remove("lastEventSeq").as_ref().and_then(Value::as_u64) >= Some(2));
    info
}
