//! The sections of the file as types. Doc comments give units, ranges and defaults; `Default` is the default.

use std::collections::BTreeMap;
use std::fmt;
use std::net::SocketAddr;
use std::num::NonZeroU32;
use std::path::PathBuf;
use std::time::Duration;

use clap::ValueEnum;
use jiff::Timestamp;
use serde::{Deserialize, Serialize, Serializer};

use super::amounts::{
    MIB, Wait, bounded, content_bytes, kept_bytes, kept_for, kept_size, kept_span, line_bytes, size, span,
};
use super::client::Client;
#[cfg(test)]
use super::described::{Bytes, BytesOrNever, ListenAddress, Moment, Place, Span, SpanOrNever};
use super::fleet::Fleet;
use super::hooks::Hook;
use super::limited::{self, Mcp};
use super::moment::some_moment;
use super::values::{
    address, arguments, command, count, file, hash, hosts, name, named, origins, path, some_count, spare,
    variables,
};
use super::{EXAMPLE_AGENT, PermissionMode, UnknownAgent};
use crate::absent::why_absent;
use crate::nearest::nearest;
use acpd_api::AgentOrigin;
use acpd_catalog::{KNOWN, Known, known};

/// Everything that can be configured.
#[derive(Debug, Clone, Default, PartialEq, Deserialize, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(default, deny_unknown_fields)]
pub struct Config {
    /// `[server]`: where the daemon listens and which agent is the default.
    pub server: Server,
    /// `[storage]`: where sessions are kept and how hard they are written.
    pub storage: Storage,
    /// `[continuity]`: agents that outlive the daemon.
    pub continuity: Continuity,
    /// `[timeouts]`: how long acpd waits for agents, people and processes.
    pub timeouts: Timeouts,
    /// `[terminal]`: commands that agents run.
    pub terminal: Terminal,
    /// `[files]`: files that agents read and write through acpd.
    pub files: Files,
    /// `[limits]`: bounds on what a peer can make acpd hold.
    pub limits: Limits,
    /// `[compat]`: deviations from the stable protocol for the sake of older peers.
    pub compat: Compat,
    /// `[client]`: the daemon that commands talk to.
    pub client: Client,
    /// `[fleet]`: the fleet that this daemon is a node of.
    pub fleet: Fleet,
    /// `[agents.NAME]`: the agents by name, without the built-in `example` unless the file has one of that name.
    #[serde(deserialize_with = "named")]
    #[cfg_attr(test, schemars(extend("propertyNames" = { "pattern": "^[0-9A-Za-z][0-9A-Za-z._-]{0,63}$" })))]
    pub agents: BTreeMap<String, Agent>,
    /// `[tokens.NAME]`: access to the daemon, by name.
    #[serde(deserialize_with = "named")]
    #[cfg_attr(test, schemars(extend("propertyNames" = { "pattern": "^[0-9A-Za-z][0-9A-Za-z._-]{0,63}$" })))]
    pub tokens: BTreeMap<String, Token>,
    /// `[[hooks]]`: URLs and commands that are told of what happens.
    #[cfg_attr(test, schemars(with = "Vec<super::hooks::Written>"))]
    pub hooks: Vec<Hook>,
    /// The file that was read; `None` when there was none. Not a key.
    #[serde(skip)]
    pub file: Option<PathBuf>,
}

impl Config {
    /// Why no other node of the fleet can take up sessions of this daemon, if none can.
    pub(crate) fn no_failover(&self) -> Option<String> {
        self.fleet.no_failover(&self.timeouts)
    }

    /// Whether a session can have an agent of that name: each that is configured, the one that is built in, and those that are
    /// known, which may be installed at any time.
    pub fn has_agent(&self, name: &str) -> bool {
        name == EXAMPLE_AGENT
            || self.agents.contains_key(name)
            || KNOWN.iter().any(|known| known.name == name)
    }

    /// The agent of that name, or an error that lists what there is.
    pub fn agent(&self, name: &str) -> Result<&Agent, UnknownAgent> {
        let names = || self.agents.keys().map(String::as_str).chain(KNOWN.iter().map(|known| known.name));
        let meant = || known(name).map(|known| known.name).or_else(|| nearest(name, names()));
        self.agents.get(name).ok_or_else(|| UnknownAgent {
            name: name.escape_debug().to_string(),
            absent: why_absent(name),
            meant: meant().map(str::to_owned),
            known: self.agents.keys().cloned().collect(),
        })
    }
}

/// `[server]`
#[derive(Debug, Clone, PartialEq, Deserialize, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(default, deny_unknown_fields)]
pub struct Server {
    /// Address and port of the daemon; `localhost` may stand for 127.0.0.1. Default `127.0.0.1:2273`.
    #[serde(deserialize_with = "address")]
    #[cfg_attr(test, schemars(with = "ListenAddress"))]
    pub listen: SocketAddr,
    /// The agent of a client that names none: a configured one or `example`. Default `example`.
    #[serde(deserialize_with = "name")]
    pub default_agent: String,
    /// Names that clients may call the daemon by, beside the address it listens on and `localhost`: the name of a
    /// reverse proxy, for instance. Default none.
    #[serde(deserialize_with = "hosts")]
    pub allowed_hosts: Vec<String>,
    /// Origins of web pages that may call the daemon, such as `https://acpd.example.org`. Default none but its own.
    #[serde(deserialize_with = "origins")]
    pub allowed_origins: Vec<String>,
    /// A PEM file with the certificate chain; with `tls_key` the daemon speaks TLS. `~/` is the home directory,
    /// and a relative path begins at the file's directory. Default none.
    #[serde(deserialize_with = "file")]
    #[cfg_attr(test, schemars(with = "Option<Place>"))]
    pub tls_cert: Option<PathBuf>,
    /// A PEM file with the private key of `tls_cert`. Default none.
    #[serde(deserialize_with = "file")]
    #[cfg_attr(test, schemars(with = "Option<Place>"))]
    pub tls_key: Option<PathBuf>,
    /// What SIGTERM and SIGINT do with agents that outlive the daemon by `[continuity] keep`: `end` ends them, `keep` has them wait for
    /// the next daemon. Default `end`.
    pub on_stop: OnStop,
}

/// What becomes of agents that can outlive the daemon when it is told to stop.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum OnStop {
    /// They end.
    #[default]
    End,
    /// They wait for the next daemon, as after its death.
    Keep,
}

impl Default for Server {
    fn default() -> Self {
        Server {
            listen: SocketAddr::from(([127, 0, 0, 1], 2273)),
            default_agent: EXAMPLE_AGENT.to_owned(),
            allowed_hosts: Vec::new(),
            allowed_origins: Vec::new(),
            tls_cert: None,
            tls_key: None,
            on_stop: OnStop::default(),
        }
    }
}

/// `[storage]`
#[derive(Debug, Clone, PartialEq, Deserialize, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(default, deny_unknown_fields)]
pub struct Storage {
    /// The state directory, absolute once loaded. In the file, `~/` is the home directory and a relative path
    /// begins at the file's directory. Default `$XDG_STATE_HOME/acpd`, else `~/.local/state/acpd`.
    #[serde(deserialize_with = "path")]
    #[cfg_attr(test, schemars(with = "Place"))]
    pub path: PathBuf,
    /// What an event that was shown survives. Default `process`.
    pub durability: Durability,
    /// Whether what is said in sessions can be searched for; without, the index is dropped. Default true.
    pub search: bool,
    /// Ended sessions that have not changed for longer are removed; a duration such as `30d`. Default `never`.
    #[serde(deserialize_with = "kept_for", serialize_with = "kept_span")]
    #[cfg_attr(test, schemars(with = "SpanOrNever"))]
    pub keep_for: Option<Duration>,
    /// The oldest ended sessions are removed while the stored blocks of all of them take more, in bytes: from 1 MiB on, as a
    /// number or as `"8 GiB"`. Default `never`.
    #[serde(deserialize_with = "kept_bytes", serialize_with = "kept_size")]
    #[cfg_attr(test, schemars(with = "BytesOrNever"))]
    pub keep_bytes: Option<u64>,
}

impl Default for Storage {
    fn default() -> Self {
        let (path, durability) = (PathBuf::default(), Durability::default());
        Self { path, durability, search: true, keep_for: None, keep_bytes: None }
    }
}

/// `[continuity]`
#[derive(Debug, Clone, PartialEq, Deserialize, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(default, deny_unknown_fields)]
pub struct Continuity {
    /// How long an agent waits for the next daemon when this one is gone; `0s`: it ends with it. Default `10m`.
    #[serde(deserialize_with = "bounded", serialize_with = "span")]
    #[cfg_attr(test, schemars(with = "Span"))]
    pub keep: Duration,
    /// How much of an agent's output is kept meanwhile, in bytes, as a number or as `"8 MiB"`; then the agent waits. 1 byte
    /// to 256 MiB. Default 8 MiB.
    #[serde(deserialize_with = "content_bytes", serialize_with = "size")]
    #[cfg_attr(test, schemars(with = "Bytes"))]
    pub detached_bytes: u64,
}

impl Default for Continuity {
    fn default() -> Self {
        Self { keep: Duration::from_secs(600), detached_bytes: 8 * MIB }
    }
}

/// What an event that a client has seen survives.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum Durability {
    /// The death of acpd, by SIGKILL too.
    #[default]
    Process,
    /// The loss of power: every group of writes is synced to the disk.
    Power,
}

/// `[timeouts]`; each is a duration such as `250ms`, `1s`, `5m`, `2h`, at most 366 days.
#[derive(Debug, Clone, PartialEq, Deserialize, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(default, deny_unknown_fields)]
pub struct Timeouts {
    /// How long an agent may take to answer `initialize`; `never` allowed. Default 60 s.
    pub initialize: Wait,
    /// From closing an agent's stdin to SIGTERM. Default 3 s.
    #[serde(deserialize_with = "bounded", serialize_with = "span")]
    #[cfg_attr(test, schemars(with = "Span"))]
    pub stdin_grace: Duration,
    /// From SIGTERM to SIGKILL. Default 5 s.
    #[serde(deserialize_with = "bounded", serialize_with = "span")]
    #[cfg_attr(test, schemars(with = "Span"))]
    pub term_grace: Duration,
    /// How long an agent may ignore `session/cancel` before acpd answers the prompt itself. Default 10 s.
    #[serde(deserialize_with = "bounded", serialize_with = "span")]
    #[cfg_attr(test, schemars(with = "Span"))]
    pub cancel: Duration,
    /// How long a permission request waits for a person before a reject option is chosen. Default `never`.
    pub permission: Wait,
    /// How long a session may do nothing before its process is stopped. Default `never`.
    pub idle: Wait,
    /// How long nothing may come from an agent in a turn before that is told; `never` allowed. Default 5 min.
    pub stall: Wait,
    /// How long a client may take nothing of what waits for it before it is closed, with a reason; nothing is lost when
    /// it comes back. Default 30 s.
    #[serde(deserialize_with = "bounded", serialize_with = "span")]
    #[cfg_attr(test, schemars(with = "Span"))]
    pub viewer_stall: Duration,
    /// How long an ACP connection over HTTP is kept while its events are not read. Default 5 min.
    #[serde(deserialize_with = "bounded", serialize_with = "span")]
    #[cfg_attr(test, schemars(with = "Span"))]
    pub connection_idle: Duration,
}

impl Default for Timeouts {
    fn default() -> Self {
        Timeouts {
            initialize: Wait::After(Duration::from_secs(60)),
            stdin_grace: Duration::from_secs(3),
            term_grace: Duration::from_secs(5),
            cancel: Duration::from_secs(10),
            permission: Wait::Never,
            idle: Wait::Never,
            stall: Wait::After(Duration::from_secs(300)),
            viewer_stall: Duration::from_secs(30),
            connection_idle: Duration::from_secs(300),
        }
    }
}

/// `[terminal]`
#[derive(Debug, Clone, PartialEq, Deserialize, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(default, deny_unknown_fields)]
pub struct Terminal {
    /// From SIGTERM to SIGKILL for a command. Default 5 s.
    #[serde(deserialize_with = "bounded", serialize_with = "span")]
    #[cfg_attr(test, schemars(with = "Span"))]
    pub graceful_shutdown_timeout: Duration,
    /// How long a command may run. Default `never`.
    pub default_execution_timeout: Wait,
    /// How much output is kept for a command that asks for no limit of its own, in bytes: 1 to 256 MiB,
    /// as a number or as `"1 MiB"`. Default 1 MiB.
    #[serde(deserialize_with = "content_bytes", serialize_with = "size")]
    #[cfg_attr(test, schemars(with = "Bytes"))]
    pub output_byte_limit: u64,
    /// `[terminal.command_timeouts]`: how long a command may run, by the name of its program.
    pub command_timeouts: BTreeMap<String, Wait>,
}

impl Default for Terminal {
    fn default() -> Self {
        Terminal {
            graceful_shutdown_timeout: Duration::from_secs(5),
            default_execution_timeout: Wait::Never,
            output_byte_limit: MIB,
            command_timeouts: BTreeMap::new(),
        }
    }
}

/// `[files]`
#[derive(Debug, Clone, PartialEq, Deserialize, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(default, deny_unknown_fields)]
pub struct Files {
    /// Serve only the files in a session's directories, wherever links lead. Default true.
    pub confine: bool,
    /// The longest content that is read or written at once, in bytes: 1 to 256 MiB, as a number or as `"1 MiB"`.
    /// Default 16 MiB.
    #[serde(deserialize_with = "content_bytes", serialize_with = "size")]
    #[cfg_attr(test, schemars(with = "Bytes"))]
    pub max_bytes: u64,
    /// Ask a client that serves files itself, such as an editor with unsaved changes, instead. Default false.
    pub forward: bool,
}

impl Default for Files {
    fn default() -> Self {
        Files { confine: true, max_bytes: 16 * MIB, forward: false }
    }
}

/// `[limits]`
#[derive(Debug, Clone, PartialEq, Deserialize, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(default, deny_unknown_fields)]
pub struct Limits {
    /// The longest line that an agent or a client may send, in bytes: 4 KiB to 1 GiB, as a number or as
    /// `"64 MiB"`. Default 64 MiB.
    #[serde(deserialize_with = "line_bytes", serialize_with = "size")]
    #[cfg_attr(test, schemars(with = "Bytes"))]
    pub line_bytes: usize,
    /// Live sessions that the bearer of one token may have created, unless its entry says otherwise; also for callers
    /// that need no token. Default 4096.
    #[serde(deserialize_with = "count")]
    pub sessions: NonZeroU32,
    /// ACP connections and event streams that the bearer of one token may have open; as `sessions`. Default 4096.
    #[serde(deserialize_with = "count")]
    pub connections: NonZeroU32,
    /// HTTP requests per second, as many at once, of the bearer of one token; as `sessions`. Default unlimited.
    #[serde(deserialize_with = "some_count")]
    pub requests_per_second: Option<NonZeroU32>,
}

/// What one bearer may hold unless something else is said.
const MANY: NonZeroU32 = NonZeroU32::new(4096).expect("it is not 0");

impl Default for Limits {
    fn default() -> Self {
        Limits { line_bytes: 64 << 20, sessions: MANY, connections: MANY, requests_per_second: None }
    }
}

/// `[compat]`; everything is off by default.
#[derive(Debug, Clone, Default, PartialEq, Deserialize, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(default, deny_unknown_fields)]
pub struct Compat {
    /// Advertise the first draft's `session: {"stop": {}}` in the root of the agent capabilities, which the
    /// stable protocol forbids.
    pub session_stop: bool,
}

/// Environment variables. Their values are often keys to an account; only the names may reach a log.
#[derive(Clone, Default, PartialEq)]
pub struct Variables(
    /// Values by name.
    pub BTreeMap<String, String>,
);

impl fmt::Debug for Variables {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_set().entries(self.0.keys()).finish()
    }
}

/// Names alone: a value stays where it is.
impl Serialize for Variables {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.collect_map(self.0.keys().map(|name| (name, "")))
    }
}

/// `[agents.NAME]`
#[derive(Debug, Clone, PartialEq, Deserialize, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Agent {
    /// The program, found in `PATH` or by its path, which may begin with `~/`. No shell reads it. Required.
    #[serde(deserialize_with = "command")]
    pub command: String,
    /// Its arguments. Default none.
    #[serde(default, deserialize_with = "arguments")]
    pub args: Vec<String>,
    /// Variables on top of the inherited environment. Default none.
    #[serde(default, deserialize_with = "variables")]
    pub env: Variables,
    /// One process for all sessions of this agent instead of one each. Default false.
    #[serde(default)]
    pub share_process: bool,
    /// How permission requests of its sessions are answered. Default `default`.
    #[serde(default)]
    pub permission_mode: PermissionMode,
    /// How many initialized processes are kept ready for new sessions: 0 or 1, and 0 with `share_process`. Default 0.
    #[serde(default, deserialize_with = "spare")]
    #[cfg_attr(test, schemars(range(max = 1)))]
    pub spare: u8,
    /// Where the agent can neither resume nor load a session, go on in a new one of its own and give it a transcript of
    /// the history with the next prompt; without, the session can only be read. Default false.
    #[serde(default)]
    pub resume_with_transcript: bool,
    /// Log what its processes write to stderr, in `logs/NAME.log` in the state directory. Default false.
    #[serde(default)]
    pub stderr_log: bool,
    /// Let what the agent starts use the daemon's Unix socket, without a token. Default false.
    #[serde(default)]
    pub control_daemon: bool,
    /// Offer the agent files (`fs/*`). Default true.
    #[serde(default = "yes")]
    pub files: bool,
    /// Offer the agent terminals (`terminal/*`). Default true.
    #[serde(default = "yes")]
    pub terminals: bool,
    /// Where it comes from. Not a key.
    #[serde(skip)]
    pub origin: AgentOrigin,
}

impl Agent {
    /// A known agent that is installed.
    pub(crate) fn found(command: String, known: &Known) -> Self {
        let owned = |text: &&str| (*text).to_owned();
        let env = known.env.iter().map(|(name, value)| (owned(name), owned(value)));
        Agent {
            env: Variables(env.collect()),
            files: known.wanted.files,
            stderr_log: known.wanted.stderr_log,
            origin: AgentOrigin::Found,
            ..Agent::builtin(command, known.args.iter().map(owned).collect())
        }
    }

    /// An agent that needs no entry in the file.
    pub fn builtin(command: String, args: Vec<String>) -> Self {
        Agent {
            origin: AgentOrigin::Builtin,
            command,
            args,
            env: Variables::default(),
            share_process: false,
            permission_mode: PermissionMode::default(),
            spare: 0,
            resume_with_transcript: false,
            stderr_log: false,
            control_daemon: false,
            files: true,
            terminals: true,
        }
    }
}

fn yes() -> bool {
    true
}

/// `[tokens.NAME]`
#[derive(Debug, Clone, PartialEq, Deserialize, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Token {
    /// `sha256:` and 64 hexadecimal digits: the hash of the token, never the token. Required.
    #[serde(deserialize_with = "hash")]
    pub hash: TokenHash,
    /// What its bearer may do. Default `observe`.
    #[serde(default)]
    pub scope: Scope,
    /// Whose sessions its bearer sees. Default `own`.
    #[serde(default)]
    pub sees: Sees,
    /// When it is refused from: a date, at midnight UTC, or a date with a time. Default never.
    #[serde(default, deserialize_with = "some_moment")]
    #[cfg_attr(test, schemars(with = "Option<Moment>"))]
    pub expires: Option<Timestamp>,
    /// The agents that a bearer with the scope control may use. Default any.
    #[serde(default, deserialize_with = "limited::agents")]
    pub agents: Option<Vec<String>>,
    /// The directories in which its sessions may work, and below which; absolute, or beginning with `~/`. Default any.
    #[serde(default, deserialize_with = "limited::roots")]
    pub roots: Option<Vec<String>>,
    /// The permission modes that its sessions may be in. Default any.
    #[serde(default, deserialize_with = "limited::modes")]
    pub permission_modes: Option<Vec<PermissionMode>>,
    /// The MCP servers that it may bring. Default `any`.
    #[serde(default)]
    pub mcp: Mcp,
    /// Instead of `sessions` in `[limits]`. Default as there.
    #[serde(default, deserialize_with = "some_count")]
    pub sessions: Option<NonZeroU32>,
    /// Instead of `connections` in `[limits]`. Default as there.
    #[serde(default, deserialize_with = "some_count")]
    pub connections: Option<NonZeroU32>,
    /// Instead of `requests_per_second` in `[limits]`. Default as there.
    #[serde(default, deserialize_with = "some_count")]
    pub requests_per_second: Option<NonZeroU32>,
}

/// The SHA-256 of a bearer token. Compare in constant time; `Debug` does not show it.
#[derive(Clone, PartialEq, Eq)]
pub struct TokenHash(
    /// The 32 bytes of the hash.
    pub [u8; 32],
);

/// Nothing of it.
impl Serialize for TokenHash {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.serialize_str("")
    }
}

impl fmt::Debug for TokenHash {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("TokenHash(..)")
    }
}

/// What the bearer of a token may do; each scope includes the one before.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Deserialize, Serialize, ValueEnum)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum Scope {
    /// List, inspect and watch.
    #[default]
    Observe,
    /// Also prompt, answer, cancel and close.
    Control,
    /// Also terminate any session, delete, and see agents and metrics.
    Admin,
}

/// Whose sessions the bearer of a token sees.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize, Serialize, ValueEnum)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum Sees {
    /// Those created under the token.
    #[default]
    Own,
    /// All.
    All,
}

/// The word of the configuration and the command line for one of a few.
pub fn word(one: impl ValueEnum) -> String {
    one.to_possible_value().expect("none is hidden").get_name().to_owned()
}
