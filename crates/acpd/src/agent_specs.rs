//! What the host needs to know of agents, from the configuration.

use crate::config::{self, Config};
use crate::known_agents::{known_by_name, variable};
use acpd_catalog::Habits;
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
    let mut spec = AgentSpec {
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
    };
    let habits = known_by_name(&spec).map_or(Habits::DEFAULT, |known| known.habits);
    spec.offered.transcript_resources = !habits.moves_resources;
    let own = habits.own_directory.and_then(|place| place.path(&|name| variable(&spec, name)));
    spec.files.agent_directory = own.filter(|directory| directory.is_absolute());
    spec
}

#[cfg(test)]
mod tests {
    use super::*;

    // contract 2.2: the directory of a known agent is served beside the session's
    // quirk resource-moved (agents that put embedded content last): the transcript of a session comes as text that says where
    // it ends, in front of the user's words
    // quirk file-outside
    #[test]
    fn what_is_known_of_an_agent_counts_in_any_entry() {
        let mut config = Config::default();
        let agent = |command: &str, env: &[(&str, &str)]| {
            let mut agent = config::Agent::builtin(command.to_owned(), Vec::new());
            agent.env.0.extend(env.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())));
            agent
        };
        let agents = [
            ("planner", agent("/opt/bin/kimi", &[("HOME", "/h")])),
            ("moved", agent("kimi", &[("HOME", "/h"), ("KIMI_CODE_HOME", "/else/where")])),
            ("relative", agent("kimi", &[("KIMI_CODE_HOME", "where")])),
            ("mover", agent("gemini", &[("HOME", "/h")])),
            ("mover-too", agent("claude-agent-acp", &[("HOME", "/h")])),
            ("other", agent("other", &[("HOME", "/h")])),
        ];
        config.agents = agents.map(|(name, agent)| (name.to_owned(), agent)).into();
        let seen: Vec<_> = agent_specs(&config)
            .into_iter()
            .map(|(name, spec)| (name, spec.files.agent_directory, spec.offered.transcript_resources))
            .collect();
        let expected = [
            ("moved", Some("/else/where"), true),
            ("mover", None, false),
            ("mover-too", Some("/h/.claude"), false),
            ("other", None, true),
            ("planner", Some("/h/.kimi-code"), true),
            ("relative", None, true),
        ];
        let expected = expected
            .map(|(name, directory, resources)| (name.to_owned(), directory.map(Into::into), resources));
        assert_eq!(seen, expected);
    }
}
