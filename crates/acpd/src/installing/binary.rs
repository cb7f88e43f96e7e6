//! An archive, or a program alone: fetched, held against its hash, unpacked.

use super::fetch::fetch;
use super::programs::Programs;
use super::{InstallError, Installed, sha256};
use acpd_catalog::{Bounds, Scripts, Sha256From, Target, Version, unpack};
use sha2::{Digest, Sha256 as Hasher};
use std::fs::{File, OpenOptions};
use std::io::Write;
use std::path::{Path, PathBuf};

/// Bytes that an archive may have when it is unpacked, for each that it may have before.
const UNPACKED: u64 = 4;
/// Files and directories of an archive.
const ENTRIES: usize = 100_000;
/// Where they go, beside the receipt.
const FILES: &str = "files";
const MIB: u64 = 1024 * 1024;

pub(crate) async fn install(
    programs: &Programs,
    target: &Target,
    version: Version,
    most: u64,
    staging: &Path,
) -> Result<Installed, InstallError> {
    let told = &programs.told;
    told.line(&format!("fetching {}", target.archive));
    let archive = staging.join("archive");
    let mut file: File = OpenOptions::new().write(true).create_new(true).open(&archive)?;
    let mut hasher = Hasher::new();
    let fetched = fetch(&target.archive, most, told, &mut |piece| {
        hasher.update(piece);
        file.write_all(piece)
    })
    .await;
    let bytes = fetched.map_err(|source| InstallError::Fetch { what: target.archive.to_string(), source })?;
    drop(file);
    let found = sha256(hasher);
    let sha256_from = match &target.sha256 {
        Some(expected) if *expected != found => {
            return Err(InstallError::Hash { found: found.to_string(), expected: expected.to_string() });
        }
        Some(_) => {
            told.line(&format!("its SHA-256 is the registry's, {found}"));
            Sha256From::Registry
        }
        None => {
            told.line(&format!(
                "the registry gives no SHA-256; that of what came is {found}, and is recorded"
            ));
            Sha256From::Download
        }
    };
    let files = staging.join(FILES);
    std::fs::create_dir(&files)?;
    let bounds = Bounds { bytes: most.saturating_mul(UNPACKED), entries: ENTRIES };
    let unpacked = unpack(&archive, &files, &target.cmd, bounds, &mut |done| {
        told.bytes("unpacking", done, None);
        !programs.is_interrupted()
    })?;
    std::fs::remove_file(&archive)?;
    let size = |bytes: u64| match bytes {
        small if small < MIB => format!("{} KiB", small.div_ceil(1024)),
        bytes => format!("{} MiB", bytes.div_ceil(MIB)),
    };
    told.line(&format!(
        "unpacked {} into {} file{}, {}",
        size(bytes),
        unpacked.files,
        if unpacked.files == 1 { "" } else { "s" },
        size(unpacked.bytes)
    ));
    Ok(Installed {
        version,
        program: PathBuf::from(FILES).join(target.cmd.as_path()),
        sha256: found,
        sha256_from,
        scripts: Scripts::None,
        tool: None,
    })
}
