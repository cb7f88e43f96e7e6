//! Logs on stderr; stdout belongs to the messages.

use crate::cli::{Cli, Command, LogFormat};
use crate::log_format::FlatJson;
use crate::log_writer::{self, LogThread, LogWriter};
use crate::streams;
use acpd_host::SPANS;
use tracing::level_filters::LevelFilter;
use tracing_subscriber::filter::Targets;
use tracing_subscriber::fmt::format::JsonFields;
use tracing_subscriber::fmt::{Layer, MakeWriter};
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;

/// Takes the place of the level: `TARGET=LEVEL`, `TARGET` or `LEVEL`, with commas between.
const VARIABLE: &str = "ACPD_LOG";

/// The log lines about sessions. A command that hosts its own session says itself how that ended.
const FOR_OPERATORS: &str = "acpd_host::journal";

/// What the client of a fleet's engine says of its connections, each second while there is none. acpd says it once.
const ENGINE: &str = "async_nats";

/// Starts logging as the command line says; what `ACPD_LOG` says goes over it. A daemon's lines are written by a thread
/// of their own, which is to be dropped last.
pub(crate) fn start(cli: &Cli) -> Option<LogThread> {
    let said = std::env::var_os(VARIABLE).unwrap_or_default();
    let said = said.to_string_lossy();
    let (mut targets, unreadable) = targets(&said, cli.log_level());
    let format = match &cli.command {
        Command::Serve(serve) => Some(serve.log_format),
        _ => None,
    };
    if format.is_none() && cli.verbose == 0 && said.is_empty() {
        targets = targets.with_target(FOR_OPERATORS, LevelFilter::ERROR);
    }
    if cli.verbose == 0 && said.is_empty() {
        targets = targets.with_target(ENGINE, LevelFilter::ERROR);
    }
    // A daemon that cannot have a thread does not run long, and says why.
    let (writer, thread) = format.and_then(|_| log_writer::start(streams::stderr()).ok()).unzip();
    let format = format.unwrap_or_default();
    match writer {
        Some(writer) => write_to(move || -> LogWriter { writer.clone() }, format, targets),
        None => write_to(streams::stderr, format, targets),
    }
    for directive in unreadable {
        tracing::warn!(directive, "a directive in {VARIABLE} cannot be read; TARGET=LEVEL is wanted");
    }
    thread
}

fn write_to(
    writer: impl for<'w> MakeWriter<'w> + Send + Sync + 'static,
    format: LogFormat,
    targets: Targets,
) {
    // Without colours on a terminal too: they are the view's, and the log must not be taken for it.
    let lines = Layer::default().with_writer(writer).with_ansi(false);
    // Whatever is left out, what is written says what it belongs to.
    let targets = targets.with_target(SPANS, LevelFilter::ERROR);
    let log = tracing_subscriber::registry().with(targets);
    match format {
        LogFormat::Text => log.with(lines).init(),
        LogFormat::Json => {
            log.with(lines.fmt_fields(JsonFields::new()).event_format(FlatJson::new())).init();
        }
    }
}

/// What is logged, and the directives that cannot be read; those are then told, whatever else is logged.
fn targets(said: &str, level: LevelFilter) -> (Targets, Vec<&str>) {
    let directives: Vec<&str> = said.split(',').map(str::trim).filter(|part| !part.is_empty()).collect();
    let mut targets = Targets::new();
    let mut unreadable = Vec::new();
    for directive in &directives {
        match directive.parse::<Targets>() {
            Ok(read) => {
                if let Some(level) = read.default_level() {
                    targets = targets.with_default(level);
                }
                targets = targets.with_targets(read);
            }
            Err(_) => unreadable.push(*directive),
        }
    }
    if directives.len() == unreadable.len() {
        targets = targets.with_default(level);
    }
    if !unreadable.is_empty() {
        targets = targets.with_target(module_path!(), LevelFilter::WARN);
    }
    (targets, unreadable)
}

#[cfg(test)]
mod tests {
    use super::*;
    use tracing::Level;

    // contract 6: directives go over the level; the form is the one that operators know from other programs
    #[test]
    fn directives_go_over_the_level() {
        let debug = [("acpd_gateway::http", Level::DEBUG), ("acpd_host", Level::DEBUG)];
        for (said, level, enabled, unreadable) in [
            ("", LevelFilter::DEBUG, [true, true], vec![]),
            ("", LevelFilter::INFO, [false, false], vec![]),
            ("acpd_gateway=debug,warn", LevelFilter::TRACE, [true, false], vec![]),
            (" acpd_gateway=DEBUG , acpd_host=warn", LevelFilter::TRACE, [true, false], vec![]),
            ("warn,acpd_host::agent=trace,acpd_gateway", LevelFilter::TRACE, [true, false], vec![]),
            ("off", LevelFilter::TRACE, [false, false], vec![]),
            ("acpd_host=loud", LevelFilter::DEBUG, [true, true], vec!["acpd_host=loud"]),
            ("acpd_host=loud,error", LevelFilter::DEBUG, [false, false], vec!["acpd_host=loud"]),
        ] {
            let (targets, left) = targets(said, level);
            assert_eq!(debug.map(|(target, level)| targets.would_enable(target, &level)), enabled, "{said}");
            assert_eq!(left, unreadable, "{said}");
            let told = targets.would_enable("acpd::logging", &Level::WARN);
            assert!(told || unreadable.is_empty(), "{said}: what is unreadable is told");
        }
    }
}
