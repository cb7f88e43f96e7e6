//! What a registry's file may say.

use super::*;

fn name(text: &str) -> AgentName {
    AgentName::try_from(text.to_owned()).expect("a name")
}

const WHOLE: &str = r#"{
  "version": "1.0.0",
  "agents": [
    {"id": "broken", "distribution": 7},
    {
      "id": "x", "name": "X", "version": "1.2.3", "description": "d", "authors": ["a"], "novelty": {"a": 1},
      "distribution": {
        "npx": {"package": "@a/x@1.2.3", "args": ["--acp"], "env": {"A": "b"}},
        "uvx": {"package": "x-py==1.2.3"},
        "binary": {"linux-x86_64": {
          "archive": "https://host.example/x.tar.gz", "cmd": "./bin/x", "args": ["acp"],
          "sha256": "E3B0C44298FC1C149AFBF4C8996FB92427AE41E4649B934CA495991B7852B855"
        }}
      }
    }
  ],
  "extensions": []
}"#;

// issue 14: the format of the ACP registry; unknown members are ignored
#[test]
fn an_entry_is_read() {
    let entry = find_entry(WHOLE, &name("x")).expect("it is there");
    assert_eq!((entry.id.as_str(), entry.version.as_str()), ("x", "1.2.3"));
    let Distribution { binary, npx, uvx } = entry.distribution;
    let npx = npx.expect("there is one");
    assert_eq!((npx.package.spec(), npx.args[0].as_str()), ("@a/x@1.2.3".to_owned(), "--acp"));
    assert_eq!(uvx.expect("there is one").package.spec(), "x-py==1.2.3");
    let target = &binary["linux-x86_64"];
    assert_eq!(target.cmd.as_path(), std::path::Path::new("bin/x"));
    assert!(target.sha256.as_ref().is_some_and(|hash| hash.as_str().starts_with("e3b0c442")));
}

// issue 28, R16: the program of a package, and members of a kind that are not known, by their names
#[test]
fn a_kind_has_its_program_and_names_what_is_unknown() {
    let one = |npx: &str| {
        let file = format!(
            r#"{{"id": "x", "name": "X", "version": "1", "distribution": {{"npx": {npx}, "uvx": {{"package": "x"}}}}}}"#
        );
        find_entry(&file, &name("x")).map(|entry| entry.distribution.npx.expect("there is one"))
    };
    let run = one(r#"{"package": "x", "zeal": 1, "cmd": "two", "args": [], "runner": {"a": []}}"#)
        .expect("it is read");
    assert_eq!(run.cmd.as_ref().map(ProgramName::as_str), Some("two"));
    assert_eq!(run.unknown.names(), ["runner", "zeal"]);
    assert_eq!(one(r#"{"package": "x"}"#).expect("it is read").unknown, Unknown::default());
    for cmd in ["", "../x", "-x", "a b"] {
        let Err(RegistryError::Member { path, .. }) = one(&format!(r#"{{"package": "x", "cmd": "{cmd}"}}"#))
        else {
            panic!("{cmd} is no name")
        };
        assert_eq!(path, "distribution.npx.cmd");
    }
}

// issue 14: one agent's object is taken, too
#[test]
fn a_file_of_one_agent_is_read() {
    let one = r#"{"id": "x", "name": "X", "version": "1", "distribution": {"npx": {"package": "x"}}}"#;
    assert_eq!(find_entry(one, &name("x")).expect("it is there").version.as_str(), "1");
    let Err(RegistryError::Unknown { ids }) = find_entry(one, &name("y")) else { panic!("there is none") };
    assert_eq!(ids, ["x"]);
    let Err(RegistryError::Unknown { ids }) = find_entry(WHOLE, &name("y")) else { panic!("there is none") };
    assert_eq!(ids, ["broken", "x"]);
    for file in ["", "[]", "{", "7"] {
        assert!(matches!(find_entry(file, &name("x")), Err(RegistryError::Unreadable(_))), "{file}");
    }
    for file in ["{}", r#"{"agent": []}"#] {
        assert!(matches!(find_entry(file, &name("x")), Err(RegistryError::Neither)), "{file}");
    }
}

// issue 14: what is wrong is named by its path
#[test]
fn a_wrong_member_is_named() {
    let of = |entry: &str| {
        let file = format!(r#"{{"agents": [{{"id": "a"}}, {entry}]}}"#);
        find_entry(&file, &name("x")).expect_err("it is wrong").to_string()
    };
    let with = |version: &str, distribution: &str| {
        of(&format!(
            r#"{{"id": "x", "name": "X", "version": {version}, "distribution": {{{distribution}}}}}"#
        ))
    };
    let binary = |members: &str| with("\"1\"", &format!(r#""binary": {{"linux-x86_64": {{{members}}}}}"#));
    for (told, begins) in [
        (of(r#"{"id": "x"}"#), "agents[1]: missing field `name`"),
        (with("1", ""), "agents[1].version: invalid type: integer `1`"),
        (with("\"../1\"", ""), "agents[1].version: \"../1\" is not a version"),
        (
            with("\"1\"", r#""npx": {"package": "git+https://host.example/x"}"#),
            "agents[1].distribution.npx.package: \"git+",
        ),
        (
            with("\"1\"", r#""npx": {"package": "--global"}"#),
            "agents[1].distribution.npx.package: \"--global\" is not",
        ),
        (
            with("\"1\"", r#""uvx": {"package": "x @ file:y"}"#),
            "agents[1].distribution.uvx.package: \"x @ file:y\"",
        ),
        (
            with("\"1\"", r#""uvx": {"package": "x", "args": [1]}"#),
            "agents[1].distribution.uvx.args[0]: invalid type",
        ),
        (
            with("\"1\"", r#""npx": {"package": "x", "env": {"A=B": ""}}"#),
            "agents[1].distribution.npx.env.A=B: the name of a variable",
        ),
        (
            binary(r#""archive": "http://host.example/x", "cmd": "x""#),
            "agents[1].distribution.binary.linux-x86_64.archive: \"http://host.example/x\" is not an https:// address",
        ),
        (
            binary(r#""archive": "https://a@host.example/x", "cmd": "x""#),
            "agents[1].distribution.binary.linux-x86_64.archive: \"https://a@",
        ),
        (
            binary(r#""archive": "https://host.example/x", "cmd": "../x""#),
            "agents[1].distribution.binary.linux-x86_64.cmd: \"../x\" leads out",
        ),
        (
            binary(r#""archive": "https://host.example/x", "cmd": "/bin/sh""#),
            "agents[1].distribution.binary.linux-x86_64.cmd: \"/bin/sh\" is an absolute path",
        ),
        (
            binary(r#""archive": "https://host.example/x", "cmd": "x", "sha256": "abc""#),
            "agents[1].distribution.binary.linux-x86_64.sha256: a SHA-256",
        ),
    ] {
        assert!(told.starts_with(begins), "{told}");
    }
}
