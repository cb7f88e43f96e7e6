//! What is asked against what is allowed, limit by limit, on a made-up disk.

use super::*;
use PermissionMode::{AcceptEdits, BypassPermissions, Default as Ask};

/// Links and `..` of a made-up disk: `/link` leads to `/srv/a`, `/srv/a/out` to `/etc`; `/gone` is not there.
fn resolve(path: &Path) -> Option<PathBuf> {
    Some(PathBuf::from(match path.to_str()? {
        "/gone" | "/srv/a/gone" => return None,
        "/link" => "/srv/a",
        "/srv/a/out" => "/etc",
        "/srv/a/../b" => "/srv/b",
        "/srv/a/x/.." => "/srv/a",
        path => path,
    }))
}

fn verdict(limits: &Limits, asked: &Asked<'_>) -> String {
    match within(limits, asked, resolve) {
        Ok(()) => "yes".to_owned(),
        Err(Beyond { limit, message, .. }) => format!("{limit}: {message}"),
    }
}

fn servers(text: &str) -> Vec<McpServer> {
    serde_json::from_str(text).expect("servers")
}

// contract 7.2: agents by name; all when none is named
#[test]
fn agents() {
    let only = |agents: Option<&[&str]>| Limits {
        agents: agents.map(|agents| agents.iter().map(|agent| (*agent).to_owned()).collect()),
        ..Limits::default()
    };
    for (limits, agent, expected) in [
        (only(None), "any", "yes"),
        (only(Some(&["a", "b"])), "b", "yes"),
        (only(Some(&["a", "b"])), "c", "agents: agent: not \"c\"; this token is limited to a, b"),
        (only(Some(&["a"])), "A", "agents: agent: not \"A\"; this token is limited to a"),
        (only(Some(&["a"])), "", "agents: agent: not \"\"; this token is limited to a"),
    ] {
        assert_eq!(verdict(&limits, &Asked { agent, ..Asked::default() }), expected);
    }
}

// contract 7.2: each directory lies at or below a root, as both are after links and `..`
#[test]
fn roots() {
    let limited = |roots: &[&str]| Limits {
        roots: Some(roots.iter().map(|root| (*root).to_owned()).collect()),
        ..Limits::default()
    };
    for (roots, path, is_below) in [
        (&["/srv/a"][..], "/srv/a", true),
        (&["/srv/a"], "/srv/a/x", true),
        (&["/srv/a"], "/link", true),
        (&["/link"], "/srv/a/x", true),
        (&["/srv/a", "/srv/b"], "/srv/b", true),
        (&["/"], "/etc", true),
        (&["/srv/a"], "/srv/a/x/..", true),
        // A longer name is not below a shorter one.
        (&["/srv/a"], "/srv/ab", false),
        (&["/srv/a"], "/srv", false),
        (&["/srv/a"], "/srv/a/../b", false),
        (&["/srv/a"], "/srv/a/out", false),
        (&["/srv/a"], "/srv/a/gone", false),
        (&["/srv/a"], "srv/a", false),
        (&["/srv/a"], "", false),
        (&["/gone"], "/srv/a", false),
        (&["/gone"], "/gone", false),
    ] {
        let directories = vec![("cwd".to_owned(), Path::new(path))];
        let told = verdict(&limited(roots), &Asked { directories, ..Asked::default() });
        assert_eq!(told == "yes", is_below, "{path} below {roots:?}: {told}");
    }
    let both =
        |second| vec![("cwd".to_owned(), Path::new("/srv/a")), ("more[0]".to_owned(), Path::new(second))];
    let told =
        |second| verdict(&limited(&["/srv/a"]), &Asked { directories: both(second), ..Asked::default() });
    assert_eq!(told("/srv/a/x"), "yes");
    assert_eq!(
        told("/etc"),
        "roots: more[0]: \"/etc\" is no directory at or below those allowed; this token is limited to /srv/a"
    );
}

// contract 7.2: every mode that is asked for, or would be in force
#[test]
fn permission_modes() {
    let limits = Limits { permission_modes: Some(vec![Ask, AcceptEdits]), ..Limits::default() };
    let refused = "permission_modes: permissionMode: the session is not to be in bypassPermissions; \
                   this token is limited to default, acceptEdits";
    for (modes, expected) in [
        (vec![], "yes"),
        (vec![Ask], "yes"),
        (vec![Ask, AcceptEdits], "yes"),
        (vec![BypassPermissions], refused),
        (vec![Ask, BypassPermissions], refused),
    ] {
        assert_eq!(verdict(&limits, &Asked { modes: modes.clone(), ..Asked::default() }), expected);
        let unlimited = Limits::default();
        assert_eq!(verdict(&unlimited, &Asked { modes, ..Asked::default() }), "yes");
    }
}

// contract 7.2: what is not known to be reached over HTTP is a command
#[test]
fn mcp_servers() {
    let limited = |mcp| Limits { mcp, ..Limits::default() };
    for (text, is_http) in [
        ("[]", true),
        (r#"[{"type":"http","url":"x"},{"type":"sse","url":"x"}]"#, true),
        (r#"[{"type":"http","url":"x","command":null}]"#, true),
        (r#"[{"name":"a","command":"sh","args":[],"env":[]}]"#, false),
        (r#"[{"type":"stdio","command":"sh"}]"#, false),
        (r#"[{"type":"http","url":"x","command":"sh"}]"#, false),
        (r#"[{"type":"http","url":"x"},{}]"#, false),
        (r#"[{"type":"HTTP","url":"x"}]"#, false),
        (r#"[{"type":"other"}]"#, false),
    ] {
        let servers = servers(text);
        let asked = Asked { servers: &servers, ..Asked::default() };
        assert_eq!(verdict(&limited(None), &asked), "yes", "{text}");
        assert_eq!(verdict(&limited(Some(McpLimit::Http)), &asked) == "yes", is_http, "{text}");
        assert_eq!(verdict(&limited(Some(McpLimit::None)), &asked) == "yes", servers.is_empty(), "{text}");
    }
    let asked = servers(r#"[{"type":"http"},{"command":"sh"}]"#);
    let told = verdict(&limited(Some(McpLimit::Http)), &Asked { servers: &asked, ..Asked::default() });
    let expected =
        "mcp: mcpServers[1]: a server that is a command is not allowed; this token is limited to http, sse";
    assert_eq!(told, expected);
}
