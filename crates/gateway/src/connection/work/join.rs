//! `session/load` and `session/resume`: where the client joins a session, live or activated for it.

use super::{Job, OwnMeta, Worked, answer_line, json};
use crate::connection::input::Outcome;
use crate::connection::tasks::{Done, Process};
use crate::viewer::{Answer, Attachment};
use acpd_host::{Attempt, HostError, Joined, Place, SessionHandle};
use acpd_record::{Json, LifecycleState, SessionId, TranscriptFacts};
use bytes::Bytes;
use serde::Serialize;

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
        let (joined, spare) = match place {
            Some(place) => self.host.join(&session, attempt, place, self.params.clone(), &self.client).await,
            None => (self.watch(&session).await, None),
        };
        let process = spare.map(Process::Unused);
        let shown = match joined {
            Ok(joined) => self.show(&session, joined, replay).await.map(|attachment| (attachment, None)),
            Err(error) if replay && is_readable(&error) => {
                self.show_history(&session, &error).await.map(|attachment| (attachment, Some(error)))
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
        replay: bool,
    ) -> Result<Attachment, HostError> {
        let own = LiveMeta {
            turn_active: attached.turn_active,
            prompts_waiting: attached.waiting,
            last_stop_reason: attached.last_stop_reason,
            previous_termination_info: earlier,
            transcript: attached.transcript,
        };
        let result = JoinResult { state: attached.result, meta: OwnMeta { own } };
        let answer = self.join_answer(until, &result).asking(attached.open);
        let cursor = self.host.cursor(session, if replay { 0 } else { until }).await?;
        Ok(Attachment { live: Some(live), cursor, history_until: until, answer })
    }

    /// The history of a session that cannot go on, and its answer, which says why.
    async fn show_history(&self, session: &SessionId, error: &HostError) -> Result<Attachment, HostError> {
        let summary = self.host.inspect(session, None).await?;
        let pid = match error {
            HostError::LiveElsewhere { pid, .. } => *pid,
            _ => None,
        };
        let reason = error.to_string();
        let own = ReadOnlyMeta { resumable: false, reason, termination_info: summary.termination, pid };
        let result = JoinResult { state: LifecycleState::default(), meta: OwnMeta { own } };
        let until = summary.history.event_count;
        let cursor = self.host.cursor(session, 0).await?;
        let answer = self.join_answer(until, &result);
        Ok(Attachment { live: None, cursor, history_until: until, answer })
    }

    fn join_answer(&self, until: u64, result: &impl Serialize) -> Answer {
        let result = json(result);
        let result = Bytes::copy_from_slice(&self.capabilities.filter_result(&result));
        Answer::new(until, answer_line(&self.id, &Ok(result)))
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
    turn_active: bool,
    /// Those behind the running turn.
    #[serde(skip_serializing_if = "is_zero")]
    prompts_waiting: usize,
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
    resumable: bool,
    reason: String,
    /// TM-3: a replay has no ends of runs in it, so the answer says how the last one ended.
    #[serde(skip_serializing_if = "Option::is_none")]
    termination_info: Option<Json>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pid: Option<u32>,
}
