//! Fresh ids, and the numbers of requests.

use acpd_record::SessionId;
use sha2::{Digest, Sha256};

/// A fresh id for a session. Time-ordered, so that new sessions sit together in the index.
pub(crate) fn fresh_session_id() -> SessionId {
    SessionId::parse(&fresh_id()).expect("it is made of hexadecimal digits and dashes")
}

/// The id of the session that is created under a token, or none, and a client's key.
pub(crate) fn keyed_session_id(token: Option<&str>, key: &str) -> SessionId {
    let mut hash = Sha256::new_with_prefix("acpd session\0");
    match token {
        Some(token) => hash.update(format!("token\0{token}\0")),
        None => hash.update("none\0"),
    }
    hash.update(key);
    let mut bytes = [0; 16];
    bytes.copy_from_slice(&hash.finalize()[..16]);
    if let Some(time) = time_of(key) {
        bytes[..time.len()].copy_from_slice(&time);
    }
    let id = uuid::Builder::from_custom_bytes(bytes).into_uuid();
    SessionId::parse(&id.to_string()).expect("it is made of hexadecimal digits and dashes")
}

/// The milliseconds since 1970 of a key that begins with a time-ordered UUID and a dash: its session sits among those of its
/// time, as others do.
fn time_of(key: &str) -> Option<[u8; 6]> {
    let (id, _more) = key.split_at_checked(36).filter(|(_, more)| more.starts_with('-'))?;
    let id = uuid::Uuid::try_parse(id).ok().filter(|id| id.get_version_num() == 7)?;
    id.as_bytes().first_chunk().copied()
}

/// An id that nothing else has, in this process or another.
pub fn fresh_id() -> String {
    uuid::Uuid::now_v7().to_string()
}

/// Names a request of a client to its session, so that it can be withdrawn.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ClientRequest(pub(crate) u64);

impl ClientRequest {
    /// One whose connection was lost with an earlier host.
    pub(crate) const LOST: Self = Self(u64::MAX);
}

#[cfg(test)]
mod tests {
    use super::*;

    // contract 7.3: the same token and key are the same session, and no others are
    #[test]
    fn a_key_names_one_session() {
        let all = [
            keyed_session_id(None, "k"),
            keyed_session_id(Some(""), "k"),
            keyed_session_id(Some("a"), "k"),
            keyed_session_id(Some("a"), "l"),
            keyed_session_id(Some("a\0k"), ""),
        ];
        for (place, id) in all.iter().enumerate() {
            assert!(!all[..place].contains(id), "{id}");
        }
        assert_eq!(keyed_session_id(Some("a"), "k"), all[2]);
        let timed = keyed_session_id(None, "01a20934-cb28-7101-a5ea-c82cf84c6b4f-x");
        assert_eq!(&timed.as_str()[..15], "01a20934-cb28-8");
        assert_ne!(timed, keyed_session_id(None, "01a20934-cb28-7101-a5ea-c82cf84c6b4f-y"));
        // It is the same in every version: the log of an earlier one has it.
        assert_eq!(all[2].as_str(), "69088480-1591-8910-8fe8-59991be97cf4");
    }
}
