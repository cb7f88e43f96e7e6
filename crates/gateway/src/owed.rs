//! Requests of one client that are owed an answer: each gets one, whatever is the first to have one.
//!
//! Shared by the connection, the tasks of its requests and its viewers, which outlive those. Not here: what the answers are,
//! and whether a request is open, which the core of the connection knows.

use acpd_wire::OwnedId;
use parking_lot::Mutex;
use std::collections::HashSet;
use std::sync::Arc;

/// The requests without an answer so far.
#[derive(Clone, Debug, Default)]
pub(crate) struct Owed(Arc<Mutex<HashSet<OwnedId>>>);

/// What is owed to one request.
#[derive(Clone, Debug)]
pub(crate) struct Owing {
    owed: Owed,
    pub(crate) id: OwnedId,
}

impl Owed {
    /// The client asks something.
    pub(crate) fn add(&self, id: OwnedId) {
        self.0.lock().insert(id);
    }

    pub(crate) fn to(&self, id: OwnedId) -> Owing {
        Owing { owed: self.clone(), id }
    }

    /// Each that is owed an answer now.
    pub(crate) fn all(&self) -> Vec<Owing> {
        self.0.lock().iter().cloned().map(|id| self.to(id)).collect()
    }
}

impl Owing {
    /// Hands an answer over by `give`, which says whether it was taken. None: the request has its answer.
    pub(crate) fn settle<T>(&self, give: impl FnOnce() -> T, is_taken: impl FnOnce(&T) -> bool) -> Option<T> {
        let mut owed = self.owed.0.lock();
        if !owed.contains(&self.id) {
            return None;
        }
        let given = give();
        if is_taken(&given) {
            owed.remove(&self.id);
        }
        Some(given)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::outbox::outbox;
    use bytes::Bytes;

    fn id(text: &str) -> OwnedId {
        let raw: &serde_json::value::RawValue = serde_json::from_str(text).expect("JSON");
        acpd_wire::RawId::new(raw).expect("an id").to_owned()
    }

    // FR-3: a client that does not read while acpd ends is told of a viewer, or that acpd ends, and not both
    #[tokio::test]
    async fn of_two_answers_that_wait_for_room_one_is_sent() {
        let (outbox, mut sent) = outbox();
        let owed = Owed::default();
        owed.add(id("7"));
        while futures_util::FutureExt::now_or_never(outbox.send("before".into())).is_some() {}
        let answer = |line: &'static str| {
            let (outbox, owing) = (outbox.clone(), owed.to(id("7")));
            async move { outbox.answer(&owing, line.into()).await.expect("the client is there") }
        };
        let (one, other) = (answer("one"), answer("other"));
        drop(outbox);
        let mut lines = Vec::new();
        let reading = async {
            while let Some(line) = sent.recv().await {
                lines.push(line);
            }
        };
        futures_util::join!(one, other, reading);
        lines.retain(|line: &Bytes| line != "before");
        assert_eq!(lines.len(), 1, "{lines:?}");
    }
}
