//! The members that are counted, each in its object, and the kinds of updates.
//!
//! Pure tables. Not here: reading.

/// A member by which acpd routes or decides, in the object where it counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[expect(missing_docs, reason = "each is the member of the name that Object::member has")]
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

/// How many members count.
pub(super) const MEMBERS: usize = Member::ToolCallId as usize + 1;

/// Where each member stands in a line, by its number.
pub(super) const PLACES: [&str; MEMBERS] = [
    "jsonrpc",
    "id",
    "method",
    "params",
    "result",
    "error",
    "params.sessionId",
    "params.update",
    "params.requestId",
    "params._meta",
    "params.update.sessionUpdate",
    "params.update.sessionId",
    "params.update.senderSessionId",
    "params.update.recipientSessionId",
    "params.update.messageId",
    "params.update.toolCallId",
];

impl Object {
    /// The member of this name, if it counts here.
    #[inline]
    pub(super) fn member(self, name: &[u8]) -> Option<Member> {
        Some(match (self, name) {
            (Self::Root, b"jsonrpc") => Member::JsonRpc,
            (Self::Root, b"id") => Member::Id,
            (Self::Root, b"method") => Member::Method,
            (Self::Root, b"params") => Member::Params,
            (Self::Root, b"result") => Member::Result,
            (Self::Root, b"error") => Member::Error,
            (Self::Params, b"sessionId") => Member::SessionId,
            (Self::Params, b"update") => Member::Update,
            (Self::Params, b"requestId") => Member::RequestId,
            (Self::Params, b"_meta") => Member::Meta,
            (Self::Update, b"sessionUpdate") => Member::SessionUpdate,
            (Self::Update, b"sessionId") => Member::UpdateSessionId,
            (Self::Update, b"senderSessionId") => Member::SenderSessionId,
            (Self::Update, b"recipientSessionId") => Member::RecipientSessionId,
            (Self::Update, b"messageId") => Member::MessageId,
            (Self::Update, b"toolCallId") => Member::ToolCallId,
            _ => return None,
        })
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
                    $($name => Some(Self::$kind),)*
                    _ => None,
                }
            }
        }

        #[cfg(test)]
        pub(super) const KINDS: &[(&[u8], UpdateKind)] = &[$(($name, UpdateKind::$kind),)*];
    };
}

kinds! {
    AgentMessageChunk b"agent_message_chunk",
    AgentThoughtChunk b"agent_thought_chunk",
    UserMessageChunk b"user_message_chunk",
    ToolCallUpdate b"tool_call_update",
    ToolCall b"tool_call",
    Plan b"plan",
    UsageUpdate b"usage_update",
    SessionInfoUpdate b"session_info_update",
    AvailableCommandsUpdate b"available_commands_update",
    CurrentModeUpdate b"current_mode_update",
    ConfigOptionUpdate b"config_option_update",
    Notice b"notice",
    CompactionUpdate b"compaction_update",
    CompactionSummaryChunk b"compaction_summary_chunk",
}
