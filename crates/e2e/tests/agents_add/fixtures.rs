//! Agents as npm, PyPI and archives have them; each is a small script that becomes the example agent.

use acpd_e2e::acpd;
use flate2::Compression;
use flate2::write::{DeflateEncoder, GzEncoder};
use rawzip::path::EntryPath;
use rawzip::{CompressionMethod, ZipArchiveWriter};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use std::fmt::Write as _;
use std::io::Write;
use tar::{Builder, EntryType, Header};

use crate::server::Server;

/// A program that is an agent.
pub(crate) fn agent() -> String {
    format!("#!/bin/sh\nexec '{}' example-agent \"$@\"\n", acpd().display())
}

/// A program that says why it is none.
pub(crate) const BROKEN: &str = "#!/bin/sh\necho 'a library is missing' >&2\nexit 3\n";

pub(crate) fn sha256(bytes: &[u8]) -> String {
    let mut text = String::new();
    for byte in Sha256::digest(bytes) {
        write!(text, "{byte:02x}").expect("a string takes text");
    }
    text
}

/// An entry of a tar archive: its type, path, what a link leads to, content.
pub(crate) type Item<'a> = (EntryType, &'a str, &'a str, &'a [u8]);

pub(crate) fn file<'a>(path: &'a str, content: &'a str) -> Item<'a> {
    (EntryType::Regular, path, "", content.as_bytes())
}

/// By the bytes of its headers: the library refuses hostile paths itself.
pub(crate) fn tarball(items: &[Item<'_>]) -> Vec<u8> {
    let mut tar = Builder::new(GzEncoder::new(Vec::new(), Compression::fast()));
    for (kind, path, link, content) in items {
        let mut header = Header::new_gnu();
        header.as_old_mut().name[..path.len()].copy_from_slice(path.as_bytes());
        header.as_old_mut().linkname[..link.len()].copy_from_slice(link.as_bytes());
        header.set_entry_type(*kind);
        header.set_mode(0o755);
        header.set_size(u64::try_from(content.len()).expect("it is small"));
        header.set_cksum();
        tar.append(&header, *content).expect("memory takes it");
    }
    tar.into_inner().and_then(GzEncoder::finish).expect("memory takes it")
}

/// Of paths and contents.
pub(crate) fn zip(items: &[(&str, &[u8])]) -> Vec<u8> {
    let mut bytes = Vec::new();
    let mut zip = ZipArchiveWriter::new(&mut bytes);
    for (path, content) in items {
        let file = zip.new_file(EntryPath::verbatim(path.as_bytes())).unix_permissions(0o755);
        let started = file.compression_method(CompressionMethod::DEFLATE).start();
        let (mut entry, config) = started.expect("memory takes it");
        let mut writer = config.wrap(DeflateEncoder::new(&mut entry, Compression::fast()));
        writer.write_all(content).expect("memory takes it");
        let (encoder, descriptor) = writer.finish().expect("memory takes it");
        encoder.finish().expect("memory takes it");
        entry.finish(descriptor).expect("memory takes it");
    }
    zip.finish().expect("memory takes it");
    bytes
}

/// A registry's file with one agent.
pub(crate) fn registry(id: &str, version: &str, distribution: &Value) -> String {
    let agent = json!({
        "id": id, "name": "Fixture", "version": version, "description": "a fixture", "authors": ["nobody"],
        "distribution": distribution, "of_a_later_version": true,
    });
    json!({"version": "1.0.0", "agents": [{"id": "another", "distribution": 7}, agent], "extensions": []})
        .to_string()
}

/// The distribution of an archive for this platform.
pub(crate) fn binary(archive: &str, cmd: &str, sha256: Option<&str>) -> Value {
    let mut target =
        json!({"archive": archive, "cmd": cmd, "args": ["--without", "fork"], "env": {"FIXTURE": "1"}});
    if let Some(sha256) = sha256 {
        target["sha256"] = json!(sha256);
    }
    json!({"binary": {platform(): target, "windows-x86_64": {"archive": archive, "cmd": "x.exe"}}})
}

pub(crate) fn platform() -> String {
    format!("linux-{}", std::env::consts::ARCH)
}

/// Puts a package into an npm: its versions with the program that each is, the last one the newest.
pub(crate) fn publish_npm(npm: &Server, name: &str, versions: &[(&str, &str)], scripts: &Value) {
    let mut all = json!({});
    for (version, program) in versions {
        let manifest = json!({"name": name, "version": version, "bin": {name: "cli.sh"}, "scripts": scripts});
        let text = manifest.to_string();
        let tarball = tarball(&[file("package/package.json", &text), file("package/cli.sh", program)]);
        let path = format!("/{name}/-/{name}-{version}.tgz");
        let mut full = manifest;
        full["dist"] = json!({"tarball": npm.url(&path)});
        full["hasInstallScript"] = json!(scripts.get("postinstall").is_some());
        npm.bytes(&path, tarball);
        all[*version] = full;
    }
    let newest = versions.last().expect("there is one").0;
    let packument = json!({"name": name, "dist-tags": {"latest": newest}, "versions": all});
    npm.bytes(&format!("/{name}"), packument.to_string());
}

/// Puts a package into a PyPI: its versions, the program that each is in Python.
pub(crate) fn publish_pypi(pypi: &Server, name: &str, versions: &[(&str, &str)]) {
    let module = name.replace('-', "_");
    let mut links = String::from("<!DOCTYPE html><html><body>");
    for (version, main) in versions {
        let info = format!("{module}-{version}.dist-info");
        let code = format!("import os, sys\ndef main():\n    {main}\n");
        let metadata = format!("Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n");
        let wheel = "Wheel-Version: 1.0\nGenerator: fixture\nRoot-Is-Purelib: true\nTag: py3-none-any\n";
        let points = format!("[console_scripts]\n{name} = {module}:main\n");
        let paths = [
            format!("{module}/__init__.py"),
            format!("{info}/METADATA"),
            format!("{info}/WHEEL"),
            format!("{info}/entry_points.txt"),
            format!("{info}/RECORD"),
        ];
        let record: String = paths.iter().map(|path| format!("{path},,\n")).collect();
        let contents = [&code, &metadata, &wheel.to_owned(), &points, &record];
        let items: Vec<(&str, &[u8])> =
            paths.iter().map(String::as_str).zip(contents.iter().map(|text| text.as_bytes())).collect();
        let wheel = zip(&items);
        let file = format!("{module}-{version}-py3-none-any.whl");
        write!(links, "<a href=\"/files/{file}#sha256={}\">{file}</a>", sha256(&wheel))
            .expect("a string takes text");
        pypi.bytes(&format!("/files/{file}"), wheel);
    }
    pypi.bytes(&format!("/simple/{name}/"), format!("{links}</body></html>"));
}

/// The code of an agent in Python.
pub(crate) fn python_agent() -> String {
    format!("os.execv({:?}, ['acpd', 'example-agent'] + sys.argv[1:])", acpd().display().to_string())
}
