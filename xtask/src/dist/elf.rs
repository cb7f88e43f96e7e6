//! What a program asks of the system that it is to run on, read from the program itself.
//!
//! Packages say so to those who install them, so it is no setting: a program that was built by another toolchain is packed for
//! what it needs. Not here: how each kind of package writes it.

use anyhow::{Context, Result, bail, ensure};
use object::Endianness;
use object::elf::{DT_NEEDED, FileHeader64, SHT_SYMTAB};
use object::read::elf::{Dyn, FileHeader, SectionHeader};
use std::collections::BTreeSet;

/// Libraries that glibc is made of, in each version that is asked for here.
const GLIBC: [&str; 8] = [
    "libc.so.6",
    "libdl.so.2",
    "libm.so.6",
    "libpthread.so.0",
    "librt.so.1",
    "libutil.so.1",
    "ld-linux-x86-64.so.2",
    "ld-linux-aarch64.so.1",
];
/// What gcc links to, for unwinding.
const GCC: &str = "libgcc_s.so.1";

/// What a program needs.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Needs {
    /// `e_machine`.
    pub(super) machine: u16,
    /// The glibc that has all its symbols: major and minor.
    pub(super) glibc: (u32, u32),
    pub(super) libgcc: bool,
    /// Whether it has symbols that only a debugger reads.
    pub(super) has_symbols: bool,
}

impl Needs {
    /// Reads a program.
    pub(super) fn of(program: &[u8]) -> Result<Self> {
        let header = FileHeader64::<Endianness>::parse(program).context("this is no program for 64 bits")?;
        let endian = header.endian()?;
        let sections = header.sections(endian, program)?;
        let mut libraries = BTreeSet::new();
        if let Some((entries, strings)) = sections.dynamic(endian, program)? {
            let strings = sections.strings(endian, program, strings)?;
            for entry in entries.iter().filter(|entry| entry.tag(endian) == DT_NEEDED) {
                libraries.insert(str::from_utf8(entry.string(endian, strings)?)?.to_owned());
            }
        }
        let mut versions = Vec::new();
        if let Some((mut needed, strings)) = sections.gnu_verneed(endian, program)? {
            let strings = sections.strings(endian, program, strings)?;
            while let Some((_, mut symbols)) = needed.next()? {
                while let Some(symbol) = symbols.next()? {
                    versions.push(str::from_utf8(symbol.name(endian, strings)?)?.to_owned());
                }
            }
        }
        ensure!(
            libraries.contains(GLIBC[0]),
            "the program is not linked to glibc; packages say what they need of it"
        );
        let unknown = libraries.iter().find(|name| !GLIBC.contains(&name.as_str()) && *name != GCC);
        if let Some(unknown) = unknown {
            bail!("the program needs {unknown}, which no package asks for");
        }
        let has_symbols = sections.iter().any(|section| section.sh_type(endian) == SHT_SYMTAB);
        let (machine, libgcc) = (header.e_machine(endian).0, libraries.contains(GCC));
        Ok(Self { machine, glibc: newest(&versions)?, libgcc, has_symbols })
    }

    /// `2.17`, with something else between the two numbers.
    pub(super) fn glibc_with(&self, between: char) -> String {
        format!("{}{between}{}", self.glibc.0, self.glibc.1)
    }
}

/// The newest of versions like `GLIBC_2.17`; those of other libraries do not count.
fn newest(versions: &[String]) -> Result<(u32, u32)> {
    let numbers = versions.iter().filter_map(|version| version.strip_prefix("GLIBC_")).map(|version| {
        let mut parts = version.split('.').map(str::parse);
        match (parts.next(), parts.next()) {
            (Some(Ok(major)), Some(Ok(minor))) => Ok((major, minor)),
            // GLIBC_PRIVATE: of one build of glibc only. GLIBC_ABI_*: of the linker's.
            _ => bail!("the program needs GLIBC_{version}, which no version of glibc promises to have"),
        }
    });
    numbers.collect::<Result<Vec<_>>>()?.into_iter().max().context("the program needs no version of glibc")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_newest_symbol_says_which_glibc_is_needed() {
        let of = |versions: &[&str]| newest(&versions.iter().map(|&it| it.to_owned()).collect::<Vec<_>>());
        assert_eq!(of(&["GLIBC_2.2.5", "GLIBC_2.17", "GLIBC_2.9", "GCC_4.2.0"]).expect("known"), (2, 17));
        assert_eq!(of(&["GLIBC_2.34", "GLIBC_2.4"]).expect("known"), (2, 34));
        for none in [&["GCC_3.0"][..], &[], &["GLIBC_2.17", "GLIBC_PRIVATE"]] {
            assert!(of(none).is_err(), "{none:?}");
        }
    }

    // packages: what the program asks for is read from the program
    #[test]
    fn a_program_says_what_it_needs() {
        let own = std::fs::read(std::env::current_exe().expect("it runs")).expect("readable");
        let needs = Needs::of(&own).expect("it is a program of Linux");
        assert!(needs.glibc >= (2, 2) && needs.has_symbols, "{needs:?}");
        assert!(crate::dist::target::ALL.iter().any(|target| target.machine == needs.machine));
        assert!(Needs::of(b"#!/bin/sh\n").is_err());
        assert!(Needs::of(&own[..own.len() / 2]).is_err());
    }
}
