//! The agent's questions that one client was asked and has not answered: acpd's own requests to that client.
//!
//! Each client is asked under an id of its own (FR-2), which is never the agent's. Shared by the connection, which takes
//! the answers, and its viewers, which ask; it is never held across a wait.

use acpd_host::OpenQuestion;
use acpd_record::{QuestionNumber, SessionId};
use acpd_wire::{member, span_of, splice, write_notification};
use bytes::{BufMut, BytesMut};
use parking_lot::{Mutex, MutexGuard};
use serde_json::value::RawValue;
use std::collections::BTreeMap;
use std::sync::Arc;

/// A question by its session and the number of its event there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct EventPosition {
    pub(crate) session: SessionId,
    pub(crate) number: QuestionNumber,
}

/// What the answer of a client is an answer to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum AskedQuestion {
    /// This question; it is not open at this client any more.
    Open(EventPosition),
    /// Something it was asked once, and need not answer any more.
    Over,
    /// Nothing that it was ever asked.
    Never,
}

/// The open questions of one client.
#[derive(Clone, Debug, Default)]
pub(crate) struct Questions(Arc<Mutex<Table>>);

/// Answers of one client to one question that may be refused; then it is not asked again.
const REFUSALS: u8 = 5;

#[derive(Debug, Default)]
struct Table {
    /// Ids so far; they are never used again.
    asked: u64,
    open: BTreeMap<u64, EventPosition>,
    /// Refused answers to questions that may still be open.
    refused: Vec<(EventPosition, u8)>,
}

impl Questions {
    /// Writes a question as a request of this client, unless it is open there.
    pub(crate) fn ask(&self, session: &SessionId, question: &OpenQuestion, out: &mut BytesMut) {
        let mut table = self.table();
        let position = EventPosition { session: session.clone(), number: question.number };
        if table.open.values().any(|open| *open == position) {
            return;
        }
        let id = table.asked + 1;
        if put_request(&question.message, id, out) {
            table.asked = id;
            table.open.insert(id, position);
        }
    }

    /// The client has answered the request `id`.
    pub(crate) fn answered(&self, id: u64) -> AskedQuestion {
        let mut table = self.table();
        match table.open.remove(&id) {
            Some(position) => AskedQuestion::Open(position),
            None if (1..=table.asked).contains(&id) => AskedQuestion::Over,
            None => AskedQuestion::Never,
        }
    }

    /// Counts a refused answer; whether the client is asked again.
    pub(crate) fn is_asked_again(&self, position: &EventPosition) -> bool {
        let mut table = self.table();
        let refused = &mut table.refused;
        let at = refused.iter().position(|(of, _)| of == position).unwrap_or_else(|| {
            refused.push((position.clone(), 0));
            refused.len() - 1
        });
        refused[at].1 += 1;
        refused[at].1 < REFUSALS
    }

    /// A question was answered: the client need not answer it.
    pub(crate) fn resolved(&self, session: &SessionId, number: QuestionNumber, out: &mut BytesMut) {
        self.withdraw(|position| position.session == *session && position.number == number, out);
    }

    /// The client does not watch a session any more, or its run is over.
    pub(crate) fn left(&self, session: &SessionId, out: &mut BytesMut) {
        self.withdraw(|position| position.session == *session, out);
    }

    fn withdraw(&self, which: impl Fn(&EventPosition) -> bool, out: &mut BytesMut) {
        let mut table = self.table();
        table.refused.retain(|(position, _)| !which(position));
        table.open.retain(|id, position| {
            let over = which(position);
            if over {
                let params = format!("{{\"requestId\":{id}}}");
                write_notification(out, acpd_host::method::CANCEL_REQUEST, Some(params.as_bytes()));
            }
            !over
        });
    }

    fn table(&self) -> MutexGuard<'_, Table> {
        self.0.lock()
    }
}

/// Writes the agent's request with another id, the rest as it is.
fn put_request(message: &[u8], id: u64, out: &mut BytesMut) -> bool {
    let raw: Option<&RawValue> = serde_json::from_slice(message).ok();
    let Some(span) = raw.and_then(|raw| span_of(message, member(raw, "id")?)) else { return false };
    splice(out, message, &[(span, id.to_string().as_bytes())]);
    out.put_u8(b'\n');
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    fn id(text: &str) -> SessionId {
        SessionId::parse(text).expect("an id")
    }

    fn question(number: QuestionNumber) -> OpenQuestion {
        let message = r#"{"jsonrpc":"2.0","id":"agent's","method":"m","params":{"x":1.0,"id":2}}"#;
        OpenQuestion { number, form: false, only: None, message: message.into() }
    }

    fn written(write: impl FnOnce(&mut BytesMut)) -> String {
        let mut out = BytesMut::new();
        write(&mut out);
        String::from_utf8(out.to_vec()).expect("text")
    }

    // PE-1, FR-2: the request as it is, but for its id, which is the client's own
    // quirk ids-from-zero (all agents): each client is asked under an id of its own, and the agent is answered under
    // its own
    #[test]
    fn each_client_is_asked_under_an_id_of_its_own() {
        let questions = Questions::default();
        let first = written(|out| questions.ask(&id("s"), &question(QuestionNumber(5)), out));
        assert_eq!(
            first,
            "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"m\",\"params\":{\"x\":1.0,\"id\":2}}\n"
        );
        assert_eq!(
            written(|out| questions.ask(&id("s"), &question(QuestionNumber(5)), out)),
            "",
            "it is open there"
        );
        assert!(
            written(|out| questions.ask(&id("t"), &question(QuestionNumber(5)), out)).contains("\"id\":2,")
        );
        assert_eq!(
            questions.answered(1),
            AskedQuestion::Open(EventPosition { session: id("s"), number: QuestionNumber(5) })
        );
        assert_eq!(
            (questions.answered(1), questions.answered(3)),
            (AskedQuestion::Over, AskedQuestion::Never)
        );
    }

    // PE-2, PE-3: what another client answered, and what is not watched any more, is withdrawn
    #[test]
    fn what_needs_no_answer_is_withdrawn() {
        let questions = Questions::default();
        for (session, number) in [("s", 1), ("s", 2), ("t", 1)] {
            written(|out| questions.ask(&id(session), &question(QuestionNumber(number)), out));
        }
        let withdrawn = written(|out| questions.resolved(&id("s"), QuestionNumber(1), out));
        assert_eq!(
            withdrawn,
            "{\"jsonrpc\":\"2.0\",\"method\":\"$/cancel_request\",\"params\":{\"requestId\":1}}\n"
        );
        assert_eq!(written(|out| questions.resolved(&id("s"), QuestionNumber(1), out)), "");
        assert!(written(|out| questions.left(&id("s"), out)).contains("\"requestId\":2"));
        assert_eq!(questions.answered(2), AskedQuestion::Over);
        assert!(matches!(questions.answered(3), AskedQuestion::Open(_)));
    }
}
