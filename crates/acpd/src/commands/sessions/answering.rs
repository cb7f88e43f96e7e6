//! `acpd sessions answer`: what the agent of a session asks, and the answer to it.

use super::screen_of_stdout;
use crate::clean::line;
use crate::cli::Answer;
use crate::daemon::{Session, need_daemon_to_change};
use crate::exit::Failure;
use crate::form::Form;
use crate::nearest::unlisted;
use crate::streams::{print, print_json, remark};
use crate::view::{Question, Screen, date_and_time, question_lines, short_id};
use serde::Deserialize;
use serde_json::{Value, json};
use std::path::Path;
use unicode_width::UnicodeWidthStr;

/// A question that is open.
#[derive(Deserialize)]
struct Open {
    /// The number of the event that asks it.
    request: u64,
    /// The request of the agent.
    message: Value,
}

/// What the person says to it.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Given {
    Option(String),
    Fields(Vec<(String, String)>),
    Allow,
    Decline,
}

impl Given {
    /// None when it is only looked at.
    fn of(answer: &Answer) -> Option<Self> {
        match &answer.option {
            Some(option) => Some(Self::Option(option.clone())),
            None if answer.allow => Some(Self::Allow),
            None if answer.decline => Some(Self::Decline),
            None => (!answer.fields.is_empty()).then(|| Self::Fields(answer.fields.clone())),
        }
    }
}

pub(super) async fn answer(args: Answer) -> Result<(), Failure> {
    let given = Given::of(&args);
    let daemon = need_daemon_to_change(args.one.which).await?;
    let session = daemon.session(&args.one.id).await?;
    if let Some(away) = away(&session) {
        return Err(Failure::Failed(format!(
            "what its agent asks is not known, and cannot be answered: {away}"
        )));
    }
    let open = open_questions(&session);
    let Some(given) = given else {
        let chosen = open.iter().filter(|open| args.question.is_none_or(|number| open.request == number));
        return show(&chosen.collect::<Vec<_>>(), &session, args.one.json);
    };
    let open = chosen(&open, args.question).map_err(|why| match args.question {
        // One that is closed is no wrong use.
        Some(_) => Failure::Failed(why),
        None if open.is_empty() => Failure::Failed(why),
        None => Failure::Usage(why),
    })?;
    let outcome = open.outcome(&given).map_err(Failure::Usage)?;
    let body = json!({"question": open.request, "outcome": outcome});
    daemon.answer_question(&session.session_id, &body).await?;
    if args.one.json {
        return print_json(&body.to_string()).map(drop);
    }
    print(&format!("question {} is answered", open.request)).map(drop)
}

/// That the node of a session cannot be reached, so that all that is known of it is what that said last.
fn away(session: &Session) -> Option<String> {
    let (node, since) = (session.node.as_deref()?, date_and_time(session.unreachable_since?));
    Some(format!("node {}, which has the session, cannot be reached since {since} UTC", line(node, 64)))
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Whole {
    snapshot: Snapshot,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Snapshot {
    open_permission_requests: Vec<Open>,
    open_elicitations: Vec<Open>,
    open_tool_calls: Vec<Value>,
}

fn snapshot(session: &Session) -> Snapshot {
    let whole = session.raw.as_deref().and_then(|raw| acpd_wire::read(raw.get().as_bytes()).ok());
    whole.map(|whole: Whole| whole.snapshot).unwrap_or_default()
}

/// The tool calls that have not finished, each as it is after its updates.
fn open_calls(session: &Session) -> Vec<Value> {
    snapshot(session).open_tool_calls
}

fn open_questions(session: &Session) -> Vec<Open> {
    let Snapshot { open_permission_requests: mut open, open_elicitations, .. } = snapshot(session);
    open.extend(open_elicitations);
    open.sort_unstable_by_key(|open| open.request);
    open
}

/// The question that is meant.
fn chosen(open: &[Open], number: Option<u64>) -> Result<&Open, String> {
    match (number, open) {
        (Some(number), open) => open.iter().find(|open| open.request == number).ok_or_else(|| {
            let numbers: Vec<String> = open.iter().map(|open| open.request.to_string()).collect();
            let open = if numbers.is_empty() { "none".to_owned() } else { numbers.join(", ") };
            format!("question {number} is not open: it was answered, or never asked; open: {open}")
        }),
        (None, []) => Err("the session asks nothing".to_owned()),
        (None, [only]) => Ok(only),
        (None, several) => {
            let numbers: Vec<String> = several.iter().map(|open| open.request.to_string()).collect();
            Err(format!("several questions are open; say which with --question: {}", numbers.join(", ")))
        }
    }
}

impl Open {
    fn permission(&self) -> Option<Question> {
        Question::read(self.message["params"].to_string().as_bytes())
    }

    fn form(&self) -> Form {
        Form::read(&self.message["params"]["requestedSchema"])
    }

    /// The outcome that an answer comes to, as ACP has it.
    fn outcome(&self, given: &Given) -> Result<Value, String> {
        let permission = self.permission();
        match (permission, given) {
            (Some(question), Given::Decline) => Ok(match question.rejection() {
                Some(choice) => json!({"outcome": "selected", "optionId": choice.id}),
                None => json!({"outcome": "cancelled"}),
            }),
            (Some(question), Given::Option(_) | Given::Allow) => {
                let said = if let Given::Option(said) = given { said } else { "allow" };
                let options = question.options();
                let Some(choice) = question.meant(said) else {
                    let words = options.iter().flat_map(|choice| [choice.id.as_str(), choice.name.as_str()]);
                    let shown =
                        options.iter().map(|choice| format!("{} ({})", line(&choice.id, 60), choice.name));
                    let none = format!("the question has no option {}, or several", line(said, 60));
                    return Err(unlisted(&none, said, words, shown));
                };
                Ok(json!({"outcome": "selected", "optionId": choice.id}))
            }
            (Some(_), Given::Fields(_)) => {
                Err("--field: a permission is asked for; name one of its options".to_owned())
            }
            (None, Given::Decline) => Ok(json!({"action": "decline"})),
            (None, Given::Fields(fields)) => {
                let content = self.form().content(fields).map_err(|why| format!("--field: {why}"))?;
                Ok(json!({"action": "accept", "content": content}))
            }
            (None, Given::Allow) => self.outcome(&Given::Option("accept".to_owned())),
            (None, Given::Option(said)) => match said.to_ascii_lowercase().as_str() {
                "y" | "yes" | "allow" => self.outcome(&Given::Allow),
                "n" | "no" | "deny" => Ok(json!({"action": "decline"})),
                "accept" if self.form().fields().is_empty() => Ok(json!({"action": "accept"})),
                "accept" => Ok(json!({"action": "accept", "content": self.form().content(&[])?})),
                action @ ("decline" | "cancel") => Ok(json!({"action": action})),
                _ => Err(format!(
                    "{}: a form has no options; accept, decline or cancel it, or fill it in with --field NAME=VALUE",
                    line(said, 60)
                )),
            },
        }
    }

    /// What it is about, and what can be answered.
    fn lines(&self, calls: &[Value], cwd: &Path, screen: Screen) -> Vec<String> {
        let mut lines = vec![format!("question {}", self.request)];
        if let Some(question) = self.permission() {
            lines.extend(
                question_lines(&question, calls, cwd, screen).into_iter().map(|told| format!("  {told}")),
            );
            let ids: Vec<String> = question.options().iter().map(|choice| line(&choice.id, 60)).collect();
            let widest = ids.iter().map(|id| id.width()).max().unwrap_or_default();
            lines.extend(question.options().iter().zip(&ids).map(|(choice, id)| {
                let room = " ".repeat(widest - id.width());
                format!("    {id}{room}  {}", choice.name)
            }));
            return lines;
        }
        let params = &self.message["params"];
        let words =
            |key: &str| params[key].as_str().map(|text| line(text, 500)).filter(|text| !text.is_empty());
        lines.extend([words("message"), words("url")].into_iter().flatten().map(|told| format!("  {told}")));
        for field in self.form().fields() {
            let needed = if field.is_required { "" } else { ", may be left out" };
            let title = if field.title.is_empty() { String::new() } else { format!("  {}", field.title) };
            lines.push(format!("    {}{title} ({}{needed})", line(&field.name, 60), field.takes()));
        }
        lines
    }
}

/// What a session asks, for `show`.
pub(super) fn asked_lines(session: &Session, screen: Screen) -> Vec<String> {
    lines(&open_questions(session).iter().collect::<Vec<_>>(), session, screen)
}

fn lines(open: &[&Open], session: &Session, screen: Screen) -> Vec<String> {
    let calls = open_calls(session);
    open.iter().flat_map(|open| open.lines(&calls, Path::new(&session.cwd), screen)).collect()
}

fn show(open: &[&Open], session: &Session, as_json: bool) -> Result<(), Failure> {
    if as_json {
        let questions: Vec<Value> =
            open.iter().map(|open| json!({"question": open.request, "request": open.message})).collect();
        return print_json(&json!({"sessionId": session.session_id, "questions": questions}).to_string())
            .map(drop);
    }
    if open.is_empty() {
        remark("nothing is asked");
        return Ok(());
    }
    print(&lines(open, session, screen_of_stdout()).join("\n"))?;
    let (id, number) = (short_id(&session.session_id), open[0].request);
    let which = if open.len() > 1 { format!(" --question {number}") } else { String::new() };
    let how = match open[0].permission() {
        Some(question) => question.options().first().map(|choice| crate::commands::shown(&choice.id)),
        None => open[0].form().fields().first().map(|field| format!("--field {}=...", line(&field.name, 60))),
    };
    remark(&format!("`acpd sessions answer {id}{which} {}` answers it", how.as_deref().unwrap_or("accept")));
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn permission(number: u64) -> Open {
        let options = json!([
            {"optionId": "once", "name": "Allow once", "kind": "allow_once"},
            {"optionId": "no", "name": "Refuse", "kind": "reject_once"},
        ]);
        let call = json!({"toolCallId": "c", "title": "Write it", "kind": "edit"});
        let params = json!({"sessionId": "s", "toolCall": call, "options": options});
        Open { request: number, message: json!({"method": "session/request_permission", "params": params}) }
    }

    fn form() -> Open {
        let schema = json!({"properties": {"size": {"type": "integer"}}, "required": ["size"]});
        Open {
            request: 7,
            message: json!({"params": {"mode": "form", "message": "How big?", "requestedSchema": schema}}),
        }
    }

    fn option(said: &str) -> Given {
        Given::Option(said.to_owned())
    }

    // contract 7.1: sessions answer ID OPTION|--field K=V|--decline
    #[test]
    fn an_answer_becomes_an_outcome() {
        let selected = |id: &str| Ok(json!({"outcome": "selected", "optionId": id}));
        let fields = |value: &str| Given::Fields(vec![("size".to_owned(), value.to_owned())]);
        for (open, given, outcome) in [
            (permission(1), option("once"), selected("once")),
            (permission(1), option("allow ONCE"), selected("once")),
            (permission(1), option("y"), selected("once")),
            (permission(1), option("onc"), selected("once")),
            (permission(1), Given::Allow, selected("once")),
            (permission(1), Given::Decline, selected("no")),
            (form(), fields("3"), Ok(json!({"action": "accept", "content": {"size": 3}}))),
            (form(), Given::Decline, Ok(json!({"action": "decline"}))),
            (form(), option("no"), Ok(json!({"action": "decline"}))),
            (form(), option("cancel"), Ok(json!({"action": "cancel"}))),
            (
                permission(1),
                option("oncé"),
                Err(
                    "the question has no option oncé, or several; it has once (Allow once), no (Refuse); did you mean once?",
                ),
            ),
            (permission(1), fields("3"), Err("--field: a permission is asked for; name one of its options")),
            (form(), fields("x"), Err("--field: size: \"x\" does not do; a whole number is required")),
            (form(), option("accept"), Err("size: a whole number is required")),
        ] {
            assert_eq!(open.outcome(&given), outcome.map_err(str::to_owned), "{given:?}");
        }
    }

    // quirk call-by-id
    // issue 28, RA3: an edit is shown before it is allowed, also where only the tool call before has it
    #[test]
    fn what_is_asked_is_shown_with_the_call_it_is_about() {
        let session = |calls: Value, input: Value| {
            let mut open = permission(5);
            open.message["params"]["toolCall"] = json!({"toolCallId": "c", "rawInput": input});
            let raw = json!({"sessionId": "s", "cwd": "/w", "snapshot": {
                "openPermissionRequests": [{"request": 5, "message": open.message}], "openToolCalls": calls}});
            Session::read(serde_json::value::to_raw_value(&raw).expect("JSON")).expect("a session")
        };
        let diff = json!({"type": "diff", "path": "/w/n.txt", "oldText": "old", "newText": "fresh line"});
        let calls = json!([{"toolCallId": "c", "title": "Edit files", "kind": "edit", "content": [diff]}]);
        let shown = asked_lines(&session(calls, Value::Null), Screen::default()).join("\n");
        assert!(shown.contains("? edit   Edit files"), "{shown}");
        assert!(shown.contains("n.txt +1 -1\n      - old\n      + fresh line"), "{shown}");
        // An agent that has it in the raw input alone, deep in it or not.
        let patch = "diff --git a/n b/n\n--- a/n\n+++ b/n\n@@ -1 +1 @@\n-old\n+fresh \u{1b}[2Jline\n";
        for input in [json!({"diff": patch}), json!({"changes": {"/w/n": {"unified_diff": patch}}})] {
            let shown = asked_lines(&session(json!([]), input), Screen::default()).join("\n");
            assert!(shown.contains("\n      -old\n      +fresh ␛[2Jline\n"), "{shown}");
        }
    }

    // contract 7.1: --question N is needed when more than one is open
    #[test]
    fn the_question_is_named_when_there_are_several() {
        let number = |open: &[Open], number| chosen(open, number).map(|open| open.request);
        assert_eq!(number(&[permission(3)], None), Ok(3));
        assert_eq!(number(&[permission(3), form()], Some(7)), Ok(7));
        assert!(number(&[permission(3), form()], None).unwrap_err().ends_with("--question: 3, 7"));
        assert!(number(&[permission(3)], Some(4)).unwrap_err().ends_with("open: 3"));
        assert_eq!(number(&[], None).unwrap_err(), "the session asks nothing");
    }
}
