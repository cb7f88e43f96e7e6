//! The `acpd` program. Everything is in the library.

fn main() -> std::process::ExitCode {
    acpd::run_process()
}
