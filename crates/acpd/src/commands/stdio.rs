//! `acpd stdio`: an ACP agent on stdin and stdout, with a host inside or as a front end of a daemon.

use crate::cli::Stdio;
use crate::config::Config;
use crate::daemon::Daemon;
use crate::exit::Failure;
use crate::front::{Carried, carry};
use crate::hosting::Hosting;
use crate::local_host::{LocalHost, hasten};
use crate::signals::StopSignals;
use crate::streams::remark;
use acpd_gateway::{Allowance, ConnectionOptions, Identity, StdioLines, serve_stdio};
use std::time::Duration;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

/// How long requests of a client that is gone may still wait for their answers, as with a host inside.
const LAST_ANSWERS: Duration = Duration::from_secs(1);
/// News of the connection; each is one line. Full: they are not told.
const NEWS: usize = 4;
/// Messages of the daemon on their way to stdout. Full: the daemon's connection is not read, and the daemon waits.
const PIECES: usize = 8;

/// Serves the editor until it closes stdin or a signal asks to stop.
pub(crate) async fn stdio(args: Stdio) -> Result<(), Failure> {
    match Hosting::find(args.location, false).await? {
        Hosting::Daemon(hosted) => front_end(&hosted.daemon, &args.agent, hosted.line_limit).await,
        Hosting::Here(config) => host_here(args.agent, &config).await,
    }
}

async fn host_here(agent: String, config: &Config) -> Result<(), Failure> {
    config.agent(&agent).map_err(Failure::missing)?;
    let mut signals = StopSignals::listen()?;
    let local = LocalHost::open(config, &mut signals).await?;
    // An editor may open any number of sessions.
    local.host.agents().keep_spare(&agent);
    let (stop, hurry) = (CancellationToken::new(), CancellationToken::new());
    let options = ConnectionOptions {
        identity: Identity::local(Allowance::UNLIMITED),
        agent,
        transport: "stdio",
        ends_host: true,
        session_stop: config.compat.session_stop,
        fleet: None,
    };
    let served = serve_stdio(local.host.clone(), options, local.line_limit, (stop.clone(), hurry.clone()));
    tokio::pin!(served);
    let outcome = loop {
        tokio::select! {
            outcome = &mut served => break outcome,
            () = signals.next() => {
                if stop.is_cancelled() {
                    hasten(&local.host);
                    hurry.cancel();
                }
                stop.cancel();
            }
        }
    };
    local.close(&mut signals).await;
    outcome.map_err(Failure::from)
}

/// Carries lines between stdin and stdout and the daemon. The end of the client ends this process, and no session (SC-6); a
/// daemon that is lost is tried again.
async fn front_end(daemon: &Daemon, agent: &str, line_limit: usize) -> Result<(), Failure> {
    let link = daemon.first_link(Some(agent)).await?;
    let mut signals = StopSignals::listen()?;
    let (stop, (sender, pieces)) = (CancellationToken::new(), mpsc::channel(PIECES));
    let (arrivals, lines) = StdioLines::open(daemon.scope(), line_limit, pieces, &stop)?;
    let (news, mut heard) = mpsc::channel(NEWS);
    let end = {
        let carried = Carried {
            daemon: daemon.clone(),
            agent: Some(agent.to_owned()),
            lines: arrivals,
            gone: lines.gone.clone(),
            pieces: sender,
            news,
            patience: LAST_ANSWERS,
        };
        let carried = carry(link, carried);
        tokio::pin!(carried);
        let mut asked = 0;
        loop {
            tokio::select! {
                end = &mut carried => break end,
                Some(news) = heard.recv() => remark(&format!("acpd: {news}")),
                _ = signals.next() => {
                    asked += 1;
                    stop.cancel();
                    if asked > 1 {
                        break None;
                    }
                }
            }
        }
    };
    lines.finish(signals.next()).await;
    match end {
        Some(trouble) => Err(Failure::Failed(trouble)),
        None => Ok(()),
    }
}
