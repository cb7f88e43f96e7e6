//! `session/load` and `session/resume` of live sessions and of ended ones.

use crate::asking::{DETACH, answer_place, close, ends_of, entry, meta, take_part, taking, updates};
use acpd_e2e::{Client, Message, Scratch, acpd};
use rustix::process::Signal;
use serde_json::{Value, json};

const LOAD: &str = "session/load";
const RESUME: &str = "session/resume";

/// Something of everything, with message ids.
const RICH: &str =
    "think first\nplan a,b\ntool look\nsome words\ncommands x,y\nusage 5 10\ntitle A name\nmode plan";

fn is_user_message(line: &str) -> bool {
    line.contains("\"user_message_chunk\"")
}

// SE-4, UP-4, PR-3: the whole history in order, each update byte for byte as it was live, message ids too; the user's
// own words once; then the answer, and nothing of the past behind it
#[test]
fn load_replays_the_whole_history() {
    let scratch = Scratch::new();
    let (mut client, session) = scratch.session("example");
    for text in [RICH, "stream 300\nmore words"] {
        assert_eq!(client.turn(&session, text), "end_turn");
    }
    let live: Vec<String> = updates(client.received(), &session).into_iter().map(str::to_owned).collect();
    assert!(live.iter().all(|line| !is_user_message(line)), "the prompter knows what it said");
    let check = |client: &mut Client| {
        let asked = client.request(LOAD, &taking(&scratch, &session));
        let result = client.result(&asked);
        assert!(result.is_object());
        let place = answer_place(client, &asked);
        let replayed = updates(&client.since(&asked)[..place], &session);
        let (said, seen): (Vec<&str>, Vec<&str>) = replayed.iter().partition(|line| is_user_message(line));
        assert_eq!(seen, live);
        assert_eq!(said.len(), 2, "{said:#?}");
        // Each before what it led to.
        assert!(is_user_message(replayed[0]) && replayed[0].contains("think first"));
        let second = replayed.iter().rposition(|line| is_user_message(line)).unwrap();
        assert!(replayed[second + 1].contains("00000000 "), "{}", replayed[second + 1]);
        client.call("session/list", &json!({}));
        let behind = updates(&client.since(&asked)[place..], &session);
        assert!(behind.is_empty(), "{behind:#?}");
    };
    // Live, again, ended, and from another process.
    check(&mut client);
    check(&mut client);
    close(&mut client, &session);
    check(&mut client);
    client.finish();
    let mut later = scratch.stdio("example");
    later.initialize();
    check(&mut later);
    later.finish();
}

/// The chunk numbers of a stream, in order of arrival.
fn numbers<'a>(messages: impl IntoIterator<Item = &'a Message>) -> Vec<u64> {
    let texts = messages.into_iter().filter_map(Message::text);
    texts.filter_map(|text| text.split(' ').next()?.parse().ok()).collect()
}

// SE-5: a load in the middle of a turn, of a session that streams: no gap, no duplicate, before or behind the answer
#[test]
fn a_load_in_a_turn_loses_and_doubles_nothing() {
    let scratch = Scratch::new();
    let (mut client, session) = scratch.session("example");
    let prompt = client.prompt(&session, "stream 20000");
    let mut loads = Vec::new();
    for _ in 0..4 {
        (0..700).for_each(|_| drop(client.next_message().expect("there is more")));
        loads.push(client.request(LOAD, &taking(&scratch, &session)));
    }
    assert_eq!(client.result(&prompt)["stopReason"], "end_turn");
    loads.iter().for_each(|load| drop(client.result(load)));
    let answers: Vec<usize> = loads.iter().map(|load| answer_place(&mut client, load)).collect();
    let all = client.since(&prompt);
    // Each replay begins with the user's message, and runs without a hole from the beginning on.
    let starts = all.iter().enumerate().filter(|(_, m)| m.update_kind() == Some("user_message_chunk"));
    let starts: Vec<usize> = starts.map(|(at, _)| at).collect();
    for part in [0].iter().chain(&starts).zip(starts.iter().chain([&all.len()])) {
        let numbers = numbers(&all[*part.0..*part.1]);
        assert!(numbers.iter().copied().eq(0..numbers.len() as u64), "{part:?}");
    }
    assert_eq!(numbers(&all[starts[starts.len() - 1]..]).len(), 20_000);
    for (load, answer) in loads.iter().zip(answers) {
        let before = &client.since(load)[..answer];
        assert!(
            before.iter().any(|m| m.update_kind() == Some("user_message_chunk")),
            "the replay comes first"
        );
    }
    client.finish();
}

// SE-5, SE-8: a resume in the middle of a turn changes nothing in what is seen
#[test]
fn a_resume_in_a_turn_changes_nothing() {
    let scratch = Scratch::new();
    let (mut client, session) = scratch.session("example");
    let prompt = client.prompt(&session, "stream 20000");
    for _ in 0..4 {
        (0..700).for_each(|_| drop(client.next_message().expect("there is more")));
        client.request(RESUME, &taking(&scratch, &session));
    }
    assert_eq!(client.result(&prompt)["stopReason"], "end_turn");
    let seen = numbers(client.since(&prompt));
    let gap = seen.iter().zip(0..).find(|(seen, expected)| **seen != *expected);
    assert_eq!((gap, seen.len()), (None, 20_000));
    assert!(client.received().iter().all(|m| m.update_kind() != Some("user_message_chunk")));
    assert_eq!(client.turn(&session, "hello"), "end_turn");
    client.finish();
    assert_eq!(ends_of(&client, &session), 1);
}

// contract 1, SE-5: who leaves in a turn and comes back in the next frame, again and again, sees what a first-time
// viewer sees, and the answer to its prompt behind all of it
#[test]
fn leaving_and_coming_back_at_once_loses_nothing() {
    for method in [LOAD, RESUME] {
        let scratch = Scratch::new();
        let (mut client, session) = scratch.session("example");
        let prompt = client.prompt(&session, "stream 20000");
        let mut back = Vec::new();
        for _ in 0..4 {
            (0..700).for_each(|_| drop(client.next_message().expect("there is more")));
            let left = client.request(DETACH, &json!({"sessionId": session}));
            back.push((left, client.request(method, &taking(&scratch, &session))));
        }
        assert_eq!(client.result(&prompt)["stopReason"], "end_turn");
        for (left, back) in &back {
            assert_eq!(client.result(left), json!({}));
            client.result(back);
        }
        let last = &back[back.len() - 1].1;
        let [answered, returned] = [&prompt, last].map(|asked| client.answer(asked).raw);
        let all = client.since(&prompt);
        let place = |raw: &str| all.iter().position(|m| m.raw == raw).expect("it came");
        let (answered, returned) = (place(&answered), place(&returned));
        let start = all.iter().rposition(|m| m.update_kind() == Some("user_message_chunk"));
        let seen = numbers(&all[start.unwrap_or(returned)..]);
        // A resume that comes after the last of it sees none of it.
        assert!([None, Some(&19_999)].contains(&seen.last()), "{method}");
        assert!(seen.windows(2).all(|pair| pair[1] == pair[0] + 1), "{method}: a gap or a duplicate");
        assert_eq!(start.is_some(), method == LOAD);
        if method == LOAD {
            assert_eq!(seen.len(), 20_000);
        }
        assert!(numbers(&all[answered..]).is_empty() || answered < returned, "{method}: the answer overtook");
        let asked = client.prompt(&session, "here again");
        client.result(&asked);
        assert_eq!(client.text_since(&asked, &session), "here again");
        client.finish();
    }
}

// SE-10: however often, a live session has one process
#[test]
fn a_live_session_has_one_process() {
    let scratch = Scratch::new();
    let (mut client, session) = scratch.session("example");
    let pid = scratch.mark().running("example-agent")[0].pid;
    let many: Vec<_> = (0..10)
        .map(|n| client.request(if n % 2 == 0 { LOAD } else { RESUME }, &taking(&scratch, &session)))
        .collect();
    many.iter().for_each(|asked| drop(client.result(asked)));
    let agents = scratch.mark().running("example-agent");
    assert_eq!((agents.len(), agents[0].pid), (1, pid));
    // Nor when an ended one is taken up by many at once.
    close(&mut client, &session);
    let many: Vec<_> = (0..6)
        .map(|n| client.request(if n % 2 == 0 { LOAD } else { RESUME }, &taking(&scratch, &session)))
        .collect();
    many.iter().for_each(|asked| drop(client.result(asked)));
    assert_eq!(client.turn(&session, "hello"), "end_turn");
    assert_eq!(meta(&entry(&mut client, &session))["ended"], false);
    client.finish();
    assert_eq!(ends_of(&client, &session), 2);
}

// SE-6: without the agent's program there is still the history
#[test]
fn the_history_does_not_need_the_agent() {
    let scratch = Scratch::new();
    let program = scratch.path("agent.sh");
    std::os::unix::fs::symlink(acpd(), &program).unwrap();
    let scratch = scratch.agent("fleeting", &program, &["example-agent".to_owned()]);
    let (mut client, session) = scratch.session("fleeting");
    assert_eq!(client.turn(&session, "words to keep"), "end_turn");
    close(&mut client, &session);
    std::fs::remove_file(&program).unwrap();
    for _ in 0..2 {
        let (result, replayed) = take_part(&mut client, &scratch, LOAD, &session);
        assert_eq!((replayed.len(), &meta(&result)["resumable"]), (4, &json!(false)));
        let reason = meta(&result)["reason"].as_str().unwrap();
        assert!(reason.contains("did not start"), "{reason}");
    }
    let error = client.refused(RESUME, &taking(&scratch, &session));
    assert_eq!(error["data"]["terminationInfo"]["cause"], "spawn_failed", "{error}");
    let asked = client.prompt(&session, "hello");
    assert!(client.answer(&asked).json.get("error").is_some());
    client.finish();
}

// UP-5: after SIGKILL the next acpd replays all that any client had seen
#[test]
fn the_history_survives_a_kill() {
    let scratch = Scratch::new();
    let (mut client, session) = scratch.session("example");
    client.prompt(&session, "tool look\nstream 3000000 100");
    (0..2_000).for_each(|_| drop(client.next_message().expect("there is more")));
    client.signal(Signal::KILL);
    client.ended();
    let seen = updates(client.received(), &session);
    let mut later = scratch.stdio("example");
    later.initialize();
    let asked = later.request(LOAD, &taking(&scratch, &session));
    let result = later.result(&asked);
    let place = answer_place(&mut later, &asked);
    let replayed = updates(&later.since(&asked)[..place], &session);
    assert!(is_user_message(replayed[0]));
    assert!(replayed.len() > seen.len());
    assert_eq!(replayed[1..=seen.len()], seen[..]);
    // It was taken up again.
    assert_eq!(meta(&result).get("resumable"), None);
    assert_eq!(later.turn(&session, "hello"), "end_turn");
    later.finish();
}

// SE-4, FR-10: what is wrong with a request is said as for `session/new`
#[test]
fn bad_parameters_are_named() {
    let scratch = Scratch::new();
    let (mut client, session) = scratch.session("example");
    close(&mut client, &session);
    for method in [LOAD, RESUME] {
        for (params, begin) in [
            (json!({"sessionId": session, "cwd": "work", "mcpServers": []}), "cwd: "),
            (json!({"sessionId": session, "mcpServers": []}), "cwd: "),
            (json!({"sessionId": session, "cwd": scratch.work(), "mcpServers": 5}), "mcpServers: "),
            (json!({"sessionId": 5, "cwd": scratch.work(), "mcpServers": []}), "sessionId: "),
        ] {
            let error: Value = client.refused(method, &params);
            assert_eq!(error["code"], -32602, "{error}");
            assert!(error["message"].as_str().unwrap().starts_with(begin), "{error}");
        }
    }
    take_part(&mut client, &scratch, RESUME, &session);
    client.finish();
}
