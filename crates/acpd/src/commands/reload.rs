//! `acpd reload`: has a daemon read its configuration anew, and tells what came of it.

use crate::address::Address;
use crate::clean::line;
use crate::cli::Operate;
use crate::daemon::{Daemon, DaemonError, need_daemon_to_change};
use crate::daemon_config::DaemonConfig;
use crate::exit::Failure;
use crate::streams::{print, print_json, remark};
use http::Method;
use serde::{Deserialize, Serialize};

/// What a daemon goes by from now on.
#[derive(Debug, Default, Deserialize, Serialize)]
#[serde(default)]
pub(crate) struct Reloaded {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) config: Option<String>,
    tokens: u64,
    agents: u64,
}

pub(crate) async fn reload(args: Operate) -> Result<(), Failure> {
    let given = args.which.config.clone();
    let daemon = need_daemon_to_change(args.which).await?;
    let reloaded = read_anew(&daemon).await?;
    if args.json {
        return print_json(&serde_json::to_string(&reloaded)?).map(drop);
    }
    print(&words(&reloaded))?;
    if let Address::Local(dir) = daemon.address()
        && let Some(own) = DaemonConfig::of(dir).filter(|own| own.is_another(given.as_deref()))
    {
        remark(&own.words(given.as_deref()));
    }
    Ok(())
}

/// Has it read its configuration anew.
pub(crate) async fn read_anew(daemon: &Daemon) -> Result<Reloaded, DaemonError> {
    daemon.ask(Method::POST, "/v1/reload").await
}

fn words(reloaded: &Reloaded) -> String {
    let count = |count: u64, one: &str| format!("{count} {one}{}", if count == 1 { "" } else { "s" });
    let (agents, tokens) = (count(reloaded.agents, "agent"), count(reloaded.tokens, "token"));
    match &reloaded.config {
        Some(file) => format!("the daemon has read {}: {agents}, {tokens}", line(file, 300)),
        None => format!("the daemon goes by no configuration file: {agents}, {tokens}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    // contract 7.1: what a daemon goes by after a reload
    #[test]
    fn what_is_in_force_is_told() {
        let one = Reloaded { config: Some("/c\u{1b}.toml".to_owned()), tokens: 2, agents: 1 };
        assert_eq!(words(&one), "the daemon has read /c␛.toml: 1 agent, 2 tokens");
        assert!(
            words(&Reloaded::default()).starts_with("the daemon goes by no configuration file: 0 agents")
        );
    }
}
