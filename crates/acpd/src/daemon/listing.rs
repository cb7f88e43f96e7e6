//! The list of sessions of a daemon, and which of them are its own: in a fleet any node lists those of all.

use super::error::DaemonError;
use super::request::Daemon;
use super::sessions::{Session, plain};
use crate::address::encoded;
use acpd_api::SessionState;
use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;

/// Sessions a page: as many as a daemon gives at once.
const PAGE: usize = 500;

/// Which sessions are looked for.
#[derive(Debug, Clone, Default)]
pub(crate) struct SessionFilter {
    pub(crate) agent: Option<String>,
    pub(crate) cwd: Option<String>,
    pub(crate) ended: Option<bool>,
    pub(crate) state: Option<SessionState>,
    /// Words of what they are known by.
    pub(crate) text: Option<String>,
    /// The node that has them, in a fleet.
    pub(crate) node: Option<String>,
}

/// Sessions, the latest change first.
#[derive(Debug, Default)]
pub(crate) struct Listing {
    pub(crate) sessions: Vec<Session>,
    /// There are more.
    pub(crate) more: bool,
    /// What it has of other nodes may be old, or lack some.
    pub(crate) stale: bool,
    /// The daemon's name in its fleet.
    pub(crate) here: Option<String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Page {
    sessions: Vec<Box<RawValue>>,
    next_cursor: Option<Value>,
    #[serde(default)]
    stale: bool,
    /// The node that answers, in a fleet.
    here: Option<String>,
}

impl Daemon {
    /// At most `most` sessions, the latest change first, and whether there are more.
    pub(crate) async fn sessions(
        &self,
        filter: &SessionFilter,
        most: usize,
    ) -> Result<(Vec<Session>, bool), DaemonError> {
        let Listing { sessions, more, .. } = self.listing(filter, most).await?;
        Ok((sessions, more))
    }

    /// The same with what there is to say of the list.
    pub(crate) async fn listing(&self, filter: &SessionFilter, most: usize) -> Result<Listing, DaemonError> {
        let first = self.page(filter, None, PAGE.min(most)).await?;
        self.rest(filter, most, first).await
    }

    /// Those of the daemon itself, whatever else its fleet has.
    pub(crate) async fn own_sessions(
        &self,
        filter: &SessionFilter,
        most: usize,
    ) -> Result<(Vec<Session>, bool), DaemonError> {
        let Listing { sessions, more, .. } = self.own_listing(filter, most).await?;
        Ok((sessions, more))
    }

    /// The same with what there is to say of the list.
    pub(crate) async fn own_listing(
        &self,
        filter: &SessionFilter,
        most: usize,
    ) -> Result<Listing, DaemonError> {
        let first = self.page(filter, None, PAGE.min(most)).await?;
        match first.here.clone() {
            Some(here) => self.listing(&SessionFilter { node: Some(here), ..filter.clone() }, most).await,
            None => self.rest(filter, most, first).await,
        }
    }

    async fn page(
        &self,
        filter: &SessionFilter,
        cursor: Option<&str>,
        limit: usize,
    ) -> Result<Page, DaemonError> {
        self.get(&query(filter, cursor, limit.max(1))).await
    }

    /// A list from its first page on.
    async fn rest(
        &self,
        filter: &SessionFilter,
        most: usize,
        mut page: Page,
    ) -> Result<Listing, DaemonError> {
        let mut list = Listing::default();
        let mut cursor: Option<String> = None;
        loop {
            let came = page.sessions.len();
            list.stale |= page.stale;
            list.here = page.here.take();
            for raw in page.sessions {
                list.sessions.push(Session::read(raw).map_err(|error| self.unreadable(&error))?);
            }
            let next = page.next_cursor.as_ref().and_then(plain);
            let count = list.sessions.len();
            list.more = count > most || (count == most && next.is_some());
            if list.more || next.is_none() {
                list.sessions.truncate(most);
                return Ok(list);
            }
            if came == 0 || next == cursor {
                return Err(self.unreadable(&"a list of sessions that does not go on"));
            }
            cursor = next;
            page = self.page(filter, cursor.as_deref(), PAGE.min(most.saturating_sub(count))).await?;
        }
    }
}

fn query(filter: &SessionFilter, cursor: Option<&str>, limit: usize) -> String {
    let mut path = format!("/v1/sessions?limit={limit}");
    let ended = filter.ended.map(|ended| ended.to_string());
    for (name, value) in [
        ("agent", filter.agent.as_deref()),
        ("cwd", filter.cwd.as_deref()),
        ("ended", ended.as_deref()),
        ("state", filter.state.map(SessionState::as_str)),
        ("q", filter.text.as_deref()),
        ("node", filter.node.as_deref()),
        ("cursor", cursor),
    ] {
        if let Some(value) = value {
            path.push_str(&format!("&{name}={}", encoded(value)));
        }
    }
    path
}

#[cfg(test)]
mod tests {
    use super::*;

    // contract 1.3: the query of the list
    #[test]
    fn filters_go_into_the_query() {
        let filter = SessionFilter {
            agent: Some("a b".into()),
            cwd: Some("/src/x&y".into()),
            ended: Some(false),
            state: Some(SessionState::Idle),
            text: Some("ä b".into()),
            node: Some("n".into()),
        };
        assert_eq!(
            query(&filter, Some("1+2="), 7),
            "/v1/sessions?limit=7&agent=a%20b&cwd=%2Fsrc%2Fx%26y&ended=false&state=idle&q=%C3%A4%20b&node=n&cursor=1%2B2%3D"
        );
        assert_eq!(query(&SessionFilter::default(), None, 1), "/v1/sessions?limit=1");
    }
}
