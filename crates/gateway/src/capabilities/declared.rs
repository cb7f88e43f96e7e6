//! What a client says of itself in `initialize`. What it says otherwise than ACP has it counts as not said.

use super::{ClientCapabilities, KnownTerminals};
use acpd_host::HostError;
use acpd_record::SessionId;
use serde::de::{Deserialize, Deserializer, IgnoredAny};

/// Bytes of a secret: as many as cannot be guessed, and no more than it takes.
const SECRET: std::ops::RangeInclusive<usize> = 16..=255;

/// Types whose members may each be something else, which counts as nothing.
macro_rules! said {
    ($($(#[$doc:meta])* $vis:vis $name:ident { $($(#[$attr:meta])* $of:vis $member:ident: $type:ty),* })*) => {$(
        $(#[$doc])*
        #[derive(Clone, Debug, Default, PartialEq, Eq, serde::Deserialize)]
        #[serde(rename_all = "camelCase", default)]
        $vis struct $name {
            $($(#[$attr])* #[serde(deserialize_with = "lenient")] $of $member: $type),*
        }
    )*};
}

said! {
    /// The params of `initialize`.
    pub(crate) InitializeParams {
        protocol_version: Option<u64>,
        pub(crate) client_info: ClientInfo,
        client_capabilities: Declared,
        #[serde(rename = "_meta")] meta: ParamsMeta
    }
    ParamsMeta { #[serde(rename = "sandboxagent.dev")] own: Intent }
    /// What it is going to do.
    Intent { joins: Option<String>, secret: Option<String> }
    /// Which program it is.
    pub(crate) ClientInfo { pub(crate) name: Option<String>, pub(crate) version: Option<String> }
    /// Its capabilities.
    Declared {
        session: Session,
        auth: Auth,
        elicitation: Elicitation,
        fs: Files,
        terminal: bool,
        #[serde(rename = "_meta")] meta: Meta
    }
    Session { notices: Option<Object>, compaction: Option<Object>, config_options: ConfigOptions }
    ConfigOptions { boolean: Option<Object> }
    Auth { terminal: bool }
    Elicitation { form: Option<Object>, url: Option<Object> }
    Files { read_text_file: bool, write_text_file: bool }
    Meta { #[serde(rename = "sandboxagent.dev")] own: OwnMeta }
    OwnMeta { terminals: bool, cursors: bool }
}

/// Whatever an object holds.
#[derive(Clone, Debug, PartialEq, Eq, serde::Deserialize)]
struct Object {}

impl InitializeParams {
    /// Reads them.
    pub(crate) fn read(params: Option<&[u8]>) -> Result<Self, HostError> {
        let invalid = |message: &str| HostError::InvalidParams { message: message.to_owned() };
        let params = params.unwrap_or(b"{}");
        if !params.starts_with(b"{") {
            return Err(invalid("params: an object is required"));
        }
        let read = acpd_wire::read::<Self>(params).map_err(|error| invalid(&format!("params: {error}")))?;
        // Any number is an offer to negotiate; acpd speaks 1 and says so (IN-1).
        let wrong_version =
            "protocolVersion: the latest version that the client speaks is required, as an integer";
        read.protocol_version.ok_or_else(|| invalid(wrong_version))?;
        Ok(read)
    }

    /// The live session that the client is going to join, whose process can tell it all that a new one would.
    pub(crate) fn joins(&self) -> Option<SessionId> {
        SessionId::parse(self.meta.own.joins.as_deref()?)
    }

    /// What a client that comes back when its connection is lost is known by.
    pub(crate) fn secret(&self) -> Option<&str> {
        self.meta.own.secret.as_deref().filter(|secret| SECRET.contains(&secret.len()))
    }

    pub(crate) fn capabilities(&self) -> ClientCapabilities {
        let Declared { session, auth, elicitation, fs, terminal, meta } = &self.client_capabilities;
        ClientCapabilities {
            notices: session.notices.is_some(),
            compaction: session.compaction.is_some(),
            boolean_options: session.config_options.boolean.is_some(),
            terminal_auth: auth.terminal,
            forms: elicitation.form.is_some(),
            urls: elicitation.url.is_some(),
            reads: fs.read_text_file,
            writes: fs.write_text_file,
            terminals: match (meta.own.terminals, terminal) {
                (true, _) => KnownTerminals::Watched,
                (false, true) => KnownTerminals::Made,
                (false, false) => KnownTerminals::None,
            },
            cursors: meta.own.cursors,
            comes_back: self.secret().is_some(),
            only_watches: false,
        }
    }
}

/// A member that has the form that ACP gives it, or else none.
pub(super) fn lenient<'de, D, T>(deserializer: D) -> Result<T, D::Error>
where
    D: Deserializer<'de>,
    T: Deserialize<'de> + Default,
{
    #[derive(serde::Deserialize)]
    #[serde(untagged)]
    enum Said<T> {
        Well(T),
        Otherwise(IgnoredAny),
    }
    Ok(match Said::deserialize(deserializer)? {
        Said::Well(value) => value,
        Said::Otherwise(_) => T::default(),
    })
}
