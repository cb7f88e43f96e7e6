//! One list of the sessions of all nodes: the rows of this node from its log, those of the others from the directory.

use super::{Fleet, exists_for, of_node};
use crate::identity::Identity;
use crate::paging::Filter;
use acpd_eventlog::RowText;
use acpd_fleet::Owned;
use acpd_host::{SessionState, SessionSummary, is_known_by};
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// A session in a list.
#[derive(Debug, Serialize)]
#[serde(untagged)]
pub(crate) enum Listed {
    /// Of this node.
    Own(Box<SessionSummary>),
    /// Of another one, as that has said it.
    Other {
        #[serde(flatten)]
        info: Value,
        #[serde(skip)]
        position: (i64, String),
    },
}

impl Listed {
    /// Its place in a list.
    pub(crate) fn position(&self) -> (i64, String) {
        match self {
            Self::Own(summary) => summary.position.clone(),
            Self::Other { position, .. } => position.clone(),
        }
    }

    /// As its node has said it, with where it is.
    pub(crate) fn of(owned: &Owned) -> Self {
        let mut info = owned.session.info.clone();
        if let (Value::Object(members), Ok(Value::Object(more))) =
            (&mut info, serde_json::to_value(of_node(owned)))
        {
            members.extend(more);
        }
        Self::Other { info, position: position(owned) }
    }
}

fn position(owned: &Owned) -> (i64, String) {
    (owned.session.changed_ms, owned.session.session.to_string())
}

impl Fleet {
    /// A page of `own` sessions, which has as many as are needed if there are, with those of other nodes.
    pub(crate) fn listed(
        &self,
        own: Vec<SessionSummary>,
        (filter, after, needed): (&Filter, Option<&(i64, String)>, u32),
        identity: &Identity,
    ) -> Vec<Listed> {
        let is_meant = |owned: &Owned| {
            let is_behind = after.is_none_or(|after| position(owned) < *after);
            is_behind && exists_for(owned, identity) && is_in(filter, owned)
        };
        let mut all: Vec<Listed> = self.member.sessions_elsewhere(is_meant).iter().map(Listed::of).collect();
        let here = self.here();
        all.extend(own.into_iter().map(|mut summary| {
            summary.history.node = Some(here.clone());
            Listed::Own(Box::new(summary))
        }));
        all.sort_by_cached_key(|listed| std::cmp::Reverse(listed.position()));
        all.truncate(usize::try_from(needed).unwrap_or(usize::MAX));
        all
    }
}

/// What is looked at of what a node says of a session.
#[derive(Default, Deserialize)]
#[serde(default)]
struct Told {
    agent: String,
    cwd: String,
    ended: bool,
    state: String,
}

/// What a session is known by, as its row has it.
#[derive(Default, Deserialize, Serialize)]
#[serde(default)]
struct KnownAs {
    title: Option<String>,
}

/// Whether a session of another node is among those that are asked for.
fn is_in(filter: &Filter, owned: &Owned) -> bool {
    let Filter { agent, cwd, ended, q, state, node } = filter;
    let told = Told::deserialize(&owned.session.info).unwrap_or_default();
    let is = |wanted: &Option<String>, found: &str| wanted.as_ref().is_none_or(|wanted| wanted == found);
    let is_known = |words: &String| {
        let known_as = KnownAs::deserialize(&owned.session.info).unwrap_or_default();
        let info = serde_json::to_vec(&known_as).unwrap_or_default();
        let id = owned.session.session.as_str();
        is_known_by(words, RowText { id, agent: &told.agent, cwd: &told.cwd, info: &info })
    };
    is(node, owned.session.node.as_str())
        && is(agent, &told.agent)
        && is(cwd, &told.cwd)
        && ended.is_none_or(|ended| told.ended == ended)
        && state.is_none_or(|state| told.state == SessionState::as_str(state))
        && q.as_ref().is_none_or(is_known)
}
