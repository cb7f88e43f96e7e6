//! Heartbeats: a node says that it is there and that it belongs to the fleet, and finds out when another one says so under its name.

use super::{Local, Member};
use crate::directory::Reach;
use crate::engine::{EngineError, Expected};
use crate::name::NodeName;
use crate::record::NodeRecord;
use std::time::Duration;

/// How long a node that knows nothing yet waits.
const SOON: Duration = Duration::from_millis(50);

impl Member {
    /// Says once in a heartbeat that this node is there.
    pub(super) async fn beat(&self, local: &dyn Local) -> ! {
        loop {
            self.shared.me.lock().record.room = local.room();
            let trouble = self.beat_once().await.err();
            if let Err(error) = self.join().await {
                tracing::debug!(%error, "the fleet has not noted that this node belongs to it, for now");
            }
            let before = std::mem::replace(&mut self.shared.me.lock().trouble, trouble.clone());
            match (&before, &trouble) {
                (_, Some(reason)) if before != trouble => {
                    tracing::warn!(reason, "the fleet does not know of this node");
                }
                (Some(_), None) => tracing::info!("the fleet knows of this node again"),
                _ => {}
            }
            // At the beginning what the fleet has is told within moments.
            let pause = if self.is_new() { SOON } else { self.shared.lease.heartbeat() };
            tokio::select! {
                () = tokio::time::sleep(pause) => {}
                () = self.shared.changed.notified() => {}
            }
        }
    }

    /// Says that this node leaves, and that the directory has all that it has. Those that do not hear it wait for it to come back.
    pub(super) async fn say_that_it_leaves(&self) {
        self.shared.me.lock().record.left = true;
        // A heartbeat may have been on its way.
        if self.write_own_entry().await.is_ok() {
            // Nodes that begin later hear it so.
            let _unnoted = self.join().await;
        }
    }

    /// Has it noted that this node belongs to the fleet once it is heard, until it is removed, and what stays of it when it is gone. Under
    /// a name that it had before it belongs to it no longer.
    async fn join(&self) -> Result<(), EngineError> {
        let me = {
            let me = self.shared.me.lock();
            if me.revision.is_none() {
                return Ok(());
            }
            NodeRecord { room: 0, draining: false, incomplete: false, ..me.record.clone() }
        };
        let (is_noted, before) = {
            let watched = self.shared.directory.read();
            let renamed = watched.directory.members();
            let renamed = renamed.filter(|member| member.id == me.id && member.name != me.name);
            let before: Vec<NodeName> = renamed.map(|member| member.name.clone()).collect();
            (watched.directory.member(&me.name).is_some_and(|noted| **noted == me), before)
        };
        if !is_noted {
            self.shared.engine.put_member(&me).await?;
        }
        for name in before {
            self.shared.engine.remove_member(&name).await?;
        }
        Ok(())
    }

    async fn beat_once(&self) -> Result<(), String> {
        if self.shared.me.lock().record.left || !self.may_join().await? {
            return Ok(());
        }
        self.write_own_entry().await
    }

    /// Writes the entry of this node. Its name may be that of another one.
    async fn write_own_entry(&self) -> Result<(), String> {
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
                Some((found, revision)) if found.removed => Some(revision),
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

    /// Whether this node may say that it is there; false: not yet. A copy of another node's state directory is no node, whatever it is
    /// called: its sessions are that one's. The one that was there first stays.
    ///
    /// # Errors
    /// While the fleet may have the other one, or cannot be asked.
    async fn may_join(&self) -> Result<bool, String> {
        let (me, was_heard) = {
            let me = self.shared.me.lock();
            (me.record.clone(), me.heard.is_some())
        };
        if was_heard {
            return Ok(true);
        }
        if self.is_new() {
            return self.shared.engine.node(&me.name).await.map(|_| false).map_err(|error| error.to_string());
        }
        let watched = self.shared.directory.read();
        let mut others =
            watched.directory.nodes().filter(|(node, _)| node.id == me.id && node.name != me.name);
        match others.find(|(_, reach)| matches!(reach, Reach::Heard(_))) {
            None => Ok(true),
            Some((node, _)) => Err(format!(
                "node {} has the same state directory, or this is a copy of it; remove the file node-id in the copy. Where it \
                 was called so before, it is in the fleet under its new name within a lease",
                node.name
            )),
        }
    }
}
