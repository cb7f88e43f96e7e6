//! A keeper on its own: for tests, and as what is kept of each version of the protocol (`cargo xtask keeper`). The product has it
//! as a hidden subcommand. With a number it speaks that version alone, or says so.

use acpd_supervisor::keeper;
use std::process::ExitCode;

fn main() -> ExitCode {
    match std::env::args().nth(1).map(|version| version.parse()) {
        None => keeper::run(),
        Some(Ok(version)) => keeper::run_speaking([version; 2]),
        Some(Err(_)) => ExitCode::FAILURE,
    }
}
