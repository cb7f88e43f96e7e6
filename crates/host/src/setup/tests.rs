//! The setup of a session, without an agent.

use super::*;

fn setup(params: &str) -> Result<(String, String), String> {
    match session_setup(Some(Bytes::copy_from_slice(params.as_bytes()))) {
        Ok((cwd, params)) => Ok((cwd, String::from_utf8(params.to_vec()).expect("it was text"))),
        Err(error) => Err(error.to_string()),
    }
}

// real agents fail without mcpServers; what else the client said is untouched
// quirk missing-mcp-servers (clients that leave it out, and agents that fail without): an empty list is put in
#[test]
fn mcp_servers_are_completed() {
    let given = r#"{"x":1,"cwd":"/","mcpServers":[{"name":"a"}]}"#;
    assert_eq!(setup(given), Ok(("/".into(), given.into())));
    let null = r#"{"cwd":"/","mcpServers":null,"_meta":{"a":1.0}}"#;
    assert_eq!(setup(null), Ok(("/".into(), r#"{"cwd":"/","mcpServers":[],"_meta":{"a":1.0}}"#.into())));
    let absent = r#" { "cwd" : "/" }"#;
    assert_eq!(setup(absent), Ok(("/".into(), r#" {"mcpServers":[], "cwd" : "/" }"#.into())));
}

// SE-2, FR-10
#[test]
fn bad_setups_name_the_field_and_the_fix() {
    for (params, field) in [
        (r#"[]"#, "params: "),
        (r#"{"mcpServers":[]}"#, "cwd: "),
        (r#"{"cwd":7,"mcpServers":[]}"#, "cwd: "),
        (r#"{"cwd":"here","mcpServers":[]}"#, "cwd: \"here\" is not absolute"),
        (r#"{"cwd":"/no/such/dir","mcpServers":[]}"#, "cwd: \"/no/such/dir\" is not a directory"),
        (r#"{"cwd":"/","mcpServers":{}}"#, "mcpServers: "),
    ] {
        let message = setup(params).expect_err(params);
        assert!(message.starts_with(field), "{params}: {message}");
    }
}

// contract 2.1: the mode of one session
#[test]
fn a_session_can_name_its_permission_mode() {
    let mode = |params: &str| permission_mode(params.as_bytes()).map_err(|error| error.to_string());
    let with = |mode: &str| {
        format!(r#"{{"cwd":"/","_meta":{{"x":1,"sandboxagent.dev":{{"permissionMode":{mode}}}}}}}"#)
    };
    assert_eq!(mode(r#"{"cwd":"/"}"#), Ok(None));
    assert_eq!(mode(&with("\"deny\"")), Ok(Some(PermissionMode::Deny)));
    assert_eq!(mode(&with("\"acceptEdits\"")), Ok(Some(PermissionMode::AcceptEdits)));
    for wrong in ["\"all\"", "7"] {
        assert!(mode(&with(wrong)).expect_err("refused").contains("permissionMode: one of"));
    }
}

// contract 7.2: what becomes of one session when its node is cut off
#[test]
fn a_session_can_name_its_policy() {
    let policy = |params: &str| partition(params.as_bytes()).map_err(|error| error.to_string());
    let with =
        |policy: &str| format!(r#"{{"cwd":"/","_meta":{{"sandboxagent.dev":{{"partition":{policy}}}}}}}"#);
    assert_eq!(policy(r#"{"cwd":"/"}"#), Ok(None));
    assert_eq!(policy(&with("\"local\"")), Ok(Some(Partition::Local)));
    assert_eq!(policy(&with("\"failover\"")), Ok(Some(Partition::Failover)));
    for wrong in ["\"both\"", "\"Failover\"", "7", "null", "{}"] {
        let message = policy(&with(wrong)).expect_err(wrong);
        assert_eq!(message, "_meta[\"sandboxagent.dev\"].partition: local or failover is required");
    }
}

// contract 7.3: the title that a client chooses is one line
#[test]
fn a_session_can_name_its_title() {
    let title = |title: &str| {
        let params = format!(r#"{{"cwd":"/","_meta":{{"sandboxagent.dev":{{"title":{title}}}}}}}"#);
        chosen_title(params.as_bytes()).map_err(|error| error.to_string())
    };
    assert_eq!(chosen_title(br#"{"cwd":"/"}"#).expect("none is given"), None);
    assert_eq!(title("\"Mine \u{e4}\""), Ok(Some("Mine \u{e4}".to_owned())));
    assert_eq!(title(&format!("\"{}\"", "\u{e4}".repeat(200))), Ok(Some("\u{e4}".repeat(200))));
    for wrong in
        ["\"\"", "\" \"", "7", "null", r#""a\nb""#, r#""\u2028""#, &format!("\"{}\"", "x".repeat(201))]
    {
        let message = title(wrong).expect_err(wrong);
        assert!(message.starts_with("_meta[\"sandboxagent.dev\"].title: one line"), "{message}");
    }
}

// contract 7.3: what a session was created with is what it is taken up with, under its id
#[test]
fn params_are_given_an_id() {
    let id = SessionId::parse("s").expect("an id");
    let named = with_id(br#" {"cwd":"/"}"#, &id).expect("it is an object");
    assert_eq!(named, &br#" {"sessionId":"s","cwd":"/"}"#[..]);
}
