//! What a host counts, as Prometheus reads it. Alone in its process, which a recorder is for.

#[path = "../facts/hosted.rs"]
mod hosted;

use acpd_e2e::Scratch;
use acpd_host::{EndRequest, describe_metrics};
use hosted::{close, example, open, prompt, session, turn, until};
use metrics_exporter_prometheus::{PrometheusBuilder, PrometheusHandle};
use serde_json::json;

/// The value of a series as it stands in the text, 0 if it is not there.
fn value(recorder: &PrometheusHandle, series: &str) -> f64 {
    let text = recorder.render();
    let line = text.lines().find_map(|line| line.strip_prefix(series)?.strip_prefix(' '));
    line.map_or(0.0, |value| value.parse().expect("values are numbers"))
}

fn all(recorder: &PrometheusHandle, wanted: &[(&str, f64)]) -> bool {
    wanted.iter().all(|(series, wanted)| value(recorder, series) == *wanted)
}

async fn until_all(recorder: &PrometheusHandle, wanted: &[(&str, f64)]) {
    let began = tokio::time::Instant::now();
    until("the counts are right", async || {
        let off: Vec<_> = wanted.iter().filter(|one| !all(recorder, &[**one])).collect();
        assert!(off.is_empty() || began.elapsed() < acpd_e2e::PATIENCE / 2, "{off:?}: {}", recorder.render());
        off.is_empty().then_some(())
    })
    .await;
}

// issue 5, deliver 5: sessions by state, runs, exits by cause, restarts, turns, queue depths, event rates, commit
// latency, orphans killed, process and keeper counts
#[tokio::test]
async fn what_happens_is_counted() {
    let recorder = PrometheusBuilder::new().install_recorder().expect("there is no other");
    describe_metrics();
    let scratch = Scratch::new();
    let mut spec = example(&scratch, "a");
    spec.permission_mode = acpd_host::PermissionMode::Default;
    let host = open(&scratch, [spec]).await;
    let idle = session(&host, &scratch, "a").await;
    let busy = session(&host, &scratch, "a").await;
    let waiting = session(&host, &scratch, "a").await;
    assert_eq!(turn(&idle, "hello").await["stopReason"], "end_turn");
    let failed = turn(&idle, "sleep nonsense").await;
    assert!(failed.get("error").is_some(), "{failed}");
    let hangs = prompt(&busy, "hang").await;
    let asks = prompt(&waiting, "ask execute Something").await;
    until_all(
        &recorder,
        &[
            ("acpd_sessions{state=\"idle\"}", 1.0),
            ("acpd_sessions{state=\"running\"}", 1.0),
            ("acpd_sessions{state=\"waiting\"}", 1.0),
            ("acpd_agent_processes{agent=\"a\"}", 3.0),
            ("acpd_keepers", 3.0),
            ("acpd_runs_started_total{agent=\"a\"}", 3.0),
            ("acpd_turns_started_total", 4.0),
            ("acpd_turns_ended_total{stop_reason=\"end_turn\"}", 1.0),
            ("acpd_turns_ended_total{stop_reason=\"error\"}", 1.0),
            ("acpd_session_commands_waiting", 0.0),
            ("acpd_session_inputs_waiting", 0.0),
            ("acpd_log_queue_bytes", 0.0),
            ("acpd_log_queue_entries", 0.0),
        ],
    )
    .await;

    // A command has a keeper of its own.
    let runs = prompt(&idle, "run sleep 1000").await;
    until_all(&recorder, &[("acpd_terminals_running", 1.0), ("acpd_keepers", 4.0)]).await;
    let cancel = json!({"sessionId": idle.id().as_str()}).to_string();
    let client = acpd_host::ClientRef { name: "e2e".into(), connection: "e2e-1".into() };
    idle.notify("session/cancel".to_owned(), Some(cancel.into()), client).await.unwrap();
    // The command may be killed before the agent has heard of the cancel.
    runs.await.unwrap();
    until_all(&recorder, &[("acpd_terminals_running", 0.0), ("acpd_keepers", 3.0)]).await;

    // Its descendant outlives it, and does not get far.
    assert_eq!(turn(&idle, "fork setsid").await["stopReason"], "end_turn");
    drop(prompt(&idle, "exit 3").await);
    idle.ended().await;
    busy.end(EndRequest::Close, "test".into()).await;
    waiting.end(EndRequest::Terminate, "test".into()).await;
    assert_eq!(hangs.await.unwrap()["stopReason"], "cancelled");
    assert_eq!(asks.await.unwrap()["stopReason"], "cancelled");
    until_all(
        &recorder,
        &[
            ("acpd_sessions{state=\"idle\"}", 0.0),
            ("acpd_sessions{state=\"running\"}", 0.0),
            ("acpd_sessions{state=\"waiting\"}", 0.0),
            ("acpd_agent_processes{agent=\"a\"}", 0.0),
            ("acpd_keepers", 0.0),
            ("acpd_runs_ended_total{cause=\"agent_crash\"}", 1.0),
            ("acpd_runs_ended_total{cause=\"client_close\"}", 1.0),
            ("acpd_runs_ended_total{cause=\"client_terminate\"}", 1.0),
            ("acpd_agent_restarts_total{agent=\"a\"}", 0.0),
        ],
    )
    .await;
    assert!(value(&recorder, "acpd_orphans_killed_total{by=\"keeper\"}") >= 1.0);
    let last = session(&host, &scratch, "a").await;
    until_all(&recorder, &[("acpd_agent_restarts_total{agent=\"a\"}", 1.0)]).await;

    // As many events as the sessions have.
    last.end(EndRequest::Close, "test".into()).await;
    let listed = host.list(acpd_eventlog::ListQuery::default()).await.unwrap();
    let events: u64 = listed.iter().map(|session| session.event_count).sum();
    until_all(&recorder, &[("acpd_events_appended_total", events as f64)]).await;
    assert!(value(&recorder, "acpd_events_appended_bytes_total") > events as f64);
    assert!(value(&recorder, "acpd_log_commit_seconds_count") >= listed.len() as f64);
    let text = recorder.render();
    for described in
        ["# TYPE acpd_sessions gauge", "# TYPE acpd_runs_ended_total counter", "# HELP acpd_keepers "]
    {
        assert!(text.contains(described), "{described}: {text}");
    }
    close(host).await;
}
