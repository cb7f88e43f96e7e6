//! The package for Debian and its kin, built by `dpkg-deb`: the program, its man pages and completions, and a system service that
//! waits until it is enabled.
//!
//! Invariant: it can be unpacked without anything being run; what its scripts do is in `deploy/debian`, and done where it is not
//! done yet. Not here: those scripts, and the unit (`deploy/acpd.service`), of which only the place of the program differs.

use super::archive::{Entry, gzip};
use super::{Parts, Program};
use crate::run::{self, Counts};
use anyhow::{Context, Result, ensure};
use std::fmt::Write;
use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

/// Where the unit that is installed by hand has the program, and where packages have it.
const BY_HAND: &str = "/usr/local/bin/acpd";
const PACKAGED: &str = "/usr/bin/acpd";
const SCRIPTS: [&str; 3] = ["postinst", "prerm", "postrm"];
/// What is shown to those who want more than the service.
const EXAMPLES: [&str; 3] = ["acpd.socket", "acpd-continuity.conf", "config.toml"];

/// Builds it into a directory.
pub(super) fn make(program: &Program, parts: &Parts, root: &Path, output: &Path) -> Result<()> {
    let deploy = root.join("deploy");
    let read = |name: &str| fs::read(deploy.join(name)).with_context(|| format!("deploy/{name}"));
    let text = |name: &str| fs::read_to_string(deploy.join(name)).with_context(|| format!("deploy/{name}"));
    let unit = unit(&text("acpd.service")?)?;
    let (sysusers, overrides) = (read("acpd.sysusers")?, read("debian/overrides")?);
    let copyright = read("debian/copyright")?;
    let debian = gzip(changelog(parts)?.as_bytes(), 9)?;
    let changes = gzip(&fs::read(root.join("CHANGELOG.md"))?, 9)?;
    let man: Vec<(String, Vec<u8>)> = parts
        .papers
        .man
        .iter()
        .map(|(page, text)| Ok((format!("usr/share/man/man1/{page}.gz"), gzip(text, 9)?)))
        .collect::<Result<_>>()?;
    let examples: Vec<(String, Vec<u8>)> = EXAMPLES
        .iter()
        .map(|name| Ok((format!("usr/share/doc/acpd/examples/{name}"), read(name)?)))
        .collect::<Result<_>>()?;
    let mut entries = vec![
        Entry::program(PACKAGED.trim_start_matches('/'), &program.content),
        Entry::file("usr/lib/systemd/system/acpd.service", unit.as_bytes()),
        Entry::file("usr/lib/sysusers.d/acpd.conf", &sysusers),
        Entry::file("usr/share/doc/acpd/copyright", &copyright),
        Entry::file("usr/share/doc/acpd/changelog.Debian.gz", &debian),
        Entry::file("usr/share/doc/acpd/changelog.gz", &changes),
        Entry::file("usr/share/lintian/overrides/acpd", &overrides),
    ];
    entries.extend(man.iter().chain(&examples).map(|(path, content)| Entry::file(path, content)));
    for (name, content) in &parts.papers.completions {
        let place = match name.as_str() {
            "_acpd" => "usr/share/zsh/vendor-completions",
            "acpd.fish" => "usr/share/fish/vendor_completions.d",
            _ => "usr/share/bash-completion/completions",
        };
        entries.push(Entry::file(&format!("{place}/{name}"), content));
    }
    let size = entries.iter().map(|entry| entry.content.len().div_ceil(1024)).sum::<usize>();
    let control = control(&text("debian/control")?, program, parts, size);
    let scripts = SCRIPTS.map(|name| Ok((name, read(&format!("debian/{name}"))?)));
    let scripts: Vec<(&str, Vec<u8>)> = scripts.into_iter().collect::<Result<_>>()?;

    let staged = tempfile::tempdir()?;
    let place = staged.path().join("acpd");
    for Entry { path, mode, content } in &entries {
        write(&place.join(path), *mode, content)?;
    }
    // For a token and an agent's key, which are written into it; its file is made when it is installed.
    fs::create_dir_all(place.join("etc/acpd"))?;
    let sums = md5sums(&entries, &place)?;
    write(&place.join("DEBIAN/md5sums"), 0o644, sums.as_bytes())?;
    write(&place.join("DEBIAN/control"), 0o644, control.as_bytes())?;
    for (name, script) in &scripts {
        write(&place.join("DEBIAN").join(name), 0o755, script)?;
    }
    open_directories(&place)?;
    let mut pack = run::line("dpkg-deb --root-owner-group", root);
    pack.args(if parts.level < 9 { ["-Zgzip", "-z1"] } else { ["-Zxz", "-z9"] });
    // The same with any number of processors, and with any time of a file.
    pack.env("DPKG_DEB_THREADS_MAX", "1").env("SOURCE_DATE_EPOCH", parts.release.epoch.to_string());
    let name = format!("acpd_{}_{}.deb", parts.release.debian(), program.target.debian);
    pack.arg("--build").arg(&place).arg(output.join(name));
    run::run(pack, &mut Counts::default())
        .context("cannot build the package for Debian (dpkg-deb is in dpkg)")
}

fn write(file: &Path, mode: u32, content: &[u8]) -> Result<()> {
    fs::create_dir_all(file.parent().context("no directory")?)?;
    fs::write(file, content)?;
    Ok(fs::set_permissions(file, Permissions::from_mode(mode))?)
}

/// Whatever the umask of who packs.
fn open_directories(place: &Path) -> Result<()> {
    fs::set_permissions(place, Permissions::from_mode(0o755))?;
    for entry in fs::read_dir(place)? {
        let path = entry?.path();
        if path.is_dir() {
            open_directories(&path)?;
        }
    }
    Ok(())
}

/// The unit for the program where the package has it, without what it says to those who install it by hand.
fn unit(by_hand: &str) -> Result<String> {
    let start = by_hand.find("[Unit]").context("deploy/acpd.service has no [Unit]")?;
    let unit = &by_hand[start..];
    ensure!(
        unit.matches(BY_HAND).count() == 1,
        "deploy/acpd.service names {BY_HAND} more than once, or not at all"
    );
    let heading = "# Enable it with: systemctl enable --now acpd. Changes belong into systemctl edit acpd.\n";
    Ok(format!("{heading}{}", unit.replace(BY_HAND, PACKAGED)))
}

/// Who answers for the package, as Debian's own tools ask for it.
fn maintainer() -> String {
    let of = |name: &str, default: &str| std::env::var(name).unwrap_or_else(|_| default.to_owned());
    format!("{} <{}>", of("DEBFULLNAME", "acpd maintainers"), of("DEBEMAIL", "maintainers@acpd.invalid"))
}

/// The description of the package, with what this build of it needs.
fn control(template: &str, program: &Program, parts: &Parts, size: usize) -> String {
    let mut depends = format!("libc6 (>= {})", program.needs.glibc_with('.'));
    if program.needs.libgcc {
        depends.push_str(", libgcc-s1");
    }
    [
        ("@VERSION@", parts.release.debian()),
        ("@ARCHITECTURE@", program.target.debian.to_owned()),
        ("@MAINTAINER@", maintainer()),
        ("@SIZE@", size.to_string()),
        ("@LIBRARIES@", depends),
    ]
    .into_iter()
    .fold(template.to_owned(), |text, (name, value)| text.replace(name, &value))
}

fn changelog(parts: &Parts) -> Result<String> {
    let date = format!("date --utc --rfc-email --date=@{}", parts.release.epoch);
    let date =
        run::answer(run::line(&date, Path::new("/"))).context("date does not say when the commit was")?;
    let version = parts.release.debian();
    let about = format!("  * Version {}; what is new is in changelog.gz.", parts.release.version);
    Ok(format!("acpd ({version}) unstable; urgency=medium\n\n{about}\n\n -- {}  {date}\n", maintainer()))
}

/// By which dpkg can tell what was changed since.
fn md5sums(entries: &[Entry<'_>], place: &Path) -> Result<String> {
    let mut paths: Vec<&str> = entries.iter().map(|entry| entry.path.as_str()).collect();
    paths.sort_unstable();
    let mut command = run::line("md5sum --", place);
    command.args(&paths);
    let mut sums = run::answer(command).context("md5sum fails")?;
    sums.write_char('\n')?;
    Ok(sums)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dist::{elf::Needs, papers::Papers, release::Release, target::ALL};

    fn of(libgcc: bool, glibc: (u32, u32)) -> String {
        let needs = Needs { machine: 62, glibc, libgcc, has_symbols: false };
        let program = Program { target: &ALL[0], content: Vec::new(), needs };
        let papers = Papers { man: Default::default(), completions: Default::default() };
        let release = Release { version: "1.0.0-rc.1".to_owned(), epoch: 0 };
        let parts = Parts { release, papers, license: Vec::new(), readme: String::new(), level: 9 };
        control(include_str!("../../../deploy/debian/control"), &program, &parts, 42)
    }

    // packages: the package asks for the libraries that the program needs
    #[test]
    fn the_package_asks_for_what_the_program_needs() {
        let text = of(false, (2, 17));
        assert!(
            text.contains("\nVersion: 1.0.0~rc.1-1\n") && text.contains("\nArchitecture: amd64\n"),
            "{text}"
        );
        assert!(
            text.contains("Depends: libc6 (>= 2.17), passwd") && text.contains("Installed-Size: 42"),
            "{text}"
        );
        assert!(
            of(true, (2, 34)).contains("libc6 (>= 2.34), libgcc-s1, passwd")
                && !text.contains('@'.to_string().repeat(2).as_str())
        );
    }

    // packages: a unit file with paths that fit
    #[test]
    fn the_unit_starts_the_program_of_the_package() {
        let unit = unit(include_str!("../../../deploy/acpd.service")).expect("it is the unit");
        assert!(unit.contains("\nExecStart=/usr/bin/acpd serve") && !unit.contains(BY_HAND), "{unit}");
        assert!(
            unit.starts_with("# Enable it") && unit.contains("\n[Unit]\n") && !unit.contains("useradd"),
            "{unit}"
        );
        assert!(super::unit("[Unit]\n").is_err());
    }
}
