//! `acpd stdio`: an ACP agent on stdin and stdout, with a host inside.

use crate::cli::Stdio;
use crate::embedded::{Embedded, load_config};
use crate::exit::Failure;
use crate::signals::StopSignals;
use acpd_gateway::{Allowance, ConnectionOptions, Identity, serve_stdio};
use tokio_util::sync::CancellationToken;

/// Serves the editor until it closes stdin or a signal asks to stop.
pub(crate) async fn stdio(args: Stdio) -> Result<(), Failure> {
    let config = load_config(args.places.config, args.places.state_dir)?;
    config.agent(&args.agent).map_err(|error| Failure::Usage(error.to_string()))?;
    let mut signals = StopSignals::listen().map_err(|error| Failure::of(&error))?;
    let embedded = Embedded::open(&config).await?;
    // An editor may open any number of sessions.
    embedded.host.keep_spare(&args.agent);
    let stop = CancellationToken::new();
    let options = ConnectionOptions {
        identity: Identity::local(Allowance::UNLIMITED),
        agent: args.agent,
        client: "stdio".to_owned(),
        ends_host: true,
        session_stop: config.compat.session_stop,
    };
    let served = serve_stdio(embedded.host.clone(), options, embedded.line_limit, stop.clone());
    tokio::pin!(served);
    let mut asked = 0;
    let outcome = loop {
        tokio::select! {
            outcome = &mut served => break outcome,
            _ = signals.next() => {
                asked += 1;
                stop.cancel();
                if asked > 1 {
                    embedded.host.hurry();
                }
            }
        }
    };
    embedded.close().await;
    outcome.map_err(|error| Failure::of(&error))
}
