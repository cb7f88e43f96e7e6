//! Permissions that were refused without a question here: by the session's mode, by another client, in the end by time.
//!
//! Only the log has them. It is read when a turn has ended in a way that such a refusal explains. What events say is judged
//! without IO.

use super::catching_up::CATCHES_UP;
use super::conversation::Conversation;
use super::feed::Feed;
use super::lines::{Answered, WithMessage};
use crate::daemon::Event;
use crate::view::Question;
use acpd_record::AnsweredBy;
use acpd_wire::member;
use serde::Deserialize;
use serde_json::value::RawValue;
use std::borrow::Cow;
use std::collections::HashMap;
use tokio::time::Instant;

impl Conversation {
    /// Sees whether a permission was refused in the turn that has just ended so. What cannot be read was not refused.
    pub(super) async fn learn_of_refusals(&mut self, stop_reason: &str) {
        if self.refused || self.stop.is_some() || !matches!(stop_reason, "refusal" | "cancelled") {
            return;
        }
        let Some(session) = &self.session else { return };
        let Some(last) = self.home.look(session).await.map(|session| session.event_count) else { return };
        let Some(mut feed) = Feed::open(&self.home, session, self.before).await else { return };
        let (mut refusals, until) = (Refusals::default(), Instant::now() + CATCHES_UP);
        while refusals.last < last
            && let Ok(Some(event)) = tokio::time::timeout_at(until, feed.next()).await
        {
            refusals.take(&event);
        }
        self.refused = refusals.ended_a_turn(stop_reason);
    }
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Outcome<'a> {
    #[serde(borrow)]
    outcome: Cow<'a, str>,
    #[serde(borrow, default)]
    option_id: Option<Cow<'a, str>>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Ended<'a> {
    #[serde(borrow, default)]
    stop_reason: Option<Cow<'a, str>>,
}

/// The refusals of a session, turn by turn.
#[derive(Debug, Default)]
struct Refusals {
    /// The last event that was taken.
    last: u64,
    /// By the number of each open permission, which the host bounds: the options that refuse it.
    refusing: HashMap<u64, Vec<String>>,
    /// One was refused in the turn that runs.
    now: bool,
    /// The turns that are over, by their stop reason: whether one was refused in the last of them.
    over: HashMap<String, bool>,
}

impl Refusals {
    fn take(&mut self, event: &Event) {
        self.last = event.seq;
        let json = event.json.as_str();
        match event.kind.as_str() {
            "prompt" => self.now = false,
            "permission_requested" => self.asked(json).unwrap_or_default(),
            "permission_resolved" => self.now |= self.is_refusal(json).unwrap_or_default(),
            "turn_ended" => {
                let ended: Option<Ended<'_>> = serde_json::from_str(json).ok();
                let reason = ended.and_then(|ended| ended.stop_reason).unwrap_or_default();
                self.over.insert(reason.into_owned(), self.now);
            }
            _ => {}
        }
    }

    fn asked(&mut self, json: &str) -> Option<()> {
        let asked: WithMessage<'_> = serde_json::from_str(json).ok()?;
        let question = Question::read(member(asked.message, "params")?.get().as_bytes())?;
        let refusing = question.options().iter().filter(|option| option.refuses());
        self.refusing.insert(asked.request, refusing.map(|option| option.id.clone()).collect());
        Some(())
    }

    fn is_refusal(&mut self, json: &str) -> Option<bool> {
        let answered: Answered<'_> = serde_json::from_str(json).ok()?;
        let refusing = self.refusing.remove(&answered.request)?;
        let outcome: &RawValue = member(answered.result?, "outcome")?;
        let outcome: Outcome<'_> = serde_json::from_str(outcome.get()).ok()?;
        Some(match (&*outcome.outcome, outcome.option_id) {
            ("selected", Some(id)) => refusing.iter().any(|refusing| *refusing == id),
            // An agent that offers no way to refuse. Else it is cancelled with its turn.
            ("cancelled", _) => match answered.by {
                Some(AnsweredBy::Mode(_)) => true,
                Some(AnsweredBy::Cause(cause)) => matches!(&*cause, "timeout" | "nobody"),
                Some(AnsweredBy::Client(_)) | None => false,
            },
            _ => false,
        })
    }

    /// Whether one was refused in the last turn that ended so.
    fn ended_a_turn(&self, stop_reason: &str) -> bool {
        self.over.get(stop_reason).copied().unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    fn of(events: &[Value]) -> Refusals {
        let mut refusals = Refusals::default();
        for (seq, event) in (1..).zip(events) {
            let mut event = event.clone();
            event["seq"] = json!(seq);
            refusals.take(&Event::read(&event.to_string()).expect("an event"));
        }
        refusals
    }

    fn asked() -> Value {
        let options =
            json!([{"optionId": "y", "kind": "allow_once"}, {"optionId": "n", "kind": "reject_always"}]);
        json!({"kind": "permission_requested", "request": 9, "message": {"params": {"options": options}}})
    }

    fn ended(reason: &str) -> Value {
        json!({"kind": "turn_ended", "turn": 1, "stopReason": reason})
    }

    // contract 7.1: a permission is refused by a rejecting option, whatever chose it, or by a mode that found none
    #[test]
    fn a_refusal_is_told_from_a_cancellation() {
        let selected = |id: &str| json!({"outcome": "selected", "optionId": id});
        let cancelled = || json!({"outcome": "cancelled"});
        for (outcome, by, refused) in [
            (selected("n"), json!({"mode": "deny"}), true),
            (selected("n"), json!({"client": "other"}), true),
            (selected("n"), json!({"cause": "timeout"}), true),
            (selected("y"), json!({"mode": "bypassPermissions"}), false),
            (selected("?"), json!({"client": "other"}), false),
            (cancelled(), json!({"mode": "deny"}), true),
            (cancelled(), json!({"cause": "timeout"}), true),
            (cancelled(), json!({"cause": "cancel"}), false),
            (cancelled(), json!({"client": "other"}), false),
            (json!({"outcome": "of a later version"}), json!({"mode": "deny"}), false),
        ] {
            let answered = json!({"kind": "permission_resolved", "request": 9, "by": by, "result": {"outcome": outcome}});
            let refusals = of(&[json!({"kind": "prompt"}), asked(), answered, ended("refusal")]);
            assert_eq!(refusals.ended_a_turn("refusal"), refused, "{outcome} {by}");
            assert!(!refusals.ended_a_turn("cancelled"));
        }
    }

    // contract 7.1: a refusal counts for its own turn, and what cannot be read for none
    #[test]
    fn a_refusal_is_of_its_turn() {
        let prompt = || json!({"kind": "prompt"});
        let refused = json!({"kind": "permission_resolved", "request": 9, "by": {"mode": "deny"},
            "result": {"outcome": {"outcome": "selected", "optionId": "n"}}});
        let refusals =
            of(&[prompt(), asked(), refused.clone(), ended("refusal"), prompt(), ended("cancelled")]);
        assert!(refusals.ended_a_turn("refusal") && !refusals.ended_a_turn("cancelled"));
        assert_eq!(refusals.last, 6);
        let odd =
            json!({"kind": "permission_requested", "request": 9, "message": {"params": {"options": 7}}});
        assert!(!of(&[prompt(), odd, refused, ended("refusal")]).ended_a_turn("refusal"));
    }
}
