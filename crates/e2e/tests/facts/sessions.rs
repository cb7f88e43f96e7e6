//! What is told of a session (contract 1.3 and 1.5), live, ended, and after the daemon that had it.

use crate::hosted::{ask, close, creator, entry, example, open, prompt, session, setup, turn, until};
use acpd_e2e::{Scratch, shell_agent};
use acpd_eventlog::{EventLog, ListQuery, Options};
use acpd_host::{EndRequest, EventKind, Host, HostError, PermissionMode, SessionId};
use rustix::process::Signal;
use serde_json::{Value, json};

/// Says everything there is to say of a state.
const STATE: &str =
    "title One\nmode plan\nplan a,b\ncommands x,y\nusage 1 9\ntools read,write\ntitle Two\nusage 2 9";

async fn info(host: &Host, id: &SessionId) -> Value {
    let found = host.find(id, |_| true).await.expect("it is there");
    serde_json::to_value(host.session_info(id, found).await.expect("it is there")).expect("it is JSON")
}

/// Waits for the commit of the first event of a kind: an answer that nobody waits behind may be a moment faster.
async fn committed(host: &Host, id: &SessionId, kind: EventKind) {
    let mut cursor = host.cursor(id, 0).await.expect("it is there");
    let mut found = false;
    while !found {
        let block = cursor.next().await.expect("it can be read").expect("the session is live");
        found = block.events().any(|event| event.kind == kind.number());
    }
}

/// As it was, in what a restart does not change.
fn lasting(info: &Value) -> Value {
    let mut info = info.clone();
    let members = info.as_object_mut().expect("it is an object");
    for name in ["state", "ended", "updatedAt", "eventCount", "terminationInfo"] {
        members.remove(name);
    }
    info["metadata"].as_object_mut().expect("it is an object").remove("agentPid");
    info
}

fn is_complete(info: &Value) {
    let snapshot = &info["snapshot"];
    assert_eq!(snapshot["availableCommands"].as_array().map(Vec::len), Some(2), "{info}");
    assert_eq!(snapshot["plan"].as_array().map(Vec::len), Some(2), "{info}");
    assert_eq!(snapshot["usage"]["used"], 2, "{info}");
    assert_eq!((&snapshot["title"], &info["title"]), (&json!("Two"), &json!("Two")));
    assert_eq!((&snapshot["currentModeId"], &info["mode"]), (&json!("plan"), &json!("plan")));
    assert_eq!(snapshot["modes"]["currentModeId"], "plan");
    assert_eq!(snapshot["configOptions"][0]["currentValue"], "example-large", "{info}");
    assert_eq!(info["model"], "example-large");
    assert_eq!(snapshot["tools"], json!(["read", "write"]), "{info}");
    assert_eq!((&snapshot["openToolCalls"], &snapshot["openPermissionRequests"]), (&json!([]), &json!([])));
}

// contract 1.3, contract 1.5: the same of a session that is live, has ended, is taken up, and in the next daemon
#[tokio::test]
async fn everything_is_known_of_a_session_for_ever() {
    let scratch = Scratch::new();
    let host = open(&scratch, [example(&scratch, "a")]).await;
    let session = session(&host, &scratch, "a").await;
    let id = session.id().clone();
    let large = json!({"configId": "model", "value": "example-large"});
    ask(&session, "session/set_config_option", large).await.await.unwrap();
    assert_eq!(turn(&session, STATE).await["stopReason"], "end_turn");
    committed(&host, &id, EventKind::TurnEnded).await;
    let live = info(&host, &id).await;
    is_complete(&live);
    assert_eq!((&live["sessionId"], &live["agent"]), (&json!(id), &json!("a")));
    assert_eq!((&live["cwd"], &live["ended"]), (&json!(scratch.work()), &json!(false)));
    assert_eq!((&live["state"], live.get("terminationInfo")), (&json!("idle"), None));
    assert!(live["nativeSessionId"].as_str().is_some_and(|native| native != id.as_str()), "{live}");
    assert!(live["createdAt"].as_str().unwrap() <= live["updatedAt"].as_str().unwrap());
    let metadata = json!({
        "client": "e2e", "runs": 1, "permissionMode": "default", "agentPid": session.agent().pid(),
    });
    assert_eq!(live["metadata"], metadata);

    // A list entry says the same without the state, and what is known of the agent.
    let list = serde_json::to_value(host.list(ListQuery::default()).await.unwrap()).unwrap();
    let mut entry = live.clone();
    for own in ["snapshot", "promptsWaiting", "agentCapabilities"] {
        assert!(entry.as_object_mut().unwrap().remove(own).is_some(), "{own}");
    }
    assert_eq!(list, json!([entry]));

    session.end(EndRequest::Close, "somebody".into()).await;
    let ended = info(&host, &id).await;
    is_complete(&ended);
    assert_eq!((&ended["state"], &ended["ended"]), (&json!("ended"), &json!(true)));
    assert_eq!(ended["terminationInfo"]["initiator"], "somebody");
    assert_eq!(ended["eventCount"], ended["terminationInfo"]["lastEventSeq"].as_u64().unwrap() + 1);
    let mut expected = lasting(&live);
    // Whose the mode was is told by the run; it had none of its own.
    expected["metadata"].as_object_mut().unwrap().remove("permissionMode");
    assert_eq!(lasting(&ended), expected);
    close(host).await;

    let host = open(&scratch, [example(&scratch, "a")]).await;
    // What its agent said of itself is known to the process that it said it to.
    let mut kept = ended;
    kept.as_object_mut().unwrap().remove("agentCapabilities").expect("the agent said it");
    assert_eq!(info(&host, &id).await, kept);
    let agent = host.connect("a", None).await.unwrap();
    host.activate(host.attempt(&id), &id, &agent, None, "e2e").await.unwrap();
    let again = info(&host, &id).await;
    is_complete(&again);
    assert_eq!((&again["ended"], &again["metadata"]["runs"]), (&json!(false), &json!(2)));
    assert_eq!(again.get("terminationInfo"), None, "it is of the run before");
    close(host).await;
}

// contract 1.5: nothing is lost with a daemon that is killed
#[test]
fn everything_is_known_after_a_kill() {
    let scratch = Scratch::new();
    let (mut client, id) = scratch.session("example");
    client.call("session/set_mode", &json!({"sessionId": id, "modeId": "plan"}));
    let large = json!({"sessionId": id, "configId": "model", "value": "example-large"});
    client.call("session/set_config_option", &large);
    assert_eq!(client.turn(&id, STATE), "end_turn");
    // A call and a question are open when it dies.
    client.prompt(&id, "ask execute Something");
    client.until("it asks", |message| message.method() == Some("session/request_permission"));
    client.signal(Signal::KILL);
    client.read_to_end();
    scratch.mark().only_left(&[]).expect("the keepers end the agent");
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let host = open(&scratch, []).await;
        let info = info(&host, &SessionId::parse(&id).unwrap()).await;
        is_complete(&info);
        assert_eq!(
            (&info["state"], &info["terminationInfo"]["cause"]),
            (&json!("ended"), &json!("daemon_lost"))
        );
        close(host).await;
    });
}

// contract 1.2, contract 1.3: a session whose host has died is shown as lost, and is recorded as lost when it is acted on
#[test]
fn a_look_at_a_lost_session_records_nothing() {
    let scratch = Scratch::new();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let host = open(&scratch, []).await;
        let (mut client, id) = scratch.session("example");
        client.prompt(&id, "begun\nhang");
        client.until_text("begun");
        client.signal(Signal::KILL);
        client.read_to_end();
        scratch.mark().only_left(&[]).expect("the keepers end the agent");
        let log = EventLog::open(&scratch.state(), Options::default()).expect("the log opens");
        let id = SessionId::parse(&id).unwrap();
        let before = log.get(id.as_str()).await.unwrap().expect("it is there");

        let listed = json!(host.list(ListQuery::default()).await.unwrap());
        let lost = info(&host, &id).await;
        for shown in [&listed[0], &lost] {
            let (state, end) = (&shown["state"], &shown["terminationInfo"]);
            assert_eq!((state, &shown["ended"]), (&json!("ended"), &json!(true)));
            assert_eq!((&end["cause"], &end["turnActive"]), (&json!("daemon_lost"), &json!(true)));
        }
        assert_eq!(log.get(id.as_str()).await.unwrap().as_ref(), Some(&before));

        let error = host.session(&id).await.expect_err("it has ended");
        assert!(matches!(error, HostError::SessionEnded { .. }), "{error}");
        let after = log.get(id.as_str()).await.unwrap().expect("it is there");
        assert_eq!((after.ended, after.owner, after.last_seq), (true, None, before.last_seq + 1));
        let mut recorded = info(&host, &id).await;
        assert_eq!(recorded["terminationInfo"]["cause"], "daemon_lost");
        // When it was found is the only difference.
        recorded["terminationInfo"]["endedAt"] = lost["terminationInfo"]["endedAt"].clone();
        assert_eq!(recorded["terminationInfo"], lost["terminationInfo"]);
        log.close().await;
        close(host).await;
    });
}

// contract 1.5: a mode that an agent accepts without an update is known to the next daemon, as what `by` whom
#[tokio::test]
async fn what_an_answer_told_is_an_event() {
    let scratch = Scratch::new();
    let modes = r#"{"sessionId":"shell-1","modes":{"currentModeId":"a","availableModes":[]}}"#;
    let args: Vec<String> = shell_agent("while take; do answer '{}'; done")
        .into_iter()
        .map(|arg| arg.replace(r#"{"sessionId":"shell-1"}"#, modes))
        .collect();
    let host = open(&scratch, [entry(&scratch, "terse", "sh", &args)]).await;
    let session = session(&host, &scratch, "terse").await;
    let id = session.id().clone();
    assert_eq!(info(&host, &id).await["mode"], "a");
    for _twice in 0..2 {
        ask(&session, "session/set_mode", json!({"modeId": "b"})).await.await.unwrap();
    }
    committed(&host, &id, EventKind::StateChanged).await;
    assert_eq!(info(&host, &id).await["mode"], "b");
    let mut cursor = host.cursor(&id, 2).await.unwrap();
    let block = cursor.next().await.unwrap().unwrap();
    let event = block.events().next().unwrap();
    assert_eq!(EventKind::from_number(event.kind).map(|kind| kind.name()), Some("state_changed"));
    let payload: Value = serde_json::from_slice(event.payload).unwrap();
    assert_eq!((&payload["by"], &payload["currentModeId"]), (&json!("e2e"), &json!("b")), "{payload}");
    drop(cursor);
    close(host).await;
    let host = open(&scratch, []).await;
    let ended = info(&host, &id).await;
    assert_eq!((&ended["mode"], &ended["snapshot"]["modes"]["currentModeId"]), (&json!("b"), &json!("b")));
    assert_eq!(ended["eventCount"], 4, "what was known already is no event");
    close(host).await;
}

// contract 1.3, contract 1.5: what is open while somebody has to answer, and nothing of it afterwards
#[tokio::test]
async fn a_session_that_waits_says_for_what() {
    let scratch = Scratch::new();
    let host = open(&scratch, [example(&scratch, "a")]).await;
    let session = session(&host, &scratch, "a").await;
    let id = session.id().clone();
    let turn = prompt(&session, "ask execute Do it").await;
    let waiting = until("it waits", async || {
        let info = info(&host, &id).await;
        let open = &info["snapshot"]["openPermissionRequests"];
        (info["state"] == "waiting" && *open != json!([])).then_some(info)
    })
    .await;
    let open_requests = waiting["snapshot"]["openPermissionRequests"].as_array().unwrap();
    let [request] = &open_requests[..] else { panic!("one is open: {waiting}") };
    assert_eq!(request["message"]["method"], "session/request_permission");
    assert_eq!(request["message"]["params"]["sessionId"], id.as_str());
    assert_eq!(request["message"]["params"]["toolCall"]["title"], "Do it");
    assert!(
        request["request"].as_u64().is_some_and(|number| number <= waiting["eventCount"].as_u64().unwrap())
    );
    assert_eq!(waiting["snapshot"]["openToolCalls"].as_array().map(Vec::len), Some(1), "{waiting}");
    session
        .notify(
            "session/cancel".to_owned(),
            Some(json!({"sessionId": id}).to_string().into()),
            acpd_host::ClientRef { name: "e2e".into(), connection: "e2e-1".into() },
        )
        .await;
    assert_eq!(turn.await.unwrap()["stopReason"], "cancelled");
    let after = info(&host, &id).await;
    assert_eq!(after["state"], "idle");
    assert_eq!(after["snapshot"]["openPermissionRequests"], json!([]));
    assert_eq!(after["snapshot"]["openToolCalls"], json!([]));
    close(host).await;
}

// contract 1.3: a session that is recorded and has no task yet is starting
#[tokio::test]
async fn a_session_that_is_being_created_is_starting() {
    let scratch = Scratch::new();
    let host = open(&scratch, [example(&scratch, "a")]).await;
    let known = session(&host, &scratch, "a").await;
    // As the host itself does, right before it makes the task.
    let log = EventLog::open(&scratch.state(), Options::default()).unwrap();
    let owner = log.get(known.id().as_str()).await.unwrap().unwrap().owner.unwrap();
    let mut events = acpd_eventlog::Batch::new();
    events.push(EventKind::Created.number(), 0, br#"{"agent":"a","cwd":"/"}"#);
    let (id, agent, cwd) = ("new".into(), "a".into(), "/".into());
    let new = acpd_eventlog::NewSession { id, agent, cwd, owner, events, ..Default::default() };
    let appender = log.create(new).await.unwrap();
    let info = info(&host, &SessionId::parse("new").unwrap()).await;
    assert_eq!((&info["state"], &info["ended"]), (&json!("starting"), &json!(false)));
    let end = acpd_eventlog::IndexUpdate { ended: Some(true), owner: Some(None), ..Default::default() };
    appender.append_final(acpd_eventlog::Batch::index_only(end)).await.unwrap();
    log.close().await;
    close(host).await;
}

// contract 1.3: how a session answers its agent is told, whoever chose it
#[tokio::test]
async fn the_permission_mode_is_told() {
    let scratch = Scratch::new();
    let mut spec = example(&scratch, "a");
    spec.permission_mode = PermissionMode::Deny;
    let host = open(&scratch, [spec]).await;
    let by_entry = session(&host, &scratch, "a").await;
    assert_eq!(info(&host, by_entry.id()).await["metadata"]["permissionMode"], "deny");
    let agent = host.connect("a", None).await.unwrap();
    let mut params: Value = serde_json::from_slice(&setup(&scratch).unwrap()).unwrap();
    params["_meta"] = json!({"sandboxagent.dev": {"permissionMode": "acceptEdits"}});
    let chosen =
        host.new_session(&agent, Some(params.to_string().into()), creator(None)).await.unwrap().session;
    for ended in [false, true] {
        let info = info(&host, chosen.id()).await;
        assert_eq!(
            (&info["metadata"]["permissionMode"], &info["ended"]),
            (&json!("acceptEdits"), &json!(ended))
        );
        chosen.end(EndRequest::Close, "test".into()).await;
    }
    close(host).await;
}
