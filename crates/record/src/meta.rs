//! What the index knows of a session beside the columns of its row.

use crate::ids::{NativeSessionId, RunNumber, SessionId};
use crate::json::{self, Json, lenient, lenient_text};
use crate::keys::RequestKey;
use crate::partition::Partition;
use crate::permission_mode::PermissionMode;
use crate::projection::Projection;
use crate::snapshot::Glance;
use crate::tally::Tally;
use crate::termination::{Cause, TerminationInfo};
use crate::title;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use std::borrow::Cow;

/// What the index knows of a session. Members of a later version are kept.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct SessionMeta {
    /// The agent's own id of the session, of its last run; absent when the agent never named it.
    #[serde(default, deserialize_with = "lenient", skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(with = "Option<String>"))]
    pub native_session_id: Option<NativeSessionId>,
    /// The session whose history it began with.
    #[serde(default, deserialize_with = "lenient", skip_serializing_if = "Option::is_none")]
    pub forked_from: Option<SessionId>,
    /// How the agent's permission requests are answered, if a client chose.
    #[serde(default, deserialize_with = "lenient", skip_serializing_if = "Option::is_none")]
    pub permission_mode: Option<PermissionMode>,
    /// Its title: the one that a client chose, else the agent's, if it gave one.
    #[serde(default, deserialize_with = "title::stored", skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// The model that it works with, if its agent tells.
    #[serde(default, deserialize_with = "lenient", skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// The id of its mode, if its agent has modes.
    #[serde(default, deserialize_with = "lenient", skip_serializing_if = "Option::is_none")]
    pub mode: Option<String>,
    /// The client that created it.
    #[serde(default, deserialize_with = "lenient", skip_serializing_if = "Option::is_none")]
    pub client: Option<String>,
    /// The client's key for its creation, with a digest of what was asked for.
    #[serde(default, deserialize_with = "lenient", skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(skip))]
    pub created_under: Option<RequestKey>,
    /// Its runs so far.
    #[serde(default, deserialize_with = "lenient", skip_serializing_if = "Option::is_none")]
    pub runs: Option<RunNumber>,
    /// How its last run ended; absent while one is live.
    #[serde(default, deserialize_with = "json::stored", skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(with = "Option<TerminationInfo>"))]
    pub termination_info: Option<Json>,
    /// What it has used, how its last turn ended, and what its agent waits for.
    #[serde(default, deserialize_with = "lenient_text", skip_serializing_if = "Tally::is_empty")]
    #[cfg_attr(feature = "schema", schemars(skip))]
    pub tally: Tally,
    /// The host that its last run was lost with, or the mark of its process, as long as processes of it may live.
    #[serde(default, deserialize_with = "lenient", skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(skip))]
    pub lost_with: Option<String>,
    /// The end of its run that a client asked for, until that has come: the next host goes on with it.
    #[serde(default, deserialize_with = "lenient", skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(skip))]
    pub ending: Option<EndInProgress>,
    /// The keeper of the process that its run is on, if that can outlive its host.
    #[serde(default, deserialize_with = "lenient", skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(skip))]
    pub keeper: Option<KeeperAddress>,
    /// What becomes of it when its node is cut off.
    #[serde(default, deserialize_with = "lenient", skip_serializing_if = "Partition::is_local")]
    #[cfg_attr(feature = "schema", schemars(skip))]
    pub partition: Partition,
    /// It was imported.
    #[serde(default, deserialize_with = "lenient", skip_serializing_if = "is_false")]
    #[cfg_attr(feature = "schema", schemars(skip))]
    pub imported: bool,
    /// The event with which the import ended it, because it was live when it was exported.
    #[serde(default, deserialize_with = "lenient", skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(skip))]
    pub added_end: Option<u64>,
    /// What it was, until another node of the fleet took that up.
    #[serde(default, deserialize_with = "lenient", skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(skip))]
    pub set_aside: Option<SetAside>,
    #[serde(flatten)]
    #[cfg_attr(feature = "schema", schemars(skip))]
    unknown: Map<String, Value>,
}

/// An end that a client has asked for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct EndInProgress {
    /// The cause that its record will have.
    pub cause: Cause,
    /// The name of the client.
    pub by: String,
}

/// The session of which another one is a copy, on a node that does not have it any more.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SetAside {
    /// Its id, under which the other node goes on.
    pub id: SessionId,
    /// The other node.
    pub by: String,
}

/// Where the keeper of a process is found, and what it is told to be believed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct KeeperAddress {
    /// The mark of its program.
    pub mark: String,
    /// Known to the hosts of the state directory, and not to the agent.
    pub key: String,
    /// For how long it waits for the next host, in milliseconds.
    #[serde(default)]
    pub keep_ms: u64,
}

/// What a table shows of a session, read without the rest.
#[derive(Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct BriefMeta<'a> {
    /// Its title, if its agent gave one.
    #[serde(default, deserialize_with = "title::stored")]
    pub title: Option<Cow<'a, str>>,
    /// How its last run ended.
    #[serde(borrow, default)]
    pub termination_info: Option<BriefEnd<'a>>,
    #[serde(borrow, default)]
    tally: BriefTally<'a>,
}

#[derive(Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
struct BriefTally<'a> {
    #[serde(borrow, default)]
    first_prompt: Option<Cow<'a, str>>,
}

impl<'a> BriefMeta<'a> {
    /// What people know it by: its title, else the words that it began with.
    pub fn known_as(self) -> Option<Cow<'a, str>> {
        self.title.or(self.tally.first_prompt)
    }
}

/// How a run ended, in a word.
#[derive(Debug, Default, PartialEq, Eq, Deserialize)]
pub struct BriefEnd<'a> {
    /// The word.
    #[serde(borrow, default)]
    pub reason: Option<Cow<'a, str>>,
}

fn is_false(flag: &bool) -> bool {
    !flag
}

impl SessionMeta {
    /// Reads what is stored; what is not readable is taken as nothing known.
    pub fn read(stored: &[u8]) -> Self {
        serde_json::from_slice(stored).unwrap_or_default()
    }

    /// What a table shows of what is stored, and nothing else of it.
    pub fn brief(stored: &[u8]) -> BriefMeta<'_> {
        serde_json::from_slice(stored).unwrap_or_default()
    }

    /// What is stored.
    pub fn write(&self) -> Vec<u8> {
        serde_json::to_vec(self).expect("all of its members are JSON")
    }

    /// Takes over what a list shows.
    pub fn describe(&mut self, glance: Glance) {
        let Glance { title, model, mode } = glance;
        (self.title, self.model, self.mode) = (title, model, mode);
    }

    /// Takes over all that a list shows of what the log says.
    pub fn tell(&mut self, log: &Projection) {
        self.describe(log.snapshot().glance());
        self.tally = log.tally(u64::MAX);
    }

    /// What a list shows.
    pub fn glance(&self) -> Glance {
        Glance { title: self.title.clone(), model: self.model.clone(), mode: self.mode.clone() }
    }

    /// How its last run ended.
    ///
    /// # Errors
    /// When the record is missing or is not readable by this version.
    pub fn termination(&self) -> Result<TerminationInfo, serde_json::Error> {
        serde_json::from_str(self.termination_info.as_ref().map_or("null", Json::get))
    }

    /// Its last run has ended. The text of stderr stays in the event, if the record says which that is.
    pub fn ended(&mut self, info: &TerminationInfo) {
        (self.keeper, self.ending) = (None, None);
        self.termination_info = Some(match info.seq() {
            0 => Json::new(info),
            _ => Json::new(&info.without_stderr_text()),
        });
    }

    /// A new run began; gives how the one before ended.
    pub fn run_started(&mut self, run: RunNumber) -> Option<Json> {
        self.runs = Some(run);
        (self.lost_with, self.keeper, self.ending) = (None, None, None);
        self.termination_info.take()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::termination::StderrInfo;

    // contract 1.3: members of a later version survive a rewrite, and odd ones do no harm
    #[test]
    fn what_is_not_known_is_kept() {
        let stored = r#"{"nativeSessionId":"n","title":7,"client":"c","runs":2,"later":{"a":[1.0]}}"#;
        let meta = SessionMeta::read(stored.as_bytes());
        assert_eq!(
            (meta.client.as_deref(), meta.runs, meta.title.as_deref()),
            (Some("c"), Some(RunNumber(2)), None)
        );
        let written = String::from_utf8(meta.write()).expect("text");
        assert_eq!(written, r#"{"nativeSessionId":"n","client":"c","runs":2,"later":{"a":[1.0]}}"#);
        assert_eq!(SessionMeta::read(b"no JSON"), SessionMeta::default());
    }

    // contract 7.3: a title that an earlier version stored as the agent gave it is shown as one short line
    #[test]
    fn a_stored_title_is_one_short_line() {
        for (stored, shown) in
            [("a\nb".to_owned(), "a b"), ("x".repeat(9_000), &*format!("{}…", "x".repeat(199)))]
        {
            let row = serde_json::json!({"title": stored}).to_string();
            assert_eq!(SessionMeta::read(row.as_bytes()).title.as_deref(), Some(shown));
            assert_eq!(SessionMeta::brief(row.as_bytes()).title.as_deref(), Some(shown));
        }
        let blank = br#"{"title":" ","tally":{"firstPrompt":"hi"}}"#;
        assert_eq!(SessionMeta::brief(blank).known_as().as_deref(), Some("hi"));
    }

    // contract 1.2: a hundred lines of stderr are stored once, in the event
    #[test]
    fn the_index_has_no_text_of_stderr() {
        let stderr = StderrInfo {
            head: Some("a\nb".into()),
            tail: Some("z".into()),
            truncated: true,
            total_lines: 200,
        };
        let info = TerminationInfo { stderr: Some(stderr), last_event_seq: Some(6), ..Default::default() };
        let mut meta = SessionMeta::default();
        meta.ended(&info);
        let kept = meta.termination().expect("it is readable");
        assert!(info.has_stderr_text() && !kept.has_stderr_text());
        assert_eq!((kept.seq(), kept.stderr.map(|stderr| stderr.total_lines)), (7, Some(200)));
        // Of an end that has no event there is nothing else.
        let info = TerminationInfo { last_event_seq: None, ..info };
        meta.ended(&info);
        assert_eq!(meta.termination().expect("it is readable"), info);
    }

    // contract 1: `ended` is false again, and the earlier record is for the one who takes part in the new run
    #[test]
    fn a_new_run_takes_the_record_of_the_last() {
        let stored = br#"{"runs":1,"terminationInfo":{"reason":"error"},"lostWith":"h"}"#;
        let mut meta = SessionMeta::read(stored);
        let earlier = meta.run_started(RunNumber(2)).expect("there is one");
        assert_eq!(earlier.get(), r#"{"reason":"error"}"#);
        assert_eq!(meta.write(), br#"{"runs":2}"#);
        assert!(meta.termination().is_err());
    }
}
