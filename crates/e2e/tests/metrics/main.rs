//! What a host counts, as Prometheus reads it. Alone in its process, which a recorder is for.

#[path = "../facts/hosted.rs"]
mod hosted;

use acpd_e2e::Scratch;
use acpd_gateway::Measurements;
use acpd_host::{EndRequest, SessionHandle};
use hosted::{close, example, open, prompt, session, turn, until};
use serde_json::json;

/// The value of a series as it stands in the text, 0 if it is not there.
fn value(recorder: &Measurements, series: &str) -> f64 {
    let text = recorder.text();
    let line = text.lines().find_map(|line| line.strip_prefix(series)?.strip_prefix(' '));
    line.map_or(0.0, |value| value.parse().expect("values are numbers"))
}

fn all(recorder: &Measurements, wanted: &[(&str, f64)]) -> bool {
    wanted.iter().all(|(series, wanted)| value(recorder, series) == *wanted)
}

async fn until_all(recorder: &Measurements, wanted: &[(&str, f64)]) {
    let began = tokio::time::Instant::now();
    until("the counts are right", async || {
        let off: Vec<_> = wanted.iter().filter(|one| !all(recorder, &[**one])).collect();
        assert!(off.is_empty() || began.elapsed() < acpd_e2e::PATIENCE / 2, "{off:?}: {}", recorder.text());
        off.is_empty().then_some(())
    })
    .await;
}

/// A series that stands there, with a value.
fn has_series(recorder: &Measurements, series: &str, value: &str) {
    let text = recorder.text();
    assert!(text.lines().any(|line| line == format!("{series} {value}")), "{series} {value}: {text}");
}

// contract 7.3: what agents tell counts once, by what they call it, as long as that is one of few
async fn what_is_used_is_counted(recorder: &Measurements, session: &SessionHandle) {
    for kind in ["input", "output", "thought", "cachedRead", "cachedWrite", "total"] {
        has_series(recorder, &format!("acpd_tokens_total{{agent=\"a\",kind=\"{kind}\"}}"), "0");
    }
    let told = "usage 1 2 0.1 USD\nusage 1 2 0.3 USD\nturn-usage input 5 cachedRead 2 odd 3";
    assert_eq!(turn(session, told).await["stopReason"], "end_turn");
    turn(session, "usage 1 2 0.35 USD\nturn-usage input 1").await;
    for (series, value) in [
        ("acpd_tokens_total{agent=\"a\",kind=\"input\"}", "6"),
        ("acpd_tokens_total{agent=\"a\",kind=\"cachedRead\"}", "2"),
        ("acpd_tokens_total{agent=\"a\",kind=\"other\"}", "3"),
        ("acpd_cost_total{agent=\"a\",currency=\"USD\"}", "0.35"),
    ] {
        has_series(recorder, series, value);
    }
}

/// Before anything has happened every series whose labels are known is there, in the order of the names.
fn begins_at_nothing(recorder: &Measurements) {
    let causes = [
        "agent_exit",
        "agent_crash",
        "spawn_failed",
        "initialize_timeout",
        "protocol_error",
        "client_close",
        "client_terminate",
        "idle_timeout",
        "daemon_shutdown",
        "daemon_lost",
        "daemon_upgrade",
        "fenced",
        "superseded",
        "out_of_memory",
        "acpd_failed",
    ];
    for cause in causes {
        has_series(recorder, &format!("acpd_runs_ended_total{{cause=\"{cause}\"}}"), "0");
    }
    for by in ["keeper", "sweep"] {
        has_series(recorder, &format!("acpd_orphans_killed_total{{by=\"{by}\"}}"), "0");
    }
    for reason in ["end_turn", "max_tokens", "max_turn_requests", "refusal", "cancelled", "other", "error"] {
        has_series(recorder, &format!("acpd_turns_ended_total{{stop_reason=\"{reason}\"}}"), "0");
    }
    for transport in ["sse", "acp_sse", "websocket"] {
        has_series(recorder, &format!("acpd_viewers{{transport=\"{transport}\"}}"), "0");
        has_series(recorder, &format!("acpd_viewer_stalls_total{{transport=\"{transport}\"}}"), "0");
    }
    for state in ["starting", "idle", "running", "waiting"] {
        has_series(recorder, &format!("acpd_sessions{{state=\"{state}\"}}"), "0");
    }
    for single in [
        "log_commit_failures_total",
        "log_commit_seconds_count",
        "events_appended_total",
        "keepers",
        "terminals_running",
        "turns_started_total",
        "turn_seconds_count",
        "tokens_refused_total",
        "http_request_seconds_count",
        "waiting_since_timestamp_seconds",
        "open_questions",
        "ready",
    ] {
        has_series(recorder, &format!("acpd_{single}"), "0");
    }
    has_series(recorder, "acpd_http_requests_total{status=\"500\"}", "0");
    has_series(recorder, &format!("acpd_build_info{{version=\"{}\"}}", env!("CARGO_PKG_VERSION")), "1");
    assert!(value(recorder, "process_resident_memory_bytes") > 1e6);
    let (open, most) = (value(recorder, "process_open_fds"), value(recorder, "process_max_fds"));
    assert!(open >= 3.0 && open < most, "{open} of {most}");
    let text = recorder.text();
    let families: Vec<&str> = text.lines().filter_map(|line| line.strip_prefix("# TYPE ")).collect();
    assert!(families.is_sorted() && families.len() > 20, "{families:?}");
    for family in families {
        let name = family.split(' ').next().expect("there is a name");
        assert!(text.contains(&format!("# HELP {name} ")), "{name} is described");
    }
}

// issue 5, deliver 5; contract 6: an increase is seen from the first failure on, and two answers are alike; sessions by state, runs, exits by cause, restarts, turns, queue depths, event rates, commit
// latency, orphans killed, process and keeper counts
#[tokio::test]
async fn what_happens_is_counted() {
    let recorder = Measurements::listen().expect("there is no other");
    begins_at_nothing(&recorder);
    let scratch = Scratch::new();
    let mut spec = example(&scratch, "a");
    spec.permission_mode = acpd_host::PermissionMode::Default;
    let host = open(&scratch, [spec]).await;
    let of_agent =
        ["runs_started_total", "agent_restarts_total", "agent_processes", "agent_start_seconds_count"];
    for family in of_agent {
        has_series(&recorder, &format!("acpd_{family}{{agent=\"a\"}}"), "0");
    }
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
            ("acpd_turn_seconds_count", 2.0),
            ("acpd_agent_start_seconds_count{agent=\"a\"}", 3.0),
            ("acpd_turns_ended_total{stop_reason=\"end_turn\"}", 1.0),
            ("acpd_turns_ended_total{stop_reason=\"error\"}", 1.0),
            ("acpd_session_commands_waiting", 0.0),
            ("acpd_session_inputs_waiting", 0.0),
            ("acpd_open_questions", 1.0),
            ("acpd_log_queue_bytes", 0.0),
            ("acpd_log_queue_entries", 0.0),
        ],
    )
    .await;

    what_is_used_is_counted(&recorder, &idle).await;

    let since = value(&recorder, "acpd_waiting_since_timestamp_seconds");
    let began = value(&recorder, "process_start_time_seconds");
    assert!(began > 1.6e9 && since >= began, "{since} is after the start, {began}");
    assert!(value(&recorder, "acpd_agent_start_seconds_sum{agent=\"a\"}") > 0.0);

    // A command has a keeper of its own.
    let runs = prompt(&idle, "run sleep 1000").await;
    until_all(&recorder, &[("acpd_terminals_running", 1.0), ("acpd_keepers", 4.0)]).await;
    let cancel = json!({"sessionId": idle.id().as_str()}).to_string();
    let client = acpd_host::ClientRef { name: "e2e".into(), connection: "e2e-1".into() };
    idle.notify("session/cancel".to_owned(), Some(cancel.into()), client).await;
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
            ("acpd_waiting_since_timestamp_seconds", 0.0),
            ("acpd_open_questions", 0.0),
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
    let events: u64 = listed.iter().map(|summary| summary.session.history.event_count).sum();
    until_all(&recorder, &[("acpd_events_appended_total", events as f64)]).await;
    assert!(value(&recorder, "acpd_events_appended_bytes_total") > events as f64);
    assert!(value(&recorder, "acpd_log_commit_seconds_count") >= listed.len() as f64);
    let text = recorder.text();
    for described in
        ["# TYPE acpd_sessions gauge", "# TYPE acpd_runs_ended_total counter", "# HELP acpd_keepers "]
    {
        assert!(text.contains(described), "{described}: {text}");
    }
    close(host).await;
}
