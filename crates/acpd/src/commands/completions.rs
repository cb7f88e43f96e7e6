//! `acpd completions`: prints what a shell has to read.

use crate::cli::Completions;
use crate::exit::Failure;
use crate::streams::print;

pub(crate) fn completions(args: &Completions) -> Result<(), Failure> {
    print(args.shell.script()?.trim_end()).map(drop)
}
