//! What one client sees of each event of a session.
//!
//! Pure: an event comes in, lines go out. History is what a replay shows (ACP page "session-setup"): the
//! conversation, without notices and without the ends of earlier runs.

use super::alike::{Alike, put_line};
use super::handle::Shown;
use super::marking::mark;
use super::terminal_texts::{ShownAgain, TerminalTexts};
use crate::capabilities::ClientCapabilities;
use crate::questions::Questions;
use acpd_eventlog::Event as StoredEvent;
use acpd_host::{OpenQuestion, method};
use acpd_record::{
    ConnectionId, Event, EventKind, Json, Prompt, Question, QuestionNumber, SessionId, TerminalNews,
    TerminationInfo,
};
use acpd_wire::member;
use bytes::{Bytes, BytesMut};
use serde::Serialize;
use serde_json::value::RawValue;
use std::collections::HashSet;

#[derive(Debug)]
pub(super) struct Page {
    /// What does not depend on this one client.
    alike: Alike,
    /// The connection; prompts that came through it are not shown to it.
    via: ConnectionId,
    /// What the client was asked.
    questions: Questions,
    /// Questions of this run that were answered: what a client is asked when it attaches may be older than that.
    resolved: HashSet<QuestionNumber>,
    history_until: u64,
    /// Up to there it is told as it was, not as history.
    goes_on: bool,
    /// Events up to this one were written before, or are not asked for.
    skip_until: u64,
    /// The running turn was prompted through this connection.
    own_turn: bool,
    /// The session's terminals, for a client that knows none.
    texts: TerminalTexts,
}

impl Page {
    pub(super) fn session(&self) -> &SessionId {
        self.alike.session()
    }

    /// What all clients of equal capabilities see as this one does.
    pub(super) fn alike(&mut self) -> &mut Alike {
        &mut self.alike
    }

    /// Whether event `seq` is shown as it comes: it is neither history, nor was it shown before.
    pub(super) fn is_news(&self, seq: u64) -> bool {
        seq > self.history_until.max(self.skip_until)
    }

    pub(super) fn new(
        id: &SessionId,
        via: ConnectionId,
        client: ClientCapabilities,
        questions: Questions,
        shown: &Shown,
    ) -> Self {
        let alike = Alike::new(id.clone(), client);
        let (resolved, texts) = (HashSet::new(), TerminalTexts::default());
        let Shown { history_until, goes_on, skip_until, own_turn } = *shown;
        Self { alike, via, questions, resolved, history_until, goes_on, skip_until, own_turn, texts }
    }

    /// The client attached anew.
    pub(super) fn restart(&mut self, (history_until, goes_on): (u64, bool), skip_until: u64) {
        (self.history_until, self.goes_on) = (history_until, goes_on);
        self.skip_until = skip_until;
        self.own_turn = false;
    }

    /// What the client was shown of terminals is read again.
    pub(super) fn forget_terminals(&mut self) {
        self.texts = TerminalTexts::default();
    }

    pub(super) fn history_until(&self) -> u64 {
        self.history_until
    }

    pub(super) fn write(&mut self, stored: &StoredEvent<'_>, out: &mut BytesMut) {
        if !self.alike.client().keeps_cursors() {
            return self.write_event(stored, out);
        }
        let mut lines = BytesMut::new();
        self.write_event(stored, &mut lines);
        mark(stored.seq, &lines, out);
    }

    fn write_event(&mut self, stored: &StoredEvent<'_>, out: &mut BytesMut) {
        let history = stored.seq <= self.history_until && !self.goes_on;
        if stored.kind == EventKind::Ended.number() {
            self.resolved.clear();
        }
        let is_shown = stored.seq > self.skip_until;
        if !is_shown && self.alike.client().knows_terminals() {
            return;
        }
        let Ok(event) = Event::read(stored.kind, stored.payload) else { return };
        if !is_shown {
            return self.recall(&event);
        }
        if self.alike.write(&event, history, out) {
            return;
        }
        match event {
            Event::Update(message) => {
                let text = self.without_terminals(message.line(), "update");
                self.alike.write_call(message.line(), text.as_deref(), out);
            }
            Event::PermissionRequested(question) | Event::FileForwarded(question) if !history => {
                self.show(&question, false, out);
            }
            Event::ElicitationRequested(question) if !history => self.show(&question, true, out),
            Event::PermissionResolved(resolution)
            | Event::ElicitationResolved(resolution)
            | Event::FileResolved(resolution) => {
                self.resolved.insert(resolution.request);
                self.questions.resolved(self.alike.session(), resolution.request, out);
            }
            Event::ElicitationCompleted(completed) if !history && self.is_it(completed.only.as_ref()) => {
                put_line(out, completed.message.get().as_bytes());
            }
            // PR-3: the prompter's own echo is for the prompter, who does not get the message otherwise.
            Event::Echo(message) if !history && self.own_turn => put_line(out, message.line()),
            Event::Terminal(news) => self.write_calls_again(&news, out),
            Event::Prompt(prompt) => self.write_prompt(&prompt, history, out),
            Event::Ended(info) if !history => self.write_ended(&info, out),
            _ => {}
        }
    }

    /// Takes from an event that the client has seen what it was shown of terminals there.
    fn recall(&mut self, event: &Event<'_>) {
        match event {
            Event::Update(message) if self.alike.is_call(message.line()) => {
                self.without_terminals(message.line(), "update");
            }
            Event::PermissionRequested(question) if !question.unasked => {
                self.without_terminals(question.message.get().as_bytes(), "toolCall");
            }
            Event::Terminal(news) => drop(self.texts.hear(news)),
            _ => {}
        }
    }

    /// Whether a connection is this one.
    fn is_it(&self, connection: Option<&ConnectionId>) -> bool {
        connection == Some(&self.via)
    }

    /// A message that shows terminals in the call among its params, for a client that knows none.
    fn without_terminals(&mut self, line: &[u8], call: &str) -> Option<Vec<u8>> {
        match self.alike.client().knows_terminals() {
            true => None,
            false => self.texts.rewrite(line, |message| member(member(message, "params")?, call)),
        }
    }

    /// The end of a terminal, for a client that was shown its output in calls.
    fn write_calls_again(&mut self, news: &TerminalNews<'_>, out: &mut BytesMut) {
        #[derive(Serialize)]
        #[serde(rename_all = "camelCase")]
        struct Params<'a> {
            session_id: &'a SessionId,
            update: ShownAgain,
        }
        for update in self.texts.hear(news) {
            let params = Json::new(&Params { session_id: self.alike.session(), update });
            acpd_wire::write_notification(out, method::SESSION_UPDATE, Some(params.get().as_bytes()));
        }
    }

    /// A question of the agent, if this client is asked.
    fn show(&mut self, question: &Question<'_>, form: bool, out: &mut BytesMut) {
        if question.unasked {
            return;
        }
        let only = question.only.as_ref().map(|only| only.as_str().into());
        let message = Bytes::copy_from_slice(question.message.get().as_bytes());
        self.ask(&OpenQuestion { number: question.request, form, only, message }, out);
    }

    fn ask(&mut self, question: &OpenQuestion, out: &mut BytesMut) {
        let is_asked = match &question.only {
            Some(only) => *only == self.via,
            None if question.form => self.alike.client().has_forms(),
            None => self.alike.client().can_answer(),
        };
        if !is_asked {
            return;
        }
        match self.without_terminals(&question.message, "toolCall") {
            Some(text) => {
                let question = OpenQuestion { message: text.into(), ..question.clone() };
                self.questions.ask(self.alike.session(), &question, out);
            }
            None => self.questions.ask(self.alike.session(), question, out),
        }
    }

    /// What a client that has just attached still has to be asked.
    pub(super) fn write_open(&mut self, open: &[OpenQuestion], out: &mut BytesMut) {
        for question in open {
            if self.resolved.contains(&question.number) {
                continue;
            }
            match self.alike.client().keeps_cursors() {
                false => self.ask(question, out),
                true => {
                    let mut line = BytesMut::new();
                    self.ask(question, &mut line);
                    mark(question.number.0, &line, out);
                }
            }
        }
    }

    /// The client does not watch any more, and need not answer.
    pub(super) fn write_left(&self, out: &mut BytesMut) {
        self.questions.left(self.alike.session(), out);
    }

    /// PR-3: the user's message, once, for all clients but the sender.
    fn write_prompt(&mut self, prompt: &Prompt<'_>, history: bool, out: &mut BytesMut) {
        let Ok(blocks) = serde_json::from_str::<Vec<&RawValue>>(prompt.prompt.get()) else { return };
        self.own_turn = !history && self.is_it(prompt.via.as_ref());
        if self.own_turn {
            return;
        }
        let id = self.alike.session().as_json();
        for content in blocks {
            let params = format!(
                r#"{{"sessionId":{id},"update":{{"sessionUpdate":"user_message_chunk","messageId":"acpd-prompt-{}","content":{content}}}}}"#,
                prompt.turn,
            );
            acpd_wire::write_notification(out, method::SESSION_UPDATE, Some(params.as_bytes()));
        }
    }

    pub(super) fn write_ended(&self, info: &TerminationInfo, out: &mut BytesMut) {
        self.write_left(out);
        let params = Json::new(&info.ended_params(self.alike.session()));
        acpd_wire::write_notification(out, method::SESSION_ENDED, Some(params.get().as_bytes()));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::capabilities::InitializeParams;

    fn written(page: &mut Page, seq: u64, kind: EventKind, payload: &str) -> String {
        let mut out = BytesMut::new();
        let event = StoredEvent { seq, kind: kind.number(), at_ms: 0, payload: payload.as_bytes() };
        page.write(&event, &mut out);
        String::from_utf8(out.to_vec()).expect("text")
    }

    fn page(history_until: u64) -> Page {
        Page::new(
            &SessionId::parse("s").expect("an id"),
            "me".into(),
            ClientCapabilities::default(),
            Questions::default(),
            &Shown { history_until, ..Shown::default() },
        )
    }

    const PROMPT: &str = r#"{"turn":3,"by":"x","via":"me","prompt":[{"type":"text","text":"hi"}]}"#;

    // PR-3: the prompter does not get its own message, all others do, and so does history
    #[test]
    fn a_prompt_is_shown_to_everybody_but_its_sender() {
        assert_eq!(written(&mut page(0), 1, EventKind::Prompt, PROMPT), "");
        let other = PROMPT.replace("me", "you");
        let chunk = r#""update":{"sessionUpdate":"user_message_chunk","messageId":"acpd-prompt-3","content":{"type":"text","text":"hi"}}"#;
        assert!(written(&mut page(0), 1, EventKind::Prompt, &other).contains(chunk));
        assert!(written(&mut page(1), 1, EventKind::Prompt, PROMPT).contains(chunk));
    }

    // PR-3: an echo of the agent reaches only the prompter
    #[test]
    fn an_echo_is_for_the_prompter() {
        let mut own = page(0);
        written(&mut own, 1, EventKind::Prompt, PROMPT);
        assert_eq!(written(&mut own, 2, EventKind::Echo, "{}"), "{}\n");
        let mut other = page(0);
        written(&mut other, 1, EventKind::Prompt, &PROMPT.replace("me", "you"));
        assert_eq!(written(&mut other, 2, EventKind::Echo, "{}"), "");
        assert_eq!(written(&mut page(9), 2, EventKind::Echo, "{}"), "");
    }

    // contract 7.3: what earlier versions recorded of an agent that speaks in acpd's name is not shown to clients, nor are
    // updates of no session
    #[test]
    fn what_an_agent_may_not_say_is_not_shown() {
        for text in [
            r#"{"jsonrpc":"2.0","method":"_sandboxagent/session/ended","params":{"session_id":"b","data":{}}}"#,
            r#"{"jsonrpc":"2.0","method":"\u005facpd/x","params":{"sessionId":"s"}}"#,
        ] {
            assert_eq!(written(&mut page(0), 1, EventKind::Notification, text), "", "{text}");
        }
        let stray = r#"{"jsonrpc":"2.0","method":"session/update","params":null}"#;
        for history in [0, 1] {
            assert_eq!(written(&mut page(history), 1, EventKind::Update, stray), "");
        }
        let own = r#"{"jsonrpc":"2.0","method":"_x/seen","params":{"sessionId":"s"}}"#;
        assert_eq!(written(&mut page(0), 1, EventKind::Notification, own), format!("{own}\n"));
    }

    // ADR 31: what was scanned on its way into the log is not scanned again for each viewer
    #[test]
    fn an_update_is_read_no_further_than_its_session_and_kind() {
        let of = |session: &str| {
            format!(
                r#"{{"method":"session/update","params":{{"sessionId":"{session}","update":{{"sessionUpdate":"agent_message_chunk",it is not read"#
            )
        };
        let mut page = page(0);
        for former in ["s", "former", "s"] {
            assert_eq!(written(&mut page, 1, EventKind::Update, &of(former)), of("s") + "\n");
        }
    }

    // contract 7.3: live and in history, in updates and in questions; a client that knows terminals gets them as they are
    // quirk foreign-terminal
    #[test]
    fn a_client_without_terminals_is_shown_text() {
        let call = r#"{"toolCallId":"c","sessionUpdate":"tool_call","title":"T","content":[{"type":"terminal","terminalId":"t"}]}"#;
        let update = format!(
            r#"{{"jsonrpc":"2.0","method":"session/update","params":{{"sessionId":"s","update":{call}}}}}"#
        );
        let output = r#"{"terminalId":"t","output":"so far"}"#;
        let end = r#"{"terminalId":"t","state":"finished","exitStatus":{"exitCode":0,"signal":null},"finalOutput":{"text":"all of it","truncated":false}}"#;
        let question = format!(
            r#"{{"request":4,"message":{{"jsonrpc":"2.0","id":1,"method":"session/request_permission","params":{{"sessionId":"s","toolCall":{call},"options":[]}}}}}}"#
        );
        for history in [0, 9] {
            let mut bare = page(history);
            assert_eq!(written(&mut bare, 1, EventKind::Terminal, output), "");
            let seen = written(&mut bare, 2, EventKind::Update, &update);
            let text = r#""content":[{"type":"content","content":{"type":"text","text":"so far"}}]"#;
            assert!(
                seen.contains(text) && seen.contains(r#""title":"T""#) && !seen.contains("terminalId"),
                "{seen}"
            );
            let asked = written(&mut bare, 4, EventKind::PermissionRequested, &question);
            assert!(history == 9 || asked.contains(text) && !asked.contains("terminalId"), "{asked}");
            let again = written(&mut bare, 5, EventKind::Terminal, end);
            assert!(
                again.contains(r#""update":{"sessionUpdate":"tool_call_update","toolCallId":"c","#),
                "{again}"
            );
            assert!(again.contains("all of it"), "{again}");
        }
        for capabilities in [r#"{"terminal":true}"#, r#"{"_meta":{"sandboxagent.dev":{"terminals":true}}}"#] {
            let params = format!(r#"{{"protocolVersion":1,"clientCapabilities":{capabilities}}}"#);
            let mut knows = page(0);
            let client = InitializeParams::read(Some(params.as_bytes())).expect("params").capabilities();
            knows.alike = Alike::new(SessionId::parse("s").expect("an id"), client);
            assert_eq!(written(&mut knows, 2, EventKind::Update, &update), format!("{update}\n"));
            assert!(!written(&mut knows, 5, EventKind::Terminal, end).contains("tool_call_update"));
        }
    }

    // contract 7.3: a client that goes on behind a call is shown the end of its command, and nothing twice
    // quirk foreign-terminal
    #[test]
    fn a_client_that_goes_on_is_shown_the_end_of_a_command() {
        let call = r#"{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"s","update":{"sessionUpdate":"tool_call","toolCallId":"c","content":[{"type":"terminal","terminalId":"t"}]}}}"#;
        let output = r#"{"terminalId":"t","output":"so far"}"#;
        let end = r#"{"terminalId":"t","state":"finished","exitStatus":{"exitCode":0,"signal":null},"finalOutput":{"text":"all of it","truncated":false}}"#;
        let mut back = page(9);
        (back.goes_on, back.skip_until) = (true, 3);
        assert_eq!(written(&mut back, 1, EventKind::Terminal, output), "");
        assert_eq!(written(&mut back, 2, EventKind::Update, call), "");
        let again = written(&mut back, 4, EventKind::Terminal, end);
        assert!(again.contains(r#""tool_call_update","toolCallId":"c""#), "{again}");
        assert!(again.contains("all of it"), "{again}");
        let mut seen = page(9);
        (seen.goes_on, seen.skip_until) = (true, 4);
        for (seq, kind, payload) in
            [(2, EventKind::Update, call), (4, EventKind::Terminal, end), (5, EventKind::Terminal, end)]
        {
            assert_eq!(written(&mut seen, seq, kind, payload), "");
        }
        // What is read anew counts once.
        back.forget_terminals();
        back.skip_until = 0;
        written(&mut back, 1, EventKind::Terminal, output);
        let shown = written(&mut back, 2, EventKind::Update, call);
        assert!(shown.contains(r#""text":"so far""#), "{shown}");
    }

    // contract 7.3: every viewer is told as it happens, and not of the past
    #[test]
    fn a_stall_is_told_as_it_happens() {
        let stalled = r#"{"turn":3,"silentMs":400,"goesOn":true}"#;
        assert_eq!(written(&mut page(5), 5, EventKind::Stalled, stalled), "");
        let line = r#"{"jsonrpc":"2.0","method":"_sandboxagent/session/stalled","params":{"sessionId":"s","turn":3,"silentMs":400,"goesOn":true}}"#;
        assert_eq!(written(&mut page(4), 5, EventKind::Stalled, stalled), format!("{line}\n"));
    }

    // contract 7.3: every viewer is told that another daemon goes on with the agent, and not of the past
    #[test]
    fn a_reattachment_is_told_as_it_happens() {
        let reattached = r#"{"gapMs":1200}"#;
        assert_eq!(written(&mut page(5), 5, EventKind::Reattached, reattached), "");
        let line = r#"{"jsonrpc":"2.0","method":"_sandboxagent/session/reattached","params":{"sessionId":"s","gapMs":1200}}"#;
        assert_eq!(written(&mut page(4), 5, EventKind::Reattached, reattached), format!("{line}\n"));
    }

    // SE-4: history has no end of an earlier run
    #[test]
    fn ends_of_earlier_runs_are_not_replayed() {
        let end = r#"{"reason":"completed","terminatedBy":"agent","endedAt":"x","turnActive":false,"leaked":false}"#;
        assert_eq!(written(&mut page(5), 5, EventKind::Ended, end), "");
        assert!(written(&mut page(4), 5, EventKind::Ended, end).contains("_sandboxagent/session/ended"));
    }
}
