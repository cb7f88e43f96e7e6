//! Tells what an agent replays of a session that it activates from what it has to say that is new (SE-7).
//!
//! Agents replay before their answer to `session/load`, as they should, or go on with it behind the answer. So what
//! comes is compared with what is recorded: text by role and as a stream, because chunks are cut anew and the order of
//! a thought and an answer may differ, and tool calls by their ids. White space does not count: agents trim.
//!
//! The rules, from the safest ground to the most doubtful:
//! - Before the answer all of the conversation is replay. What is not recognized there is a gap in what can be told.
//! - Between the answer and the first prompt of the run, what matches is replay, and the first that does not match ends
//!   it. A user's message that was never recorded is replay too once the replay has begun: there was no prompt, so the
//!   agent can only be telling what was (some tell the results of tools that way).
//! - Behind a prompt it begins with a user's message or a tool call of the history only (not with an echo of the prompt),
//!   goes on only from the farthest place that was reached, and text alone is no proof, because the new answer may begin
//!   like an old one: it waits for a user's message or a tool call of the history, or for the end
//!   of the history in a replay that went on behind the answer. If something new comes first, nothing was replay, unless
//!   what waits told a turn of such a replay to its end: then the replay ended there, before the history does. Without
//!   anything behind it, it may be an answer like an old one.
//!
//! A turn is entered by its user's message, unless the agent replays none.
//!
//! Pure and bounded: the history comes in piece by piece, as far as it is asked for, and only a window of it is held.
//! Not here: where it is read, and what becomes of the updates.

use crate::acp;
use acpd_record::{Event, is_history, update_kind};
use serde_json::{Value, json};
use std::collections::{HashSet, VecDeque};

/// How much of the history is held: what the agent may leave out and still be followed.
const WINDOW: usize = 1024 * 1024;

/// Text of one role that is held in one piece.
const PIECE: usize = 64 * 1024;

/// Ids of tool calls that are remembered. Over it they are forgotten: one that comes back later ends the replay.
const CALLS: usize = 8192;

/// Who says a text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Role {
    User,
    Agent,
    Thought,
}

/// An update, as far as it is part of a conversation.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Said {
    Text(Role, String),
    /// A tool call or news of it.
    Call(String),
    /// What has to be equal as a whole, such as a picture or a plan.
    Whole {
        by_user: bool,
        value: Value,
    },
    /// About the present state, or of a kind that is not replayed.
    Beside,
}

/// What an update is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// Told before. So is what was perhaps.
    Replay,
    /// New. So is what was perhaps.
    News,
    /// New. What was perhaps was told before.
    AfterReplay,
    /// Not certain yet.
    Perhaps,
    /// More of the history has to be fed first.
    More,
}

#[derive(Debug)]
enum Item {
    /// A prompt; its content follows.
    Turn,
    /// `at` is how much of it was told again.
    Text {
        role: Role,
        text: String,
        at: usize,
    },
    Call(String),
    Whole(Value),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    /// The agent has not answered yet.
    Taking,
    /// It has, and was not prompted.
    Taken,
    Prompted,
    Over,
}

/// Follows a replay along the recorded history.
#[derive(Debug)]
pub(crate) struct Replay {
    stage: Stage,
    /// The history from the turn on that the replay is in, without what was told again.
    window: VecDeque<Item>,
    /// About what the window takes.
    bytes: usize,
    /// The end of the history is in the window.
    complete: bool,
    /// Items at the front of the window that lie before the farthest place reached.
    passed: usize,
    calls: HashSet<String>,
    /// Something was recognized.
    begun: bool,
    /// Something was recognized behind the agent's answer.
    late: bool,
    /// The agent replays what the user said.
    by_turns: bool,
    /// Something was not recognized: which turn the replay is in is not certain.
    strayed: bool,
    /// A prompt came before all of what precedes the answer was judged.
    prompted: bool,
    /// What is perhaps a replay goes to the end of a turn.
    whole_turn: bool,
}

/// Where an update was found in the window.
struct WindowPosition {
    index: usize,
    /// How much of that text was told; None for all of the item.
    at: Option<usize>,
}

enum Search {
    Found(WindowPosition),
    /// It may be in what was not fed yet.
    Beyond,
    Nowhere,
}

impl Said {
    /// Reads a `session/update` line.
    pub(crate) fn of_line(line: &[u8]) -> Self {
        let Some(kind) = update_kind(line).filter(|kind| is_history(kind)) else { return Self::Beside };
        let Some(mut message) = acp::view::<Value>(line) else { return Self::Beside };
        let update = message["params"]["update"].take();
        let role = match kind {
            "user_message_chunk" => Some(Role::User),
            "agent_message_chunk" => Some(Role::Agent),
            "agent_thought_chunk" => Some(Role::Thought),
            _ => None,
        };
        match (role, update["toolCallId"].as_str()) {
            (Some(role), _) => Self::of_content(role, &update["content"]),
            (None, Some(id)) => Self::Call(id.to_owned()),
            (None, None) => Self::Whole { by_user: false, value: without_meta(&update) },
        }
    }

    fn of_content(role: Role, content: &Value) -> Self {
        match (content["type"].as_str(), content["text"].as_str()) {
            (Some("text"), Some(text)) => Self::Text(role, text.to_owned()),
            _ => {
                let by_user = role == Role::User;
                Self::Whole { by_user, value: json!({"byUser": by_user, "content": without_meta(content)}) }
            }
        }
    }

    /// What an agent has no reason to say again in an answer.
    fn is_proof(&self) -> bool {
        self.by_user() || matches!(self, Self::Call(_))
    }

    fn by_user(&self) -> bool {
        matches!(self, Self::Text(Role::User, _) | Self::Whole { by_user: true, .. })
    }
}

fn without_meta(value: &Value) -> Value {
    let mut value = value.clone();
    if let Some(members) = value.as_object_mut() {
        members.retain(|name, _| !["_meta", "messageId", "annotations"].contains(&name.as_str()));
    }
    value
}

impl Replay {
    pub(crate) fn new() -> Self {
        Self {
            stage: Stage::Taking,
            window: VecDeque::new(),
            bytes: 0,
            complete: false,
            passed: 0,
            calls: HashSet::new(),
            begun: false,
            late: false,
            by_turns: false,
            strayed: false,
            prompted: false,
            whole_turn: false,
        }
    }

    /// Whether all that comes from now on is news.
    pub(crate) fn is_over(&self) -> bool {
        self.stage == Stage::Over
    }

    /// It is over, whatever was left.
    pub(crate) fn end(&mut self) {
        *self = Self { stage: Stage::Over, ..Self::new() };
    }

    /// It is over with something new.
    pub(crate) fn end_with_news(&mut self) -> Verdict {
        let verdict = if self.whole_turn { Verdict::AfterReplay } else { Verdict::News };
        self.end();
        verdict
    }

    /// The agent has answered that it has the session.
    pub(crate) fn taken(&mut self) {
        if self.stage == Stage::Taking {
            self.stage = Stage::Taken;
            if self.prompted {
                self.prompted();
            }
        }
    }

    /// The agent is prompted.
    pub(crate) fn prompted(&mut self) {
        if self.stage == Stage::Taking {
            self.prompted = true;
        } else if self.stage != Stage::Over {
            self.stage = Stage::Prompted;
            self.strayed = false;
            self.forget(self.passed);
        }
    }

    /// The next event of the history.
    pub(crate) fn feed(&mut self, event: &Event<'_>) {
        match event {
            Event::Prompt(prompt) => {
                self.push(Item::Turn);
                let blocks: Vec<Value> = serde_json::from_str(prompt.prompt.get()).unwrap_or_default();
                for block in &blocks {
                    self.push_said(Said::of_content(Role::User, block));
                }
            }
            Event::Update(message) => self.push_said(Said::of_line(message.line())),
            _ => {}
        }
    }

    /// There is no more of it.
    pub(crate) fn fed(&mut self) {
        self.complete = true;
    }

    fn push_said(&mut self, said: Said) {
        match said {
            Said::Text(role, more) => match self.window.back_mut() {
                Some(Item::Text { role: last, text, .. }) if *last == role && text.len() < PIECE => {
                    self.bytes += more.len();
                    text.push_str(&more);
                }
                _ => self.push(Item::Text { role, text: more, at: 0 }),
            },
            Said::Call(id) => {
                if !matches!(self.window.back(), Some(Item::Call(last)) if *last == id) {
                    if self.calls.len() >= CALLS {
                        self.calls.clear();
                    }
                    self.calls.insert(id.clone());
                    self.push(Item::Call(id));
                }
            }
            Said::Whole { value, .. } => self.push(Item::Whole(value)),
            Said::Beside => {}
        }
    }

    fn push(&mut self, item: Item) {
        self.bytes += item.weight();
        self.window.push_back(item);
    }

    /// Drops the first items.
    fn forget(&mut self, count: usize) {
        let count = count.min(self.window.len());
        for item in self.window.drain(..count) {
            self.bytes = self.bytes.saturating_sub(item.weight());
        }
        self.passed = self.passed.saturating_sub(count);
    }

    /// What an update is. After [`Verdict::More`] it is asked again.
    pub(crate) fn judge(&mut self, said: &Said) -> Verdict {
        match said {
            _ if self.stage == Stage::Over => Verdict::News,
            Said::Beside => Verdict::News,
            Said::Text(_, text) if text.trim().is_empty() => match self.stage {
                Stage::Taking => Verdict::Replay,
                Stage::Taken if self.begun => Verdict::Replay,
                Stage::Prompted if self.begun => Verdict::Perhaps,
                _ => Verdict::News,
            },
            // A replay that begins behind a prompt begins with the user's words: ids of tool calls are counted anew by some
            // agents with each process.
            _ if self.stage == Stage::Prompted && !self.begun && !said.by_user() => {
                self.end();
                Verdict::News
            }
            // Whether this is the end of the history must be known at once.
            _ if self.stage == Stage::Prompted && !self.complete && self.bytes < WINDOW => Verdict::More,
            _ => match self.search(said) {
                Search::Found(position) => self.go_on(said, position),
                Search::Beyond => Verdict::More,
                Search::Nowhere => self.stray(said),
            },
        }
    }

    fn search(&mut self, said: &Said) -> Search {
        let (found, size) = match said {
            Said::Text(role, text) => (self.search_text(*role, text), text.len()),
            Said::Call(id) => {
                let is_it = |item: &Item| matches!(item, Item::Call(known) if known == id);
                let found = match self.window.iter().position(is_it) {
                    Some(index) => Search::Found(WindowPosition { index, at: None }),
                    // Behind a prompt only within a replay that goes on there, for the same reason.
                    None if self.calls.contains(id) && (self.stage != Stage::Prompted || self.late) => {
                        Search::Found(WindowPosition { index: 0, at: Some(0) })
                    }
                    None => Search::Beyond,
                };
                (found, 0)
            }
            Said::Whole { by_user, value } => {
                let anywhere = *by_user || self.strayed || !self.by_turns;
                let (scope, open) = if anywhere { (self.window.len(), true) } else { self.this_turn() };
                let is_it = |item: &Item| matches!(item, Item::Whole(known) if known == value);
                match self.window.iter().take(scope).position(is_it) {
                    Some(index) => (Search::Found(WindowPosition { index, at: None }), 0),
                    None if open => (Search::Beyond, 0),
                    None => (Search::Nowhere, 0),
                }
            }
            Said::Beside => (Search::Nowhere, 0),
        };
        match found {
            Search::Beyond if self.complete => Search::Nowhere,
            Search::Beyond if self.bytes >= WINDOW + 2 * size => match said {
                // The agent leaves out all that is held: it is not waited for any more.
                Said::Text(role, _) if *role != Role::User && !self.holds(*role) => {
                    self.forget(self.window.len());
                    Search::Beyond
                }
                _ => Search::Nowhere,
            },
            found => found,
        }
    }

    fn holds(&self, wanted: Role) -> bool {
        self.window.iter().any(|item| match item {
            Item::Turn => true,
            Item::Text { role, .. } => *role == wanted,
            _ => false,
        })
    }

    /// How many items are of the turn that the replay is in, and whether there may be more.
    fn this_turn(&self) -> (usize, bool) {
        match self.window.iter().position(|item| matches!(item, Item::Turn)) {
            Some(end) => (end, false),
            None => (self.window.len(), true),
        }
    }

    /// The first place from which on the text of this role says the same. The user's own words lead into a later turn;
    /// those of the agent only where nothing better does.
    fn search_text(&self, role: Role, said: &str) -> Search {
        let through = role != Role::User && !self.by_turns;
        let ahead = role == Role::User || self.strayed;
        let is_role = |item: &Item| matches!(item, Item::Text { role: known, .. } if *known == role);
        let mut from = 0;
        loop {
            let rest = || self.window.iter().enumerate().skip(from);
            let end = rest().find(|(_, item)| matches!(item, Item::Turn)).map(|(index, _)| index);
            let limit = if through { None } else { end };
            let upto = limit.unwrap_or(self.window.len());
            if let Some((first, _)) = rest().take(upto - from).find(|(_, item)| is_role(item)) {
                match self.follow(role, said, first, upto) {
                    Follow::To(position) => return Search::Found(position),
                    Follow::OutOfText if limit.is_none() && !self.complete => return Search::Beyond,
                    Follow::OutOfText | Follow::Elsewhere => {}
                }
            } else if limit.is_none() && !ahead {
                return Search::Beyond;
            }
            match end {
                Some(end) if ahead => from = end + 1,
                None if ahead => return Search::Beyond,
                _ => return Search::Nowhere,
            }
        }
    }

    /// Follows a text over the items of its role from `first` on.
    fn follow(&self, role: Role, said: &str, first: usize, upto: usize) -> Follow {
        let mut rest = said;
        for (index, item) in self.window.iter().enumerate().take(upto).skip(first) {
            let Item::Text { role: known, text, at } = item else { continue };
            if *known != role {
                continue;
            }
            match along(&text[*at..], rest) {
                Along::Within(told) => {
                    let at = at + told;
                    let at = Some(at).filter(|at| !text[*at..].trim().is_empty());
                    return Follow::To(WindowPosition { index, at });
                }
                Along::Past(told) => rest = &rest[told..],
                Along::Differs => return Follow::Elsewhere,
            }
        }
        Follow::OutOfText
    }

    /// It was found: the replay is there now.
    fn go_on(&mut self, said: &Said, WindowPosition { mut index, at }: WindowPosition) -> Verdict {
        let known_call = matches!(said, Said::Call(_)) && at.is_some();
        if !known_call {
            let entered = self.window.iter().take(index).rposition(|item| matches!(item, Item::Turn));
            // A tool call is known by its id, wherever it is told.
            if let Some(turn) = entered.filter(|_| !matches!(said, Said::Call(_))) {
                self.forget(turn + 1);
                index -= turn + 1;
            }
            if let Said::Text(role, _) = said {
                for before in (0..index).rev() {
                    if matches!(&self.window[before], Item::Text { role: told, .. } if told == role) {
                        self.take_out(before);
                        index -= 1;
                    }
                }
            }
            match at {
                Some(to) => {
                    if let Item::Text { at, .. } = &mut self.window[index] {
                        *at = to;
                    }
                }
                None => self.take_out(index),
            }
            if entered.is_none() || !matches!(said, Said::Call(_)) {
                self.passed = self.passed.max(index);
            }
        }
        let proof = said.is_proof();
        let turn_is_certain = self.by_turns && !self.strayed;
        self.begun = true;
        self.by_turns |= said.by_user();
        self.strayed = false;
        match self.stage {
            Stage::Taken => self.late = true,
            Stage::Prompted => {
                self.late |= proof;
                self.forget(self.passed);
                let certain = proof || (self.late && self.is_at_the_end());
                self.whole_turn =
                    !certain && self.late && turn_is_certain && self.is_at_the_end_of_the_turn();
                if !certain {
                    return Verdict::Perhaps;
                }
            }
            Stage::Taking | Stage::Over => {}
        }
        Verdict::Replay
    }

    fn take_out(&mut self, index: usize) {
        if let Some(item) = self.window.remove(index) {
            self.bytes = self.bytes.saturating_sub(item.weight());
        }
        if index < self.passed {
            self.passed -= 1;
        }
    }

    /// All that is left lies before the place that was reached.
    fn is_at_the_end(&self) -> bool {
        self.complete && self.passed >= self.window.len()
    }

    /// As [`Self::is_at_the_end`], with what is left of the turn.
    fn is_at_the_end_of_the_turn(&self) -> bool {
        matches!(self.window.get(self.passed), Some(Item::Turn)) || self.is_at_the_end()
    }

    /// It was not found.
    fn stray(&mut self, said: &Said) -> Verdict {
        match self.stage {
            Stage::Taking => {
                self.strayed = true;
                return Verdict::Replay;
            }
            Stage::Taken if said.by_user() && !self.is_at_the_end() => {
                if self.begun {
                    self.strayed = true;
                    return Verdict::Replay;
                }
                // A replay in which it could stand may still begin.
                return Verdict::News;
            }
            // So it may be here, but it may be the user's words that another client gave the agent just now.
            Stage::Prompted if said.by_user() && self.begun && !self.is_at_the_end() => {
                self.strayed = true;
                self.whole_turn = false;
                return Verdict::Perhaps;
            }
            // A plan is told as it is now, not as it came to be.
            Stage::Taken if matches!(said, Said::Whole { by_user: false, .. }) => return Verdict::News,
            Stage::Taken | Stage::Prompted | Stage::Over => {}
        }
        self.end_with_news()
    }
}

impl Item {
    fn weight(&self) -> usize {
        let text = match self {
            Self::Turn => 0,
            Self::Text { text, .. } | Self::Call(text) => text.len(),
            Self::Whole(value) => value.to_string().len(),
        };
        text + size_of::<Self>()
    }
}

enum Follow {
    To(WindowPosition),
    /// As far as there is text, it is the same.
    OutOfText,
    Elsewhere,
}

enum Along {
    /// All of it was told before: so many bytes of what is recorded.
    Within(usize),
    /// So many bytes were told before, and that is all that is recorded.
    Past(usize),
    Differs,
}

/// Compares two texts from their beginnings on, white space aside.
fn along(recorded: &str, said: &str) -> Along {
    let dark = |(_, char): &(usize, char)| !char.is_whitespace();
    let (mut old, mut new) = (recorded.char_indices().filter(dark), said.char_indices().filter(dark));
    let mut told = 0;
    loop {
        let Some((place, said)) = new.next() else { return Along::Within(told) };
        match old.next() {
            Some((at, recorded)) if recorded == said => told = at + recorded.len_utf8(),
            Some(_) => return Along::Differs,
            None => return Along::Past(place),
        }
    }
}

#[cfg(test)]
mod tests;
