//! Setting a session aside that another node of the fleet has taken up: this node's copy stays, as another session.
//!
//! What clients have seen here and the other node may not have is not lost: the copy gets a fresh id, in one commit, and a title that
//! says what it is; the id that it had is free for the other node's session. The agent's own id is the other node's now, so the copy
//! can go on with a transcript only. It stays on this node, whatever its policy was. Not here: who owns a session.

use crate::clock;
use crate::error::HostError;
use crate::host::Host;
use crate::ids::fresh_session_id;
use crate::journal;
use crate::session::EndRequest;
use acpd_eventlog::{Renamed, Unchanged};
use acpd_record::{LONGEST_TITLE, Partition, SessionId, SessionMeta, SetAside};

impl Host {
    /// Node `by` goes on with the session. One that is live here is ended by its ladder, with cause `superseded` and that node as
    /// who asked for it. Then what is stored of it here has another id, which comes back. A process that is killed meanwhile leaves
    /// the one id or the other. Done to its end though the caller may be gone.
    ///
    /// # Errors
    /// When there is no such session here, or not any more; when another process on the state directory has it, or its log cannot be
    /// written. It has its id then.
    pub async fn set_aside(&self, session: &SessionId, by: &str) -> Result<SessionId, HostError> {
        let (host, session, by) = (self.clone(), session.clone(), by.to_owned());
        self.complete(async move { host.end_and_rename(&session, &by).await }).await
    }

    async fn end_and_rename(&self, id: &SessionId, by: &str) -> Result<SessionId, HostError> {
        let store = &self.shared.store;
        loop {
            self.end_session(id, EndRequest::Supersede, by).await?;
            // It is not taken up until it has its other id.
            let _no_attempt = self.shared.sessions.attempts.stop(id).await;
            let row = store.row(id).await?;
            let seen = Unchanged { last_seq: row.last_seq, updated_ms: row.updated_ms };
            let copy = fresh_session_id();
            let renamed = renamed(SessionMeta::read(&row.info), id, (&copy, by), clock::now_ms());
            // Else it was taken up a moment before, here or in another process, and is ended again.
            if !self.is_live(id) && store.log.rename(id.as_str(), store.host_file.id(), seen, renamed).await?
            {
                store.unsearched.note(&copy, row.last_seq);
                journal::set_aside(id, &copy, by);
                return Ok(copy);
            }
        }
    }
}

/// What the copy is.
fn renamed(mut meta: SessionMeta, id: &SessionId, (copy, by): (&SessionId, &str), at_ms: i64) -> Renamed {
    let known_as = meta.title.take().or_else(|| meta.tally.first_prompt.as_deref().map(str::to_owned));
    meta.title = Some(title(known_as.as_deref(), by));
    meta.set_aside = Some(SetAside { id: id.clone(), by: by.to_owned() });
    (meta.native_session_id, meta.partition) = (None, Partition::Local);
    Renamed { id: copy.to_string(), info: meta.write(), at_ms }
}

fn title(known_as: Option<&str>, by: &str) -> String {
    let Some(known_as) = known_as else { return format!("until {by} took it up") };
    let why = format!(" (until {by} took it up)");
    let room = LONGEST_TITLE.saturating_sub(why.chars().count());
    match known_as.chars().count() > room {
        true => known_as.chars().take(room.saturating_sub(1)).chain(['…']).collect::<String>() + &why,
        false => format!("{known_as}{why}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use acpd_record::is_title;

    // design fleet, partition: the copy says what it is, and by whom the session was taken up
    #[test]
    fn the_title_says_what_it_is() {
        for (known_as, expected) in [
            (Some("Fix the parser"), "Fix the parser (until build-2 took it up)"),
            (None, "until build-2 took it up"),
        ] {
            assert_eq!(title(known_as, "build-2"), expected);
        }
        for length in [173, 174, 200, 5000] {
            let title = title(Some(&"ä".repeat(length)), "build-2");
            assert!(is_title(&title) && title.ends_with(" (until build-2 took it up)"), "{title}");
            assert_eq!(title.contains('…'), length > 173, "{title}");
        }
    }

    // design fleet, partition: the copy belongs to its node, and its agent's session to the other one
    #[test]
    fn the_copy_is_a_session_of_its_own() {
        let info = br#"{"nativeSessionId":"n","permissionMode":"deny","tally":{"firstPrompt":"hi"},"partition":"failover","later":1}"#;
        let id = |text: &str| SessionId::parse(text).expect("an id");
        let copy = renamed(SessionMeta::read(info), &id("old"), (&id("new"), "b"), 7);
        assert_eq!((&*copy.id, copy.at_ms), ("new", 7));
        let meta: serde_json::Value = serde_json::from_slice(&copy.info).expect("JSON");
        let expected = serde_json::json!({
            "permissionMode": "deny", "title": "hi (until b took it up)", "tally": {"firstPrompt": "hi"},
            "setAside": {"id": "old", "by": "b"}, "later": 1,
        });
        assert_eq!(meta, expected);
    }
}
