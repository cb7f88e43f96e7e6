//! The session that an agent names in an answer.

use crate::acp;
use crate::agent::{AgentHandle, Claim};
use crate::error::HostError;
use acpd_record::{NativeSessionId, SessionId};
use acpd_wire::{member, span_of};
use bytes::{Bytes, BytesMut};
use serde_json::value::RawValue;
use std::ops::Range;

/// A session as its agent named it.
pub(crate) struct NamedSession {
    /// The agent's id, as the agent wrote it.
    pub(crate) native: NativeSessionId,
    span: Range<usize>,
}

impl NamedSession {
    /// The session that an agent names in its answer to `method`.
    pub(crate) fn read(method: &str, answer: &[u8]) -> Result<Self, HostError> {
        let bad = || HostError::BadAnswer {
            method: method.to_owned(),
            detail: "it names no sessionId, or two".to_owned(),
        };
        let result: &RawValue = acp::view(answer).ok_or_else(bad)?;
        let raw = member(result, "sessionId").ok_or_else(bad)?;
        let native = NativeSessionId::of_json(raw.get()).ok_or_else(bad)?;
        let span = span_of(answer, raw).ok_or_else(bad)?;
        Ok(Self { native, span })
    }

    /// Claims it on its process, before anything is recorded of it.
    pub(crate) fn claim(&self, method: &str, agent: &AgentHandle) -> Result<Claim, HostError> {
        agent.claim(self.native.as_json()).ok_or_else(|| HostError::BadAnswer {
            method: method.to_owned(),
            detail: "it names a sessionId that another live session on its process has".to_owned(),
        })
    }

    /// The answer with acpd's own id.
    pub(crate) fn result_for(&self, answer: &[u8], id: &SessionId) -> Bytes {
        let mut result = BytesMut::new();
        acpd_wire::splice(&mut result, answer, &[(self.span.clone(), id.as_json().as_bytes())]);
        result.freeze()
    }
}
