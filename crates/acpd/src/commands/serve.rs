//! `acpd serve`: the daemon.

mod answer;
mod check;
mod doors;
mod handing_over;
mod notify;
mod pruner;
mod token_uses;
mod unit;

use crate::cli::Serve;
use crate::config::{Config, OnStop, Scope, Sees};
use crate::daemon_address;
use crate::daemon_config;
use crate::exit::Failure;
use crate::fleet::{self, Joined};
use crate::hooks::{self, HookSpec, Hooks};
use crate::image::{Image, Successor};
use crate::local_host::{LocalHost, agent_specs, continuity, kill_on_signal, load_config};
use crate::migrating::Waits;
use crate::passed::{Passed, PassedError};
use crate::runtime::if_any;
use crate::signals::{SignalThread, StopSignals, handovers, hangups};
use crate::state_dir;
use crate::streams::stdout;
use acpd_api::{HandingOver, Reloaded};
use acpd_gateway::{
    Allowance, Asked, HttpServer, HttpSettings, Identity, Measurements, TokenHash, Tokens, local_socket_path,
    tls_config,
};
use acpd_host::{Continuity, Keep, TakesOver, TaskScope, chain};
use acpd_inspector::{FIRST, Pages};
use doors::Doors;
use notify::Standing;
use pruner::Pruner;
use std::ffi::OsString;
use std::io::Write;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use token_uses::TokenUses;
use tokio::signal::unix::Signal;
use tokio::sync::{oneshot, watch};
use tokio_util::sync::CancellationToken;

/// What ends sessions when the daemon does, as their records name it.
const INITIATOR: &str = "daemon";

/// Why a daemon leaves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Leaving {
    Stop,
    HandOver,
}

/// What a daemon leaves to the process.
#[derive(Debug, Default)]
pub(crate) struct Left {
    /// Agents that go on without it, until something is dropped that holds them.
    pub(crate) agents: bool,
    /// What this process is to become.
    pub(crate) successor: Option<Successor>,
    /// The reason of a start that failed after agents were adopted.
    pub(crate) failure: Option<Failure>,
}

impl Left {
    /// Leaves the agents of a host whose daemon cannot start as a crash would: the next daemon adopts them.
    fn after_failure(local: LocalHost, failure: Failure) -> Self {
        // Dropping it would stop them.
        std::mem::forget(local);
        Self { agents: true, successor: None, failure: Some(failure) }
    }
}

/// Serves until a signal asks to stop, on the sockets that were passed in if there are some; or until the next image of this
/// process takes over.
pub(crate) async fn serve(args: Serve, passed: Result<Passed, PassedError>) -> Result<Left, Failure> {
    if args.check {
        return check::check(&args).map(|()| Left::default());
    }
    let image = Image::of_this_process()?;
    let mut stops = StopSignals::without_hangup()?;
    // Before the configuration is read: a change of it from now on is one to reload.
    let (mut reloads, mut handovers) = (hangups()?, handovers()?);
    let signals = SignalThread::start()?;
    let (config, passed) = (load(&args)?, passed?);
    if passed.tcp.is_empty() {
        check_exposure(&config, config.server.listen).map_err(Failure::Usage)?;
    }
    let told = hook_specs(&config).map_err(Failure::Usage)?;
    let pages = pages().map_err(Failure::Usage)?;
    // Before the first child: each inherits what is set then.
    raise_open_files();
    let tls = match (&config.server.tls_cert, &config.server.tls_key) {
        (Some(cert), Some(key)) => Some(tls_config(cert, key)?),
        _ => None,
    };
    let scheme = if tls.is_some() { "https" } else { "http" };
    let measured = Measurements::listen()?;
    let is_next = passed.is_of_this_process();
    let state_dir = config.storage.path.clone();
    state_dir::claim(&state_dir)?;
    acpd_eventlog::make_room_to_start(&state_dir);
    // Before any agent is adopted: a start that loses against another daemon, or gets no port, changes nothing.
    let mut doors = Doors::open(passed, &config, tls).await?;
    let listening = format!("{scheme}://{}", doors.addresses[0]);
    fleet::check(&config, &listening).map_err(Failure::Usage)?;
    let continuity = Continuity { is_handed_over: is_next, ..continuity(&config, TakesOver::All) };
    let mut is_stopping = false;
    let local = {
        let (percent, mut migrating) = watch::channel(0);
        let waits = Waits::AsService(percent);
        let subscribers = hooks::subscribers(&told);
        let mut opening = Box::pin(LocalHost::open_for(&config, continuity, subscribers, &waits));
        loop {
            tokio::select! {
                opened = &mut opening => break opened?,
                Ok(()) = migrating.changed() => {
                    let percent = *migrating.borrow_and_update();
                    let status = format!("moving the sessions of an earlier acpd to files: {percent} %");
                    notify::tell(Standing::Migrating(status)).await;
                }
                // Sent to the image before, whose agents it was to end.
                () = stops.next() => if is_next && !is_stopping {
                    is_stopping = true;
                } else {
                    // Agents that were adopted so far are left as by a crash.
                    std::mem::forget(opening);
                    return Ok(Left { agents: true, ..Left::default() });
                }
            }
        }
    };
    if is_next {
        local.reap_inherited();
    }
    daemon_config::note(&state_dir, config.file.as_deref());
    daemon_address::note(&state_dir, &listening);
    let tokens = Tokens::default();
    tokens.replace(known_tokens(&config));
    let mut uses = TokenUses::recall(&state_dir, &tokens);
    let mut keeping = tokio::time::interval(token_uses::PACE);
    let (quit, stop) = (CancellationToken::new(), CancellationToken::new());
    let settings = http_settings(&config);
    let (host, sight) = (local.host.clone(), local.known_agents().clone());
    let (server, mut requests) =
        HttpServer::new(host, tokens.clone(), settings, sight, pages, Some(measured), stop.clone());
    let fleet = match Joined::begin(&config, &local.host, &listening) {
        Ok(fleet) => fleet,
        Err(failure) => return Ok(Left::after_failure(local, failure)),
    };
    if let Some(fleet) = &fleet {
        server.join(fleet.door());
        fleet.run(&local.host, local.host.scope());
    }
    for name in config.agents.keys().filter(|_| !is_stopping) {
        local.host.agents().keep_spare(name);
    }
    let mut hooks = Hooks::begin(local.means_of_hooks(), told).await;
    let pruner = Pruner::begin(&local.host, &state_dir, keep(&config));
    let serving = local.host.scope().spawn("front door", {
        let (server, quit, listeners) = (server.clone(), quit.clone(), doors.listeners);
        async move { server.serve(listeners, quit).await }
    });
    let since = tokio::time::Instant::now();
    log_start(&config, &doors.addresses, &listening);
    if let Err(unread) = announce(&listening)
        && !is_next
    {
        return Ok(Left::after_failure(local, unread));
    }
    let ready = || Standing::Ready(format!("listening on {listening}"));
    notify::tell(ready()).await;
    unit::judge(&local, config.continuity.keep);
    let watching = TaskScope::default();
    let _watched = notify::keep_watch(&watching);
    let mut goes_by = config.file.clone();
    let mut held_signals = Vec::new();
    let mut leaving = loop {
        if is_stopping {
            break Leaving::Stop;
        }
        let asked = tokio::select! {
            () = stops.next() => break Leaving::Stop,
            // What comes of a signal is in the log only.
            _ = if_any(reloads.as_mut().map(Signal::recv)) => Asked::Reload(oneshot::channel().0),
            _ = handovers.recv() => Asked::HandOver(oneshot::channel().0),
            Some(asked) = requests.recv() => asked,
            _ = keeping.tick() => {
                uses.keep(&tokens);
                continue;
            }
        };
        match asked {
            Asked::Reload(answer) => {
                notify::tell(Standing::Reloading).await;
                let parts = (&server, &tokens, &pruner, fleet.as_ref());
                let reloaded = reload(&args, parts, &local, (&mut goes_by, &state_dir), &mut hooks).await;
                notify::tell(ready()).await;
                let _unread = answer.send(reloaded);
            }
            Asked::Drain(drains, answer) => {
                let drained = fleet.as_ref().map_or(Ok(()), |fleet| fleet.drain(&local.host, drains));
                let _unread = answer.send(drained);
            }
            Asked::HandOver(answer) => {
                let judged = tokio::select! {
                    () = stops.next() => break Leaving::Stop,
                    judged = handing_over::ask(&local, &image, &doors.addresses) => judged,
                };
                match &judged {
                    Ok(next) => tracing::info!(version = next.version, "acpd hands over"),
                    Err(reason) => tracing::error!(reason, "acpd does not hand over and goes on"),
                }
                let accepted = judged.clone().ok();
                let _unread = answer.send(judged.map(|next| HandingOver { version: next.version }));
                if let Some(next) = accepted {
                    held_signals = next.held_signals;
                    let version = next.version;
                    watching.spawn("others that hand over", handing_over::answer_all(requests, version));
                    break Leaving::HandOver;
                }
            }
        }
    };
    let sessions = local.host.live_sessions();
    match leaving {
        Leaving::Stop => {
            tracing::info!(sessions, "acpd stopping");
            notify::tell(Standing::Stopping).await;
            // From here on clients are refused.
            doors.copies.clear();
        }
        Leaving::HandOver => {
            notify::tell(Standing::Reloading).await;
            server.hand_over();
        }
    }
    quit.cancel();
    let keeps_on_stop = config.server.on_stop == OnStop::Keep;
    if leaving == Leaving::HandOver || keeps_on_stop {
        kill_on_signal(&mut stops, &local.host, local.host.leave(INITIATOR)).await;
    } else {
        end_sessions(&local, &mut stops).await;
    }
    // What the ends of sessions said is on its way; streams end behind it.
    stop.cancel();
    let _served = kill_on_signal(&mut stops, &local.host, serving).await;
    uses.keep(&tokens);
    if stops.have_come() && leaving == Leaving::HandOver {
        leaving = Leaving::Stop;
        if !keeps_on_stop {
            end_sessions(&local, &mut stops).await;
        }
    }
    let may_leave = leaving == Leaving::HandOver || keeps_on_stop;
    if let Some(fleet) = fleet
        && !may_leave
    {
        fleet.leave().await;
    }
    let agents = local.end_or_leave(may_leave, INITIATOR, &mut stops).await;
    if leaving == Leaving::HandOver {
        // What comes from here on waits for the next image, or ends this process where that does not act on it.
        signals.end()?;
        if stops.listen_no_more() {
            leaving = Leaving::Stop;
        }
    }
    let uptime_s = since.elapsed().as_secs();
    match leaving {
        Leaving::Stop => {
            daemon_config::forget(&state_dir);
            daemon_address::forget(&state_dir);
            drop(doors.local);
            tracing::info!(uptime_s, agents_go_on = agents, "acpd stopped");
            Ok(Left { agents, ..Left::default() })
        }
        Leaving::HandOver => {
            tracing::info!(uptime_s, program = %image.program.display(), "acpd becomes its next image");
            let Doors { copies: sockets, places, local, .. } = doors;
            let successor = Some(Successor { image, held_signals, sockets, places, local });
            Ok(Left { agents, successor, failure: None })
        }
    }
}

/// Ends every session by its agent's ladder.
async fn end_sessions(local: &LocalHost, stops: &mut StopSignals) {
    kill_on_signal(stops, &local.host, local.host.clone().shutdown(INITIATOR)).await;
}

fn load(args: &Serve) -> Result<Config, Failure> {
    let mut config = load_config(args.config.clone(), args.state_dir.clone())?;
    if let Some(listen) = args.listen {
        config.server.listen = listen;
    }
    Ok(config)
}

/// Without tokens, every caller may run commands here, so only this machine may call.
pub(crate) fn check_exposure(config: &Config, listen: SocketAddr) -> Result<(), String> {
    if listen.ip().to_canonical().is_loopback() || !config.tokens.is_empty() {
        return Ok(());
    }
    Err(format!(
        "{listen} can be reached from other machines, and there is no token: any client could run commands \
         here; make one with `acpd token new NAME --scope control`, or listen on 127.0.0.1"
    ))
}

/// What an operator wants to know of a daemon that has just begun.
fn log_start(config: &Config, addresses: &[SocketAddr], listening: &str) {
    let agents: Vec<&str> = config.agents.keys().map(String::as_str).collect();
    // As the state directory is told.
    let file = config.file.as_deref().map(absolute);
    tracing::info!(
        version = env!("CARGO_PKG_VERSION"),
        pid = std::process::id(),
        listening,
        socket = %local_socket_path(&config.storage.path).display(),
        state_dir = %config.storage.path.display(),
        config = file.as_deref().unwrap_or("none"),
        tokens = config.tokens.len(),
        agents = agents.join(","),
        "acpd started"
    );
    for address in &addresses[1..] {
        tracing::info!(%address, "acpd listens here, too");
    }
}

fn announce(listening: &str) -> Result<(), Failure> {
    let mut out = stdout();
    writeln!(out, "listening on {listening}").and_then(|()| out.flush()).map_err(Failure::from)
}

/// Takes tokens, agents, limits, names and what is kept from the configuration; where acpd listens and keeps its state stays.
/// The error, in one line, is in the log as well.
async fn reload(
    args: &Serve,
    (server, tokens, pruner, fleet): (&HttpServer, &Tokens, &Pruner, Option<&Joined>),
    local: &LocalHost,
    (goes_by, state_dir): (&mut Option<PathBuf>, &Path),
    hooks: &mut Hooks,
) -> Result<Reloaded, String> {
    let read = load(args).map_err(|failure| failure.to_string()).and_then(|config| {
        still_there(goes_by.as_deref(), config.file.as_deref())?;
        let told = hook_specs(&config)?;
        Ok((config, told))
    });
    let (config, told) = read.map_err(|reason| {
        tracing::error!(reason, "the configuration stays as it was");
        // What follows shows the line.
        reason.lines().next().unwrap_or_default().to_owned()
    })?;
    server.set(http_settings(&config));
    pruner.set(keep(&config));
    tokens.replace(known_tokens(&config));
    if tokens.admit_nobody() {
        tracing::warn!(
            "the last token was taken out: requests over TCP are rejected until a token is added or acpd restarts"
        );
    }
    local.known_agents().set(&config);
    local.host.agents().set(agent_specs(&config));
    if let Some(fleet) = fleet {
        fleet.set(&config, &local.host);
    }
    hooks.set(told).await;
    goes_by.clone_from(&config.file);
    daemon_config::note(state_dir, goes_by.as_deref());
    let (tokens, agents) = (config.tokens.len(), config.agents.len());
    tracing::info!(tokens, agents, "read the configuration anew");
    Ok(Reloaded { config: config.file.map(|file| absolute(&file)), tokens, agents })
}

/// The hooks, with the secrets of this process's environment.
fn hook_specs(config: &Config) -> Result<Vec<HookSpec>, String> {
    hooks::specs(config, |name| std::env::var_os(name).map(OsString::into_encoded_bytes))
}

/// A path as it is told.
fn absolute(file: &Path) -> String {
    std::path::absolute(file).unwrap_or_else(|_| file.to_owned()).display().to_string()
}

/// A file that got lost is not one that takes all tokens out.
fn still_there(before: Option<&Path>, now: Option<&Path>) -> Result<(), String> {
    match (before, now) {
        (Some(file), None) => {
            Err(format!("{} is not there any more; empty it if nothing is to be configured", file.display()))
        }
        _ => Ok(()),
    }
}

/// Where the inspector's pages are while it is worked on; else they are in this program.
const WEB_DIR: &str = "ACPD_WEB_DIR";

fn pages() -> Result<Pages, String> {
    let Some(directory) = std::env::var_os(WEB_DIR).filter(|directory| !directory.is_empty()) else {
        return Ok(Pages::BuiltIn);
    };
    let pages = Pages::in_directory(directory.clone().into());
    match pages.get(FIRST) {
        Some(_) => Ok(pages),
        None => {
            let directory = Path::new(&directory).display();
            Err(format!(
                "{WEB_DIR}={directory}: no index.html is there; `npm run build` in web/ makes web/dist"
            ))
        }
    }
}

fn http_settings(config: &Config) -> HttpSettings {
    HttpSettings {
        default_agent: config.server.default_agent.clone(),
        allowed_hosts: config.server.allowed_hosts.clone(),
        allowed_origins: config.server.allowed_origins.clone(),
        session_stop: config.compat.session_stop,
        message_bytes: config.limits.line_bytes,
        viewer_stall: config.timeouts.viewer_stall,
        connection_idle: config.timeouts.connection_idle,
        local: Allowance {
            sessions: size(config.limits.sessions),
            connections: size(config.limits.connections),
            requests_per_second: config.limits.requests_per_second,
        },
        keep: keep(config),
    }
}

/// Which ended sessions are kept.
pub(super) fn keep(config: &Config) -> Keep {
    Keep { older_than: config.storage.keep_for, bytes: config.storage.keep_bytes }
}

fn size(count: std::num::NonZeroU32) -> usize {
    usize::try_from(count.get()).unwrap_or(usize::MAX)
}

fn known_tokens(config: &Config) -> Vec<(TokenHash, Identity)> {
    let known = config.tokens.iter().map(|(name, token)| {
        let scope = match token.scope {
            Scope::Observe => acpd_api::Scope::Observe,
            Scope::Control => acpd_api::Scope::Control,
            Scope::Admin => acpd_api::Scope::Admin,
        };
        let allowance = Allowance {
            sessions: size(token.sessions.unwrap_or(config.limits.sessions)),
            connections: size(token.connections.unwrap_or(config.limits.connections)),
            requests_per_second: token.requests_per_second.or(config.limits.requests_per_second),
        };
        let bearer = Identity::of_token(name, scope, token.sees == Sees::All, allowance);
        for agent in token.agents.iter().flatten().filter(|agent| !config.has_agent(agent)) {
            tracing::warn!(token = name, agent, "the token is limited to an agent that is not configured");
        }
        let bearer = bearer.limited(token.limits());
        let bearer = bearer.of_hash(&token.hash.0);
        (token.hash.0, bearer.expiring(token.expires.map(|at| at.as_millisecond())))
    });
    known.collect()
}

/// A session takes a handful of descriptors; the usual limit is for programs with less to do.
fn raise_open_files() {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
    let limit = getrlimit(Resource::Nofile);
    if let Err(error) = setrlimit(Resource::Nofile, Rlimit { current: limit.maximum, ..limit }) {
        tracing::warn!(error = chain(&error), "cannot raise the limit of open files");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    // SC-1: a daemon with tokens does not become one without because its file was moved away
    #[test]
    fn a_configuration_that_has_gone_changes_nothing() {
        let file = Path::new("/etc/acpd.toml");
        assert!(still_there(Some(file), None).is_err_and(|reason| reason.contains("/etc/acpd.toml")));
        assert!(still_there(Some(file), Some(file)).is_ok());
        assert!(still_there(None, None).is_ok() && still_there(None, Some(file)).is_ok());
    }

    // contract 1.7: loopback may be open, nothing else
    #[test]
    fn nothing_but_loopback_is_open_without_tokens() {
        let config = Config::default();
        for (address, is_fine) in [
            ("127.0.0.1:1", true),
            ("127.9.9.9:1", true),
            ("[::1]:1", true),
            ("[::ffff:127.0.0.1]:1", true),
            ("0.0.0.0:1", false),
            ("[::]:1", false),
            ("192.0.2.1:1", false),
        ] {
            let address = address.parse().expect("an address");
            assert_eq!(check_exposure(&config, address).is_ok(), is_fine, "{address}");
        }
    }
}
