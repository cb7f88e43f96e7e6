//! `acpd agents login`: runs the agent's own way to log in, and says whether the login is seen afterwards.
//!
//! The agent is started for it and asked for its ways; those of a terminal run on this one. No secret passes through acpd: it
//! neither asks for one nor keeps one.

mod on_terminal;
mod ways;

use super::supervisor;
use super::trial::explain;
use crate::clean::line;
use crate::commands::shown;
use crate::config::{Agent, Config};
use crate::exit::{Code, Failure};
use crate::keyboard::{Key, Keyboard, Typed};
use crate::known_agents::known_agent;
use crate::local_host::{agent_spec, load_config};
use crate::progress::waiting;
use crate::signals::StopSignals;
use crate::streams::{print, remark, remark_open};
use acpd_api::{AgentCheck, AgentOrigin};
use acpd_catalog::{logged_in, to_run};
use acpd_host::{AgentHandle, AgentSpec, Offered, TaskScope, error_code, method, start_apart, told_by_agent};
use acpd_supervisor::{ExitStatus, ProgramSpec, StderrLine, Supervisor, program_environment};
use rustix::process::Signal;
use serde::Deserialize;
use serde_json::{Value, json};
use std::ffi::{OsStr, OsString};
use std::io::IsTerminal;
use std::path::{Path, PathBuf};
use std::time::Duration;
use tokio::sync::mpsc;
use ways::{Command, How, Meant, Variable, Way, meant, ways};

/// How long an agent may take to log in by itself: a person does it in a browser meanwhile.
const PATIENCE: Duration = Duration::from_secs(10 * 60);
/// How long an agent may take for the session that shows whether it is logged in.
const SESSION: Duration = Duration::from_secs(30);
/// Lines of an agent on their way to stderr. Full: they are dropped.
const LINES: usize = 64;
/// So many ways can be chosen by a key.
const KEYS: usize = 9;

/// What is asked for.
pub(super) struct Asked {
    pub(super) name: String,
    pub(super) method: Option<OsString>,
    pub(super) config: Option<PathBuf>,
    pub(super) state_dir: Option<PathBuf>,
}

pub(super) async fn login(asked: Asked) -> Result<(), Failure> {
    let config = load_config(asked.config, asked.state_dir)?;
    let entry = config.agent(&asked.name).map_err(Failure::missing)?;
    let mut spec = agent_spec(&config, &asked.name, entry);
    spec.offered = Offered { terminal_logins: true, ..spec.offered };
    let mut stops = StopSignals::listen()?;
    let scope = TaskScope::default();
    let supervisor = supervisor(&scope)?;
    let login = Login { entry, config: &config, spec: &spec, supervisor: &supervisor, scope: &scope };
    let done = login.hold(asked.method.as_deref(), &mut stops).await;
    scope.finished().await;
    done
}

/// The ways to log in to an agent that was started, in a line each.
pub(super) fn ways_of(spec: &AgentSpec, checked: &AgentCheck) -> Vec<String> {
    let initialized = checked.initialize.as_ref().unwrap_or(&Value::Null);
    offered(spec, initialized).into_iter().map(|way| way.words).collect()
}

fn offered(spec: &AgentSpec, initialized: &Value) -> Vec<Way> {
    let path = variable(spec, "PATH").unwrap_or_default();
    ways(&initialized["authMethods"], &own(spec), known_agent(spec), |program| to_run(program, &path))
}

/// How the agent itself is run.
fn own(spec: &AgentSpec) -> Command {
    let program = &spec.program;
    let text = |word: &OsString| word.to_string_lossy().into_owned();
    Command {
        program: text(&program.command),
        args: program.args.iter().map(text).collect(),
        env: Vec::new(),
    }
}

/// A variable of an agent's environment.
pub(super) fn variable(spec: &AgentSpec, name: &str) -> Option<OsString> {
    let own = spec.program.env.iter().find(|(own, _)| own == name);
    own.map(|(_, value)| value.clone()).or_else(|| std::env::var_os(name))
}

/// A login that is under way.
struct Login<'a> {
    entry: &'a Agent,
    config: &'a Config,
    spec: &'a AgentSpec,
    supervisor: &'a Supervisor,
    scope: &'a TaskScope,
}

impl Login<'_> {
    async fn hold(&self, said: Option<&OsStr>, stops: &mut StopSignals) -> Result<(), Failure> {
        let agent = tokio::select! {
            agent = self.start() => agent?,
            () = stops.next() => return Err(interrupted()),
        };
        let ways = offered(self.spec, &agent.info().result);
        let name = &self.spec.name;
        let chosen = match meant(&ways, said) {
            Meant::One(way) => way.clone(),
            Meant::OneOf(ways) => self.choose(ways).await?,
            Meant::None if ways.is_empty() => {
                agent.stop();
                return Err(Failure::Failed(format!(
                    "{name} names no way to log in; if it wants a login, its own program has it"
                )));
            }
            Meant::None => return Err(self.unnamed("there is no such --method", &ways)),
        };
        match &chosen.how {
            How::Agent => self.by_agent(&agent, &chosen, stops).await?,
            How::Terminal(command) => {
                // It may be about the same files.
                agent.stop();
                self.on_terminal(&chosen, command, stops).await?;
            }
            How::Variables(variables) => {
                agent.stop();
                return self.by_variables(&chosen, variables);
            }
        }
        agent.stop();
        agent.ended().await;
        self.look(stops).await
    }

    async fn start(&self) -> Result<AgentHandle, Failure> {
        let (sender, mut lines) = mpsc::channel(LINES);
        self.scope.spawn_lasting("login lines", async move {
            while let Some(StderrLine { text, .. }) = lines.recv().await {
                // An address to visit, or a code to type, is said there.
                let text = text.map(|text| line(&text, 2_000)).filter(|text| !text.trim().is_empty());
                if let Some(text) = text {
                    remark(&format!("  | {text}"));
                }
            }
        });
        let cwd = std::env::current_dir()?;
        let started = start_apart(self.supervisor, self.scope, self.spec, &cwd, Some(sender));
        let started = waiting(&format!("starting {}", self.spec.name), true, started).await;
        started.map_err(|failed| {
            let error = failed.check.error.as_deref().unwrap_or_default();
            Failure::Failed(explain(&self.spec.name, error, &json!(failed.check.termination_info)))
        })
    }

    fn variable(&self, name: &str) -> Option<OsString> {
        variable(self.spec, name)
    }

    /// Asks the person on the terminal; without one, says what there is.
    async fn choose(&self, ways: &[Way]) -> Result<Way, Failure> {
        if !std::io::stdin().is_terminal() || !std::io::stderr().is_terminal() {
            return Err(self.unnamed("which --method?", ways));
        }
        remark(&format!("{} can be logged in to in these ways:", self.spec.name));
        for (at, way) in ways.iter().enumerate() {
            let key = if at < KEYS { (at + 1).to_string() } else { " ".to_owned() };
            remark(&format!("  {key}  {}", way.words));
        }
        // What is typed before the question is shown is no answer to it, and all that is typed behind it is read.
        let mut keyboard = Keyboard::open()?;
        remark_open("a number: ");
        let chosen = loop {
            match keyboard.next().await {
                Typed::Key(Key::Letter(key)) => {
                    let at = key.to_digit(10).and_then(|key| usize::try_from(key).ok()?.checked_sub(1));
                    if let Some(way) = at.and_then(|at| ways.get(at)) {
                        break way.clone();
                    }
                }
                Typed::Key(Key::Suspend) => keyboard.stop(Signal::TSTP)?,
                Typed::Key(Key::Interrupt | Key::Escape | Key::Quit) | Typed::Gone => {
                    drop(keyboard);
                    remark("");
                    return Err(interrupted());
                }
                Typed::Continued => keyboard.enter_again()?,
                Typed::Key(_) => {}
            }
        };
        drop(keyboard);
        remark(&chosen.words);
        Ok(chosen)
    }

    fn unnamed(&self, what: &str, ways: &[Way]) -> Failure {
        let name = &self.spec.name;
        let ways = ways::lines(ways).join("\n");
        Failure::Usage(format!("acpd agents login {name}: {what} {name} has these:\n{ways}"))
    }

    /// The agent does it by itself.
    async fn by_agent(&self, agent: &AgentHandle, way: &Way, stops: &mut StopSignals) -> Result<(), Failure> {
        let name = &self.spec.name;
        remark(&format!("{name} logs in by itself: {}", way.words));
        remark("it may open a browser; Ctrl-C gives up");
        let params = serde_json::to_vec(&json!({"methodId": way.id}))?.into();
        let asked = waiting("waiting for the login", true, agent.request(method::AUTHENTICATE, Some(params)));
        let answer = tokio::select! {
            answer = tokio::time::timeout(PATIENCE, asked) => answer,
            () = stops.next() => {
                agent.stop();
                agent.ended().await;
                return Err(interrupted());
            }
        };
        let Ok(answer) = answer else {
            let minutes = PATIENCE.as_secs() / 60;
            return Err(Failure::Of(
                Code::TimedOut,
                format!("{name} has not logged in for {minutes} minutes"),
            ));
        };
        match answer? {
            answer if answer.is_error => {
                let (_, said) = told_by_agent(&answer.body);
                Err(Failure::Failed(format!("{name} did not log in: {}", line(&said, 300))))
            }
            _ => Ok(()),
        }
    }

    /// A program does it on this terminal.
    async fn on_terminal(
        &self,
        way: &Way,
        command: &Command,
        stops: &mut StopSignals,
    ) -> Result<(), Failure> {
        let name = &self.spec.name;
        if !on_terminal::is_there() {
            let id = shown(&line(&way.id, 60));
            return Err(Failure::Usage(format!(
                "this way to log in needs a terminal on stdin and stdout: run `acpd agents login {name} --method {id}` on one"
            )));
        }
        remark(&format!("{name} logs in on this terminal: `{}`", command.shown()));
        let mut spec = ProgramSpec::new(&command.program, std::env::current_dir()?);
        spec.args = command.args.iter().map(Into::into).collect();
        let more = command.env.iter().map(|(name, value)| (OsString::from(name), OsString::from(value)));
        let is_over = |name: &OsStr| command.env.iter().any(|(over, _)| OsStr::new(over) == name);
        let own = self.spec.program.env.iter().filter(|(name, _)| !is_over(name)).cloned();
        let own = own.chain(more).collect::<Vec<_>>();
        spec.env = with_programs_of(
            Path::new(&self.spec.program.command),
            program_environment(std::env::vars_os(), &own),
        );
        spec.graces = self.spec.timeouts.graces;
        let report = on_terminal::run(self.supervisor, spec, stops).await?;
        match &report.status {
            ExitStatus::Code(0) => Ok(()),
            ExitStatus::Signal(signal) if signal == "SIGINT" => Err(interrupted()),
            ExitStatus::Code(130) => Err(interrupted()),
            status => Err(Failure::Failed(format!("the login of {name} ended with {status}"))),
        }
    }

    /// A person sets variables.
    fn by_variables(&self, way: &Way, variables: &[Variable]) -> Result<(), Failure> {
        let name = &self.spec.name;
        let is_set =
            |variable: &Variable| self.variable(&variable.name).is_some_and(|value| !value.is_empty());
        let missing: Vec<&Variable> = variables.iter().filter(|one| !one.optional && !is_set(one)).collect();
        if missing.is_empty() && !variables.is_empty() {
            return print(&format!("{name} has its variables: {}", way.words)).map(drop);
        }
        print(&self.how_to_set(variables).join("\n"))?;
        let names: Vec<&str> = missing.iter().map(|variable| variable.name.as_str()).collect();
        let verb = if names.len() == 1 { "is" } else { "are" };
        Err(Failure::Of(Code::Login, format!("{name} wants a login: {} {verb} not set", names.join(", "))))
    }

    /// What to write where.
    fn how_to_set(&self, variables: &[Variable]) -> Vec<String> {
        let name = &self.spec.name;
        let mut lines = vec![format!("{name} takes its login from variables:")];
        lines.extend(variables.iter().map(|variable| {
            let label = variable.label.as_ref().map(|label| format!("  {label}")).unwrap_or_default();
            let optional = if variable.optional { " (optional)" } else { "" };
            format!("  {}{label}{optional}", variable.name)
        }));
        let file =
            self.config.file.clone().or_else(|| crate::config::Sources::of_process(None, None).config_file());
        let file = file.map_or_else(|| "the configuration".to_owned(), |file| shown(&file.to_string_lossy()));
        let wanted = variables.iter().filter(|variable| !variable.optional);
        let values: Vec<String> = wanted.map(|variable| format!("{} = \"...\"", variable.name)).collect();
        lines.push(format!("set them in its entry in {file}, for it alone:"));
        lines.push(format!("  [agents.{name}]"));
        if self.entry.origin == AgentOrigin::Found {
            lines.push(format!("  command = {}", json!(self.entry.command)));
            lines.push(format!("  args = {}", json!(self.entry.args)));
            lines.extend((!self.entry.files).then(|| "  files = false".to_owned()));
        }
        lines.push(format!("  env = {{ {} }}", values.join(", ")));
        lines.push(
            "or export them where acpd runs: for `acpd serve`, in its unit or shell, before it starts"
                .to_owned(),
        );
        lines
    }

    /// Says whether the login is seen.
    async fn look(&self, stops: &mut StopSignals) -> Result<(), Failure> {
        let name = &self.spec.name;
        let seen =
            known_agent(self.spec).and_then(|known| logged_in(&known.login, &|name| self.variable(name)));
        if seen == Some(true) {
            return print(&format!("{name} is logged in")).map(drop);
        }
        let begun = tokio::select! {
            begun = self.begins_session() => begun?,
            () = stops.next() => return Err(interrupted()),
        };
        match (begun, seen) {
            (Begun::WantsLogin, _) => Err(Failure::Of(
                Code::Login,
                format!("{name} still wants a login; another --method may help"),
            )),
            (Begun::Session, Some(false)) => {
                print(&format!("{name} begins a session; no login of it is seen here, which it may not need"))
                    .map(drop)
            }
            (Begun::Session, _) => print(&format!("{name} is logged in: it begins a session")).map(drop),
            (Begun::Refused(why), _) => {
                Err(Failure::Failed(format!("{name} begins no session: {}", line(&why, 300))))
            }
        }
    }

    /// Asks the agent for a session, which shows whether it wants a login.
    async fn begins_session(&self) -> Result<Begun, Failure> {
        let agent = self.start().await?;
        let cwd = std::env::current_dir()?;
        let params = serde_json::to_vec(&json!({"cwd": cwd, "mcpServers": []}))?.into();
        let asked = agent.request(method::SESSION_NEW, Some(params));
        let answer = tokio::time::timeout(SESSION, waiting("looking whether it works", true, asked)).await;
        agent.stop();
        agent.ended().await;
        let Ok(answer) = answer else {
            return Ok(Begun::Refused(format!("it has not answered for {} s", SESSION.as_secs())));
        };
        let answer = answer?;
        if !answer.is_error {
            return Ok(Begun::Session);
        }
        let code = serde_json::from_slice::<Refusal>(&answer.body).map(|refusal| refusal.code);
        Ok(match code {
            Ok(error_code::AUTH_REQUIRED) => Begun::WantsLogin,
            _ => Begun::Refused(told_by_agent(&answer.body).1),
        })
    }
}

/// What came of asking for a session.
enum Begun {
    Session,
    WantsLogin,
    Refused(String),
}

#[derive(Deserialize)]
struct Refusal {
    code: i64,
}

fn interrupted() -> Failure {
    Failure::Of(Code::Interrupted, "interrupted".to_owned())
}

/// The environment of a program that an agent names: what lies beside the agent's own, which need not be in PATH, is found first.
fn with_programs_of(agent: &Path, mut env: Vec<(OsString, OsString)>) -> Vec<(OsString, OsString)> {
    let Some(dir) = agent.parent().filter(|dir| dir.is_absolute()) else { return env };
    let path = env.iter_mut().find(|(name, _)| name == "PATH");
    let before = path.as_ref().map(|(_, path)| path.clone()).unwrap_or_default();
    let before = std::env::split_paths(&before).filter(|dir| !dir.as_os_str().is_empty());
    let all = std::iter::once(dir.to_owned()).chain(before);
    // A directory whose name cannot stand in PATH is none to look in.
    match (std::env::join_paths(all), path) {
        (Ok(all), Some((_, path))) => *path = all,
        (Ok(all), None) => env.push(("PATH".into(), all)),
        (Err(_), _) => {}
    }
    env
}

#[cfg(test)]
mod tests {
    use super::*;

    // issue 14: what an agent was installed with is found by its name, though it is not in PATH
    #[test]
    fn programs_beside_the_agent_are_found_first() {
        let of = |agent: &str, path: Option<&str>| {
            let env = path.map(|path| (OsString::from("PATH"), OsString::from(path)));
            let env = with_programs_of(Path::new(agent), env.into_iter().collect());
            env.into_iter().map(|(_, path)| path.into_string().expect("UTF-8")).collect::<Vec<_>>()
        };
        assert_eq!(of("/i/bin/x", Some("/a:/b")), ["/i/bin:/a:/b"]);
        assert_eq!(of("/i/bin/x", None), ["/i/bin"]);
        assert_eq!(of("x", Some("/a")), ["/a"]);
        assert_eq!(of("/i:j/x", Some("/a")), ["/a"]);
    }

    // issue 14: variables are told with the entry that has them, whole where there is none yet
    #[test]
    fn it_is_said_which_variables_are_set_where() {
        let config = Config { file: Some("/etc/acpd.toml".into()), ..Config::default() };
        let known = acpd_catalog::known("gemini").expect("it is known");
        let variables = [
            Variable {
                name: "GEMINI_API_KEY".to_owned(),
                label: Some("the key".to_owned()),
                optional: false,
            },
            Variable { name: "GEMINI_URL".to_owned(), label: None, optional: true },
        ];
        let told = |entry: &Agent| {
            let (scope, spec) = (TaskScope::default(), agent_spec(&config, "gemini", entry));
            let supervisor = supervisor(&scope).expect("this binary is there");
            let login = Login { entry, config: &config, spec: &spec, supervisor: &supervisor, scope: &scope };
            login.how_to_set(&variables)
        };
        let found = Agent::found("gemini".to_owned(), known);
        assert_eq!(
            told(&found)[..10],
            [
                "gemini takes its login from variables:",
                "  GEMINI_API_KEY  the key",
                "  GEMINI_URL (optional)",
                "set them in its entry in /etc/acpd.toml, for it alone:",
                "  [agents.gemini]",
                "  command = \"gemini\"",
                "  args = [\"--acp\"]",
                "  files = false",
                "  env = { GEMINI_API_KEY = \"...\" }",
                "or export them where acpd runs: for `acpd serve`, in its unit or shell, before it starts",
            ]
        );
        let configured = Agent { origin: AgentOrigin::Configured, ..found };
        assert_eq!(told(&configured)[4..6], ["  [agents.gemini]", "  env = { GEMINI_API_KEY = \"...\" }"]);
    }
}
