//! Logs on stderr; stdout belongs to the messages.

use crate::cli::LogFormat;
use tracing::level_filters::LevelFilter;
use tracing_subscriber::EnvFilter;

/// Starts logging at `level`; `ACPD_LOG` (directives as of tracing's env filter) goes over it.
pub(crate) fn start(level: LevelFilter, format: LogFormat) {
    let filter =
        EnvFilter::builder().with_default_directive(level.into()).with_env_var("ACPD_LOG").from_env_lossy();
    // Without colours on a terminal too: they are the view's, and the log must not be taken for it.
    let log = tracing_subscriber::fmt().with_env_filter(filter).with_writer(std::io::stderr).with_ansi(false);
    match format {
        LogFormat::Text => log.init(),
        LogFormat::Json => log.json().flatten_event(true).init(),
    }
}
