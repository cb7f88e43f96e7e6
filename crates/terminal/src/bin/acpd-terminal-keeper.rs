//! A keeper on its own, for the tests of this crate; the product has it as a hidden subcommand.

fn main() -> std::process::ExitCode {
    acpd_supervisor::keeper::run()
}
