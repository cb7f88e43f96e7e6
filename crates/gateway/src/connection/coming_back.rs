//! A client that comes back when its connection was lost is the one that it was: its prompts are its own, and what it alone
//! was asked is put to it again.
//!
//! Its id follows from a secret that it chooses, so nothing need be kept, and another process knows it too.

use acpd_record::ConnectionId;
use data_encoding::HEXLOWER;
use sha2::{Digest, Sha256};
use std::sync::Arc;

/// The id of the connection of a client with this secret, under a token or none.
pub(super) fn connection_id(token: Option<&Arc<str>>, secret: &str) -> ConnectionId {
    let mut hash = Sha256::new_with_prefix("acpd connection\0");
    match token {
        Some(token) => hash.update(format!("token\0{token}\0")),
        None => hash.update("none\0"),
    }
    hash.update(secret);
    HEXLOWER.encode(&hash.finalize()[..16]).into()
}

#[cfg(test)]
mod tests {
    use super::*;

    // contract 7.3: the same token and secret are the same client, and no others are; nothing tells the secret
    #[test]
    fn a_secret_names_one_client() {
        let token = |name: &str| Some(Arc::from(name));
        let all = [
            connection_id(None, "s"),
            connection_id(token("").as_ref(), "s"),
            connection_id(token("a").as_ref(), "s"),
            connection_id(token("a").as_ref(), "t"),
        ];
        for (place, id) in all.iter().enumerate() {
            assert!(!all[..place].contains(id), "{id}");
        }
        // It is the same in every version: the log of an earlier one has it.
        assert_eq!(connection_id(token("a").as_ref(), "s"), all[2]);
        assert_eq!(all[2].as_str(), "df0f62f17e9b6a8ff950405b00d17e7e");
    }
}
