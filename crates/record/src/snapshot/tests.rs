//! What a late viewer is shown, after each kind of update.

use super::*;
use serde_json::json;

fn line(update: &Value) -> Vec<u8> {
    json!({"jsonrpc": "2.0", "method": "session/update", "params": {"sessionId": "s", "update": update}})
        .to_string()
        .into_bytes()
}

fn shown(snapshot: &Snapshot) -> Value {
    let mut shown = snapshot.shown(OpenQuestions::default()).value();
    assert_eq!(shown["openPermissionRequests"], json!([]));
    shown.as_object_mut().expect("an object").remove("openPermissionRequests");
    shown
}

fn see(snapshot: &mut Snapshot, line: &[u8]) -> bool {
    snapshot.see_update(update_kind(line), line)
}

fn seen(updates: &[Value]) -> Value {
    let mut snapshot = Snapshot::default();
    for update in updates {
        see(&mut snapshot, &line(update));
    }
    shown(&snapshot)
}

// UP-4: the latest whole value counts
#[test]
fn the_latest_value_counts() {
    let got = seen(&[
        json!({"sessionUpdate": "available_commands_update", "availableCommands": [{"name": "a"}]}),
        json!({"sessionUpdate": "available_commands_update", "availableCommands": [{"name": "b"}]}),
        json!({"sessionUpdate": "plan", "entries": [{"content": "x"}]}),
        json!({"sessionUpdate": "usage_update", "used": 1, "size": 2}),
        json!({"sessionUpdate": "agent_message_chunk", "content": {"type": "text", "text": "x"}}),
    ]);
    let expected = json!({
        "availableCommands": [{"name": "b"}], "plan": [{"content": "x"}], "usage": {"used": 1, "size": 2},
        "openToolCalls": [],
    });
    assert_eq!(got, expected);
}

// SE-11: title follows session_info_update; null clears, absent leaves it
#[test]
fn the_title_follows() {
    let mut snapshot = Snapshot::default();
    for (update, title) in [
        (json!({"title": "one"}), Some("one")),
        (json!({"updatedAt": "x"}), Some("one")),
        (json!({"title": null}), None),
    ] {
        let mut update = update;
        update["sessionUpdate"] = json!("session_info_update");
        see(&mut snapshot, &line(&update));
        assert_eq!(snapshot.title(), title, "{update}");
    }
}

// contract 7.3: an agent's title follows the rule of chosen ones, a blank one is none as null is
// quirk unbounded-title (agents): a title of any length, with line ends or blank, is shown as one line of 200 characters, or not at all
#[test]
fn an_agents_title_is_one_short_line() {
    let mut snapshot = Snapshot::default();
    let long = "x".repeat(1 << 20);
    let cut = format!("{}…", "x".repeat(199));
    for (title, shown) in
        [("one", Some("one")), (" \t", None), ("a\nb\rc", Some("a b c")), ("", None), (&*long, Some(&*cut))]
    {
        let update = json!({"sessionUpdate": "session_info_update", "title": title});
        see(&mut snapshot, &line(&update));
        assert_eq!((snapshot.title(), snapshot.glance().title.as_deref()), (shown, shown));
    }
}

// UP-4: a tool call is open until it is completed or failed, and members replace
#[test]
fn open_calls_are_merged_and_closed() {
    let call = |id: &str, more: Value| {
        let mut update = json!({"sessionUpdate": "tool_call_update", "toolCallId": id});
        if let (Value::Object(update), Value::Object(more)) = (&mut update, more) {
            update.extend(more);
        }
        update
    };
    let got = seen(&[
        call("1", json!({"title": "a", "status": "pending", "content": [1]})),
        call("2", json!({"status": "in_progress", "kind": "edit"})),
        call("1", json!({"status": "in_progress", "content": [1, 2]})),
        call("2", json!({"status": "completed"})),
        call("3", json!({"status": "failed"})),
    ]);
    let open = json!([{"toolCallId": "1", "title": "a", "status": "in_progress", "content": [1, 2]}]);
    assert_eq!(got["openToolCalls"], open);
}

// contract 1.3: model and mode of a list entry, however the agent tells them
#[test]
fn model_and_mode_are_found_wherever_they_are() {
    let model = |category: &str| {
        json!([
            {"id": "a", "currentValue": "no"}, {"id": "m", "category": category, "currentValue": "large"},
        ])
    };
    for (result, model, mode) in [
        (json!({}), None, None),
        (json!({"configOptions": model("model")}), Some("large"), None),
        (json!({"configOptions": model("mode")}), None, Some("large")),
        (json!({"configOptions": [{"id": "model", "currentValue": "small"}]}), Some("small"), None),
        (
            json!({"modes": {"currentModeId": "plan"}, "models": {"currentModelId": "x"}}),
            Some("x"),
            Some("plan"),
        ),
    ] {
        let mut snapshot = Snapshot::default();
        snapshot.see_state(&AgentState::of_lifecycle(result.to_string().as_bytes()));
        let glance = snapshot.glance();
        assert_eq!((glance.model.as_deref(), glance.mode.as_deref()), (model, mode), "{result}");
    }
}

// UP-6: mode and modes agree
#[test]
fn a_mode_update_reaches_the_modes() {
    let mut snapshot = Snapshot::default();
    snapshot.see_state(&AgentState::of_lifecycle(br#"{"modes":{"currentModeId":"a","availableModes":[]}}"#));
    see(&mut snapshot, &line(&json!({"sessionUpdate": "current_mode_update", "currentModeId": "b"})));
    assert_eq!(shown(&snapshot)["modes"]["currentModeId"], "b");
    assert_eq!(shown(&snapshot)["currentModeId"], "b");
    let modes = snapshot.lifecycle().modes.expect("it has modes");
    assert_eq!(modes.get(), r#"{"currentModeId":"b","availableModes":[]}"#);
}

// contract 1.5: what an agent says that no view can read changes nothing
#[test]
fn unreadable_updates_are_passed_over() {
    let mut snapshot = Snapshot::default();
    for line in [
        &b"{}"[..],
        b"\"sessionUpdate\":\"plan\"",
        br#"{"params":{"update":{"sessionUpdate":"plan","entries":[}}}"#,
        br#"{"params":{"update":{"sessionUpdate":"tool_call"}}}"#,
    ] {
        see(&mut snapshot, line);
        assert!(!snapshot.would_change(line));
    }
    assert_eq!(snapshot, Snapshot::default());
}

// contract 7.3: the title that a client chose stays; without one the agent's latest counts
#[test]
fn a_chosen_title_stays() {
    let id = SessionId::parse("s").expect("an id");
    let agents = |title: Value| line(&json!({"sessionUpdate": "session_info_update", "title": title}));
    let mut snapshot = Snapshot::default();
    see(&mut snapshot, &agents(json!("the agent's")));
    assert_eq!(snapshot.title(), Some("the agent's"));
    see(&mut snapshot, &chosen_title(&id, "the \"client's\""));
    for later in [json!("another"), json!(null)] {
        assert!(!snapshot.would_change(&agents(later.clone())), "{later}");
        see(&mut snapshot, &agents(later));
        assert_eq!(snapshot.title(), Some("the \"client's\""));
    }
    see(&mut snapshot, &chosen_title(&id, "a second choice"));
    assert_eq!(snapshot.title(), Some("a second choice"));
}

// FR-8: an update with metadata that no value can hold says the rest of what it says
// quirk unusual-meta
#[test]
fn what_is_beside_odd_metadata_is_known() {
    let deep = format!("{}{}", "[".repeat(300), "]".repeat(300));
    for odd in ["1e400", deep.as_str()] {
        let mut snapshot = Snapshot::default();
        for update in [
            r#""sessionUpdate":"session_info_update","title":"plums""#,
            r#""sessionUpdate":"usage_update","used":5"#,
            r#""sessionUpdate":"tool_call","toolCallId":"c","kind":"edit""#,
        ] {
            let line =
                format!(r#"{{"method":"session/update","params":{{"update":{{"_meta":{odd},{update}}}}}}}"#);
            see(&mut snapshot, line.as_bytes());
        }
        assert_eq!((snapshot.title(), snapshot.kind_of_call("c").as_deref()), (Some("plums"), Some("edit")));
        assert_eq!(shown(&snapshot)["usage"]["used"], 5);
    }
}

// FR-8, contract 7.3: an amount that no number can hold is as good as not told, and what is beside it is known
// quirk unusual-meta
#[test]
fn what_is_beside_an_amount_out_of_range_is_known() {
    let mut snapshot = Snapshot::default();
    let usage =
        r#""sessionUpdate":"usage_update","used":5,"size":9,"cost":{"amount":1e400,"currency":"USD"}"#;
    let line = format!(r#"{{"method":"session/update","params":{{"update":{{{usage}}}}}}}"#);
    see(&mut snapshot, line.as_bytes());
    let usage = &shown(&snapshot)["usage"];
    assert_eq!((&usage["used"], &usage["size"]), (&5.into(), &9.into()));
    assert!(!usage["cost"]["amount"].is_number(), "{usage}");
}

// FR-8, contract 1.5: what is kept of an answer can be read in its event, where it is nested deeper
#[test]
fn a_state_of_any_depth_is_read_in_its_event() {
    for depth in [90, 100, 120, 125, 126, 127, 300] {
        let nested = format!("{}{}", "[".repeat(depth), "]".repeat(depth));
        let state = AgentState::of_lifecycle(format!(r#"{{"modes":{nested},"models":{{}}}}"#).as_bytes());
        assert!(state.modes.is_some() && state.models.is_some(), "{depth}");
        let state = serde_json::to_string(&state).expect("JSON");
        let event = format!(r#"{{"pid":7,"agentInfo":null,"state":{state}}}"#);
        assert!(crate::Event::read(2, event.as_bytes()).is_ok(), "{depth}");
    }
}
