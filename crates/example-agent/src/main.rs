//! The example agent as a program of its own; `acpd example-agent` is the same. Owns nothing but the entry.

use std::process::ExitCode;

fn main() -> ExitCode {
    acpd_example_agent::run(std::env::args_os().skip(1))
}
