//! How agents stand (contract 6, `GET /v1/agents`).

use crate::hosted::{close, entry, example, open, prompt, session, turn, until};
use acpd_e2e::{PATIENCE, Scratch, containment_here};
use acpd_host::{EndRequest, Host, HostError};
use serde_json::{Value, json};

fn health(host: &Host, agent: &str) -> Value {
    let all = serde_json::to_value(host.agents().health()).expect("it is JSON");
    all.as_array()
        .expect("it is a list")
        .iter()
        .find(|health| health["name"] == agent)
        .expect("it is configured")
        .clone()
}

async fn until_status(host: &Host, agent: &str, status: &str) -> Value {
    until(status, async || Some(health(host, agent)).filter(|health| health["status"] == status)).await
}

// contract 6: stopped, running, crashed, running again, stopped again
#[tokio::test]
async fn an_agent_stands_as_its_processes_do() {
    let scratch = Scratch::new();
    let host = open(&scratch, [example(&scratch, "a"), example(&scratch, "b")]).await;
    let never = json!({"name": "a", "status": "stopped", "restartCount": 0, "processes": 0,
        "containment": containment_here(), "continuity": health(&host, "a")["continuity"]});
    assert_eq!(health(&host, "a"), never);

    let first = session(&host, &scratch, "a").await;
    let second = session(&host, &scratch, "a").await;
    let running = health(&host, "a");
    assert_eq!((&running["status"], &running["processes"]), (&json!("running"), &json!(2)));
    assert_eq!(running["capabilities"]["loadSession"], true, "{running}");
    assert_eq!(running["agentInfo"]["name"], "example", "{running}");
    assert!(running["authMethods"].is_array(), "{running}");
    assert_eq!(running.get("lastError"), None);
    let uptime = running["uptimeMs"].as_u64().unwrap();
    assert!(u128::from(uptime) < PATIENCE.as_millis());

    // One crashes: the other still runs.
    drop(prompt(&second, "exit 3").await);
    second.ended().await;
    let one = until("one is left", async || Some(health(&host, "a")).filter(|a| a["processes"] == 1)).await;
    assert_eq!(
        (&one["status"], &one["lastError"]),
        (&json!("running"), &json!("agent exited with exit status: 3"))
    );
    assert!(one["uptimeMs"].as_u64().unwrap() >= uptime, "the oldest that runs counts");
    drop(prompt(&first, "signal KILL").await);
    first.ended().await;
    let failed = until_status(&host, "a", "error").await;
    assert_eq!((&failed["lastError"], failed.get("uptimeMs")), (&json!("agent was killed by SIGKILL"), None));
    assert!(failed["lastErrorAt"].as_str().unwrap() >= one["lastErrorAt"].as_str().unwrap());
    assert_eq!(failed["restartCount"], 0, "nothing was started since");

    // It is used again: one restart, and what was wrong is still told.
    let third = session(&host, &scratch, "a").await;
    let fourth = session(&host, &scratch, "a").await;
    let again = health(&host, "a");
    assert_eq!((&again["status"], &again["restartCount"]), (&json!("running"), &json!(1)));
    assert_eq!(again["lastError"], failed["lastError"]);
    for session in [third, fourth] {
        session.end(EndRequest::Terminate, "test".into()).await;
    }
    let stopped = until_status(&host, "a", "stopped").await;
    assert_eq!((&stopped["restartCount"], &stopped["lastError"]), (&json!(1), &failed["lastError"]));
    assert!(stopped["capabilities"].is_object(), "the last ones are still told");
    let last = session(&host, &scratch, "a").await;
    assert_eq!(health(&host, "a")["restartCount"], 1, "who was stopped is not restarted");
    assert_eq!(turn(&last, "hello").await["stopReason"], "end_turn");
    assert_eq!(health(&host, "b")["status"], "stopped", "it has nothing to do with the other");
    close(host).await;
}

// contract 6: an agent that does not start
#[tokio::test]
async fn an_agent_that_does_not_start_stands_as_an_error() {
    let scratch = Scratch::new();
    let silent = ["-c".to_owned(), "exit 4".to_owned()];
    let agents =
        [entry(&scratch, "missing", "no-such-program", &[]), entry(&scratch, "silent", "sh", &silent)];
    let host = open(&scratch, agents).await;
    for (agent, error) in [
        ("missing", "command not found: no-such-program"),
        ("silent", "agent ended before it answered initialize: exit status: 4"),
    ] {
        let failed = host.connect(agent, None).await;
        assert!(matches!(failed, Err(HostError::Start { .. })), "{failed:?}");
        let health = health(&host, agent);
        assert_eq!((&health["status"], &health["processes"]), (&json!("error"), &json!(0)), "{health}");
        assert!(health["lastError"].as_str().unwrap().starts_with(error), "{health}");
        assert_eq!((health.get("capabilities"), health.get("uptimeMs")), (None, None));
    }
    // Whoever tries again restarts the one that ran for a moment.
    assert!(host.connect("silent", None).await.is_err() && host.connect("missing", None).await.is_err());
    assert_eq!(health(&host, "silent")["restartCount"], 1);
    assert_eq!(health(&host, "missing")["restartCount"], 0, "it never ran");
    close(host).await;
}

// contract 6: what a process does while it is being stopped is no error of its agent
#[tokio::test]
async fn a_process_that_has_to_be_killed_is_no_crash() {
    let scratch = Scratch::new();
    let host = open(&scratch, [example(&scratch, "a")]).await;
    let stubborn = session(&host, &scratch, "a").await;
    assert_eq!(turn(&stubborn, "ignore-sigterm").await["stopReason"], "end_turn");
    drop(prompt(&stubborn, "ignore-cancel\nhang").await);
    let end = stubborn.end(EndRequest::Terminate, "test".into()).await;
    assert!(end.info.escalation.iter().any(|rung| rung.contains("kill")), "{:?}", end.info);
    let stopped = until_status(&host, "a", "stopped").await;
    assert_eq!((&stopped["restartCount"], stopped.get("lastError")), (&json!(0), None));
    let next = session(&host, &scratch, "a").await;
    assert_eq!(health(&host, "a")["restartCount"], 0);
    drop(next);
    close(host).await;
}
