//! What can be typed to look after the configuration.

use clap::Subcommand;
use std::path::PathBuf;

/// `acpd config`
#[derive(Debug, Clone, PartialEq, Subcommand)]
pub enum ConfigCommand {
    /// Write a configuration with every key, commented out
    #[command(after_help = "\
A key is in force without its # (in a section such as [agents.NAME] its head, too). A file that is \
there stays.

Examples:
  acpd config init
  acpd config init --config /etc/acpd/config.toml")]
    Init {
        /// Write this file instead of $ACPD_CONFIG or ~/.config/acpd/config.toml
        #[arg(long, value_name = "FILE")]
        config: Option<PathBuf>,
    },
    /// Show the configuration in force, with what each value comes from
    #[command(after_help = "\
Keys of agents and hashes of tokens are hidden. A daemon that runs may go by an older state of the \
file: acpd status says so.

Examples:
  acpd config show
  acpd config show --json | jq -r '.values[] | select(.source != \"default\").key'")]
    Show {
        /// Print JSON
        #[arg(long)]
        json: bool,
        /// Read this configuration instead of $ACPD_CONFIG or ~/.config/acpd/config.toml
        #[arg(long, value_name = "FILE")]
        config: Option<PathBuf>,
        /// As with this state directory instead of ~/.local/state/acpd
        #[arg(long, value_name = "DIR")]
        state_dir: Option<PathBuf>,
    },
    /// Say every mistake in the configuration, with line and column
    #[command(after_help = "\
Exit codes: 0 a daemon would start with it, 2 it would not.

Examples:
  acpd config check
  acpd config check new.toml && mv new.toml ~/.config/acpd/config.toml && acpd reload")]
    Check {
        /// The file; default: $ACPD_CONFIG or ~/.config/acpd/config.toml
        #[arg(value_name = "FILE")]
        file: Option<PathBuf>,
        /// The same, as other commands have it
        #[arg(long, value_name = "FILE", conflicts_with = "file")]
        config: Option<PathBuf>,
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
}
