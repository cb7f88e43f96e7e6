//! What acpd itself fetches goes through the proxy that the environment names.

use crate::fixtures::{agent, binary, registry};
use crate::proxy::Proxy;
use crate::world::World;
use std::process::Stdio;

/// Adds an agent with variables: whether it did, and what it said on stderr.
fn add(world: &World, variables: &[(&str, &str)]) -> (bool, String) {
    let place = world.https.url("/registry.json");
    let mut command = world.command(&["agents", "add", "fixture", "--registry", &place]);
    command.envs(variables.iter().copied()).stdin(Stdio::null());
    let output = command.output().expect("acpd starts");
    (output.status.success(), String::from_utf8_lossy(&output.stderr).into_owned())
}

// issue 14: `HTTPS_PROXY` with a user, `NO_PROXY`, a proxy that refuses, and one of a kind that is not taken
#[test]
fn a_proxy_is_used_where_one_is_named() {
    let world = World::new();
    world.https.bytes("/agent", agent());
    world.registry(&registry("fixture", "1.2.3", &binary(&world.https.url("/agent"), "agent", None)));
    let before = world.all();
    let refuses = Proxy::answering(407);
    let named = format!("http://user:secret@{}", refuses.address());
    let (is_added, err) = add(&world, &[("HTTPS_PROXY", &named)]);
    assert!(!is_added && err.contains(&refuses.address().to_string()), "{err}");
    assert!(err.contains("it wants a user and a password") && !err.contains("secret"), "{err}");
    let (is_added, err) = add(&world, &[("https_proxy", "socks5://127.0.0.1:1")]);
    assert!(!is_added && err.contains("one of socks5"), "{err}");
    assert!(world.all() == before);

    let leads = Proxy::answering(200);
    let named = format!("http://user:secret@{}", leads.address());
    let (is_added, err) = add(&world, &[("HTTPS_PROXY", &named)]);
    assert!(is_added, "{err}");
    // The registry, and the archive.
    let host = world.https.url("").replacen("https://", "", 1);
    let asked = leads.asked();
    assert_eq!(asked.len(), 2, "{asked:?}");
    for head in asked {
        assert!(head.starts_with(&format!("CONNECT {host} HTTP/1.1\r\nHost: {host}\r\n")), "{head}");
        assert!(head.contains("\r\nProxy-Authorization: Basic dXNlcjpzZWNyZXQ=\r\n"), "{head}");
    }
    world.done(&["agents", "remove", "fixture", "--yes"]);
    let (is_added, err) = add(&world, &[("HTTPS_PROXY", &named), ("NO_PROXY", "127.0.0.1")]);
    assert!(is_added && leads.asked().len() == 2, "{err}");
}
