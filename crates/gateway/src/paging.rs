//! Pages of lists, over ACP and REST: one cursor, one page (SE-12).
//!
//! A cursor is opaque to clients and bound to the filter it was given for. Pure but for [`PageRequest::read`], which asks
//! the host once.

use crate::fleet::{Fleet, Listed};
use crate::identity::Identity;
use acpd_api::SessionState;
use acpd_eventlog::ListQuery;
use acpd_host::{Host, HostError, Matching};
use data_encoding::{HEXLOWER, HEXLOWER_PERMISSIVE};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use std::cmp::Reverse;

/// What is wrong with a cursor that is none of a list.
pub(crate) const WRONG_CURSOR: &str = "cursor: it is not one of this list; begin again without a cursor";

/// What a list has.
pub(crate) trait ListFilter: Clone + PartialEq + Serialize + DeserializeOwned {
    /// A place in it.
    type Position: Serialize + DeserializeOwned;
}

/// Where a session is in a list: the latest change first, and those of one moment by id, as in the log.
pub(crate) type Order<'a> = (Reverse<i64>, &'a str);

pub(crate) fn order(changed_ms: i64, id: &str) -> Order<'_> {
    (Reverse(changed_ms), id)
}

/// Which sessions a list has.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Filter {
    /// Only those of this agent.
    pub(crate) agent: Option<String>,
    /// Only those in this directory.
    pub(crate) cwd: Option<String>,
    /// Only those that have ended, or only those that have not.
    pub(crate) ended: Option<bool>,
    /// Only those of which the title, the directory, the agent or the id has these words.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) q: Option<String>,
    /// Only those that are doing this.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) state: Option<SessionState>,
    /// Only those of this node of the fleet.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) node: Option<String>,
}

impl ListFilter for Filter {
    type Position = (i64, String);
}

/// A place in a list, and the list it belongs to. Clients may hold cursors of earlier versions: the names are theirs.
#[derive(Serialize, Deserialize)]
#[serde(bound = "F: ListFilter")]
struct ListCursor<F: ListFilter> {
    /// The last entry of the page before.
    #[serde(rename = "place")]
    position: F::Position,
    #[serde(flatten)]
    filter: F,
}

impl<F: ListFilter> ListCursor<F> {
    fn encode(&self) -> String {
        let json = serde_json::to_vec(self).expect("strings and numbers are JSON");
        HEXLOWER.encode(&json)
    }

    fn decode(text: &str) -> Option<Self> {
        serde_json::from_slice(&HEXLOWER_PERMISSIVE.decode(text.as_bytes()).ok()?).ok()
    }
}

/// A page that is asked for.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct PageRequest<F: ListFilter = Filter> {
    pub(crate) filter: F,
    pub(crate) after: Option<F::Position>,
    /// Entries at most.
    limit: u32,
}

/// A page, what is latest first.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Page<T> {
    pub(crate) entries: Vec<T>,
    /// Where the next one begins; None on the last.
    pub(crate) next_cursor: Option<String>,
}

impl<F: ListFilter> PageRequest<F> {
    /// The page behind `cursor`, or the first; None if that is no cursor of this list.
    pub(crate) fn new(filter: F, cursor: Option<&str>, limit: u32) -> Option<Self> {
        let after = match cursor {
            None => None,
            Some(text) => {
                let cursor = ListCursor::<F>::decode(text).filter(|cursor| cursor.filter == filter)?;
                Some(cursor.position)
            }
        };
        Some(Self { filter, after, limit })
    }

    /// One more than a page has shows whether there is another.
    pub(crate) fn needed(&self) -> u32 {
        self.limit.saturating_add(1)
    }

    /// The page of what was found.
    pub(crate) fn page<T>(self, mut entries: Vec<T>, position: impl Fn(&T) -> F::Position) -> Page<T> {
        let limit = usize::try_from(self.limit).unwrap_or(usize::MAX);
        let has_more = entries.len() > limit;
        entries.truncate(limit);
        let last = entries.last().filter(|_| has_more).map(position);
        let cursor = |position| ListCursor { position, filter: self.filter }.encode();
        Page { next_cursor: last.map(cursor), entries }
    }
}

impl PageRequest {
    /// Reads it: of the sessions that exist for the caller, also those of other nodes of a fleet.
    pub(crate) async fn read(
        self,
        host: &Host,
        fleet: Option<&Fleet>,
        identity: &Identity,
    ) -> Result<Page<Listed>, HostError> {
        let matching = Matching { text: self.filter.q.clone(), state: self.filter.state };
        let is_of_another =
            |fleet: &Fleet| self.filter.node.as_ref().is_some_and(|node| *node != fleet.here().node);
        let position = (&self.filter, self.after.as_ref(), self.needed());
        let others = fleet.map(|fleet| fleet.others(position, identity)).unwrap_or_default();
        let own = match fleet {
            Some(fleet) if is_of_another(fleet) => Vec::new(),
            _ => host.list_matching(self.query(identity), matching).await?,
        };
        let sessions = match fleet {
            Some(fleet) => fleet.listed(own, &others, self.needed()),
            None => own.into_iter().map(|summary| Listed::Own(Box::new(summary))).collect(),
        };
        Ok(self.page(sessions, Listed::position))
    }

    fn query(&self, identity: &Identity) -> ListQuery {
        let Filter { agent, cwd, ended, .. } = self.filter.clone();
        let (created_by, after) = (identity.only_its_own(), self.after.clone());
        let limit = Some(self.needed());
        ListQuery { agent, cwd, created_by, ended, after, limit, ..ListQuery::default() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::identity::Allowance;
    use acpd_api::Scope;

    fn filter(agent: &str) -> Filter {
        Filter { agent: Some(agent.to_owned()), ended: Some(true), ..Filter::default() }
    }

    // SE-12: garbage is no cursor, and a cursor of another filter is none of this list
    #[test]
    fn cursors_come_back_and_garbage_does_not() {
        let cursor = ListCursor { position: (7, "s-é".into()), filter: filter("a") }.encode();
        let request = PageRequest::new(filter("a"), Some(&cursor), 2).expect("a cursor of this list");
        assert_eq!(request.after, Some((7, "s-é".into())));
        assert!(PageRequest::new(filter("b"), Some(&cursor), 2).is_none());
        assert!(PageRequest::new(Filter::default(), Some(&cursor), 2).is_none());
        let others = [("q", Some("x".to_owned()), None), ("state", None, Some(SessionState::Idle))];
        for (name, q, state) in others {
            let other = Filter { q, state, ..filter("a") };
            assert!(PageRequest::new(other, Some(&cursor), 2).is_none(), "{name}");
        }
        for garbage in ["", "x", "zz", "7b7", "7b7d", "é"] {
            assert!(PageRequest::new(filter("a"), Some(garbage), 2).is_none(), "{garbage}");
        }
        assert!(PageRequest::new(filter("a"), None, 2).is_some_and(|request| request.after.is_none()));
    }

    // SE-12: what earlier versions gave out is read, and what is given out is what they gave out
    #[test]
    fn cursors_of_earlier_versions_count() {
        let earlier = r#"{"place":[7,"s"],"agent":null,"cwd":"/x","ended":null}"#;
        let list = Filter { cwd: Some("/x".to_owned()), ..Filter::default() };
        let request =
            PageRequest::new(list.clone(), Some(&HEXLOWER.encode(earlier.as_bytes())), 2).expect("a cursor");
        assert_eq!(request.after, Some((7, "s".into())));
        assert_eq!(
            ListCursor { position: (7, "s".into()), filter: list }.encode(),
            HEXLOWER.encode(earlier.as_bytes())
        );
    }

    // SE-12: a page has at most what was asked for, and a cursor if there is more
    #[test]
    fn a_page_says_where_the_next_begins() {
        let page = |entries: Vec<i64>| {
            let request = PageRequest::new(filter("a"), None, 2).expect("the first page");
            request.page(entries, |at| (*at, at.to_string()))
        };
        assert_eq!(page(vec![]), Page { entries: vec![], next_cursor: None });
        assert_eq!(page(vec![9, 8]), Page { entries: vec![9, 8], next_cursor: None });
        let more = page(vec![9, 8, 7]);
        assert_eq!(more.entries, [9, 8]);
        let next = PageRequest::new(filter("a"), more.next_cursor.as_deref(), 2).expect("the next page");
        assert_eq!(next.after, Some((8, "8".into())));
    }

    // contract 1.7, SE-13: a list has what exists for the caller, and one more than a page
    #[test]
    fn a_list_is_of_the_callers_sessions() {
        let request = PageRequest::new(filter("a"), None, 2).expect("the first page");
        let own = Identity::of_token("ci", Scope::Control, false, Allowance::UNLIMITED);
        let query = request.query(&own);
        assert_eq!((query.created_by.as_deref(), query.limit), (Some("ci"), Some(3)));
        assert_eq!((query.agent.as_deref(), query.cwd, query.ended), (Some("a"), None, Some(true)));
        let all = Identity::of_token("ci", Scope::Control, true, Allowance::UNLIMITED);
        assert_eq!(request.query(&all).created_by, None);
    }
}
