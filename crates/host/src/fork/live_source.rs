//! Forking a session that is live in a process of its own: that process knows it as it is now, and may be the only one that
//! knows it at all.

use super::{ForkOf, is_missing, with_session};
use crate::acp::method;
use crate::agent::{AgentAnswer, AgentHandle};
use crate::host::Host;
use crate::named::NamedSession;
use acpd_api::SessionState;
use acpd_record::NativeSessionId;
use std::sync::Arc;

/// The params of a message that only names a session.
fn only(native: &NativeSessionId) -> Vec<u8> {
    [b"{\"sessionId\":", native.as_json().as_bytes(), b"}"].concat()
}

impl Host {
    /// Has the process of the source fork it, and `agent` take up the fork. The answer to the fork, which may be that there is no
    /// such method; None where the source is not idle in another process, or one of the two refuses.
    pub(super) async fn fork_where_it_lives(
        &self,
        fork: &ForkOf,
        agent: &AgentHandle,
    ) -> Option<AgentAnswer> {
        let live = self.shared.sessions.live.get(&fork.source)?;
        let own = live.agent().upgrade().filter(|own| own.pid() != agent.pid())?;
        // A turn is not disturbed.
        if live.look()?.state != SessionState::Idle {
            return None;
        }
        let (agents, taking) = (&self.shared.agents, agent.downgrade());
        let methods: Vec<_> = taking.activation_methods().into_iter().collect();
        if methods.is_empty() {
            return None;
        }
        let forked = agents.ask_for_session(&own, method::SESSION_FORK, fork.params.clone()).await.ok()?;
        if forked.is_error {
            // One that has no such method has it in no process.
            return Some(forked).filter(is_missing);
        }
        let native = NamedSession::read(method::SESSION_FORK, &forked.body).ok()?.native;
        own.disown(Arc::clone(native.as_json()));
        // Some agents lock a session to one process, so that one has to let go of it.
        if let Some(close) = own.info().close_method() {
            drop(agents.ask_for_session(&own, close, only(&native).into()).await);
        }
        let params = with_session(&fork.params, native.as_json().as_bytes())?;
        for method in methods {
            let taken = agents.ask_for_session(agent, method, params.clone()).await.ok()?;
            if !taken.is_error {
                // What it replays comes before this answer.
                return Some(AgentAnswer { position: taken.position, ..forked });
            }
            if is_missing(&taken) {
                agent.methods().remember_missing(method);
            }
        }
        None
    }
}
