//! Asking an agent for a session.

use super::{AgentAnswer, AgentHandle, Agents};
use crate::error::HostError;
use crate::secrets::Secrets;
use bytes::Bytes;

impl Agents {
    /// Asks an agent for a session, by whatever method, within the bound that its start has. Unless it refuses, its
    /// process counts as used from then on, also if the answer is not waited for.
    pub(crate) async fn ask_for_session(
        &self,
        agent: &AgentHandle,
        method: &str,
        params: Bytes,
    ) -> Result<AgentAnswer, HostError> {
        let timeout = agent.spec().timeouts.initialize;
        agent.hide(Secrets::of_session(&params));
        let was_unused = agent.use_for_session();
        let asked = agent.request(method, Some(params));
        let answered = async {
            match timeout {
                Some(after) => match tokio::time::timeout(after, asked).await {
                    Ok(answer) => answer,
                    Err(_) => {
                        let (method, dropped) = (method.to_owned(), agent.dropped_line());
                        Err(HostError::Timeout { method, after, dropped })
                    }
                },
                None => asked.await,
            }
        };
        // It is not waited for when the host shuts down; a process of its own is stopped with its handle.
        let answer = self.starter.closing.run_until_cancelled(answered).await;
        let answer = answer.unwrap_or(Err(HostError::ShuttingDown))?;
        if answer.is_error && was_unused {
            agent.is_unused_again();
        }
        Ok(answer)
    }
}
