//! `acpd sessions answer`: what the agent of a session asks, and the answer to it.

use super::{print_remark, screen_of_stdout};
use crate::clean::line;
use crate::cli::Answer;
use crate::daemon::{Session, need_daemon_to_change};
use crate::exit::Failure;
use crate::form::Form;
use crate::nearest::unlisted;
use crate::stdout::print;
use crate::view::{Question, Screen, asked, date_and_time, short_id};
use serde::Deserialize;
use serde_json::{Value, json};
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
    Decline,
}

impl Given {
    /// None when it is only looked at.
    fn of(option: Option<String>, fields: Vec<(String, String)>, decline: bool) -> Option<Self> {
        match option {
            Some(option) => Some(Self::Option(option)),
            None if decline => Some(Self::Decline),
            None => Some(Self::Fields(fields)).filter(|given| *given != Self::Fields(Vec::new())),
        }
    }
}

pub(super) async fn answer(args: Answer) -> Result<(), Failure> {
    let daemon = need_daemon_to_change(args.one.which).await?;
    let session = daemon.session(&args.one.id).await?;
    if let Some(away) = away(&session) {
        return Err(Failure::Failed(format!(
            "what its agent asks is not known, and cannot be answered: {away}"
        )));
    }
    let open = open_questions(&session);
    let Some(given) = Given::of(args.option, args.fields, args.decline) else {
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
        return print(&body.to_string()).map(drop);
    }
    print(&format!("question {} is answered", open.request)).map(drop)
}

/// That the node of a session cannot be reached, so that all that is known of it is what that said last.
fn away(session: &Session) -> Option<String> {
    let (node, since) = (session.node.as_deref()?, date_and_time(session.unreachable_since?));
    Some(format!("node {}, which has the session, cannot be reached since {since} UTC", line(node, 64)))
}

fn open_questions(session: &Session) -> Vec<Open> {
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
    }
    let whole = session.raw.as_deref().and_then(|raw| serde_json::from_str(raw.get()).ok());
    let Snapshot { open_permission_requests: mut open, open_elicitations } =
        whole.map(|whole: Whole| whole.snapshot).unwrap_or_default();
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
            (Some(question), Given::Option(said)) => {
                let options = question.options();
                let of_id = options.iter().find(|choice| choice.id == *said);
                let mut of_name = options.iter().filter(|choice| choice.name.eq_ignore_ascii_case(said));
                // Of two with one name neither is meant for certain.
                let of_name = of_name.next().filter(|_| of_name.next().is_none());
                let Some(choice) = of_id.or(of_name) else {
                    let words = options.iter().flat_map(|choice| [choice.id.as_str(), choice.name.as_str()]);
                    let shown =
                        options.iter().map(|choice| format!("{} ({})", line(&choice.id, 60), choice.name));
                    let none = format!("the question has no option {}", line(said, 60));
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
            (None, Given::Option(said)) => match said.as_str() {
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
    fn lines(&self, screen: Screen) -> Vec<String> {
        let mut lines = vec![format!("question {}", self.request)];
        if let Some(question) = self.permission() {
            lines.extend(asked(&question, screen).into_iter().map(|told| format!("  {told}")));
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

fn show(open: &[&Open], session: &Session, as_json: bool) -> Result<(), Failure> {
    if as_json {
        let questions: Vec<Value> =
            open.iter().map(|open| json!({"question": open.request, "request": open.message})).collect();
        return print(&json!({"sessionId": session.session_id, "questions": questions}).to_string())
            .map(drop);
    }
    if open.is_empty() {
        print_remark("nothing is asked");
        return Ok(());
    }
    let screen = screen_of_stdout();
    let lines: Vec<String> = open.iter().flat_map(|open| open.lines(screen)).collect();
    print(&lines.join("\n"))?;
    let (id, number) = (short_id(&session.session_id), open[0].request);
    let which = if open.len() > 1 { format!(" --question {number}") } else { String::new() };
    let how = match open[0].permission() {
        Some(question) => question.options().first().map(|choice| crate::commands::shown(&choice.id)),
        None => open[0].form().fields().first().map(|field| format!("--field {}=...", line(&field.name, 60))),
    };
    print_remark(&format!(
        "`acpd sessions answer {id}{which} {}` answers it",
        how.as_deref().unwrap_or("accept")
    ));
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
            (permission(1), Given::Decline, selected("no")),
            (form(), fields("3"), Ok(json!({"action": "accept", "content": {"size": 3}}))),
            (form(), Given::Decline, Ok(json!({"action": "decline"}))),
            (form(), option("cancel"), Ok(json!({"action": "cancel"}))),
            (
                permission(1),
                option("onc"),
                Err(
                    "the question has no option onc; it has once (Allow once), no (Refuse); did you mean once?",
                ),
            ),
            (permission(1), fields("3"), Err("--field: a permission is asked for; name one of its options")),
            (form(), fields("x"), Err("--field: size: \"x\" does not do; a whole number is required")),
            (form(), option("accept"), Err("size: a whole number is required")),
        ] {
            assert_eq!(open.outcome(&given), outcome.map_err(str::to_owned), "{given:?}");
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
