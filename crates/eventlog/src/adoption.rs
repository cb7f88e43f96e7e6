//! A session whose host is gone and whose agent is not: another host goes on with it where it stands.
//!
//! Who may do that, and whether the host is gone, is decided above.

use std::sync::Arc;

use crate::appender::Appender;
use crate::batch::Batch;
use crate::failure::WriteError;
use crate::live::Live;
use crate::log::{self, EventLog};
use crate::metrics;
use crate::store::{self, SessionHead};
use crate::writer::Writer;

impl EventLog {
    /// Makes `owner` the host of a session that host `from` has live, in one commit with a batch, and gives its appender.
    /// Its state and position stay as they are but for what the batch changes; what the batch says of the owner does not
    /// count. From then on nothing is written by an appender that was opened for `from`.
    ///
    /// # Errors
    ///
    /// [`WriteError::Ended`] if it has ended, [`WriteError::TakenOver`] if another host has it, [`WriteError::Conflict`] if
    /// none has, [`WriteError::Live`] if it has an appender here.
    pub async fn adopt(
        &self,
        id: &str,
        from: &str,
        owner: &str,
        mut batch: Batch,
    ) -> Result<Appender, WriteError> {
        batch.check_size()?;
        if let Some(index) = &mut batch.index {
            index.owner = None;
        }
        let shared = Arc::clone(&self.shared);
        let (id, from, owner, bytes) = (id.to_owned(), from.to_owned(), owner.to_owned(), batch.cost());
        let job = move |writer: &mut Writer| {
            log::refuse_live(writer, &id)?;
            let subscribers = Arc::clone(writer.subscribers());
            let (row, after, blocks) = writer.transact(None, |transaction| {
                let found = store::session_head(transaction, &id)?;
                let head = match owned(found, &id, &from) {
                    Ok(head) => head,
                    Err(refused) => return Ok(Err(refused)),
                };
                store::move_owner(transaction, head.row, &owner)?;
                let head = SessionHead { owner: Some(owner.clone()), ..head };
                let blocks = log::append_behind(transaction, &subscribers, &head, &batch)?;
                Ok(Ok((head.row, head.last_seq, blocks)))
            })?;
            subscribers.tell();
            metrics::appended(batch.count, bytes as u64);
            let live = Arc::new(Live::new(id, row, Some(owner), after + batch.count));
            writer.adopted(Arc::clone(&live), blocks);
            Ok(Appender::new(shared, live))
        };
        self.shared.ask(bytes, job).await?
    }
}

/// The session, if it has not ended and is the host's.
fn owned(found: Option<SessionHead>, id: &str, host: &str) -> Result<SessionHead, WriteError> {
    let id = id.to_owned();
    match found {
        None => Err(WriteError::Unknown { id }),
        Some(SessionHead { ended: true, .. }) => Err(WriteError::Ended { id }),
        Some(head) if head.owner.as_deref() == Some(host) => Ok(head),
        Some(SessionHead { owner: Some(owner), .. }) => Err(WriteError::TakenOver { id, owner }),
        Some(_) => Err(WriteError::Conflict { id }),
    }
}
