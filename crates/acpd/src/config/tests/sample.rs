//! The sample in `deploy/`, which operators start from.

use super::*;

/// The sample with what is commented out there.
fn sample_of_operators() -> String {
    let text = include_str!("../../../config.toml").replace("\n# tls_", "\ntls_");
    let text = text.replace("\n# [[hooks]]", "\n[[hooks]]").replace("\n# [fleet]", "\n[fleet]");
    let fleet = [
        "node",
        "prefix",
        "credentials",
        "address",
        "peer_ca",
        "labels",
        "heartbeat",
        "lease",
        "replicas",
        "partition",
    ];
    let others = ["connect", "token_file", "ca", "on", "url", "secret_env", "content", "command"];
    fleet
        .iter()
        .chain(&others)
        .fold(text, |text, key| text.replace(&format!("\n# {key} ="), &format!("\n{key} =")))
}

/// The keys that are known where `text` stands, as the error about an unknown one lists them.
fn known_keys(text: &str) -> Vec<String> {
    let error = toml::from_str::<Config>(&format!("{text}no-such-key = 1")).expect_err("it is unknown");
    let (_, expected) = error.message().split_once("expected ").expect("serde lists what it knows");
    expected.split('`').skip(1).step_by(2).map(str::to_owned).collect()
}

// contract 6: the sample in deploy/ has every key, and nothing else
#[test]
fn the_sample_for_operators_is_complete() {
    let text = sample_of_operators();
    let config = bench(&text).load().expect("the sample is read");
    let sections = known_keys("");
    assert!(sections.len() >= 9, "{sections:?}");
    let parsed: toml::Table = toml::from_str(&text).expect("it is TOML");
    // One has a URL, the other a command.
    let hooks = parsed["hooks"].as_array().into_iter().flatten().filter_map(toml::Value::as_table);
    let hooks: toml::Value =
        hooks.flatten().map(|(key, value)| (key.clone(), value.clone())).collect::<toml::Table>().into();
    for section in &sections {
        let (head, shown) = match section.as_str() {
            "agents" => ("[agents.x]".to_owned(), &parsed["agents"]["opencode"]),
            "tokens" => ("[tokens.x]".to_owned(), &parsed["tokens"]["ci"]),
            "hooks" => ("[[hooks]]".to_owned(), &hooks),
            _ => (format!("[{section}]"), &parsed[section]),
        };
        for key in known_keys(&format!("{head}\n")) {
            assert!(shown.get(&key).is_some(), "{key} of {head} is missing in deploy/config.toml");
        }
    }
    // The defaults that it shows are the defaults.
    assert_eq!((config.timeouts, config.files), (Timeouts::default(), Files::default()));
    assert_eq!(config.compat, Compat::default());
    assert_eq!(
        Terminal { command_timeouts: Terminal::default().command_timeouts, ..config.terminal },
        Terminal::default()
    );
    assert_eq!(Limits { requests_per_second: None, ..config.limits }, Limits::default());
    assert_eq!(config.server.listen, Server::default().listen);
    assert_eq!(config.storage.durability, Durability::default());
    let mut entry = config.agents["opencode"].clone();
    entry.env.0.clear();
    assert_eq!(
        entry,
        Agent {
            origin: AgentOrigin::Configured,
            ..Agent::builtin("opencode".to_owned(), vec!["acp".to_owned()])
        }
    );
}
