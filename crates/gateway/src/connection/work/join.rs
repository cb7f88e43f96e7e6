//! `session/load` and `session/resume`: where the client joins a session, live or activated for it.

use super::{Job, OwnMeta, Worked, answer_line, json};
use crate::connection::input::Outcome;
use crate::connection::tasks::{Done, Process};
use crate::viewer::{Answer, Attachment};
use acpd_host::{Attempt, HostError, Joined, META, Place, SessionHandle};
use acpd_record::{Json, LifecycleState, QuestionNumber, SessionId, TranscriptFacts};
use acpd_wire::member;
use bytes::Bytes;
use serde::Serialize;
use serde_json::value::RawValue;

/// Events that are read again for what a client was shown of terminals before it went away: about eight minutes of a command
/// that writes without a pause. A call that was told longer ago stays as it is.
const LOOKED_BACK: u64 = 10_000;

impl Job {
    /// `replay`: the client sees the history, which can be read though the session cannot go on (SE-6). Without a place
    /// the client only watches.
    pub(super) async fn join(
        self,
        session: SessionId,
        attempt: Attempt,
        replay: bool,
        place: Option<Place>,
    ) -> Worked {
        let own = self.params.as_deref().map_or_else(|| Ok(OwnParams::default()), OwnParams::read);
        let OwnParams { after, activate } = match own {
            Ok(own) => own,
            Err(error) => return (Some(Err(error)), Done::new(None, Outcome::Answered)),
        };
        let from = match (after, replay) {
            (Some(after), _) => From::Behind(after),
            (None, true) => From::Beginning,
            (None, false) => From::Now,
        };
        let (joined, spare) = match place {
            Some(Place { spare, .. }) if !activate => (self.find(&session).await, spare),
            Some(place) => {
                let client = &self.client.name;
                self.host.join(&session, attempt, place, self.params.clone(), client).await
            }
            None => (self.watch(&session).await, None),
        };
        let process = spare.map(Process::Unused);
        let shown = match joined {
            Ok(joined) => self.show(&session, joined, from).await.map(|attachment| (attachment, None)),
            Err(error) if replay && is_readable(&error) => {
                let shown = self.show_history(&session, &error, from).await;
                shown.map(|attachment| (attachment, Some(error)))
            }
            Err(error) => Err(error),
        };
        match shown {
            Ok((attachment, unresumable)) => {
                let run = attachment.live.as_ref().map(SessionHandle::began_after);
                let outcome = Outcome::Attached { session, run, unresumable };
                let attachment = Some(Box::new(attachment));
                (None, Done { request: None, outcome, process, attachment })
            }
            Err(error) => (Some(Err(error)), Done { process, ..Done::new(None, Outcome::Answered) }),
        }
    }

    /// Finds the session live: a client that wants nothing activated is told how it has ended.
    pub(super) async fn find(&self, session: &SessionId) -> Result<Joined, HostError> {
        match self.host.find_live(session).await? {
            Some(joined) => Ok(joined),
            None => match self.host.session(session).await {
                Err(ended) => Err(ended),
                // It has been activated just now.
                Ok(_) => self.watch(session).await,
            },
        }
    }

    /// Finds the session live: a client that only watches activates nothing (contract 1.7).
    async fn watch(&self, session: &SessionId) -> Result<Joined, HostError> {
        self.host.find_live(session).await?.ok_or_else(|| HostError::NotResumable {
            id: session.to_string(),
            reason: "a token with the scope observe only watches; control takes sessions up".to_owned(),
        })
    }

    /// Where the client joins a live session, and its answer.
    async fn show(
        &self,
        session: &SessionId,
        Joined { live, attached, until, earlier }: Joined,
        from: From,
    ) -> Result<Attachment, HostError> {
        let own_turn = attached.prompted_via.as_ref() == Some(&self.client.connection);
        let keeps_cursors = self.capabilities.keeps_cursors();
        let open = attached.open.iter().filter(|_| keeps_cursors).map(|question| question.number).collect();
        let own = LiveMeta {
            seq: keeps_cursors.then_some(until),
            turn_active: attached.turn_active,
            prompts_waiting: attached.waiting,
            last_stop_reason: attached.last_stop_reason,
            open_questions: open,
            previous_termination_info: earlier,
            transcript: attached.transcript,
        };
        let result = JoinResult { state: attached.result, meta: OwnMeta { own } };
        let answer = self.join_answer(until, &result).asking(attached.open);
        let (position, goes_on) = from.position(until)?;
        let own_turn = own_turn && from != From::Beginning;
        let cursor = self.host.cursor(session, self.read_behind(position, goes_on)).await?;
        let (live, skip_until) = (Some(live), position);
        Ok(Attachment { live, cursor, history_until: until, goes_on, skip_until, own_turn, answer })
    }

    /// The history of a session that cannot go on, and its answer, which says why.
    async fn show_history(
        &self,
        session: &SessionId,
        error: &HostError,
        from: From,
    ) -> Result<Attachment, HostError> {
        let shown = self.host.inspect(session, None).await?.session;
        let pid = match error {
            HostError::LiveElsewhere { pid, .. } => *pid,
            _ => None,
        };
        let reason = error.to_string();
        let seq = self.capabilities.keeps_cursors().then_some(shown.history.event_count);
        let own = ReadOnlyMeta { seq, resumable: false, reason, termination_info: shown.termination, pid };
        let result = JoinResult { state: LifecycleState::default(), meta: OwnMeta { own } };
        let until = shown.history.event_count;
        let (position, goes_on) = from.position(until)?;
        let cursor = self.host.cursor(session, self.read_behind(position, goes_on)).await?;
        let answer = self.join_answer(until, &result);
        let (live, skip_until, own_turn) = (None, position, false);
        Ok(Attachment { live, cursor, history_until: until, goes_on, skip_until, own_turn, answer })
    }

    /// The event behind which is read what is shown behind `position`. A client that knows no terminals and goes on was
    /// shown calls that the end of their command shows again.
    fn read_behind(&self, position: u64, goes_on: bool) -> u64 {
        match goes_on && !self.capabilities.knows_terminals() {
            true => position.saturating_sub(LOOKED_BACK),
            false => position,
        }
    }

    fn join_answer(&self, until: u64, result: &impl Serialize) -> Answer {
        let result = json(result);
        let result = Bytes::copy_from_slice(&self.capabilities.filter_result(&result));
        Answer::new(self.owing.clone(), until, answer_line(&self.owing.id, &Ok(result)))
    }
}

/// What a client wants to be shown of what there is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum From {
    /// All of it, as history.
    Beginning,
    /// What comes behind this event, as it was: it has seen what comes before.
    Behind(u64),
    /// Nothing.
    Now,
}

impl From {
    /// The last event that is not shown, and whether the client goes on there. `until` is the last one that there is.
    fn position(self, until: u64) -> Result<(u64, bool), HostError> {
        match self {
            Self::Beginning => Ok((0, false)),
            Self::Now => Ok((until, false)),
            Self::Behind(after) if after <= until => Ok((after, true)),
            Self::Behind(after) => {
                let message =
                    format!("_meta[{META:?}].after: there is no event {after}; the last one is {until}");
                Err(HostError::InvalidParams { message })
            }
        }
    }
}

/// What acpd itself is told of how to join.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct OwnParams {
    /// The last event that the client has seen.
    after: Option<u64>,
    /// A session that is not live is taken up.
    activate: bool,
}

impl Default for OwnParams {
    fn default() -> Self {
        Self { after: None, activate: true }
    }
}

impl OwnParams {
    fn read(params: &[u8]) -> Result<Self, HostError> {
        let wrong = |name, required| HostError::InvalidParams {
            message: format!("_meta[{META:?}].{name}: {required} is required"),
        };
        let params: Option<&RawValue> = serde_json::from_slice(params).ok();
        let own = params.and_then(|params| member(member(params, "_meta")?, META));
        let given = |name| own.and_then(|own| member(own, name)).filter(|given| given.get() != "null");
        let after = given("after").map(|after| serde_json::from_str(after.get()));
        let after = after.transpose().map_err(|_| wrong("after", "the number of an event"))?;
        let activate = given("activate").map(|activate| serde_json::from_str(activate.get()));
        let activate = activate.transpose().map_err(|_| wrong("activate", "true or false"))?;
        Ok(Self { after, activate: activate.unwrap_or(true) })
    }
}

/// A session whose history is there though it cannot go on.
fn is_readable(error: &HostError) -> bool {
    !matches!(
        error,
        HostError::UnknownSession { .. } | HostError::History { .. } | HostError::InvalidParams { .. }
    )
}

/// The answer to `session/load` and `session/resume`.
#[derive(Serialize)]
struct JoinResult<T> {
    #[serde(flatten)]
    state: LifecycleState,
    #[serde(rename = "_meta")]
    meta: OwnMeta<T>,
}

/// What the client goes on with.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct LiveMeta {
    /// The last event before the answer, for a client that keeps cursors.
    #[serde(skip_serializing_if = "Option::is_none")]
    seq: Option<u64>,
    turn_active: bool,
    /// Those behind the running turn.
    #[serde(skip_serializing_if = "is_zero")]
    prompts_waiting: usize,
    /// What it asks people now, by the numbers of the events; for the same.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    open_questions: Vec<QuestionNumber>,
    #[serde(skip_serializing_if = "Option::is_none")]
    last_stop_reason: Option<String>,
    /// PR-11: what was interrupted is seen by the client that goes on with it.
    #[serde(skip_serializing_if = "Option::is_none")]
    previous_termination_info: Option<Json>,
    #[serde(skip_serializing_if = "Option::is_none")]
    transcript: Option<TranscriptFacts>,
}

fn is_zero(waiting: &usize) -> bool {
    *waiting == 0
}

/// Why the session can only be read.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct ReadOnlyMeta {
    #[serde(skip_serializing_if = "Option::is_none")]
    seq: Option<u64>,
    resumable: bool,
    reason: String,
    /// TM-3: a replay has no ends of runs in it, so the answer says how the last one ended.
    #[serde(skip_serializing_if = "Option::is_none")]
    termination_info: Option<Json>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pid: Option<u32>,
}
