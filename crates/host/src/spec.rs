//! How an agent is run: one entry of the configuration, complete.

use crate::files::FileRules;
use crate::services::Offered;
use acpd_record::PermissionMode;
use acpd_supervisor::Graces;
use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

/// The program of an agent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Program {
    /// A path, or a name to look for in `PATH`.
    pub command: OsString,
    /// Its arguments; no shell is involved.
    pub args: Vec<OsString>,
    /// Added to the inherited environment.
    pub env: Vec<(OsString, OsString)>,
}

/// How long it is waited for what; None waits for ever.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Timeouts {
    /// The waits of the stop ladder.
    pub graces: Graces,
    /// The agent's answer to `initialize` and `session/new`.
    pub initialize: Option<Duration>,
    /// How long the agent may ignore `session/cancel` before the prompt is answered without it.
    pub cancel: Option<Duration>,
    /// How long a permission request waits for a person before a reject option is chosen.
    pub permission: Option<Duration>,
    /// How long a session may do nothing before it ends.
    pub idle: Option<Duration>,
    /// How long nothing may come from an agent that is waited for, before that is told.
    pub stall: Option<Duration>,
}

/// An agent that can be started by its name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AgentSpec {
    /// The name clients use.
    pub name: String,
    /// What is started.
    pub program: Program,
    /// How long it is waited for what.
    pub timeouts: Timeouts,
    /// One process for all its sessions, instead of one each.
    pub share_process: bool,
    /// One initialized process more than there are sessions is kept ready ([`Agents::keep_spare`](crate::Agents::keep_spare));
    /// never with a shared process.
    pub spare: bool,
    /// A session that the agent can neither resume nor load goes on in a new session of the agent, which is given a
    /// transcript of the history.
    pub resume_with_transcript: bool,
    /// The file that its stderr is logged to, if that is wanted.
    pub stderr_log: Option<PathBuf>,
    /// Who answers its permission requests, unless a session says otherwise.
    pub permission_mode: PermissionMode,
    /// The longest line the agent may write, in bytes.
    pub line_limit: usize,
    /// Whether what it starts may use the daemon's own socket.
    pub control_daemon: bool,
    /// What it is offered by its client, which is acpd.
    pub offered: Offered,
    /// Which files its sessions are served.
    pub files: FileRules,
}

impl AgentSpec {
    /// An agent with a process for each session, and no more than ACP's defaults.
    pub fn new(name: String, program: Program) -> Self {
        Self {
            name,
            program,
            timeouts: Timeouts::default(),
            share_process: false,
            spare: false,
            resume_with_transcript: false,
            stderr_log: None,
            permission_mode: PermissionMode::Default,
            line_limit: acpd_wire::DEFAULT_LINE_LIMIT,
            control_daemon: false,
            offered: Offered::default(),
            files: FileRules::default(),
        }
    }
}
