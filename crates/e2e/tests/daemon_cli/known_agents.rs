//! Agents that are known by their names: found when their program is there, told with the command that installs them when not.

use crate::cli::args;
use acpd_e2e::{Daemon, Exit, Http, Scratch, Started, acpd};
use serde_json::{Value, json};
use std::ffi::OsString;
use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The names, their programs, and the package of those whose program another one has, too.
const AGENTS: [(&str, &str, &str); 14] = [
    ("opencode", "opencode", ""),
    ("claude", "claude-agent-acp", ""),
    ("claude-zed", "claude-agent-acp", "@zed-industries/claude-agent-acp"),
    ("codex", "codex-acp", ""),
    ("codex-zed", "codex-acp", "@zed-industries/codex-acp"),
    ("gemini", "gemini", ""),
    ("qwen", "qwen", ""),
    ("kimi", "kimi", ""),
    ("vibe", "vibe-acp", ""),
    ("fast-agent", "fast-agent-acp", ""),
    ("pi", "pi-acp", ""),
    ("copilot", "copilot", ""),
    ("cline", "cline", ""),
    ("hermes", "hermes-acp", ""),
];

/// Makes a program that is the example agent, and notes what it was called with.
pub(crate) fn stand_in(scratch: &Scratch, file: &Path, more: &str) -> PathBuf {
    fs::create_dir_all(file.parent().expect("a parent")).expect("a directory");
    let script = format!(
        "#!/bin/sh\necho \"$*\" >>'{}.called'\n{more}\nexec {} example-agent $LOGIN\n",
        file.display(),
        acpd().display()
    );
    scratch.write_program(file, &script);
    file.to_owned()
}

/// The same, of a package of npm, linked to in a directory of programs.
fn of_npm(scratch: &Scratch, bin: &str, program: &str, package: &str, version: &str) {
    let home = scratch.path(&format!("{bin}-lib/node_modules/{package}"));
    let real = stand_in(scratch, &home.join("dist/index.js"), "");
    let manifest = json!({"name": package, "version": version, "bin": {program: "dist/index.js"}});
    fs::write(home.join("package.json"), manifest.to_string()).expect("a manifest");
    fs::create_dir_all(scratch.path(bin)).expect("a directory");
    symlink(real, scratch.path(bin).join(program)).expect("a link");
}

/// acpd that looks for programs in these directories of the scratch.
pub(crate) fn command(scratch: &Scratch, bins: &[&str]) -> Command {
    let mut command = scratch.command(acpd());
    let path = std::env::join_paths(bins.iter().map(|bin| scratch.path(bin))).expect("paths");
    command.env("PATH", path);
    for (name, _) in std::env::vars_os().filter(|(name, _)| is_login(name)) {
        command.env_remove(name);
    }
    command
}

/// A variable of the machine of the test could be a login.
fn is_login(name: &OsString) -> bool {
    let name = name.to_string_lossy();
    name.ends_with("_KEY") || name.ends_with("_TOKEN") || name.starts_with("GOOGLE_")
}

pub(crate) fn start(scratch: &Scratch, mut command: Command, words: &[&str]) -> Started {
    command.args(args(scratch, words).iter().map(AsRef::<str>::as_ref));
    scratch.start_command(command)
}

fn run(scratch: &Scratch, bins: &[&str], words: &[&str]) -> (Exit, String, String) {
    scratch.config_file();
    start(scratch, command(scratch, bins), words).end()
}

fn list(scratch: &Scratch, command: Command) -> Value {
    scratch.config_file();
    let (exit, out, err) = start(scratch, command, &["agents", "list", "--json"]).end();
    assert_eq!(exit, Exit::Code(0), "{err}");
    serde_json::from_str(&out).expect("JSON")
}

fn names(list: &Value, of: &str) -> Vec<String> {
    let names = list[of].as_array().expect("a list").iter();
    names.map(|agent| agent["name"].as_str().expect("a name").to_owned()).collect()
}

fn agent<'a>(list: &'a Value, name: &str) -> &'a Value {
    let mut agents = list["agents"].as_array().expect("a list").iter();
    agents.find(|agent| agent["name"] == name).unwrap_or_else(|| panic!("{name}: {list}"))
}

fn called(file: &Path) -> String {
    fs::read_to_string(format!("{}.called", file.display())).unwrap_or_default()
}

fn get(daemon: &Daemon, path: &str) -> String {
    let answer = Http::on(daemon.connect()).request("GET", path, &[], "");
    String::from_utf8(answer.body).expect("text")
}

// issue 14: a check names the login that the agent itself does not name, where its makers' command is there
#[test]
fn a_check_names_the_login_of_the_makers() {
    let scratch = Scratch::new();
    stand_in(&scratch, &scratch.path("bin/claude-agent-acp"), "");
    let check = || run(&scratch, &["bin"], &["agents", "check", "claude"]);
    let (exit, out, err) = check();
    assert!(exit == Exit::Code(0) && out.ends_with("login     none needed or offered\n"), "{out}{err}");
    stand_in(&scratch, &scratch.path("bin/claude"), "");
    let (_, out, err) = check();
    assert!(out.ends_with("login     Claude: `claude /login`\n"), "{out}{err}");
}

// contract 6: what an agent calls itself, and what it says that it can do, reaches neither a terminal nor a pipe as it came
#[test]
fn a_check_is_not_driven_by_the_agent() {
    let hostile = "X\\u001b]52;c;ZXZpbA==\\u0007\\u001b[2J\\u009b5n\\r\\u202e";
    let answer = format!(
        "take; answer '{{\"protocolVersion\":1,\"agentInfo\":{{\"name\":\"{hostile}\",\"title\":\"{hostile}\",\
         \"version\":\"{hostile}\"}},\"agentCapabilities\":{{\"promptCapabilities\":{{\"{hostile}\":true}},\
         \"mcpCapabilities\":{{\"{hostile}\":true}},\"sessionCapabilities\":{{\"{hostile}\":{{}}}}}},\
         \"authMethods\":[{{\"id\":\"{hostile}\",\"name\":\"{hostile}\"}}]}}'; take"
    );
    let scratch = Scratch::new().shell("info", &acpd_e2e::taking_shell_agent(&answer.replace('\n', "")));
    scratch.config_file();
    let (exit, out, err) = crate::cli::run(&scratch, &["agents", "check", "info"]);
    assert_eq!(exit, Exit::Code(0), "{err}");
    let is_harmful = |c: char| (c.is_control() && c != '\n') || c == '\u{202e}';
    assert!(out.contains("info: X␛]52") && !out.contains(is_harmful), "{out:?}");
}

// issue 14: each of the 14 works by its name alone when its program is in PATH, with the arguments that make it an agent
#[test]
fn every_known_agent_runs_by_its_name() {
    let scratch = Scratch::new();
    for (name, program, package) in AGENTS {
        let (bin, file) = match package {
            "" => ("bin".to_owned(), stand_in(&scratch, &scratch.path("bin").join(program), "")),
            package => {
                of_npm(&scratch, name, program, package, "0.1.2");
                let real = format!("{name}-lib/node_modules/{package}/dist/index.js");
                (name.to_owned(), scratch.path(&real))
            }
        };
        let (exit, out, err) = run(&scratch, &[&bin], &["run", "--agent", name, "hello"]);
        assert_eq!((exit, out.trim()), (Exit::Code(0), "hello"), "{name}: {err}");
        let expected = match name {
            "opencode" | "kimi" => "acp\n",
            "gemini" | "qwen" | "copilot" | "cline" => "--acp\n",
            _ => "\n",
        };
        assert_eq!(called(&file), expected, "{name}");
    }
    let listed = list(&scratch, command(&scratch, &["bin", "claude-zed", "codex-zed"]));
    assert_eq!(names(&listed, "notInstalled"), Vec::<String>::new(), "{listed}");
    assert_eq!(names(&listed, "agents").len(), AGENTS.len() + 1, "the example agent is one more: {listed}");
    // Of two with one program each is found by its package, also behind the other one.
    let zed = agent(&listed, "codex-zed");
    assert_eq!((&zed["version"], &zed["origin"]), (&json!("0.1.2"), &json!("found")));
    assert!(zed["program"].as_str().expect("a file").contains("/codex-zed/"), "{zed}");
}

// issue 14: one that is not installed is told with the one command that installs it, whoever is asked; exit code 4
#[test]
fn an_agent_that_is_not_installed_is_told_with_its_remedy() {
    let scratch = Scratch::new();
    let words = "agent gemini is not installed: its program gemini is in no directory of PATH; `acpd agents add gemini` \
                 installs it";
    let told = |bins: &[&str], more: &[&str]| {
        let (exit, out, err) = run(&scratch, bins, &[more, &["hello"]].concat());
        assert_eq!((exit, out.as_str()), (Exit::Code(4), ""), "{err}");
        let error = err.lines().find(|line| line.starts_with("error: ")).unwrap_or_else(|| panic!("{err}"));
        assert_eq!(error, format!("error: {words}"), "nothing of the daemon's configuration");
    };
    told(&["bin"], &["run", "--agent", "gemini"]);
    let (exit, _, err) = run(&scratch, &["bin"], &["agents", "check", "gemini"]);
    assert!(exit == Exit::Code(4) && err.contains(words), "{err}");
    let (exit, _, err) = run(&scratch, &["bin"], &["run", "--agent", "qwen-code", "hello"]);
    assert!(exit == Exit::Code(4) && err.contains("did you mean \"qwen\", which is not installed?"), "{err}");
    // A default that is known is no mistake; its absence is one, where it is wanted.
    let wants = Scratch::new().config("[server]\ndefault_agent = \"gemini\"");
    let (exit, _, err) = run(&wants, &["bin"], &["run", "hello"]);
    assert!(exit == Exit::Code(4) && err.contains(words), "{err}");
    let (exit, out, _) = run(&wants, &["bin"], &["doctor"]);
    assert!(exit == Exit::Code(1) && out.contains("acpd agents add gemini"), "{out}");

    let mut daemon = scratch.serve_by(command(&scratch, &["bin"]), "127.0.0.1:0");
    told(&["bin"], &["run", "--agent", "gemini"]);
    let body = json!({"agent": "gemini", "cwd": scratch.work()}).to_string();
    let headers = [("Content-Type", "application/json")];
    let refused = Http::on(daemon.connect()).request("POST", "/v1/sessions", &headers, &body);
    assert_eq!((refused.status, &*refused.problem()), (400, "bad_request"));
    assert!(refused.json()["detail"].as_str().expect("words").contains(words), "{}", refused.json());
    let checked = Http::on(daemon.connect()).request("POST", "/v1/agents/gemini/check", &[], "");
    assert_eq!((checked.status, &*checked.problem()), (404, "agent_not_found"));
    let (exit, _, err) = run(&scratch, &["bin"], &["run", "--agent", "qwen-code", "hello"]);
    assert!(exit == Exit::Code(4) && err.contains("did you mean qwen?"), "{err}");
    daemon.stop();
}

// issue 14: a daemon finds what was installed after its begin, and what is not installed is in no list of its agents
#[test]
fn a_daemon_finds_what_is_installed_later() {
    let scratch = Scratch::new();
    let mut daemon = scratch.serve_by(command(&scratch, &["bin"]), "127.0.0.1:0");
    let ask = || run(&scratch, &["bin"], &["run", "--agent", "gemini", "hello"]);
    assert_eq!(ask().0, Exit::Code(4));
    let names_of = |listed: &Value| names(listed, "agents");
    let listed: Value = serde_json::from_str(&get(&daemon, "/v1/agents")).expect("JSON");
    assert_eq!(names_of(&listed), ["example"]);
    assert_eq!(names(&listed, "notInstalled").len(), AGENTS.len());
    assert!(!get(&daemon, "/metrics").contains("gemini"));
    let whoami: Value = serde_json::from_str(&get(&daemon, "/v1/whoami")).expect("JSON");
    assert_eq!(whoami["agents"], json!(["example"]));

    let file = stand_in(&scratch, &scratch.path("bin/gemini"), "");
    let (exit, out, err) = ask();
    assert_eq!((exit, out.trim()), (Exit::Code(0), "hello"), "{err}");
    let listed: Value = serde_json::from_str(&get(&daemon, "/v1/agents")).expect("JSON");
    assert_eq!(names_of(&listed), ["example", "gemini"]);
    let gemini = agent(&listed, "gemini");
    assert_eq!((&gemini["origin"], &gemini["installed"]), (&json!("found"), &json!(true)));
    assert_eq!(gemini["program"], json!(file));
    assert!(get(&daemon, "/metrics").contains(r#"agent="gemini""#));
    // It stays after a reload, and an entry of the file wins.
    let (exit, _, err) = run(&scratch, &["bin"], &["reload"]);
    assert_eq!(exit, Exit::Code(0), "{err}");
    assert_eq!(ask().0, Exit::Code(0));
    daemon.stop();
}

// issue 14: an entry of the file wins over the program in PATH
#[test]
fn an_entry_wins() {
    let own = Scratch::new();
    let scratch = own.example("gemini", &["--without", "load"]);
    let file = stand_in(&scratch, &scratch.path("bin/gemini"), "");
    let (exit, out, err) = run(&scratch, &["bin"], &["run", "--agent", "gemini", "hello"]);
    assert_eq!((exit, out.trim()), (Exit::Code(0), "hello"), "{err}");
    assert_eq!(called(&file), "", "the other one was not started");
    let listed = list(&scratch, command(&scratch, &["bin"]));
    let gemini = agent(&listed, "gemini");
    assert_eq!((&gemini["origin"], &gemini["program"]), (&json!("configured"), &json!(acpd())));
    assert_eq!(gemini["title"], "Gemini CLI", "it is known by its name, too");
}

// issue 14: the list has one shape with and without a daemon: what is installed and where, its version, its login, and the others apart
#[test]
fn the_list_is_the_same_with_and_without_a_daemon() {
    let scratch = Scratch::new().agent("absent", "/no/such/program", &[]);
    of_npm(&scratch, "bin", "gemini", "@google/gemini-cli", "0.61.0");
    let kimi = stand_in(
        &scratch,
        &scratch.path("bin/kimi"),
        "[ \"$1\" = --version ] && echo 'kimi, version 2.1.0' && exit 0",
    );
    stand_in(&scratch, &scratch.path("bin/codex-acp"), "[ \"$1\" = --version ] && exit 3");
    fs::create_dir(scratch.path(".kimi")).expect("a directory");
    let with = || {
        let mut command = command(&scratch, &["bin"]);
        command.env("GEMINI_API_KEY", "secret-of-the-test");
        command
    };
    let here = list(&scratch, with());
    let mut daemon = scratch.serve_by(with(), "127.0.0.1:0");
    let there = list(&scratch, with());
    assert_eq!(here, there);
    assert_eq!(here, serde_json::from_str::<Value>(&get(&daemon, "/v1/agents")).expect("JSON"));

    let gemini = agent(&here, "gemini");
    assert_eq!((&gemini["version"], &gemini["loggedIn"]), (&json!("0.61.0"), &json!(true)), "{gemini}");
    assert_eq!((&gemini["command"], &gemini["args"]), (&json!("gemini"), &json!(["--acp"])));
    assert_eq!(gemini["program"], json!(scratch.path("bin/gemini")));
    let told = agent(&here, "kimi");
    assert_eq!((&told["version"], told.get("loggedIn")), (&json!("2.1.0"), None), "{told}");
    assert_eq!(called(&kimi), "--version\n--version\n", "each process asks it once");
    let codex = agent(&here, "codex");
    assert_eq!((codex.get("version"), &codex["loggedIn"]), (None, &json!(false)), "{codex}");
    let absent = agent(&here, "absent");
    assert_eq!((&absent["installed"], &absent["origin"]), (&json!(false), &json!("configured")), "{absent}");
    assert!(absent.get("program").is_none() && absent.get("version").is_none(), "{absent}");
    let example = agent(&here, "example");
    assert_eq!((&example["origin"], &example["default"]), (&json!("builtin"), &json!(true)), "{example}");
    let others = here["notInstalled"].as_array().expect("a list");
    assert_eq!(others.len(), AGENTS.len() - 3);
    assert!(
        others.contains(&json!({"name": "qwen", "title": "Qwen Code", "install": "acpd agents add qwen"}))
    );
    assert!(!here.to_string().contains("secret-of-the-test"));

    scratch.config_file();
    let (_, table, _) = start(&scratch, with(), &["agents", "list"]).end();
    let line = |name: &str| {
        let line = table.lines().find(|line| line.split_whitespace().next() == Some(name));
        line.unwrap_or_else(|| panic!("{name}: {table}")).split_whitespace().collect::<Vec<_>>().join(" ")
    };
    assert!(line("gemini").starts_with("gemini stopped 0.61.0 yes"), "{table}");
    assert!(line("absent").starts_with("absent missing"), "{table}");
    assert_eq!(line("qwen"), "qwen Qwen Code acpd agents add qwen");
    daemon.stop();
}

// issue 14: a program that does not say its version is not waited for long, and does not stay
#[test]
fn a_version_is_not_waited_for() {
    let scratch = Scratch::new();
    let hangs = "[ \"$1\" = --version ] && while :; do read line </dev/zero; done";
    for program in ["qwen", "copilot"] {
        stand_in(&scratch, &scratch.path("bin").join(program), hangs);
    }
    let listed = list(&scratch, command(&scratch, &["bin"]));
    assert_eq!(names(&listed, "agents"), ["copilot", "example", "qwen"]);
    assert!(agent(&listed, "qwen").get("version").is_none(), "{listed}");
    assert!(scratch.mark().running("--version").is_empty(), "they are gone with the command");
}
