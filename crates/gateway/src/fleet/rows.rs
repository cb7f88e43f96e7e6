//! One list of the sessions of all nodes: the rows of this node from its log, those of the others from the directory.

use super::{Fleet, exists_for, of_node};
use crate::identity::Identity;
use crate::paging::{Filter, Order, order};
use acpd_eventlog::RowText;
use acpd_fleet::Owned;
use acpd_host::{SessionSummary, is_known_by};
use serde::Serialize;
use serde_json::Value;
use std::collections::BTreeSet;

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

    fn order(&self) -> Order<'_> {
        let (changed_ms, id) = match self {
            Self::Own(summary) => &summary.position,
            Self::Other { position, .. } => position,
        };
        order(*changed_ms, id)
    }

    /// As its node has said it, with where it is.
    pub(crate) fn of(owned: &Owned) -> Self {
        let mut info = owned.session.info.clone();
        if let (Value::Object(members), Ok(Value::Object(more))) =
            (&mut info, serde_json::to_value(of_node(owned)))
        {
            members.extend(more);
        }
        Self::Other { info, position: (owned.session.changed_ms, owned.session.session.to_string()) }
    }
}

impl Fleet {
    /// The first sessions of other nodes in a page, as many as are needed. They are looked up before those of this node: what moves
    /// here meanwhile is in both, not in neither.
    pub(crate) fn others(
        &self,
        (filter, after, needed): (&Filter, Option<&(i64, String)>, u32),
        identity: &Identity,
    ) -> Vec<Owned> {
        let needed = usize::try_from(needed).unwrap_or(usize::MAX);
        let after = after.map(|(changed_ms, id)| order(*changed_ms, id));
        let is_meant = |owned: &Owned| {
            let is_behind = after.is_none_or(|after| order_of(owned) > after);
            is_behind && exists_for(owned, identity) && is_in(filter, owned)
        };
        let mut others = self.member.sessions_elsewhere(is_meant);
        others.sort_unstable_by(|a, b| order_of(a).cmp(&order_of(b)));
        // Only those of the page are written out.
        others.truncate(needed);
        others
    }

    /// A page of `own` sessions, which has as many as are needed if there are, with those of other nodes, each once.
    pub(crate) fn listed(&self, own: Vec<SessionSummary>, others: &[Owned], needed: u32) -> Vec<Listed> {
        let own_ids: BTreeSet<&str> = own.iter().map(|summary| summary.session.id.as_str()).collect();
        let others = others.iter().filter(|owned| !own_ids.contains(owned.session.session.as_str()));
        let others: Vec<_> = others.map(Listed::of).collect();
        let here = self.here();
        let own = own.into_iter().map(|mut summary| {
            summary.session.history.node = Some(here.clone());
            Listed::Own(Box::new(summary))
        });
        let needed = usize::try_from(needed).unwrap_or(usize::MAX);
        page(others.into_iter().chain(own).collect(), needed)
    }
}

/// The first ones.
fn page(mut all: Vec<Listed>, needed: usize) -> Vec<Listed> {
    all.sort_by(|a, b| a.order().cmp(&b.order()));
    all.truncate(needed);
    all
}

fn order_of(owned: &Owned) -> Order<'_> {
    order(owned.session.changed_ms, owned.session.session.as_str())
}

/// What a session is known by, as its row has it.
#[derive(Serialize)]
struct KnownAs<'a> {
    title: Option<&'a str>,
}

/// Whether a session of another node is among those that are asked for.
fn is_in(filter: &Filter, owned: &Owned) -> bool {
    let Filter { agent, cwd, ended, q, state, node } = filter;
    let told = |name: &str| owned.session.info.get(name).and_then(Value::as_str);
    let is = |wanted: &Option<String>, found: Option<&str>| wanted.is_none() || wanted.as_deref() == found;
    let is_known = |words: &String| {
        let info = serde_json::to_vec(&KnownAs { title: told("title") }).unwrap_or_default();
        let (agent, cwd) = (told("agent").unwrap_or_default(), told("cwd").unwrap_or_default());
        is_known_by(words, RowText { id: owned.session.session.as_str(), agent, cwd, info: &info })
    };
    is(node, Some(owned.session.node.as_str()))
        && is(agent, told("agent"))
        && is(cwd, told("cwd"))
        && ended.is_none_or(|ended| owned.session.ended == ended)
        && state.is_none_or(|state| told("state") == Some(state.as_str()))
        && q.as_ref().is_none_or(is_known)
}

#[cfg(test)]
mod tests {
    use super::*;

    // contract 7.3, SE-12: sessions that changed in the same moment are in the order of the log, so that no page leaves one out
    #[test]
    fn what_changed_at_once_is_on_one_page_each() {
        let places = [(7, "c"), (8, "b"), (7, "a"), (7, "b"), (6, "d"), (8, "c")];
        let listed = |after: Option<(i64, &str)>| {
            let behind = places
                .iter()
                .filter(|(at, id)| after.is_none_or(|(after, last)| order(*at, id) > order(after, last)));
            let listed =
                behind.map(|(at, id)| Listed::Other { info: Value::Null, position: (*at, (*id).to_owned()) });
            page(listed.collect(), 1).first().map(Listed::position)
        };
        let (mut all, mut after) = (Vec::new(), None);
        while let Some((at, id)) = listed(after.as_ref().map(|(at, id): &(i64, String)| (*at, id.as_str()))) {
            all.push(format!("{at}{id}"));
            after = Some((at, id));
        }
        // ORDER BY updated_ms DESC, id
        assert_eq!(all, ["8b", "8c", "7a", "7b", "7c", "6d"]);
    }
}
