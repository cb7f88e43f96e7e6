//! Arguments and what they make of the agent, read once at the start.
//!
//! Invariant: what an option takes away disappears from the capabilities and answers -32601, both from one table.
//! Not the directives: those are in the prompt.

use std::ffi::{OsStr, OsString};
use std::path::PathBuf;

use serde_json::{Value, json};

use crate::login::{LOG_IN, Login, Way};

/// What is wrong with the arguments.
#[derive(Debug, PartialEq, thiserror::Error)]
pub(crate) enum UsageError {
    #[error("unknown argument {argument:?}")]
    Unknown { argument: OsString },
    #[error("{option} needs {what}")]
    Missing { option: &'static str, what: &'static str },
    #[error("--without knows load, resume, fork, list, close and delete, not {name:?}")]
    Feature { name: String },
    #[error("--login knows agent, never, terminal, older and variable, not {name:?}")]
    Login { name: String },
}

/// An optional part of ACP that a lesser agent lacks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Feature {
    Load,
    Resume,
    Fork,
    List,
    Close,
    Delete,
    /// The first draft of close; there only with `--legacy-stop`.
    Stop,
}

impl Feature {
    const REMOVABLE: [(&str, Self); 6] = [
        ("load", Self::Load),
        ("resume", Self::Resume),
        ("fork", Self::Fork),
        ("list", Self::List),
        ("close", Self::Close),
        ("delete", Self::Delete),
    ];

    fn named(name: &str) -> Option<Self> {
        Self::REMOVABLE.iter().find(|(known, _)| *known == name).map(|(_, feature)| *feature)
    }

    /// The feature that a method belongs to, if it is optional.
    pub(crate) fn of_method(method: &str) -> Option<Self> {
        let name = method.strip_prefix("session/")?;
        if name == "stop" { Some(Self::Stop) } else { Self::named(name) }
    }
}

/// How the agent plays its part.
#[derive(Debug, PartialEq)]
pub(crate) struct Options {
    without: Vec<Feature>,
    legacy_stop: bool,
    pub(crate) state_dir: Option<PathBuf>,
    pub(crate) keeps_state: bool,
    pub(crate) page_size: usize,
    pub(crate) hang_initialize: bool,
    pub(crate) exit_before_initialize: Option<u8>,
    pub(crate) banner: bool,
    pub(crate) early_updates: bool,
    pub(crate) login: Login,
    pub(crate) logs_in: bool,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            without: Vec::new(),
            legacy_stop: false,
            state_dir: None,
            keeps_state: true,
            page_size: 50,
            hang_initialize: false,
            exit_before_initialize: None,
            banner: false,
            early_updates: false,
            login: Login::default(),
            logs_in: false,
        }
    }
}

/// What the arguments ask for.
#[derive(Debug, PartialEq)]
pub(crate) enum CommandLine {
    Serve(Options),
    Help,
    /// Hidden: what `fork` leaves behind.
    Sleeper,
    /// Hidden: the middle process of `fork setsid`.
    SleeperLauncher,
}

/// The hidden arguments with which `fork` starts this program again.
pub(crate) const SLEEPER: &str = "--sleeper";
pub(crate) const SLEEPER_LAUNCHER: &str = "--sleeper-launcher";

impl CommandLine {
    pub(crate) fn parse(arguments: &[OsString]) -> Result<Self, UsageError> {
        let mut options = Options::default();
        let mut arguments = arguments.iter();
        while let Some(argument) = arguments.next() {
            let (name, inline) = split_inline(argument);
            let mut value = |option, what| {
                let value = inline.clone().or_else(|| arguments.next().cloned());
                value.ok_or(UsageError::Missing { option, what })
            };
            match name {
                "--state-dir" => options.state_dir = Some(value("--state-dir", "a directory")?.into()),
                "--without" => {
                    let names = value("--without", "a list of names")?;
                    for name in names.to_string_lossy().split(',').filter(|name| !name.is_empty()) {
                        let feature = Feature::named(name);
                        let unknown = || UsageError::Feature { name: name.to_owned() };
                        options.without.push(feature.ok_or_else(unknown)?);
                    }
                }
                "--login" => {
                    let names = value("--login", "a list of ways")?;
                    for name in names.to_string_lossy().split(',').filter(|name| !name.is_empty()) {
                        let way = Way::NAMES.iter().find(|(known, _)| *known == name);
                        let unknown = || UsageError::Login { name: name.to_owned() };
                        options.login.ways.push(way.ok_or_else(unknown)?.1);
                    }
                }
                "--login-file" => options.login.file = Some(value("--login-file", "a file")?.into()),
                "--page-size" => {
                    let what = "a number of at least 1";
                    let size = number(&value("--page-size", what)?).filter(|size| *size > 0);
                    options.page_size = size.ok_or(UsageError::Missing { option: "--page-size", what })?;
                }
                "--exit-before-initialize" => {
                    let (option, what) = ("--exit-before-initialize", "an exit code from 0 to 255");
                    let code = number(&value(option, what)?);
                    options.exit_before_initialize = Some(code.ok_or(UsageError::Missing { option, what })?);
                }
                _ if inline.is_some() => {
                    return Err(UsageError::Unknown { argument: argument.clone() });
                }
                "--help" | "-h" => return Ok(Self::Help),
                SLEEPER => return Ok(Self::Sleeper),
                SLEEPER_LAUNCHER => return Ok(Self::SleeperLauncher),
                LOG_IN => options.logs_in = true,
                "--no-state" => options.keeps_state = false,
                "--legacy-stop" => options.legacy_stop = true,
                "--hang-initialize" => options.hang_initialize = true,
                "--banner" => options.banner = true,
                "--early-updates" => options.early_updates = true,
                _ => return Err(UsageError::Unknown { argument: argument.clone() }),
            }
        }
        Ok(Self::Serve(options))
    }
}

fn split_inline(argument: &OsStr) -> (&str, Option<OsString>) {
    match argument.to_str().map(|text| text.split_once('=')) {
        Some(Some((name, value))) => (name, Some(value.into())),
        _ => (argument.to_str().unwrap_or_default(), None),
    }
}

fn number<T: std::str::FromStr>(value: &OsStr) -> Option<T> {
    value.to_str()?.parse().ok()
}

impl Options {
    pub(crate) fn offers(&self, feature: Feature) -> bool {
        match feature {
            Feature::Stop => self.legacy_stop,
            Feature::Close if self.legacy_stop => false,
            _ => !self.without.contains(&feature),
        }
    }

    /// The `agentCapabilities` of the answer to `initialize`.
    pub(crate) fn capabilities(&self) -> Value {
        let mut session = json!({"additionalDirectories": {}});
        for (name, feature) in Feature::REMOVABLE {
            // Loading has a place of its own, outside the session capabilities.
            if feature != Feature::Load && self.offers(feature) {
                session[name] = json!({});
            }
        }
        let mut capabilities = json!({
            "loadSession": self.offers(Feature::Load),
            "promptCapabilities": {"image": true, "audio": true, "embeddedContext": true},
            "sessionCapabilities": session,
        });
        if self.legacy_stop {
            capabilities["session"] = json!({"stop": {}});
        }
        capabilities
    }
}

/// The text of `--help`.
pub(crate) const HELP: &str = "\
The deterministic ACP agent: speaks the Agent Client Protocol, version 1, on standard input and output.

Options:
  --state-dir DIR     keep sessions in DIR (default $ACPD_EXAMPLE_STATE, else $XDG_STATE_HOME/acpd-example,
                      else ~/.local/state/acpd-example)
  --no-state          keep sessions in memory only
  --without LIST      play a lesser agent, without some of load,resume,fork,list,close,delete
  --legacy-stop       know only session/stop, the first draft of session/close
  --page-size N       sessions per page of session/list (default 50)
  -h, --help          this text

Options for tests of a host:
  --hang-initialize               never answer initialize
  --exit-before-initialize CODE   exit at once
  --banner                        print two lines that are not JSON before speaking
  --early-updates                 send two updates for a new session before the answer to session/new
  --login LIST                    want a login, in some of the ways agent,never,terminal,older,variable
  --login-file FILE               the login is this file (default DIR/login of --state-dir)
  --log-in                        log in on a terminal

Each line of a prompt is a directive:
  (text with \"crash\")             250 lines to stderr, then exit code 1 in the middle of the turn
  exit N                          exit with code N, mid-turn
  signal NAME                     die by that signal, mid-turn
  stream N [BYTES]                N numbered chunks whose texts have BYTES bytes each (default 64)
  think TEXT                      a thought
  plan A,B,C                      a plan with these entries; [x] before one: it is done, [>]: at work
  title TEXT                      a session title
  commands A,B                    the available commands
  mode ID                         switch the mode
  usage USED SIZE [COST CURRENCY] context usage, and what the session cost so far
  turn-usage KIND N...            tokens that the turn says at its end to have used: input 11 output 7
  tools A,B                       a session/started notification with that list of tools
  tool TITLE                      a tool call from pending to completed
  ask KIND [TITLE]                a permission request for a tool call of that kind; reports the outcome
  read PATH [LINE [LIMIT]]        read a file through the client; reports its content
  write PATH TEXT                 write a file through the client (\\n, \\r, \\t and \\\\ in TEXT are escapes)
  run CMD ARGS...                 run a command in a terminal of the client; quotes group words
  run-timeout MS CMD ARGS...      the same, killed after MS milliseconds
  elicit MESSAGE                  a form with one text field
  sleep MS | hang                 wait, until cancelled
  stop-reason REASON              end the turn with that stop reason, after what follows
  ignore-cancel                   from here on ignore cancellations of this session
  ignore-sigterm                  from here on ignore SIGTERM and the end of input
  fork [setsid]                   leave a child behind that sleeps for 1,000 s; reports its pid
  stderr N                        N lines to stderr
  garbage                         three lines that are not messages
  big BYTES                       a chunk whose line has BYTES bytes
  badutf8                         a chunk with an invalid byte
  env NAME | cwd                  report a variable | the directory
  quirk [NAME]                    behave as some real agents do; without a name: list the quirks
Any other text is echoed word by word.

Directives for tests of a host:
  params                          report the parameters with which the session was taken up
  withdraw KIND                   a permission request, taken back at once with $/cancel_request
  close-stdout                    close standard output and live on
  flood BYTES                     one line of BYTES bytes that is not JSON
  flood-stderr BYTES              BYTES bytes to stderr without a newline

The extension request _example/ping answers with its own params.
";

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(arguments: &[&str]) -> Result<CommandLine, UsageError> {
        CommandLine::parse(&arguments.iter().map(OsString::from).collect::<Vec<_>>())
    }

    // contract 4
    #[test]
    fn what_is_taken_away_is_not_advertised() {
        let Ok(CommandLine::Serve(options)) = parse(&["--without=load,fork", "--legacy-stop"]) else {
            panic!("good arguments were refused")
        };
        let capabilities = options.capabilities();
        assert_eq!(capabilities["loadSession"], json!(false));
        assert_eq!(
            capabilities["sessionCapabilities"],
            json!({"additionalDirectories": {}, "resume": {}, "list": {}, "delete": {}})
        );
        assert_eq!(capabilities["session"], json!({"stop": {}}));
        assert!(!options.offers(Feature::Close) && options.offers(Feature::Stop));
    }

    // contract 4
    #[test]
    fn bad_arguments_are_named() {
        for (arguments, message) in [
            (vec!["--wat"], "unknown argument \"--wat\""),
            (vec!["--banner=1"], "unknown argument \"--banner=1\""),
            (vec!["--state-dir"], "--state-dir needs a directory"),
            (vec!["--page-size", "0"], "--page-size needs a number of at least 1"),
            (
                vec!["--exit-before-initialize", "256"],
                "--exit-before-initialize needs an exit code from 0 to 255",
            ),
            (
                vec!["--without", "everything"],
                "--without knows load, resume, fork, list, close and delete, not \"everything\"",
            ),
        ] {
            assert_eq!(parse(&arguments).expect_err("bad arguments").to_string(), message);
        }
    }
}
