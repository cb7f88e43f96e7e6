//! The configuration from the outside: files and variables.

mod errors;
mod sample;

use std::num::NonZeroU32;
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::*;
use acpd_api::AgentOrigin;

/// A directory with a file `acpd.toml` of that text, and sources that name it.
struct Bench {
    directory: tempfile::TempDir,
    sources: Sources,
}

fn bench(text: &str) -> Bench {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let file = directory.path().join("acpd.toml");
    std::fs::write(&file, text).expect("the file is written");
    let mut sources = Sources { file: Some(file), ..Sources::default() };
    sources.environment.insert("HOME".into(), "/srv/me".into());
    Bench { directory, sources }
}

impl Bench {
    fn with(mut self, variable: &str, value: &str) -> Self {
        self.sources.environment.insert(variable.into(), value.into());
        self
    }

    fn load(&self) -> Result<Config, ConfigError> {
        Config::load(&self.sources)
    }

    /// The error as it is shown, without the directory.
    fn error(&self) -> String {
        let shown = self.load().expect_err("the configuration is wrong").to_string();
        shown.replace(&format!("{}/", self.directory.path().display()), "")
    }
}

const SAMPLE: &str = r#"
[server]
listen = "127.0.0.1:2273"
default_agent = "opencode"
allowed_hosts = ["acpd.example.org"]
allowed_origins = ["https://acpd.example.org:8443"]
tls_cert = "chain.pem"
tls_key = "/etc/acpd/key.pem"
on_stop = "end"

[storage]
path = "/var/lib/acpd"
durability = "power"
search = false
keep_for = "730d"
keep_bytes = "8 GiB"

[timeouts]
initialize = "never"
stdin_grace = "2s"
term_grace = "250ms"
permission = "5m"
idle = "2h"
stall = "90s"
cancel = "3s"
viewer_stall = "4s"
connection_idle = "1m"

[terminal]
graceful_shutdown_timeout = "7s"
default_execution_timeout = "1h"
output_byte_limit = 4096

[terminal.command_timeouts]
npm = "10m"

[files]
confine = false
max_bytes = "1 MiB"
forward = true

[limits]
line_bytes = "128 MiB"
sessions = 10
connections = 20
requests_per_second = 30

[compat]
session_stop = true

[agents.opencode]
command = "opencode"
args = ["acp"]
env = { KEY = "value" }
share_process = true
permission_mode = "acceptEdits"

[agents.slow]
command = "slow"
spare = 1
resume_with_transcript = true
stderr_log = true
control_daemon = true
files = false
terminals = false

[tokens.ci]
hash = "sha256:00112233445566778899AABBCCDDEEFF00112233445566778899aabbccddeeff"
scope = "control"
sees = "all"
expires = "2027-01-01"
agents = ["opencode", "not-yet"]
roots = ["/srv/projects", "~/mine"]
permission_modes = ["default", "acceptEdits"]
mcp = "http"
sessions = 1
connections = 2
requests_per_second = 3
"#;

// contract 6: every key of the sample
#[test]
fn the_sample_is_read_in_full() {
    let config = bench(SAMPLE).load().unwrap();
    let seconds = |seconds| Wait::After(Duration::from_secs(seconds));
    assert_eq!(
        config.server,
        Server {
            listen: ([127, 0, 0, 1], 2273).into(),
            default_agent: "opencode".into(),
            allowed_hosts: vec!["acpd.example.org".into()],
            allowed_origins: vec!["https://acpd.example.org:8443".into()],
            // Beside the file that names it.
            tls_cert: config.file.as_ref().map(|file| file.with_file_name("chain.pem")),
            tls_key: Some("/etc/acpd/key.pem".into()),
            on_stop: OnStop::End,
        }
    );
    assert_eq!(
        config.storage,
        Storage {
            path: "/var/lib/acpd".into(),
            durability: Durability::Power,
            search: false,
            keep_for: Some(Duration::from_secs(730 * 24 * 3600)),
            keep_bytes: Some(8 << 30),
        }
    );
    assert_eq!(
        config.timeouts,
        Timeouts {
            initialize: Wait::Never,
            stdin_grace: Duration::from_secs(2),
            term_grace: Duration::from_millis(250),
            cancel: Duration::from_secs(3),
            permission: seconds(300),
            idle: seconds(7200),
            stall: seconds(90),
            viewer_stall: Duration::from_secs(4),
            connection_idle: Duration::from_secs(60),
        }
    );
    assert_eq!(
        config.terminal,
        Terminal {
            graceful_shutdown_timeout: Duration::from_secs(7),
            default_execution_timeout: seconds(3600),
            output_byte_limit: 4096,
            command_timeouts: [("npm".to_owned(), seconds(600))].into(),
        }
    );
    assert_eq!(config.files, Files { confine: false, max_bytes: 1 << 20, forward: true });
    let count = NonZeroU32::new;
    let [sessions, connections] = [10, 20].map(|many| count(many).unwrap());
    let limits = Limits { line_bytes: 128 << 20, sessions, connections, requests_per_second: count(30) };
    assert_eq!(config.limits, limits);
    assert!(config.compat.session_stop);
    let agent = config.agent("opencode").unwrap();
    assert_eq!((agent.command.as_str(), agent.args.as_slice()), ("opencode", ["acp".to_owned()].as_slice()));
    assert_eq!(agent.env.0["KEY"], "value");
    assert!(agent.share_process && agent.spare == 0 && !agent.resume_with_transcript);
    let slow = config.agent("slow").unwrap();
    assert!(!slow.share_process && slow.spare == 1 && slow.resume_with_transcript);
    assert!(agent.files && agent.terminals && !slow.files && !slow.terminals);
    assert!(slow.stderr_log && !agent.stderr_log && slow.control_daemon && !agent.control_daemon);
    assert_eq!(agent.permission_mode, PermissionMode::AcceptEdits);
    let token = &config.tokens["ci"];
    assert_eq!((token.hash.0[1], token.hash.0[31]), (0x11, 0xff));
    assert_eq!((token.scope, token.sees), (Scope::Control, Sees::All));
    assert_eq!(token.expires.map(written).as_deref(), Some("2027-01-01T00:00:00Z"));
    let limits = token.limits();
    let text = |list: &Option<Vec<String>>| list.as_ref().unwrap().join(" ");
    assert_eq!(
        (text(&limits.agents), text(&limits.roots)),
        ("opencode not-yet".into(), "/srv/projects /srv/me/mine".into())
    );
    let modes = vec![PermissionMode::Default, PermissionMode::AcceptEdits];
    assert_eq!((limits.permission_modes, limits.mcp), (Some(modes), Some(acpd_api::McpLimit::Http)));
    let limits = (token.sessions, token.connections, token.requests_per_second);
    assert_eq!(limits, (count(1), count(2), count(3)));
}

// contract 6: the defaults
#[test]
fn every_key_is_optional() {
    let config = bench("").load().unwrap();
    assert_eq!(config.server.listen.to_string(), "127.0.0.1:2273");
    assert_eq!(config.server.default_agent, "example");
    assert_eq!(config.storage.path, Path::new("/srv/me/.local/state/acpd"));
    assert_eq!(config.timeouts.initialize, Wait::After(Duration::from_secs(60)));
    assert_eq!(config.timeouts.cancel, Duration::from_secs(10));
    assert_eq!(config.files, Files { confine: true, max_bytes: 16 << 20, forward: false });
    assert_eq!(config.limits.line_bytes, 64 << 20);
    assert_eq!(config.terminal.output_byte_limit, 1_048_576);
    let sections =
        "[server]\n[storage]\n[timeouts]\n[terminal]\n[files]\n[limits]\n[compat]\n[agents]\n[tokens]\n";
    let empty_sections = bench(sections).load().unwrap();
    assert_eq!(Config { file: None, ..empty_sections }, Config { file: None, ..config });
}

// contract 6: ACPD_* variables override every single-valued key
#[test]
fn variables_override_every_scalar_key() {
    let changed = bench(
        "[server]\nlisten = \"127.0.0.1:1\"\n[agents.x]\ncommand = \"a\"\n[terminal]\noutput_byte_limit = 1\n",
    )
    .with("ACPD_SERVER_LISTEN", "localhost:0")
    .with("ACPD_SERVER_DEFAULT_AGENT", "x")
    .with("ACPD_STORAGE_PATH", "/elsewhere")
    .with("ACPD_STORAGE_DURABILITY", "power")
    .with("ACPD_TIMEOUTS_INITIALIZE", "1ms")
    .with("ACPD_TIMEOUTS_STDIN_GRACE", "2ms")
    .with("ACPD_TIMEOUTS_TERM_GRACE", "3ms")
    .with("ACPD_TIMEOUTS_CANCEL", "4ms")
    .with("ACPD_TIMEOUTS_PERMISSION", "5ms")
    .with("ACPD_TIMEOUTS_IDLE", "6ms")
    .with("ACPD_TERMINAL_GRACEFUL_SHUTDOWN_TIMEOUT", "7ms")
    .with("ACPD_TERMINAL_DEFAULT_EXECUTION_TIMEOUT", "8ms")
    .with("ACPD_TERMINAL_OUTPUT_BYTE_LIMIT", "9")
    .with("ACPD_FILES_CONFINE", "false")
    .with("ACPD_STORAGE_SEARCH", "false")
    .with("ACPD_STORAGE_KEEP_FOR", "never")
    .with("ACPD_STORAGE_KEEP_BYTES", "2097152")
    .with("ACPD_FILES_MAX_BYTES", "2 KiB")
    .with("ACPD_LIMITS_LINE_BYTES", "1 MiB")
    .with("ACPD_COMPAT_SESSION_STOP", "true")
    .with("ACPD_SERVER_ALLOWED_HOSTS", "a.example, b.example")
    .with("ACPD_TIMEOUTS_STALL", "9ms")
    .with("ACPD_TIMEOUTS_VIEWER_STALL", "7ms")
    .with("ACPD_TIMEOUTS_CONNECTION_IDLE", "8ms")
    .with("ACPD_LIMITS_SESSIONS", "9")
    .load()
    .unwrap();
    let millis = Duration::from_millis;
    let server = Server {
        listen: ([127, 0, 0, 1], 0).into(),
        default_agent: "x".into(),
        allowed_hosts: vec!["a.example".into(), "b.example".into()],
        ..Server::default()
    };
    assert_eq!(changed.server, server);
    assert_eq!(changed.limits.sessions.get(), 9);
    assert_eq!(
        changed.storage,
        Storage {
            path: "/elsewhere".into(),
            durability: Durability::Power,
            search: false,
            keep_for: None,
            keep_bytes: Some(2 << 20),
        }
    );
    assert_eq!(
        changed.timeouts,
        Timeouts {
            initialize: Wait::After(millis(1)),
            stdin_grace: millis(2),
            term_grace: millis(3),
            cancel: millis(4),
            permission: Wait::After(millis(5)),
            idle: Wait::After(millis(6)),
            stall: Wait::After(millis(9)),
            viewer_stall: millis(7),
            connection_idle: millis(8),
        }
    );
    assert_eq!(changed.terminal.graceful_shutdown_timeout, millis(7));
    assert_eq!(changed.terminal.default_execution_timeout, Wait::After(millis(8)));
    assert_eq!(changed.terminal.output_byte_limit, 9);
    assert_eq!(changed.files, Files { confine: false, max_bytes: 2048, forward: false });
    assert_eq!(changed.limits.line_bytes, 1 << 20);
    assert!(changed.compat.session_stop);
}

// contract 6: a wrong variable is named; those of no section are left alone, empty ones count as unset
#[test]
fn a_wrong_variable_is_named() {
    for (variable, value, expected) in [
        (
            "ACPD_SERVER_LISTENN",
            "x",
            "environment variable ACPD_SERVER_LISTENN: unknown key \"listenn\" in [server]; did you mean \"listen\"?",
        ),
        (
            "ACPD_TIMEOUTS_IDLE",
            "soon",
            "environment variable ACPD_TIMEOUTS_IDLE: \"idle\" in [timeouts]: \"soon\" is not a duration such as \
             \"250ms\", \"1s\", \"5m\", \"2h\" or \"never\"",
        ),
        (
            "ACPD_SERVER_DEFAULT_AGENT",
            "mine",
            "environment variable ACPD_SERVER_DEFAULT_AGENT: no agent is called \"mine\": there is no \
             [agents.mine]; known: example",
        ),
        (
            "ACPD_COMPAT_SESSION_STOP",
            "yes",
            "environment variable ACPD_COMPAT_SESSION_STOP: \"session_stop\" in [compat]: expected true or false, \
             found string \"yes\"",
        ),
    ] {
        assert_eq!(bench("[server]\nlisten = \"[::1]:1\"").with(variable, value).error(), expected);
    }
    let others = bench("").with("ACPD_PROCESS", "17").with("ACPD_NOTES", "x").with("ACPD_TIMEOUTS_IDLE", "");
    others.load().unwrap();
}

// contract 6: ~ in a command is the home directory, as in the state directory's path
#[test]
fn a_command_may_be_below_the_home_directory() {
    let agent = |command: &str| format!("[agents.a]\ncommand = \"{command}\"\n");
    for (command, whole) in
        [("~/bin/a", "/srv/me/bin/a"), ("~a/b", "~a/b"), ("a", "a"), ("/usr/bin/a", "/usr/bin/a")]
    {
        assert_eq!(bench(&agent(command)).load().unwrap().agents["a"].command, whole);
    }
    let mut homeless = bench(&agent("~/bin/a")).with("XDG_STATE_HOME", "/srv/state");
    homeless.sources.environment.remove(std::ffi::OsStr::new("HOME"));
    assert!(homeless.error().contains("[agents.a] begins with ~"), "{}", homeless.error());
}

// contract 6: the file is --config, $ACPD_CONFIG, $XDG_CONFIG_HOME/acpd/config.toml, ~/.config/acpd/config.toml
#[test]
fn the_file_is_looked_up_in_order() {
    let home = tempfile::tempdir().unwrap();
    let write = |path: &str, port: u16| {
        let path = home.path().join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, format!("[server]\nlisten = \"127.0.0.1:{port}\"\n")).unwrap();
        path
    };
    let mut sources = Sources::default();
    sources.environment.insert("HOME".into(), home.path().into());
    let loaded = |sources: &Sources| {
        let config = Config::load(sources).unwrap();
        (config.server.listen.port(), config.file)
    };
    assert_eq!(loaded(&sources), (2273, None));
    let in_home = write(".config/acpd/config.toml", 4);
    assert_eq!(loaded(&sources), (4, Some(in_home)));
    sources.environment.insert("XDG_CONFIG_HOME".into(), "relative/is/ignored".into());
    assert_eq!(loaded(&sources).0, 4);
    sources.environment.insert("XDG_CONFIG_HOME".into(), home.path().join("xdg").into());
    assert_eq!(loaded(&sources).0, 2273);
    write("xdg/acpd/config.toml", 3);
    assert_eq!(loaded(&sources).0, 3);
    sources.environment.insert("ACPD_CONFIG".into(), write("variable.toml", 2).into());
    assert_eq!(loaded(&sources).0, 2);
    sources.file = Some(write("flag.toml", 1));
    assert_eq!(loaded(&sources).0, 1);
}

// contract 6: a file that is named must be there
#[test]
fn a_named_file_must_exist() {
    let mut sources = Sources { file: Some("/nowhere/acpd.toml".into()), ..Sources::default() };
    let shown = Config::load(&sources).unwrap_err().to_string();
    assert_eq!(shown, "cannot read the configuration /nowhere/acpd.toml (named by --config)");
    sources.file = None;
    sources.environment.insert("ACPD_CONFIG".into(), "/nowhere/acpd.toml".into());
    let shown = Config::load(&sources).unwrap_err().to_string();
    assert_eq!(shown, "cannot read the configuration /nowhere/acpd.toml (named by $ACPD_CONFIG)");
}

// contract 6: the state directory
#[test]
fn the_state_directory_is_absolute_and_flags_win() {
    let path = |bench: &Bench| bench.load().unwrap().storage.path;
    let from_file = bench("[storage]\npath = \"state\"\n");
    assert_eq!(path(&from_file), from_file.directory.path().join("state"));
    assert_eq!(path(&bench("[storage]\npath = \"~/state\"\n")), Path::new("/srv/me/state"));
    assert_eq!(path(&bench("").with("XDG_STATE_HOME", "/state")), Path::new("/state/acpd"));
    let mut flag = bench("[storage]\npath = \"/file\"\n").with("ACPD_STORAGE_PATH", "/variable");
    assert_eq!(path(&flag), Path::new("/variable"));
    flag.sources.state_dir = Some(PathBuf::from("/flag"));
    assert_eq!(path(&flag), Path::new("/flag"));
    let mut homeless = bench("");
    homeless.sources.environment.clear();
    assert!(homeless.error().starts_with("no state directory: "), "{}", homeless.error());
}

// contract 6: an agent that is not configured
#[test]
fn an_unknown_agent_is_told_what_there_is() {
    let config =
        bench("[agents.opencode]\ncommand = \"x\"\n[agents.claude]\ncommand = \"y\"\n").load().unwrap();
    assert_eq!(
        config.agent("opencod").unwrap_err().to_string(),
        "no agent is called \"opencod\"; configured: claude, opencode; did you mean \"opencode\"?"
    );
    assert_eq!(
        config.agent("\u{1b}[31m").unwrap_err().to_string(),
        "no agent is called \"\\u{1b}[31m\"; configured: claude, opencode"
    );
}

// issue 14: an agent that is known and not installed is told with the one command that installs it, another name of one with its name
#[test]
fn a_known_agent_is_told_with_its_remedy() {
    let config = bench("[agents.opencode]\ncommand = \"x\"\n").load().unwrap();
    let told = |name: &str| config.agent(name).unwrap_err().to_string();
    // Where the machine of the test has it, an entry is made when the configuration is loaded, not here.
    assert_eq!(
        told("hermes"),
        "agent hermes is not installed: its program hermes-acp is in no directory of PATH; `acpd agents add hermes` \
         installs it"
    );
    assert_eq!(
        told("qwen-code"),
        "no agent is called \"qwen-code\"; configured: opencode; did you mean \"qwen\", which is not installed?"
    );
    assert_eq!(
        told("gemni"),
        "no agent is called \"gemni\"; configured: opencode; did you mean \"gemini\", which is not installed?"
    );
    bench("[server]\ndefault_agent = \"gemini\"\n").load().unwrap();
    let error = bench("[server]\ndefault_agent = \"gemni\"\n").error();
    assert!(error.contains("there is no [agents.gemni]; did you mean \"gemini\"?"), "{error}");
}

// contract 7.2: [client] names a daemon, with a token and certificates for it; what is wrong is told at its place
#[test]
fn a_daemon_for_commands_is_read() {
    let text = "[client]\nconnect = \"https://h:1\"\ntoken_file = \"t\"\nca = \"~/c.pem\"\n";
    let named = bench(text).with("ACPD_CLIENT_CONNECT", "unix:/s");
    let client = named.load().unwrap().client;
    assert_eq!(client.connect.as_deref(), Some("unix:/s"));
    assert_eq!(client.token_file, Some(named.directory.path().join("t")));
    assert_eq!(client.ca, Some("/srv/me/c.pem".into()));
    for (text, error) in [
        ("connect = \"h:1\"", "acpd.toml:2:11: \"connect\" in [client]: "),
        ("connect = 1", "acpd.toml:2:11: \"connect\" in [client]: expected a string"),
        ("token_file = \"t\"", "acpd.toml:2:14: \"token_file\" in [client] needs \"connect\" beside it"),
        ("ca = \"c\"", "acpd.toml:2:6: \"ca\" in [client] needs \"connect\" beside it"),
        (
            "conect = \"unix:/s\"",
            "acpd.toml:2:1: unknown key \"conect\" in [client]; did you mean \"connect\"?",
        ),
    ] {
        let shown = bench(&format!("[client]\n{text}\n")).error();
        assert!(shown.starts_with(error), "{shown}");
    }
    let secret = bench("[client]\nconnect = \"http://me:secret@h\"\n").error();
    assert!(secret.contains("[client]") && !secret.contains("secret"), "{secret}");
}

// contract 7.2: on_stop = "keep" leaves agents to the next daemon, so it needs some that wait
#[test]
fn a_stop_that_keeps_agents_needs_agents_that_wait() {
    let config = bench("[server]\non_stop = \"keep\"\n[continuity]\nkeep = \"1m\"\n").load().unwrap();
    assert_eq!(config.server.on_stop, OnStop::Keep);
    assert_eq!(bench("").load().unwrap().server.on_stop, OnStop::End);
    let error = bench("[server]\non_stop = \"keep\"\n[continuity]\nkeep = \"0s\"\n").error();
    assert!(
        error.starts_with("acpd.toml:2:11: \"on_stop\" in [server] can be \"keep\" only where"),
        "{error}"
    );
}

// contract 4: a user's entry called `example` takes the built-in one's place
#[test]
fn the_example_agent_can_be_replaced_but_need_not_be_configured() {
    assert!(bench("").load().unwrap().agents.is_empty());
    let config = bench("[agents.example]\ncommand = \"mine\"\n").load().unwrap();
    assert_eq!(config.agent("example").unwrap().command, "mine");
}

// contract 7.2: limits of a token; what is wrong is told at its place, with what to write
#[test]
fn a_token_is_limited_by_its_entry() {
    let head = format!("[tokens.ci]\nhash = \"sha256:{}\"\n", "0".repeat(64));
    let limits = |rest: &str| bench(&format!("{head}{rest}\n")).load().unwrap().tokens["ci"].limits();
    assert_eq!(limits("scope = \"admin\"\nmcp = \"any\""), acpd_api::Limits::default());
    for (rest, error) in [
        ("agents = []", "3:10: \"agents\" in [tokens.ci]: must not be empty; leave the key out for no limit"),
        ("agents = [\"a b\"]", "3:11: \"agents\" in [tokens.ci]: \"a b\" is not a name"),
        (
            "agents = \"a\"",
            "3:10: \"agents\" in [tokens.ci]: expected a list such as [\"a\", \"b\"], found string \"a\"",
        ),
        (
            "roots = [\"/a\", \"b\"]",
            "3:16: \"roots\" in [tokens.ci]: \"b\" is not absolute; give the whole path",
        ),
        ("permission_modes = [\"yolo\"]", "3:21: \"permission_modes\" in [tokens.ci]: \"yolo\" is unknown"),
        ("mcp = \"stdio\"", "3:7: \"mcp\" in [tokens.ci]: \"stdio\" is unknown"),
        (
            "agents = [\"a\"]",
            "3:10: \"agents\" in [tokens.ci] limits what a token with the scope control may do",
        ),
        (
            "mcp = \"none\"\nscope = \"admin\"",
            "3:7: \"mcp\" in [tokens.ci] limits what a token with the scope",
        ),
    ] {
        let shown = bench(&format!("{head}{rest}\n")).error();
        assert!(shown.starts_with(&format!("acpd.toml:{error}")), "{shown}");
    }
    // What `acpd token new` writes is read as it was meant.
    let written = limits(
        "scope = \"control\"\nagents = [\"a\"]\nroots = ['/a \"b\\']\npermission_modes = [\"deny\"]\nmcp = \"none\"",
    );
    assert_eq!(limits(&format!("scope = \"control\"\n{}", limit_lines(&written))), written);
}
