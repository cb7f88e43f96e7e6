//! Newer versions: what is outdated, what an update does, and what it leaves alone.

use crate::fixtures::{BROKEN, agent, binary, publish_npm, registry};
use crate::world::World;
use acpd_e2e::Client;
use serde_json::json;

fn front_end(world: &World, agent: &str) -> (Client, String) {
    let mut command = world.command(&["stdio", "--agent", agent]);
    command.stdin(std::process::Stdio::piped());
    let mut client = world.scratch.client(command);
    client.initialize();
    let session = client.new_session();
    (client, session)
}

// issue 14: the newer version is installed beside the old one, which goes once no session runs on it; what a person changed
// in the entry stays
#[test]
fn an_update_waits_for_the_sessions_of_the_old_version() {
    let world = World::new();
    let program = agent();
    publish_npm(&world.npm, "fixture-npm", &[("1.0.0", &program)], &json!({}));
    let entry = |version: &str| {
        registry(
            "x",
            version,
            &json!({"npx": {"package": format!("fixture-npm@{version}"), "args": ["--without", "fork"]}}),
        )
    };
    let place = world.registry(&entry("1.0.0"));
    world.done(&["agents", "add", "x", "--registry", &place]);
    let config = world
        .config()
        .replace("args = [\"--without\", \"fork\"]", "args = [\"--without\", \"resume\"] # my own");
    std::fs::write(world.config_path(), &config).expect("it is written");
    let told = world.json(&["agents", "outdated"]);
    assert_eq!(told["agents"][0]["outdated"], json!(false), "{told}");
    assert!(world.done(&["agents", "update"]).contains("x 1.0.0 is the newest"));
    let mut daemon = world.scratch.serve_by(world.scratch.command(acpd_e2e::acpd()), "127.0.0.1:0");
    // The harness wrote its own.
    std::fs::write(world.config_path(), &config).expect("it is written");
    world.done(&["reload"]);
    let (client, session) = front_end(&world, "x");
    publish_npm(&world.npm, "fixture-npm", &[("1.0.0", &program), ("1.10.0", &program)], &json!({}));
    world.registry(&entry("1.10.0"));
    let told = world.json(&["agents", "outdated"]);
    let one = &told["agents"][0];
    assert_eq!(
        [&one["version"], &one["newest"], &one["outdated"]],
        [&json!("1.0.0"), &json!("1.10.0"), &json!(true)]
    );
    let (old, new) = (world.version_dir("x", "1.0.0"), world.version_dir("x", "1.10.0"));
    let told = world.json(&["agents", "update", "x"]);
    let one = &told["agents"][0];
    assert_eq!(
        (&one["updated"], &one["kept"], &one["reloaded"]),
        (&json!(true), &json!(["1.0.0"]), &json!(true))
    );
    assert!(old.is_dir() && new.is_dir());
    let config = world.config();
    assert!(
        config.contains(&new.display().to_string()) && config.contains("\"resume\"] # my own"),
        "{config}"
    );
    let told = world.fails(1, &["agents", "remove", "x", "--yes"]);
    assert!(
        told.contains(&format!("sessions run on x; close them first: acpd sessions close {session}")),
        "{told}"
    );
    world.done(&["sessions", "close", &session]);
    drop(client);
    let told = world.json(&["agents", "update"]);
    assert_eq!(told["agents"][0]["removed"], json!(["1.0.0"]), "{told}");
    assert!(!old.exists());
    world.done(&["agents", "remove", "x", "--yes"]);
    assert!(!world.scratch.state().join("agents").exists());
    daemon.stop();
}

// issue 14: an update whose check fails leaves the old one in place; so does one that finds nothing newer
#[test]
fn an_update_that_does_not_start_changes_nothing() {
    let world = World::new();
    world.https.bytes("/1", agent());
    world.https.bytes("/2", BROKEN);
    let entry =
        |version: &str| registry("x", version, &binary(&world.https.url(&format!("/{version}")), "x", None));
    let place = world.registry(&entry("1"));
    world.done(&["agents", "add", "x", "--registry", &place]);
    let before = world.all();
    world.registry(&entry("2"));
    let told = world.fails(1, &["agents", "update"]);
    assert!(told.contains("a library is missing"), "{told}");
    assert_eq!(world.all(), before);
    world.registry(&entry("0.9"));
    assert!(world.done(&["agents", "update", "x"]).contains("x 1 is the newest"));
    let told = world.fails(4, &["agents", "update", "y"]);
    assert!(told.contains("y was not added") && told.contains("added were x"), "{told}");
    assert_eq!(world.all(), before);
}
