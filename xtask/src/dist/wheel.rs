//! The wheel: the program as a script of a Python package that has no Python, for `uvx acpd` and `pip install acpd`.

use super::archive::{Entry, zip};
use super::{Parts, Program};
use anyhow::Result;
use data_encoding::BASE64URL_NOPAD;
use sha2::{Digest, Sha256};
use std::fmt::Write;

/// Its name, which says where it can be installed, and its content.
pub(super) fn pack(program: &Program, parts: &Parts) -> Result<(String, Vec<u8>)> {
    let version = parts.release.python()?;
    let tag = tag(program);
    let (info, data) = (format!("acpd-{version}.dist-info"), format!("acpd-{version}.data"));
    let metadata = format!(
        "Metadata-Version: 2.4\nName: acpd\nVersion: {version}\n\
         Summary: The session host for coding agents that speak the Agent Client Protocol\n\
         License-Expression: Apache-2.0\nLicense-File: LICENSE\nRequires-Python: >=3.8\n\
         Classifier: Environment :: Console\nClassifier: Operating System :: POSIX :: Linux\n\
         Description-Content-Type: text/markdown\n\n{}",
        parts.readme
    );
    let wheel = format!("Wheel-Version: 1.0\nGenerator: acpd xtask\nRoot-Is-Purelib: false\nTag: {tag}\n");
    let mut entries = vec![
        Entry::program(&format!("{data}/scripts/acpd"), &program.content),
        Entry::file(&format!("{info}/METADATA"), metadata.as_bytes()),
        Entry::file(&format!("{info}/WHEEL"), wheel.as_bytes()),
        Entry::file(&format!("{info}/licenses/LICENSE"), &parts.license),
    ];
    let list = format!("{info}/RECORD");
    let record = record(&entries, &list)?;
    entries.push(Entry::file(&list, record.as_bytes()));
    Ok((format!("acpd-{version}-{tag}.whl"), zip(entries, parts.level)?))
}

/// For any Python 3, on systems with the glibc that the program needs; 2.17 is what installers begin with.
fn tag(program: &Program) -> String {
    let (major, minor) = program.needs.glibc.max((2, 17));
    format!("py3-none-manylinux_{major}_{minor}_{}", program.target.wheel)
}

/// The list of all files, which is the last of them and has no sum of its own.
fn record(entries: &[Entry<'_>], list: &str) -> Result<String> {
    let mut record = String::new();
    for entry in entries {
        let sum = BASE64URL_NOPAD.encode(&Sha256::digest(entry.content));
        writeln!(record, "{},sha256={sum},{}", entry.path, entry.content.len())?;
    }
    writeln!(record, "{list},,")?;
    Ok(record)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dist::elf::Needs;
    use crate::dist::target::ALL;

    // packages: the tag says what the binary really needs
    #[test]
    fn the_tag_is_of_the_glibc_that_is_needed() {
        let of = |glibc| {
            let needs = Needs { machine: 62, glibc, libgcc: false, has_symbols: false };
            tag(&Program { target: &ALL[0], content: Vec::new(), needs })
        };
        assert_eq!(of((2, 17)), "py3-none-manylinux_2_17_x86_64");
        assert_eq!(of((2, 34)), "py3-none-manylinux_2_34_x86_64");
        assert_eq!(of((2, 9)), "py3-none-manylinux_2_17_x86_64");
    }
}
