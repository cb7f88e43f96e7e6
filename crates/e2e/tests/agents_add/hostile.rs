//! Registries, archives and packages that mean no good: nothing is changed, and it is said why.

use crate::fixtures::{agent, binary, file, publish_npm, registry, sha256, tarball, zip};
use crate::server::Answer;
use crate::world::World;
use serde_json::{Value, json};
use tar::EntryType;

/// A world in which something is installed already, so that all that is compared is there.
fn world() -> World {
    let world = World::new();
    world.https.bytes("/good", agent());
    let place = world.registry(&registry("good", "1.0", &binary(&world.https.url("/good"), "good", None)));
    world.done(&["agents", "add", "good", "--registry", &place]);
    world
}

/// Adds what a registry says, and expects that nothing changes.
fn refused(world: &World, version: &str, distribution: &Value, more: &[&str], code: i32, why: &str) {
    let before = world.all();
    let place = world.registry(&registry("evil", version, distribution));
    let words = [&["agents", "add", "evil", "--registry", &place][..], more].concat();
    let told = world.fails(code, &words);
    assert!(told.contains(why), "{told}, not {why}");
    assert_eq!(world.all(), before, "{why}");
    for beside in ["evil", "state/evil", "state/agents/evil"] {
        assert!(!world.scratch.path(beside).exists(), "{why}: {beside} was written");
    }
}

// issue 14: archives with path traversal, links, another content or another size, or from elsewhere than https
#[test]
fn hostile_archives_change_nothing() {
    let world = world();
    let program = agent();
    let (link, hard) = (EntryType::Symlink, EntryType::Link);
    let state = world.scratch.state().display().to_string();
    let good = || file("x", &program);
    let zeros = vec![0; 4 * 1024 * 1024 + 1];
    let small: &[&str] = &["--max-size", "1 MiB"];
    for (bytes, more, why) in [
        (
            tarball(&[good(), file("../../../../evil", "1")]),
            &[][..],
            "\"../../../../evil\" leads out of the archive",
        ),
        (tarball(&[good(), file("/evil", "1")]), &[], "\"/evil\" is an absolute path"),
        (tarball(&[good(), (link, "l", &state, b""), file("l/evil", "1")]), &[], "\"l\" is a symbolic link"),
        (tarball(&[good(), (hard, "l", "/etc/passwd", b"")]), &[], "\"l\" is a hard link"),
        (zip(&[("x", program.as_bytes()), ("../../../../evil", b"1")]), &[], "leads out of the archive"),
        (zip(&[("x", program.as_bytes()), ("zeros", &zeros)]), small, "unpacked it has more than 4 MiB"),
        (
            tarball(&[good(), (EntryType::Regular, "zeros", "", &zeros)]),
            small,
            "unpacked it has more than 4 MiB",
        ),
        (b"<html>not here</html>".to_vec(), &[], "it is none of the known formats"),
        (tarball(&[file("y", &program)]), &[], "there is no file x in the archive"),
    ] {
        world.https.bytes("/evil", bytes);
        refused(&world, "1.0", &binary(&world.https.url("/evil"), "x", None), more, 1, why);
    }
    world.https.bytes("/evil", tarball(&[good()]));
    let wrong = binary(&world.https.url("/evil"), "x", Some(&sha256(b"another")));
    refused(&world, "1.0", &wrong, &[], 1, "is not the one that the registry describes: its SHA-256 is ");
    world.https.put("/evil", Answer::Redirect("http://127.0.0.1:9/x".to_owned()));
    let url = world.https.url("/evil");
    refused(
        &world,
        "1.0",
        &binary(&url, "x", None),
        &[],
        1,
        "sent on to http://127.0.0.1:9/x, which is not https",
    );
    world.https.put("/evil", Answer::Redirect(url.clone()));
    refused(&world, "1.0", &binary(&url, "x", None), &[], 1, "it was sent on more than 5 times");
    world.https.put("/evil", Answer::Announced(2 * 1024 * 1024 * 1024));
    refused(
        &world,
        "1.0",
        &binary(&url, "x", None),
        &[],
        1,
        "it has 2048 MiB, more than the 512 MiB that are taken",
    );
    world.https.put("/evil", Answer::Endless);
    let more = &["--max-size", "8 MiB"];
    refused(&world, "1.0", &binary(&url, "x", None), more, 1, "it has more than the 8 MiB that are taken");
}

// issue 14: names, versions, programs and packages that lead elsewhere, by the path of the member
#[test]
fn hostile_entries_change_nothing() {
    let world = world();
    let url = world.https.url("/good");
    let target = format!("agents[1].distribution.binary.{}", crate::fixtures::platform());
    let good = binary(&url, "good", None);
    refused(&world, "../../1.0", &good, &[], 1, "agents[1].version: \"../../1.0\" is not a version");
    for (cmd, why) in [("../../../bin/sh", "leads out"), ("/bin/sh", "absolute path")] {
        let told = format!("{target}.cmd: \"{cmd}\" ");
        refused(&world, "1.0", &binary(&url, cmd, None), &[], 1, &told);
        refused(&world, "1.0", &binary(&url, cmd, None), &[], 1, why);
    }
    let plain = "http://127.0.0.1:9/x";
    let why = format!("{target}.archive: \"{plain}\" is not an https:// address");
    refused(&world, "1.0", &binary(plain, "x", None), &[], 1, &why);
    for kind in ["npx", "uvx"] {
        for package in
            ["https://127.0.0.1:9/x.tgz", "git+ssh://127.0.0.1/x", "file:../x", "--global", "x@npm:y@1"]
        {
            let distribution = json!({kind: {"package": package}});
            let why = format!("agents[1].distribution.{kind}.package: \"{package}\" is not a package");
            refused(&world, "1.0", &distribution, &[], 1, &why);
        }
    }
    let before = world.all();
    for (words, why) in [
        (&["agents", "add", "../evil"][..], "\"../evil\" is not the name of an agent"),
        (&["agents", "add", "opencode", "--version", "../1"], "\"../1\" is not a version"),
        (&["agents", "remove", "..", "--yes"], "\"..\" is not the name of an agent"),
        (&["agents", "add", "x", "--registry", plain], "is not an https:// address"),
    ] {
        let told = world.fails(2, words);
        assert!(told.contains(why), "{told}, not {why}");
    }
    assert_eq!(world.all(), before);
}

// issue 14: a script that runs at the installation runs only after a yes
#[test]
fn no_script_runs_without_a_yes() {
    let world = world();
    let ran = world.scratch.path("ran");
    let script = format!("echo yes > '{}'", ran.display());
    publish_npm(&world.npm, "evil-npm", &[("1.0.0", &agent())], &json!({"postinstall": script}));
    let npx = json!({"npx": {"package": "evil-npm"}});
    let why = format!("evil-npm@1.0.0 postinstall: {script}");
    refused(&world, "1.0.0", &npx, &[], 2, &why);
    assert!(!ran.exists());
    let place = world.https.url("/registry.json");
    let add = ["agents", "add", "evil", "--registry", &place];
    let told = world.json(&[&add[..], &["--no-scripts"]].concat());
    assert!(told["scripts"] == "skipped" && !ran.exists(), "{told}");
    let told = world.json(&[&add[..], &["--allow-scripts", "--replace"]].concat());
    assert!(told["scripts"] == "run" && ran.exists(), "{told}");
}
