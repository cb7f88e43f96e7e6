//! Heartbeats: a node says that it is there, and finds out when another one says so under its name.

use super::{Local, Member};
use crate::engine::{EngineError, Expected};

impl Member {
    /// Says once in a heartbeat that this node is there.
    pub(super) async fn beat(&self, local: &dyn Local) -> ! {
        loop {
            self.shared.me.lock().record.room = local.room();
            let trouble = self.beat_once().await.err();
            let before = std::mem::replace(&mut self.shared.me.lock().trouble, trouble.clone());
            match (&before, &trouble) {
                (_, Some(reason)) if before != trouble => {
                    tracing::warn!(reason, "the fleet does not know of this node");
                }
                (Some(_), None) => tracing::info!("the fleet knows of this node again"),
                _ => {}
            }
            tokio::select! {
                () = tokio::time::sleep(self.shared.lease.heartbeat()) => {}
                () = self.shared.changed.notified() => {}
            }
        }
    }

    async fn beat_once(&self) -> Result<(), String> {
        let engine = &self.shared.engine;
        for _ in 0..2 {
            let begun = self.now();
            let (record, expected, was_heard) = {
                let me = self.shared.me.lock();
                let expected = me.revision.map_or(Expected::Nothing, Expected::Unchanged);
                (me.record.clone(), expected, me.heard.is_some())
            };
            match engine.put_node(&record, expected).await {
                Ok(revision) => {
                    let mut me = self.shared.me.lock();
                    (me.revision, me.heard) = (Some(revision), Some(begun));
                    return Ok(());
                }
                Err(EngineError::Conflict) => {}
                Err(error) => return Err(error.to_string()),
            }
            // It has gone by its lease, is that of an earlier life, or another node has the name.
            let found = engine.node(&record.name).await.map_err(|error| error.to_string())?;
            let revision = match found {
                None => None,
                Some((found, _)) if found.id != record.id => {
                    let at = found.address.as_deref().unwrap_or("an unknown address");
                    return Err(format!(
                        "another node is called {}, at {at}; give this one another name by `node` in [fleet]",
                        record.name
                    ));
                }
                Some((found, _)) if found.run != record.run && was_heard => {
                    return Err("another node has a copy of this one's state directory; remove the file node-id in the copy".to_owned());
                }
                Some((_, revision)) => Some(revision),
            };
            self.shared.me.lock().revision = revision;
        }
        Err("others write this node's entry".to_owned())
    }
}
