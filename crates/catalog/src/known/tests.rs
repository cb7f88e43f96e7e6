//! The table against itself, and the names that it must have.

use super::*;
use std::collections::BTreeSet;

const NAMES: [&str; 14] = [
    "opencode",
    "claude",
    "claude-zed",
    "codex",
    "codex-zed",
    "gemini",
    "qwen",
    "kimi",
    "vibe",
    "fast-agent",
    "pi",
    "copilot",
    "cline",
    "hermes",
];

// issue 14: the known agents are these, each by its name
#[test]
fn the_fourteen_are_known() {
    assert_eq!(KNOWN.iter().map(|known| known.name).collect::<Vec<_>>(), NAMES);
    for name in NAMES {
        assert_eq!(known(name).map(|known| known.name), Some(name));
    }
    assert_eq!(known("example"), None);
    assert_eq!(known(""), None);
}

// issue 14: a registry's id, or another name of an agent, means one agent
#[test]
fn another_name_means_one_agent() {
    for (said, meant) in [
        ("qwen-code", "qwen"),
        ("mistral-vibe", "vibe"),
        ("claude-code-acp", "claude"),
        ("codex-acp", "codex"),
        ("github-copilot", "copilot"),
        ("kimi-cli", "kimi"),
    ] {
        assert_eq!(known(said).map(|known| known.name), Some(meant), "{said}");
    }
    let all: Vec<&str> =
        KNOWN.iter().flat_map(|known| [known.name].into_iter().chain(known.also.iter().copied())).collect();
    let distinct: BTreeSet<&&str> = all.iter().collect();
    assert_eq!(distinct.len(), all.len(), "no name means two");
}

// issue 14: what the table says can stand in a configuration and in a command line as it is
#[test]
fn the_table_is_well_formed() {
    for known in KNOWN {
        let plain =
            |text: &str| text.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"._-".contains(&byte));
        for word in [known.name, known.program].iter().chain(known.also) {
            assert!(!word.is_empty() && plain(word), "{}: {word:?}", known.name);
        }
        assert!(!known.title.is_empty(), "{}", known.name);
        let is_variable = |name: &str| {
            !name.is_empty()
                && name.bytes().all(|byte| byte.is_ascii_uppercase() || byte.is_ascii_digit() || byte == b'_')
        };
        let places = known.login.files.iter().chain(known.login.elsewhere.into_iter().flatten());
        let variables = known.env.iter().map(|(name, _)| *name).chain(known.login.variables.iter().copied());
        let variables = variables.chain(known.companion.map(|it| it.variable));
        for name in variables.chain(places.clone().filter_map(|place| place.variable)) {
            assert!(is_variable(name), "{}: {name:?}", known.name);
        }
        for place in places {
            let path = format!("{}/{}", place.below_home, place.file);
            assert!(!path.split('/').any(|part| part == ".."), "{}: {path}", known.name);
            assert!(
                !place.below_home.starts_with('/') && !place.file.starts_with('/'),
                "{}: {path}",
                known.name
            );
            assert_ne!(path, "/", "{}: the home directory is no sign of a login", known.name);
        }
    }
}

// issue 14: where two have a program of the same name, their packages differ, and the current one stands first
#[test]
fn agents_with_one_program_differ_by_their_package() {
    let twins: Vec<(&str, &str)> = KNOWN
        .iter()
        .enumerate()
        .flat_map(|(at, first)| KNOWN[at + 1..].iter().map(move |second| (first, second)))
        .filter(|(first, second)| first.program == second.program)
        .map(|(first, second)| {
            assert_ne!(first.package, second.package);
            (first.name, second.name)
        })
        .collect();
    assert_eq!(twins, [("claude", "claude-zed"), ("codex", "codex-zed")]);
}
