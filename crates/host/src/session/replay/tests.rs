//! The replay, by tables and by any way of cutting it.

use super::*;
use acpd_record::EventKind;
use proptest::prelude::*;
use serde_json::json;

fn update(kind: &str, text: &str) -> String {
    json!({"jsonrpc": "2.0", "method": "session/update", "params": {"sessionId": "s",
        "update": {"sessionUpdate": kind, "messageId": "m", "content": {"type": "text", "text": text}}}})
    .to_string()
}

fn call(id: &str) -> String {
    json!({"jsonrpc": "2.0", "method": "session/update", "params": {"sessionId": "s",
        "update": {"sessionUpdate": "tool_call", "toolCallId": id, "title": "look"}}})
    .to_string()
}

/// One word for each update: `u:` the user, `a:` the agent, `t:` a thought, `c:` a tool call.
fn line(word: &str) -> String {
    let (kind, text) = word.split_once(':').expect("a kind and a text");
    let text = text.replace('_', " ");
    match kind {
        "u" => update("user_message_chunk", &text),
        "a" => update("agent_message_chunk", &text),
        "t" => update("agent_thought_chunk", &text),
        "c" => call(&text),
        "x" => update("notice", &text),
        _ => panic!("{word}"),
    }
}

/// A history, read one event at a time.
struct Recorded(std::vec::IntoIter<(u16, String)>);

impl Recorded {
    fn of(words: &str) -> Self {
        let events: Vec<(u16, String)> = words
            .split_whitespace()
            .map(|word| match word.split_once(':') {
                Some(("u", text)) => {
                    let prompt =
                        json!({"turn": 1, "prompt": [{"type": "text", "text": text.replace('_', " ")}]});
                    (EventKind::Prompt.number(), prompt.to_string())
                }
                _ => (EventKind::Update.number(), line(word)),
            })
            .collect();
        Self(events.into_iter())
    }
}

struct Telling {
    replay: Replay,
    recorded: Recorded,
}

impl Telling {
    fn of(history: &str) -> Self {
        Self { replay: Replay::new(), recorded: Recorded::of(history) }
    }

    fn hears(&mut self, line: &str) -> Verdict {
        let said = Said::of_line(line.as_bytes());
        loop {
            match self.replay.judge(&said) {
                Verdict::More => match self.recorded.0.next() {
                    Some((kind, payload)) => {
                        let event = Event::read(kind, payload.as_bytes()).expect("its own shape");
                        self.replay.feed(&event);
                    }
                    None => self.replay.fed(),
                },
                verdict => return verdict,
            }
        }
    }

    /// `|` is the agent's answer, `!` a prompt; gives a letter for each update: r(eplay), n(ews), p(erhaps), N(ews
    /// behind what is a replay then).
    fn judge(&mut self, words: &str) -> String {
        let mut verdicts = String::new();
        for word in words.split_whitespace() {
            match word {
                "|" => self.replay.taken(),
                "!" => self.replay.prompted(),
                word => verdicts.push(match self.hears(&line(word)) {
                    Verdict::Replay => 'r',
                    Verdict::News => 'n',
                    Verdict::AfterReplay => 'N',
                    Verdict::Perhaps => 'p',
                    Verdict::More => panic!("it was given"),
                }),
            }
        }
        verdicts
    }
}

const THREE: &str = "u:one a:1 u:two t:hm a:2 c:c2 a:22 u:three a:3";

// SE-7: what is recorded is not recorded again, wherever the agent's answer and a prompt come
#[test]
fn a_replay_ends_with_the_history_or_with_something_new() {
    for (history, told, verdicts) in [
        // The answer comes last, in the middle, first.
        (THREE, "u:one a:1 u:two t:hm a:2 c:c2 a:22 u:three a:3 | ! a:4", "rrrrrrrrrn"),
        (THREE, "u:one a:1 u:two | t:hm a:2 c:c2 a:22 u:three a:3 ! a:4", "rrrrrrrrrn"),
        (THREE, "| u:one a:1 u:two t:hm a:2 c:c2 a:22 u:three a:3 a:4", "rrrrrrrrrn"),
        // A prompt in the middle: its answer is new, even if it begins like an old one.
        (THREE, "| u:one a:1 ! u:two t:hm a:2 c:c2 a:22 u:three a:3 a:4", "rrrpprprrn"),
        (THREE, "u:one a:1 u:two | ! t:hm a:2 c:c2 a:22 u:three a:3 a:4", "rrrpprprrn"),
        (THREE, "u:one | a:1 ! a:4 u:two", "rrnn"),
        (THREE, "u:one | a:1 ! u:new a:4 u:two", "rrpnn"),
        // Something new ends it, and what comes then is new.
        (THREE, "| u:one a:1 a:new u:two", "rrnn"),
        (THREE, "| a:Welcome u:one", "nn"),
        (THREE, "u:one a:1 | c:c9 u:two", "rrnn"),
        // No replay at all: the same words again are new.
        (THREE, "| ! a:1 u:one", "nn"),
        (THREE, "| ! u:new a:1", "nn"),
        // Nor with ids of tool calls that begin anew with the process.
        (THREE, "| ! c:c2 a:4", "nn"),
        (THREE, "u:one a:1 u:two t:hm a:2 c:c2 a:22 u:three a:3 | ! c:c2 a:4", "rrrrrrrrrnn"),
        // One that begins behind a prompt. Echoes of the prompt do not get here.
        (THREE, "| ! u:one a:1 u:two t:hm a:2 c:c2 a:22 u:three a:3 a:4", "rprpprprrn"),
        (THREE, "| ! u:one a:1 a:4", "rpN"),
        (THREE, "| u:one a:1 ! u:two a:2 u:[Response:_look] a:22 u:three a:3 a:4", "rrrppprrn"),
        // One that ends with a turn that is not the last, and a prompt in this turn.
        (THREE, "| u:one ! a:1 a:4", "rpN"),
        (THREE, "u:one a:1 | u:two ! t:hm a:2 c:c2 a:22 a:4", "rrrpprpN"),
        ("u:one a:12 u:two a:3", "| u:one ! a:1 a:2 a:4", "rppN"),
        ("u:one a:12 u:two a:3", "| u:one a:1 ! a:2 a:4", "rrpN"),
        // Not to the end of the turn, and in no turn for certain.
        ("u:one a:12 u:two a:3", "| u:one ! a:1 a:4", "rpn"),
        (THREE, "| u:one a:1 ! u:[Two] a:222 a:4", "rrppn"),
        (THREE, "| u:one ! a:1 u:[Two] a:4", "rppn"),
        (THREE, "| a:1 ! a:2 a:22 a:4", "rppn"),
        // Text behind a replay that came in time is none, however much of a turn it tells.
        ("u:one a:1 u:two a:2", "u:one | ! a:1 a:4", "rpn"),
        // A replay that came in time, and the same words again.
        (THREE, "u:one a:1 u:two t:hm a:2 c:c2 a:22 u:three a:3 | ! u:three a:3", "rrrrrrrrrnn"),
        // One that lacks a turn that failed, whose words are said again.
        ("u:one a:1 u:two a:Hello_y", "u:one a:1 | ! a:Hello a:_you", "rrnn"),
        // One that has its prompt only: how it began is not known before it goes on.
        ("u:one a:1 u:two a:Hello_y", "u:one a:1 u:two | ! a:Hello a:_you", "rrrpn"),
        // Cut anew, put together, with other white space.
        (THREE, "| u:o u:ne a:1_ u:two t:h t:m c:c2 c:c2 a:222 u:th u:ree a:3", "rrrrrrrrrrrr"),
        ("u:one a:a a:b a:c u:two a:d", "| u:one a:ab a:c u:two a:d", "rrrrr"),
        // In another order within a turn; thoughts left out, and tool calls.
        ("u:one t:x a:1 t:y a:2 u:two a:3", "| u:one a:12 t:xy u:two a:3", "rrrrr"),
        (THREE, "| u:one a:1 u:two a:222 u:three a:3 ! t:hm a:4", "rrrrrrnn"),
        // No word of the user, and turns left out.
        (THREE, "| a:1 t:hm a:2 a:22 a:3 a:4", "rrrrrn"),
        (THREE, "| u:one a:1 u:three a:3 a:4", "rrrrn"),
        // Results of tools as the user's words, and a prompt that is told otherwise.
        (THREE, "u:one | a:1 u:two a:2 u:[Response:_look] a:22 u:three a:3", "rrrrrrrr"),
        (THREE, "u:<context> a:1 | u:[Two] a:222 u:three a:3", "rrrrrr"),
        (THREE, "u:one a:1 | u:[Two] a:222 u:three a:3 a:4", "rrrrrrn"),
        // The user's words without a replay are new, and no reason not to know one that begins then.
        (THREE, "| u:[Notice] u:one a:1", "nrr"),
        (THREE, "u:one a:1 u:two t:hm a:2 c:c2 a:22 u:three a:3 | u:[Notice]", "rrrrrrrrrn"),
        // Before the answer nothing is new, whatever it looks like.
        (THREE, "a:9 u:8 c:7 u:two a:2 | a:22 u:three a:3 a:4", "rrrrrrrrn"),
        // What is no part of the conversation is beside it.
        (THREE, "| u:one x:look a:1 u:two", "rnrr"),
        ("", "| a:hello", "n"),
    ] {
        assert_eq!(Telling::of(history).judge(told), verdicts, "{told}");
    }
}

// SE-7: pictures and plans are compared as a whole
#[test]
fn what_is_no_text_is_told_again_too() {
    let picture = |kind: &str, data: &str| {
        json!({"jsonrpc": "2.0", "method": "session/update", "params": {"sessionId": "s", "update": {
            "sessionUpdate": kind, "content": {"type": "image", "mimeType": "image/png", "data": data}}}})
        .to_string()
    };
    let plan = |entry: &str| {
        json!({"jsonrpc": "2.0", "method": "session/update", "params": {"sessionId": "s", "update": {
            "sessionUpdate": "plan", "entries": [{"content": entry}]}}})
        .to_string()
    };
    let mut telling = Telling::of("u:one");
    let recorded = [picture("agent_message_chunk", "aa"), plan("first"), plan("last")];
    let events = recorded.iter().map(|line| (EventKind::Update.number(), line.clone()));
    let events: Vec<_> = Recorded::of("u:one").0.chain(events).chain(Recorded::of("u:two a:2").0).collect();
    telling.recorded = Recorded(events.into_iter());
    assert_eq!(telling.judge("| u:one"), "r");
    assert_eq!(telling.hears(&plan("last")), Verdict::Replay);
    assert_eq!(telling.hears(&plan("other")), Verdict::News, "a plan is told as it is now");
    assert_eq!(telling.hears(&picture("agent_message_chunk", "aa")), Verdict::Replay);
    assert_eq!(
        telling.hears(&picture("user_message_chunk", "aa")),
        Verdict::Replay,
        "before the first prompt"
    );
    assert_eq!(telling.judge("u:two a:2"), "rr");
    assert_eq!(telling.hears(&picture("agent_message_chunk", "bb")), Verdict::News);
}

// SE-7: a long history is followed, and little of it is held, also when the agent leaves out most
#[test]
fn little_of_a_long_history_is_held() {
    let words = "w".repeat(40_000);
    for with_thoughts in [true, false] {
        let mut history = String::new();
        for turn in 0..50 {
            history.push_str(&format!("u:turn{turn} t:{words} t:{words} a:{words}{turn} "));
        }
        let mut telling = Telling::of(&history);
        telling.replay.taken();
        for turn in 0..50 {
            let mut told = format!("u:turn{turn} ");
            if with_thoughts {
                told.push_str(&format!("t:{words}{words} "));
            }
            told.push_str(&format!("a:{words} a:{turn}"));
            assert!(telling.judge(&told).chars().all(|verdict| verdict == 'r'), "{turn}");
            assert!(
                telling.replay.window.bytes <= WINDOW + 4 * words.len(),
                "{}",
                telling.replay.window.bytes
            );
        }
        assert_eq!(telling.judge("a:new"), "n");
        assert!(telling.replay.is_over() && telling.replay.window.items.is_empty());
    }
}

// SE-7: one turn that is longer than what is held
#[test]
fn a_turn_may_be_longer_than_the_window() {
    let words = "w".repeat(25_000);
    let thoughts: String = (0..60).map(|_| format!("t:{words} c:call ")).collect();
    let mut telling = Telling::of(&format!("u:one {thoughts}a:1 u:two a:2"));
    assert_eq!(telling.judge("| u:one a:1 u:two a:2 a:3"), "rrrrn");
    let chunks: String = (0..60).map(|_| format!("a:{words} ")).collect();
    let mut telling = Telling::of(&format!("u:one {chunks}u:two a:2"));
    assert_eq!(telling.judge(&format!("| u:one a:{} u:two a:2 a:3", words.repeat(60))), "rrrrn");
}

fn word() -> impl Strategy<Value = String> {
    "[a-c]{1,4}"
}

/// A conversation: turns of a user's text and what was said then.
fn turns() -> impl Strategy<Value = Vec<(String, Vec<String>)>> {
    let said = prop_oneof![
        4 => word().prop_map(|text| format!("a:{text}")),
        2 => word().prop_map(|text| format!("t:{text}")),
        1 => any::<u32>().prop_map(|id| format!("c:call{id}")),
    ];
    proptest::collection::vec((word(), proptest::collection::vec(said, 0..6)), 1..6)
}

fn flat(turns: &[(String, Vec<String>)]) -> Vec<String> {
    let turn = |(user, said): &(String, Vec<String>)| {
        std::iter::once(format!("u:{user}")).chain(said.iter().cloned()).collect::<Vec<_>>()
    };
    turns.iter().flat_map(turn).collect()
}

/// The same words in other pieces.
fn cut(word: &str, at: usize) -> Vec<String> {
    let (kind, text) = word.split_once(':').expect("a kind and a text");
    match text.len() > 1 && kind != "c" {
        true => {
            let (head, tail) = text.split_at(1 + at % (text.len() - 1));
            vec![format!("{kind}:{head}"), format!("{kind}:{tail}")]
        }
        false => vec![word.to_owned()],
    }
}

proptest! {
    // SE-7: cut in any way, and with the answer at any place, a whole replay is known as one, and what follows it is
    // news, whatever it says
    #[test]
    fn a_whole_replay_is_known(
        turns in turns(),
        cuts in proptest::collection::vec(0usize..8, 64),
        answer in 0usize..64,
        next in prop_oneof![word().prop_map(|text| format!("a:{text}")), word().prop_map(|text| format!("u:{text}"))],
    ) {
        let history = flat(&turns);
        let mut told: Vec<String> =
            history.iter().zip(cuts.iter().cycle()).flat_map(|(word, at)| cut(word, *at)).collect();
        let count = told.len();
        told.insert(answer.min(count), "|".to_owned());
        let mut telling = Telling::of(&history.join(" "));
        prop_assert_eq!(telling.judge(&told.join(" ")), "r".repeat(count));
        prop_assert_eq!(telling.judge(&next), "n");
    }

    // SE-7: whatever the agent says behind its answer, what was never recorded is not taken for a replay, but for the
    // user's words before a prompt
    #[test]
    fn what_was_never_recorded_is_news(
        turns in turns(),
        told in proptest::collection::vec(prop_oneof![
            Just("!".to_owned()),
            word().prop_map(|text| format!("a:{text}")),
            word().prop_map(|text| format!("u:{text}")),
            word().prop_map(|text| format!("a:NEW{text}")),
            word().prop_map(|text| format!("t:NEW{text}")),
            Just("c:NEW".to_owned()),
        ], 0..20),
        before in 0usize..20,
    ) {
        let history = flat(&turns);
        let mut telling = Telling::of(&history.join(" "));
        let count = before.min(history.len());
        telling.judge(&history[..count].join(" "));
        telling.replay.taken();
        for word in told {
            let verdict = telling.judge(&word);
            if word.contains("NEW") {
                prop_assert!(verdict.eq_ignore_ascii_case("n"), "{}", word);
                prop_assert!(telling.replay.is_over());
            }
        }
    }
}
