//! The sessions of a state directory that no daemon serves, for commands that look at them.
//!
//! No host is made of it: nothing is recovered, recorded or started. Invariant: where there is no log, none is made. What an earlier acpd
//! has left is migrated first. Not here: sessions that are hosted in this process (`local_host.rs`).

use crate::config::Config;
use crate::daemon::{Event, FindError, Hit, Hits, Pruned, Session, SessionFilter, meant, pruned};
use crate::exit::Failure;
use crate::local_host::log_options;
use crate::migrating::{Waits, migrate};
use crate::moment::Moment;
use crate::state_dir;
use crate::waiting::Waiting;
use acpd_api::SessionState;
use acpd_eventlog::{Block, Cursor, EventLog, ListQuery, Options, SearchQuery, SearchText};
use acpd_gateway::EventRenderer;
use acpd_host::{
    Archive, ExportForm, Finding, Keep, Matching, SessionBrief, SessionExport, SessionId, SessionSummary,
};
use bytes::BytesMut;
use serde_json::value::to_raw_value;
use std::path::Path;

/// What the configuration says of a search that is turned off.
const OFF: &str = "search is turned off: set search = true in [storage] of the configuration";

/// The stored sessions.
pub(crate) struct Stored(Option<Archive>);

impl Stored {
    /// Opens the state directory of a configuration, which is migrated if need be.
    pub(crate) async fn open(config: &Config) -> Result<Self, Failure> {
        let Some(state_dir) = claim_log(config)? else { return Ok(Self(None)) };
        migrate(state_dir, &Waits::OnTerminal).await?;
        Self::open_claimed(config)
    }

    /// The same without that: an error where it is to be migrated.
    pub(crate) fn open_as_it_is(config: &Config) -> Result<Self, Failure> {
        match claim_log(config)? {
            Some(_) => Self::open_claimed(config),
            None => Ok(Self(None)),
        }
    }

    fn open_claimed(config: &Config) -> Result<Self, Failure> {
        let state_dir = &config.storage.path;
        // Who looks drops no index.
        let options = Options { search: true, ..log_options(config) };
        Ok(Self(Some(Archive::new(EventLog::open(state_dir, options)?, state_dir))))
    }

    /// At most `most` sessions, the latest change first, and whether there are more: as a table shows them, or with all members.
    pub(crate) async fn sessions(
        &self,
        filter: SessionFilter,
        most: usize,
        whole: bool,
    ) -> Result<(Vec<Session>, bool), Failure> {
        let Some(archive) = &self.0 else { return Ok((Vec::new(), false)) };
        // A log has the sessions of one node.
        let SessionFilter { agent, cwd, ended, state, text, node: _ } = filter;
        // What a dead host left has not ended in its row, and has in the list.
        let limit = u32::try_from(most.saturating_add(1)).ok().filter(|_| ended.is_none());
        let query = ListQuery { agent, cwd, limit, ..ListQuery::default() };
        let matching = Matching { text, state };
        let mut sessions: Vec<Session> = match whole {
            true => {
                let listed = archive.list(query, matching).await?;
                listed.iter().map(in_full).collect::<Result<_, _>>()?
            }
            false => archive.brief(query, matching).await?.into_iter().map(shown).collect(),
        };
        sessions.retain(|session| ended.is_none_or(|ended| session.ended == ended));
        let more = sessions.len() > most;
        sessions.truncate(most);
        Ok((sessions, more))
    }

    /// One session, by its id or by an end or beginning of it that no other one has.
    pub(crate) async fn session(&self, part: &str) -> Result<Session, Failure> {
        let (sessions, _) = self.sessions(SessionFilter::default(), usize::MAX, false).await?;
        let Session { session_id, detached_until, .. } = meant(part, sessions)?;
        let (archive, id) = self.known(&session_id)?;
        Ok(Session { detached_until, ..Session::of(&archive.info(&id).await?)? })
    }

    /// The sessions whose agents wait for the next daemon.
    pub(crate) async fn waiting(&self) -> Result<Waiting, Failure> {
        let live = SessionFilter { ended: Some(false), ..SessionFilter::default() };
        Ok(Waiting::of(&self.sessions(live, usize::MAX, false).await?.0))
    }

    /// Whether agents have ended while no daemon was there, and that is not recorded yet.
    pub(crate) async fn has_ends(&self) -> bool {
        match &self.0 {
            Some(archive) => archive.has_ends().await,
            None => false,
        }
    }

    /// The ended sessions that are not to be kept, the one that changed longest ago first.
    pub(crate) async fn prunable(&self, keep: Keep) -> Result<Vec<Pruned>, Failure> {
        match &self.0 {
            Some(archive) => Ok(pruned(&archive.prunable(keep).await?)?),
            None => Ok(Vec::new()),
        }
    }

    /// The events of a session behind one of them.
    pub(crate) async fn events(&self, id: &str, after: u64) -> Result<Cursor, Failure> {
        let (archive, id) = self.known(id)?;
        Ok(archive.cursor(&id, after).await?)
    }

    /// A session as a file.
    pub(crate) async fn export(&self, id: &str, form: ExportForm) -> Result<SessionExport, Failure> {
        let (archive, id) = self.known(id)?;
        Ok(archive.export(&id, form).await?)
    }

    fn known(&self, id: &str) -> Result<(&Archive, SessionId), FindError> {
        let unknown = || FindError::Unknown { id: id.to_owned() };
        Ok((self.0.as_ref().ok_or_else(unknown)?, SessionId::parse(id).ok_or_else(unknown)?))
    }

    /// At most `most` turns in which the words stand.
    pub(crate) async fn search(&self, text: SearchText, most: u32) -> Result<Hits, Failure> {
        let Some(archive) = &self.0 else { return Ok(Hits::default()) };
        let query = SearchQuery { text, created_by: None, after: None, limit: most.saturating_add(1) };
        let found = archive.search(query).await?;
        let read = |found: &Finding| Hit::read(to_raw_value(&found.hit)?);
        let hits = found.hits.iter().map(read).collect::<Result<Vec<Hit>, serde_json::Error>>()?;
        let most = usize::try_from(most).unwrap_or(usize::MAX);
        let more = hits.len() > most;
        Ok(Hits { hits: hits.into_iter().take(most).collect(), incomplete: found.incomplete, more })
    }

    /// Whether the configuration lets them be searched.
    pub(crate) fn check_search(config: &Config) -> Result<(), Failure> {
        match config.storage.search {
            true => Ok(()),
            false => Err(Failure::Failed(OFF.to_owned())),
        }
    }

    /// Closes what was opened.
    pub(crate) async fn close(self) {
        if let Some(archive) = self.0 {
            archive.close().await;
        }
    }
}

/// The state directory of a configuration, which is for its owner alone then. None: it has no log.
fn claim_log(config: &Config) -> Result<Option<&Path>, Failure> {
    let state_dir = &config.storage.path;
    if !acpd_eventlog::has_log(state_dir)? {
        return Ok(None);
    }
    state_dir::claim(state_dir)?;
    Ok(Some(state_dir))
}

/// The sessions of a state directory whose agents wait for the next daemon.
pub(crate) async fn waiting_in(state_dir: &Path) -> Result<Waiting, Failure> {
    let mut config = Config::default();
    config.storage.path = state_dir.to_owned();
    let stored = Stored::open_as_it_is(&config)?;
    let waiting = stored.waiting().await;
    stored.close().await;
    waiting
}

/// The events of a block as a daemon would show them.
pub(crate) fn events_of(block: &Block) -> impl Iterator<Item = Event> {
    let mut renderer = EventRenderer::default();
    block.events().filter_map(move |event| {
        let mut json = BytesMut::new();
        renderer.json(&event, &mut json);
        Event::read(std::str::from_utf8(&json).ok()?).ok()
    })
}

fn in_full(summary: &SessionSummary) -> Result<Session, serde_json::Error> {
    let detached_until = summary.detached_until_ms.map(Moment::of_ms);
    Ok(Session { detached_until, ..Session::of(summary)? })
}

/// For a table.
fn shown(brief: SessionBrief) -> Session {
    let SessionBrief { id, agent, cwd, known_as, state, reason, open_questions, updated_ms, .. } = brief;
    let (detached_since, detached_until_ms) = (brief.detached_since, brief.detached_until_ms);
    Session {
        session_id: id,
        agent,
        cwd,
        title: known_as,
        ended: state == SessionState::Ended,
        state: state.as_str().to_owned(),
        updated_at: Moment::of_ms(updated_ms),
        open_questions,
        reason,
        detached_since: detached_since.as_deref().map(Moment::from),
        detached_until: detached_until_ms.map(Moment::of_ms),
        ..Session::default()
    }
}
