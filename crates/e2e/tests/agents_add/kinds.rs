//! An agent of each kind is added, runs, and is removed.

use crate::fixtures::{
    BROKEN, agent, binary, file, platform, publish_npm, publish_pypi, python_agent, registry, sha256,
    tarball, zip,
};
use crate::world::{COMMENT, World};
use acpd_e2e::PseudoTerminal;
use serde_json::{Value, json};

/// One prompt to it.
fn works(world: &World, name: &str) {
    let out = world.done(&["run", "--agent", name, "hello"]);
    assert!(out.contains("hello"), "{name}: {out}");
}

// issue 14: an archive with the registry's hash: installed once, entered with its path, args and env; comments stay
#[test]
fn an_archive_is_added_and_removed() {
    let world = World::new();
    let program = agent();
    let archive = tarball(&[file("./bin/agent", &program), file("share/a", "x")]);
    world.https.bytes("/x.tar.gz", archive.clone());
    let hash = sha256(&archive);
    let url = world.https.url("/x.tar.gz");
    let place = world.registry(&registry("fixture", "1.2.3", &binary(&url, "./bin/agent", Some(&hash))));
    let before = world.all();
    let told = world.json(&["agents", "add", "fixture", "--registry", &place]);
    assert_eq!([&told["version"], &told["kind"], &told["sha256From"]], ["1.2.3", "binary", "registry"]);
    assert_eq!((&told["check"]["ok"], &told["wasThere"]), (&json!(true), &json!(false)));
    let dir = world.version_dir("fixture", "1.2.3");
    let command = dir.join("files/bin/agent").display().to_string();
    let config = world.config();
    assert!(config.contains(COMMENT), "{config}");
    assert!(
        config.ends_with(&format!(
            "\n[agents.fixture]\ncommand = \"{command}\"\nargs = [\"--without\", \"fork\"]\nenv = {{ FIXTURE = \"1\" }}\n"
        )),
        "{config}"
    );
    let receipt = std::fs::read_to_string(dir.join("receipt.json")).expect("it is there");
    let receipt: Value = serde_json::from_str(&receipt).expect("it is JSON");
    assert_eq!([&receipt["sha256"], &receipt["program"]], [&json!(hash), &json!("files/bin/agent")]);
    assert_eq!([&receipt["source"]["archive"], &receipt["source"]["registry"]], [&url, &place]);
    let again = world.json(&["agents", "add", "fixture", "--registry", &place]);
    assert_eq!(again["wasThere"], json!(true));
    assert_eq!(world.config(), config, "it is entered once");
    works(&world, "fixture");
    let refused = world.fails(2, &["agents", "remove", "fixture"]);
    assert!(refused.contains("--yes removes it without a question"), "{refused}");
    world.done(&["agents", "remove", "fixture", "--yes"]);
    assert!(!dir.exists());
    assert_eq!(world.config(), before[&world.config_path()]);
}

// issue 14: zip and a bare executable, through redirects; without a hash that of what came is recorded, and said
#[test]
fn a_zip_and_a_program_alone_are_added() {
    let world = World::new();
    let program = agent();
    world.https.bytes("/x.zip", zip(&[("d/agent", program.as_bytes())]));
    world.https.bytes("/agent", program.clone());
    world.https.put("/sent/on", crate::server::Answer::Redirect("../x.zip".to_owned()));
    world.https.put("/first", crate::server::Answer::Redirect(world.https.url("/sent/on")));
    for (path, cmd, bytes) in [
        ("/first", "d/agent", zip(&[("d/agent", program.as_bytes())])),
        ("/agent", "agent", program.clone().into()),
    ] {
        let file = world.scratch.path("one.json");
        let distribution = binary(&world.https.url(path), cmd, None);
        let one = json!({"id": "one", "name": "One", "version": "0.1", "distribution": distribution});
        std::fs::write(&file, one.to_string()).expect("it is written");
        let file = file.display().to_string();
        let (_, out, err) = world.run(&["agents", "add", "one", "--registry", &file, "--replace"]);
        let hash = sha256(&bytes);
        assert!(
            err.contains(&format!("gives no SHA-256; that of what came is {hash}, and is recorded")),
            "{err}"
        );
        assert!(
            out.contains("one 0.1 (binary, ") && out.contains("was stopped (exit status: 0)"),
            "{out}{err}"
        );
        works(&world, "one");
    }
}

// issue 14: a package of npm, with its lock file; a running daemon knows it at once
#[test]
fn a_package_of_npm_is_added() {
    let world = World::new();
    publish_npm(&world.npm, "fixture-npm", &[("1.0.0", &agent())], &json!({}));
    let npx = json!({"npx": {"package": "fixture-npm@1.0.0", "args": ["--without", "fork"]}});
    let place = world.registry(&registry("packaged", "1.0.0", &npx));
    let mut daemon = world.scratch.serve();
    let told = world.json(&["agents", "add", "packaged", "--registry", &place]);
    assert_eq!([&told["kind"], &told["scripts"], &told["sha256From"]], ["npx", "none", "lock"]);
    assert_eq!(told["reloaded"], json!(true));
    let dir = world.version_dir("packaged", "1.0.0");
    let lock = std::fs::read(dir.join("package-lock.json")).expect("it is kept");
    assert_eq!(told["sha256"], json!(sha256(&lock)));
    assert!(!dir.join("tmp").exists());
    let listed = world.done(&["agents", "list", "--json"]);
    assert!(listed.contains("\"packaged\""), "{listed}");
    works(&world, "packaged");
    daemon.stop();
    let told = world.fails(1, &["agents", "add", "packaged", "--registry", &place, "--version", "9.9.9"]);
    assert!(
        told.contains("npm has no fixture-npm@9.9.9; `npm view fixture-npm versions` lists")
            && !told.contains("npm error"),
        "{told}"
    );
}

// issue 14: a wheel of PyPI in an environment of its own, locked with hashes
#[test]
fn a_package_of_pypi_is_added_and_updated() {
    let world = World::new();
    let code = python_agent();
    publish_pypi(&world.pypi, "fixture-py", &[("1.0", &code)]);
    let entry = |version: &str| {
        registry("wheel", version, &json!({"uvx": {"package": format!("fixture-py=={version}")}}))
    };
    let place = world.registry(&entry("1.0"));
    let told = world.json(&["agents", "add", "wheel", "--registry", &place]);
    assert_eq!([&told["kind"], &told["version"]], ["uvx", "1.0"]);
    let dir = world.version_dir("wheel", "1.0");
    let lock = std::fs::read_to_string(dir.join("requirements.lock")).expect("it is kept");
    assert!(lock.contains("fixture-py==1.0") && lock.contains("--hash=sha256:"), "{lock}");
    works(&world, "wheel");
    publish_pypi(&world.pypi, "fixture-py", &[("1.0", &code), ("1.1", &code)]);
    world.registry(&entry("1.1"));
    let told = world.json(&["agents", "update", "wheel"]);
    assert_eq!(told["agents"][0]["from"], json!("1.0"), "{told}");
    assert!(!dir.exists() && world.version_dir("wheel", "1.1").is_dir());
    works(&world, "wheel");
}

// issue 14: an entry that has nothing for this platform says what there is; --kind chooses; a name that is none is told with
// what there is
#[test]
fn what_there_is_is_told() {
    let world = World::new();
    let url = world.https.url("/x");
    let elsewhere =
        json!({"binary": {"windows-aarch64": {"archive": url, "cmd": "x"}}, "npx": {"package": "x"}});
    let place = world.registry(&registry("x", "1.0", &elsewhere));
    let told = world.fails(1, &["agents", "add", "x", "--registry", &place, "--kind", "binary"]);
    let here = platform();
    assert!(
        told.contains(&format!("no binary for {here}; there is binary for windows-aarch64, npx")),
        "{told}"
    );
    let told = world.fails(4, &["agents", "add", "y", "--registry", &place]);
    assert!(told.contains("there is no agent y in ") && told.contains("it has another, x"), "{told}");
    let told = world.fails(4, &["agents", "add", "opencod"]);
    assert!(
        told.contains("acpd knows no agent opencod") && told.contains("did you mean opencode?"),
        "{told}"
    );
    let told = world.fails(2, &["agents", "add", "x", "--registry", &place, "--kind", "docker"]);
    assert!(told.contains("possible values: binary, npx, uvx"), "{told}");
}

// issue 14: an agent that does not start leaves no entry, and says what it wrote; --no-check installs it all the same
#[test]
fn an_agent_that_does_not_start_leaves_nothing() {
    let world = World::new();
    world.https.bytes("/x", BROKEN);
    let place = world.registry(&registry("broken", "1.0", &binary(&world.https.url("/x"), "x", None)));
    let before = world.all();
    let told = world.fails(1, &["agents", "add", "broken", "--registry", &place]);
    assert!(told.contains("| a library is missing") && told.contains("nothing was changed"), "{told}");
    assert_eq!(world.all(), before);
    world.done(&["agents", "add", "broken", "--registry", &place, "--no-check"]);
    assert!(world.config().contains("[agents.broken]"));
}

// issue 14: an entry written by hand is not overwritten without --replace
#[test]
fn an_entry_of_a_person_is_left_alone() {
    let world = World::new();
    let config = format!("{COMMENT}\n\n[agents.mine]\ncommand = \"true\" # by hand\n\n[terminal]\n");
    std::fs::write(world.config_path(), &config).expect("it is written");
    world.https.bytes("/x", agent());
    let place = world.registry(&registry("mine", "1.0", &binary(&world.https.url("/x"), "x", None)));
    let before = world.all();
    let add = ["agents", "add", "mine", "--registry", &place];
    let told = world.fails(2, &add);
    assert!(told.contains("[agents.mine] in ") && told.contains("was written by hand; --replace"), "{told}");
    let told = world.fails(2, &["agents", "remove", "mine", "--yes"]);
    assert!(told.contains("was written by hand"), "{told}");
    assert_eq!(world.all(), before);
    world.done(&[&add[..], &["--replace"]].concat());
    let config = world.config();
    assert!(
        !config.contains("by hand") && config.starts_with(&format!("{COMMENT}\n\n[terminal]\n")),
        "{config}"
    );
    works(&world, "mine");
}

// issue 14: what goes is asked about on a terminal, and a no changes nothing; a version that a killed `add` left without an
// entry goes, too
#[test]
fn a_removal_is_asked_about() {
    let world = World::new();
    world.https.bytes("/x", agent());
    let place = world.registry(&registry("x", "1.0", &binary(&world.https.url("/x"), "x", None)));
    let config = world.config();
    world.done(&["agents", "add", "x", "--registry", &place, "--no-check"]);
    std::fs::write(world.config_path(), config).expect("it is written");
    let dir = world.version_dir("x", "1.0");
    for (key, code, is_there) in [("n\n", 1, true), ("y\n", 0, false)] {
        let mut terminal = PseudoTerminal::new().start(&world.scratch, &["agents", "remove", "x"]);
        terminal.wait_for("[y/N]");
        terminal.press(key);
        let (shown, status) = terminal.end();
        assert_eq!((status.code(), dir.exists()), (Some(code), is_there), "{shown}");
    }
}
