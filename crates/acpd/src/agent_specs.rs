//! What the host needs to know of agents, from the configuration.

use crate::config::{self, Config};
use acpd_host::{AgentSpec, FileRules, Graces, Offered, Program, Timeouts};
use std::collections::BTreeMap;

/// What the host needs to know of each configured agent.
pub(crate) fn agent_specs(config: &Config) -> BTreeMap<String, AgentSpec> {
    let agents = config.agents.iter();
    agents.map(|(name, agent)| (name.clone(), agent_spec(config, name, agent))).collect()
}

/// What the host needs to know of an agent.
pub(crate) fn agent_spec(config: &Config, name: &str, agent: &config::Agent) -> AgentSpec {
    // The form of an agent's name is narrow enough for a file's.
    let logs = config.storage.path.join("logs");
    AgentSpec {
        name: name.to_owned(),
        program: Program {
            command: agent.command.clone().into(),
            args: agent.args.iter().map(Into::into).collect(),
            env: agent.env.0.iter().map(|(name, value)| (name.into(), value.into())).collect(),
        },
        timeouts: Timeouts {
            graces: Graces { stdin: config.timeouts.stdin_grace, term: config.timeouts.term_grace },
            initialize: config.timeouts.initialize.limit(),
            cancel: Some(config.timeouts.cancel),
            permission: config.timeouts.permission.limit(),
            idle: config.timeouts.idle.limit(),
            stall: config.timeouts.stall.limit(),
        },
        share_process: agent.share_process,
        spare: agent.spare == 1,
        resume_with_transcript: agent.resume_with_transcript,
        stderr_log: agent.stderr_log.then(|| logs.join(format!("{name}.log"))),
        permission_mode: agent.permission_mode,
        line_limit: config.limits.line_bytes,
        control_daemon: agent.control_daemon,
        offered: Offered { files: agent.files, terminals: agent.terminals, ..Offered::default() },
        files: FileRules {
            confine: config.files.confine,
            max_bytes: config.files.max_bytes,
            forward: config.files.forward,
            ..FileRules::default()
        },
    }
}
