//! The members that are counted, each in its object, and the kinds of updates.
//!
//! Pure tables. Not here: reading.

/// A member by which acpd routes or decides, in the object where it counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[expect(missing_docs, reason = "each is the member of the name that TABLE has")]
pub enum Member {
    JsonRpc,
    Id,
    Method,
    Params,
    Result,
    Error,
    SessionId,
    Update,
    RequestId,
    Meta,
    SessionUpdate,
    UpdateSessionId,
    SenderSessionId,
    RecipientSessionId,
    MessageId,
    ToolCallId,
}

/// An object whose members count.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Object {
    /// The line itself.
    Root,
    /// Its `params`.
    Params,
    /// The `update` of these.
    Update,
}

/// Each member with its object and its name, in the order of their numbers.
pub(super) const TABLE: [(Member, Object, &str); 16] = [
    (Member::JsonRpc, Object::Root, "jsonrpc"),
    (Member::Id, Object::Root, "id"),
    (Member::Method, Object::Root, "method"),
    (Member::Params, Object::Root, "params"),
    (Member::Result, Object::Root, "result"),
    (Member::Error, Object::Root, "error"),
    (Member::SessionId, Object::Params, "sessionId"),
    (Member::Update, Object::Params, "update"),
    (Member::RequestId, Object::Params, "requestId"),
    (Member::Meta, Object::Params, "_meta"),
    (Member::SessionUpdate, Object::Update, "sessionUpdate"),
    (Member::UpdateSessionId, Object::Update, "sessionId"),
    (Member::SenderSessionId, Object::Update, "senderSessionId"),
    (Member::RecipientSessionId, Object::Update, "recipientSessionId"),
    (Member::MessageId, Object::Update, "messageId"),
    (Member::ToolCallId, Object::Update, "toolCallId"),
];

impl Object {
    /// The member of this name, if it counts here.
    #[inline]
    pub(super) fn member(self, name: &[u8]) -> Option<Member> {
        let counted = match self {
            Self::Root => &TABLE[..6],
            Self::Params => &TABLE[6..10],
            Self::Update => &TABLE[10..],
        };
        counted.iter().find(|(.., known)| known.as_bytes() == name).map(|(member, ..)| *member)
    }

    /// A bit for each of its members, by their numbers.
    pub(super) const fn bits(self) -> u32 {
        match self {
            Self::Root => 0b11_1111,
            Self::Params => 0b1111 << 6,
            Self::Update => 0b11_1111 << 10,
        }
    }
}

/// Defines the kinds by their names on the wire.
macro_rules! kinds {
    ($($kind:ident $name:literal,)*) => {
        /// The kind of a `session/update`, as its member `sessionUpdate` names it.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        #[repr(u8)]
        #[expect(missing_docs, reason = "the kinds have ACP's words")]
        pub enum UpdateKind {
            $($kind,)*
            /// A kind that acpd does not know, or none.
            Other,
        }

        impl UpdateKind {
            /// The kind of this name.
            pub(super) fn of_name(name: &[u8]) -> Option<Self> {
                match name {
                    $(name if name == $name.as_bytes() => Some(Self::$kind),)*
                    _ => None,
                }
            }
        }

        #[cfg(test)]
        pub(super) const KINDS: &[(&str, UpdateKind)] = &[$(($name, UpdateKind::$kind),)*];
    };
}

kinds! {
    AgentMessageChunk "agent_message_chunk",
    AgentThoughtChunk "agent_thought_chunk",
    UserMessageChunk "user_message_chunk",
    ToolCallUpdate "tool_call_update",
    ToolCall "tool_call",
    Plan "plan",
    UsageUpdate "usage_update",
    SessionInfoUpdate "session_info_update",
    AvailableCommandsUpdate "available_commands_update",
    CurrentModeUpdate "current_mode_update",
    ConfigOptionUpdate "config_option_update",
    Notice "notice",
    CompactionUpdate "compaction_update",
    CompactionSummaryChunk "compaction_summary_chunk",
}
