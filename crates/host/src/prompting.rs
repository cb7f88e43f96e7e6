//! Prompting a session without waiting for the end of the turn, and the prompts of one that has ended.

use crate::error::HostError;
use crate::host::Host;
use crate::session::{self, ClientRef, Prompted};
use acpd_record::{PromptKey, SessionId, SessionMeta};
use bytes::Bytes;

impl Host {
    /// Prompts a live session; `params` are those of `session/prompt`. The turn has begun then, and that is committed, or
    /// the prompt waits in line. A prompt that came before under its key is not begun again, and is found also when the
    /// session has ended.
    ///
    /// # Errors
    /// When there is no such session or it has ended, as many prompts wait as may, or the params are wrong.
    pub async fn prompt(
        &self,
        id: &SessionId,
        params: Bytes,
        client: ClientRef,
    ) -> Result<Prompted, HostError> {
        let prompted = match self.session(id).await {
            Ok(live) => live.prompt(params.clone(), client).await,
            Err(error) => Err(error),
        };
        match (prompted, session::key_of(&params)?) {
            (Err(HostError::SessionEnded { info, .. }), Some(key)) => match self.stored(id, &key).await? {
                Some(prompted) => Ok(prompted),
                None => Err(HostError::SessionEnded { id: id.to_string(), info }),
            },
            (prompted, _) => prompted,
        }
    }

    /// The prompt of an ended session under a key.
    async fn stored(&self, id: &SessionId, key: &PromptKey) -> Result<Option<Prompted>, HostError> {
        let row = self.shared.store.row(id).await?;
        let _one_of_few = self.shared.store.one_of_few().await;
        let meta = SessionMeta::read(&row.info);
        let log = self.shared.store.recall(id, &meta, row.last_seq).await?;
        let known = session::turn_under(&log, key)?;
        Ok(known.map(|known| Prompted::Began { turn: known.turn, seq: known.seq }))
    }
}
