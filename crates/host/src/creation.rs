//! Sessions that are created in one request, for clients that need not stay: once under a key, with the first prompt, and
//! closed after its turn if that is wanted (contract 7.3).
//!
//! What a key claims is the id of the session, which follows from it. Invariant: under a key at most one session is recorded,
//! and its first prompt begins at most once, whatever kills the process; what was asked for and has not begun is made up for
//! when the request comes again.

use crate::agent::{AgentHandle, PromptCapabilities};
use crate::attempts::Attempt;
use crate::beginning::{Beginning, Place};
use crate::create::NewSession;
use crate::error::HostError;
use crate::host::Host;
use crate::prompting::prompt_params;
use crate::session::{ClientRef, SessionHandle, check_content};
use crate::setup::{Creator, with_id};
use crate::spans;
use crate::store::unreadable;
use acpd_eventlog::WriteError;
use acpd_record::{Cause, SessionId, SessionMeta, TerminationInfo};
use acpd_supervisor::Pending;
use bytes::Bytes;
use serde_json::value::RawValue;
use std::any::Any;
use std::fmt;
use std::path::PathBuf;
use tracing::Instrument;

/// What a run that is about to begin is counted by, until it has begun.
pub type Held = Box<dyn Any + Send>;

/// A session that is to be created, and what is to happen in it.
pub struct Creation {
    /// The name of its agent.
    pub agent: String,
    /// Where its process is started.
    pub cwd: Option<PathBuf>,
    /// Those of `session/new`.
    pub params: Bytes,
    /// Who creates it, perhaps under a key.
    pub creator: Creator,
    /// The content blocks of its first prompt.
    pub prompt: Option<Box<RawValue>>,
    /// The client that prompts.
    pub client: ClientRef,
    /// Whether the creator may have one live session more.
    pub admit: Box<dyn Fn() -> Result<Held, HostError> + Send + Sync>,
}

impl fmt::Debug for Creation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Creation")
            .field("agent", &self.agent)
            .field("creator", &self.creator)
            .finish_non_exhaustive()
    }
}

/// What came of a creation that may have come before.
#[derive(Debug)]
pub enum Created {
    /// A session.
    Now(NewSession),
    /// It had created this session, and needs no process.
    Before(SessionId, Option<AgentHandle>),
}

impl Host {
    /// Creates a session for a client that stays, unless its key has created it before. It is created though its caller may
    /// be gone.
    ///
    /// # Errors
    /// Those of [`begin`](Self::begin); a key that belongs to another creation.
    pub fn begin_once(
        &self,
        place: Place,
        params: Option<Bytes>,
        creator: Creator,
    ) -> Pending<'_, Result<Created, (HostError, Option<AgentHandle>)>> {
        let host = self.clone();
        let begun = async move { Ok(host.begin_new_once(place, params, creator).await) };
        Box::pin(async move {
            match self.complete(begun).await {
                Ok(begun) => begun,
                Err(error) => Err((error, None)),
            }
        })
    }

    async fn begin_new_once(
        &self,
        mut place: Place,
        params: Option<Bytes>,
        creator: Creator,
    ) -> Result<Created, (HostError, Option<AgentHandle>)> {
        let id = creator.session_id();
        // The same request may be under way.
        let mut attempt = self.attempt(&id);
        attempt.wait_for_turn().await;
        match self.created_before(&id, &creator).await {
            Ok(None) => {}
            Ok(Some(_)) => return self.find_created(id, attempt, place, params, &creator).await,
            Err(error) => return Err((error, place.spare.take())),
        }
        let _claimed = match self.shared.fleet.claim(&id, &creator).await {
            Ok(claimed) => claimed,
            Err(error) => return Err((error, place.spare.take())),
        };
        let beginning = Beginning { source: None, params, prompt: None, creator };
        match self.begin(place, beginning).await {
            // Another process was faster.
            Err((HostError::Log(WriteError::Exists { .. }), agent)) => Ok(Created::Before(id, agent)),
            begun => begun.map(Created::Now),
        }
    }

    /// The session is there. One whose run was lost with a daemon begins its next one: its creator may never have had it.
    async fn find_created(
        &self,
        id: SessionId,
        attempt: Attempt,
        mut place: Place,
        params: Option<Bytes>,
        creator: &Creator,
    ) -> Result<Created, (HostError, Option<AgentHandle>)> {
        let now = self.session_now(&id).await;
        let is_lost = matches!(&now, Err(HostError::SessionEnded { info, .. }) if was_lost(info));
        if !is_lost {
            return Ok(Created::Before(id, place.spare.take()));
        }
        let params = params.and_then(|params| with_id(&params, &id));
        let joining = self.join(&id, attempt, place, params, &creator.client);
        let (joined, unused) = joining.instrument(spans::of_session(&id)).await;
        match joined {
            Ok(_) => Ok(Created::Before(id, unused)),
            Err(error) => Err((error, unused)),
        }
    }

    /// Creates a session, unless its key has created it before. With a prompt, that has begun then, and that is committed.
    ///
    /// # Errors
    /// Those of [`begin`](Self::begin) and [`prompt`](Self::prompt); a key that belongs to another creation.
    pub fn create(&self, creation: Creation) -> Pending<'_, Result<SessionId, HostError>> {
        let host = self.clone();
        Box::pin(self.complete(async move { host.create_once(&creation).await }))
    }

    async fn create_once(&self, creation: &Creation) -> Result<SessionId, HostError> {
        if creation.creator.key.is_none() {
            return self.create_now(creation).await;
        }
        let id = creation.creator.session_id();
        // The same request may be under way.
        let mut attempt = self.attempt(&id);
        attempt.wait_for_turn().await;
        if let Some(agent) = self.created_before(&id, &creation.creator).await? {
            return self.go_on_with(&id, agent, attempt, creation).await;
        }
        let _claimed = self.shared.fleet.claim(&id, &creation.creator).await?;
        match self.create_now(creation).await {
            // Another process was faster.
            Err(HostError::Log(WriteError::Exists { .. })) => {
                match self.created_before(&id, &creation.creator).await? {
                    Some(agent) => self.go_on_with(&id, agent, attempt, creation).await,
                    None => Err(HostError::UnknownSession { id: id.to_string() }),
                }
            }
            created => created,
        }
    }

    async fn create_now(&self, creation: &Creation) -> Result<SessionId, HostError> {
        let prompt = creation.prompt.as_deref();
        if let Some(prompt) = prompt {
            // What no agent takes starts none.
            let any = PromptCapabilities { image: true, audio: true, embedded_context: true };
            check_content(prompt, any)?;
        }
        let held = (creation.admit)()?;
        let (creator, params) = (creation.creator.clone(), Some(creation.params.clone()));
        let wanted = Beginning { source: None, params, prompt, creator };
        let begun = self.begin(creation.place(creation.agent.clone()), wanted).await;
        let live = begun.map_err(|(error, _unused)| error)?.session;
        drop(held);
        self.begin_first_turn(&live, creation).await?;
        Ok(live.id().clone())
    }

    /// Prompts a session that has just begun.
    async fn begin_first_turn(&self, live: &SessionHandle, creation: &Creation) -> Result<(), HostError> {
        let Some(params) = creation.first_prompt(live.id()) else { return Ok(()) };
        let prompted = live.prompt(params, creation.client.clone()).await;
        prompted.map(drop).map_err(|error| match error {
            HostError::SessionEnded { info, .. } => HostError::AgentGone { info },
            error => error,
        })
    }

    /// The agent of the session `id`, if this creation has made it before.
    async fn created_before(&self, id: &SessionId, creator: &Creator) -> Result<Option<String>, HostError> {
        let row = self.shared.store.log.get(id.as_str()).await.map_err(|error| unreadable(&error))?;
        let Some(row) = row else { return Ok(None) };
        let is_its = row.created_by.as_deref() == creator.token.as_deref()
            && SessionMeta::read(&row.info).created_under == creator.key;
        match (is_its, &creator.key) {
            (false, Some(key)) => Err(HostError::KeyReused { key: key.as_str().to_owned() }),
            _ => Ok(Some(row.agent)),
        }
    }

    /// The session is there. A first prompt that was lost with a daemon before it began, begins now.
    async fn go_on_with(
        &self,
        id: &SessionId,
        agent: String,
        attempt: Attempt,
        creation: &Creation,
    ) -> Result<SessionId, HostError> {
        let Some(params) = creation.first_prompt(id) else { return Ok(id.clone()) };
        match self.prompt(id, params, creation.client.clone()).await {
            Err(HostError::SessionEnded { info, .. }) if was_lost(&info) => {}
            prompted => return prompted.map(|_| id.clone()),
        }
        let held = (creation.admit)()?;
        let client = &creation.client.name;
        let joining = self.join(id, attempt, creation.place(agent), with_id(&creation.params, id), client);
        let (joined, _unused) = joining.instrument(spans::of_session(id)).await;
        let live = joined?.live;
        drop(held);
        self.begin_first_turn(&live, creation).await?;
        Ok(id.clone())
    }
}

/// Returns `true` for a run that ended with its daemon: no client asked for that end.
fn was_lost(info: &TerminationInfo) -> bool {
    let with_daemon = |cause: Cause| cause.can_be_made_final() || cause == Cause::DaemonShutdown;
    info.cause.is_some_and(with_daemon)
}

impl Creation {
    fn place(&self, agent: String) -> Place {
        Place { agent, cwd: self.cwd.clone(), ..Place::default() }
    }

    /// The params of the first prompt. Under a key it has the session's id for a key: no prompt of a client has that.
    fn first_prompt(&self, id: &SessionId) -> Option<Bytes> {
        let key = self.creator.key.as_ref().map(|_| id.as_str());
        self.prompt.as_deref().map(|prompt| prompt_params(id, prompt, key))
    }
}
