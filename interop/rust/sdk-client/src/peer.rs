//! Which program to talk to. Not the starting: that is the SDK's.

use std::path::{Path, PathBuf};

use agent_client_protocol::AcpAgentConfig;

/// Names the binary to test; without it, the debug build of the repository.
const ACPD_BIN: &str = "ACPD_BIN";

/// Graces that are over long before the SDK's own: it sends SIGTERM a second after it has closed stdin, and SIGKILL two
/// seconds later. acpd has then ended all that an agent left behind, instead of its keepers in the moment after.
pub(crate) const GRACES: &str = "[timeouts]\nstdin_grace = \"200ms\"\nterm_grace = \"500ms\"\n";

/// A program that speaks ACP as an agent.
#[derive(Debug, Clone)]
pub enum Peer {
    /// `acpd stdio`, which hosts the agent of that name.
    Hosted {
        /// The agent's name.
        agent: String,
        /// The text of acpd's configuration file.
        config: String,
    },
    /// acpd's example agent without a host.
    Example,
    /// Any other program, without a host.
    Program(PathBuf),
}

impl Peer {
    /// The example agent, hosted.
    pub fn hosted_example() -> Self {
        Self::Hosted { agent: "example".to_owned(), config: GRACES.to_owned() }
    }

    /// `program` hosted as an agent of that name.
    pub fn hosted(agent: &str, program: &str) -> Self {
        // A literal string of TOML, in which only the apostrophe would need care.
        let config = format!("{GRACES}[agents.{agent}]\ncommand = '{program}'\n");
        Self::Hosted { agent: agent.to_owned(), config }
    }

    /// How to start it, with everything that it keeps in `directory`.
    pub(crate) fn launch(&self, directory: &Path) -> AcpAgentConfig {
        let at = |name: &str| directory.join(name).display().to_string();
        let config = match self {
            Self::Hosted { agent, .. } => AcpAgentConfig::new(acpd()).args([
                "stdio",
                "--agent",
                agent,
                "--config",
                &at(Self::CONFIG_FILE),
                "--state-dir",
                &at("state"),
            ]),
            Self::Example => AcpAgentConfig::new(acpd()).arg("example-agent"),
            Self::Program(program) => AcpAgentConfig::new(program),
        };
        config.env("ACPD_EXAMPLE_STATE", at("example-agent"))
    }

    /// In the directory of [`Peer::launch`].
    pub(crate) const CONFIG_FILE: &str = "config.toml";
}

/// The binary to test.
pub(crate) fn acpd() -> PathBuf {
    let built = || Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../target/debug/acpd");
    std::env::var_os(ACPD_BIN).map_or_else(built, PathBuf::from)
}
