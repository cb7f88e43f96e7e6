//! Sessions that their agent does not know: it is asked for a new one of its own, and given a transcript.
//!
//! Not here: what an agent makes of a session that it named.

use crate::error::HostError;
use crate::host::Host;
use crate::recording;
use acpd_eventlog::Batch;
use acpd_record::{Event, Position, Projection, RawMessage, SessionId, SessionMeta};

/// Why no agent goes on with a session.
pub(crate) const NEVER_NAMED: &str = "the agent never named it";

/// Why the agent of a session that it never named is asked for a new one at once; None: it is not asked.
pub(crate) fn why_anew(meta: &SessionMeta) -> Option<&'static str> {
    match (meta.imported, &meta.set_aside) {
        (true, _) => Some("it was imported, so its agent can go on with a transcript only"),
        (false, Some(_)) => Some(
            "another node has taken it up, so that the agent here can go on with this copy with a transcript only",
        ),
        (false, None) => None,
    }
}

impl Host {
    /// An agent does not know a session that was imported or set aside, so it goes on with a transcript or not at all.
    pub(crate) fn check_without_native(
        &self,
        id: &SessionId,
        agent: &str,
        meta: &SessionMeta,
    ) -> Result<(), HostError> {
        let gives_transcripts = || {
            let specs = self.shared.agents.specs();
            specs.iter().any(|spec| spec.name == agent && spec.resume_with_transcript)
        };
        match why_anew(meta) {
            None => Err(HostError::not_resumable(id, NEVER_NAMED)),
            Some(_) if gives_transcripts() => Ok(()),
            Some(why) => {
                let entry = format!("{why}; resume_with_transcript = true in [agents.{agent}] gives it one");
                Err(HostError::not_resumable(id, entry))
            }
        }
    }
}

/// The events that a run begins with after `started`, which the projection takes too. A copy that was set aside gets its title in its
/// first run: its log has that of the session.
pub(crate) fn first_events(
    id: &SessionId,
    meta: &SessionMeta,
    projection: &mut Projection,
    (started, now_ms): (&Event<'_>, i64),
) -> Batch {
    let title = meta.title.as_deref().filter(|_| meta.set_aside.is_some());
    let title = title.filter(|title| projection.snapshot().title() != Some(title));
    let title = title.map(|title| acpd_record::chosen_title(id, title));
    let title = title.as_deref().map(|line| Event::Update(RawMessage::stored(line)));
    let mut batch = Batch::new();
    for event in [started].into_iter().chain(&title) {
        projection.apply(Position { seq: projection.last_seq() + 1, at_ms: now_ms }, event);
        recording::push(&mut batch, now_ms, event);
    }
    batch
}

#[cfg(test)]
mod tests {
    use super::*;

    // design fleet, partition: which sessions go on by what was said in them only
    #[test]
    fn who_goes_on_with_a_transcript() {
        for (stored, expected) in [
            ("{}", None),
            (r#"{"imported":true}"#, Some("it was imported")),
            (r#"{"setAside":{"id":"s","by":"b"}}"#, Some("another node has taken it up")),
            (r#"{"imported":true,"setAside":{"id":"s","by":"b"}}"#, Some("it was imported")),
        ] {
            let why = why_anew(&SessionMeta::read(stored.as_bytes()));
            assert_eq!(why.is_some(), expected.is_some(), "{stored}");
            assert!(why.unwrap_or_default().starts_with(expected.unwrap_or_default()), "{stored}: {why:?}");
        }
    }
}
