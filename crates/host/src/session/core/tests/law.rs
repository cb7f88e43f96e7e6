//! The law: a core that is thrown away at any point and rebuilt from the log goes on to the same end.
//!
//! Two worlds are given the same operations. In one the host dies at random points: what it had not committed and not sent is
//! lost, its connections are lost, and its sessions are rebuilt from their logs. In the other only the connections are lost.
//! Both must write the same events and tell the agent the same, once. Two sessions share one agent, whose output has
//! positions: each session commits with its events how far it has read.

use super::*;
use proptest::prelude::*;
use proptest::test_runner::{Config, RngAlgorithm, TestRng, TestRunner};
use std::collections::BTreeSet;
use std::hash::{BuildHasher, Hasher};

/// Operations of a case, and cases: well over 100,000 inputs in all.
const OPERATIONS: usize = 80;
const CASES: u32 = 1280;
/// They take long enough to be shared out.
const THREADS: u8 = 2;

#[derive(Clone, Debug)]
enum Operation {
    /// A client does something in a session.
    Client(usize, Client),
    /// The agent says something about a session.
    Agent(usize, Agent),
    /// The host reads up to so many messages of the agent.
    Read(usize),
}

#[derive(Clone, Copy, Debug)]
enum Client {
    Prompt,
    /// Prompts under a key, of which there are few.
    PromptUnder(u8),
    Cancel,
    /// Answers the oldest open question, or another.
    Answer {
        valid: bool,
    },
    SetMode,
    /// Withdraws its latest request.
    Withdraw,
}

#[derive(Clone, Copy, Debug)]
enum Agent {
    Text,
    Mode,
    AnswerTurn { is_error: bool },
    AnswerRequest,
    AskPermission,
    AskUnknown,
    WithdrawQuestion,
}

/// Where in an operation the host dies.
#[derive(Clone, Copy, Debug)]
enum Crash {
    Never,
    /// Before anything is committed.
    BeforeCommit,
    /// After the commit, and after so many messages to the agent.
    AfterCommit(usize),
}

fn operation() -> impl Strategy<Value = (Operation, Crash)> {
    use Agent::{AnswerRequest, AnswerTurn, AskPermission, AskUnknown, Mode, Text, WithdrawQuestion};
    let client = prop_oneof![
        4 => Just(Client::Prompt),
        2 => (0..4_u8).prop_map(Client::PromptUnder),
        1 => Just(Client::Cancel),
        3 => any::<bool>().prop_map(|valid| Client::Answer { valid }),
        1 => Just(Client::SetMode),
        1 => Just(Client::Withdraw),
    ];
    let agent = prop_oneof![
        4 => Just(Text),
        1 => Just(Mode),
        3 => proptest::bool::weighted(0.2).prop_map(|is_error| AnswerTurn { is_error }),
        1 => Just(AnswerRequest),
        2 => Just(AskPermission),
        1 => Just(AskUnknown),
        1 => Just(WithdrawQuestion),
    ];
    let operation = prop_oneof![
        2 => (0..2_usize, client).prop_map(|(session, what)| Operation::Client(session, what)),
        3 => (0..2_usize, agent).prop_map(|(session, what)| Operation::Agent(session, what)),
        3 => (1..6_usize).prop_map(Operation::Read),
    ];
    let crash = prop_oneof![
        12 => Just(Crash::Never),
        1 => Just(Crash::BeforeCommit),
        2 => (0..4_usize).prop_map(Crash::AfterCommit),
    ];
    (operation, crash)
}

/// What the agent is told, in comparable form.
type Told = String;

/// One session as it is kept: what survives a crash, and the core, which does not.
struct Kept {
    core: SessionCore,
    log: Vec<(u16, String)>,
    /// The fold over it.
    folded: Projection,
    /// Messages of the agent whose events are committed.
    position: usize,
    told: Vec<Told>,
    answered: BTreeSet<u64>,
    /// Requests whose connection is lost.
    lost: BTreeSet<u64>,
    requests: u64,
}

/// The agent: what it was told, and what it has said.
#[derive(Default)]
struct Model {
    said: Vec<(usize, Said)>,
    asked: u64,
    /// Questions that it may withdraw, by session.
    questions: [Vec<u64>; 2],
}

#[derive(Clone)]
enum Said {
    Text,
    Mode(usize),
    Answer(Ticket, bool),
    Ask(u64),
    Unknown(u64),
    Withdraw(u64),
}

impl Said {
    fn input(&self) -> Input {
        match self {
            Self::Text => said("x"),
            Self::Mode(mode) => {
                update(&format!(r#"{{"sessionUpdate":"current_mode_update","currentModeId":"m{mode}"}}"#))
            }
            Self::Answer(ticket, true) => answer_of(*ticket, r#"{"code":-1,"message":"no"}"#, true),
            Self::Answer(ticket, false) => answer_of(*ticket, r#"{"stopReason":"end_turn"}"#, false),
            Self::Ask(number) => permission(*number),
            Self::Unknown(number) => asks(*number, "no/such", r#""x":1"#),
            Self::Withdraw(number) => {
                Input::Agent(FromAgent::Withdrawn { id: id(&number.to_string()), position: 0 })
            }
        }
    }
}

struct World {
    sessions: [Kept; 2],
    agent: Model,
    /// How far the agent's output was read.
    read: usize,
    dies: bool,
}

fn law_facts() -> RunFacts {
    // Timers begin anew after a restart.
    let limits = Limits::default();
    RunFacts { limits, is_shared: true, ..facts() }
}

fn rebuilt(log: Projection) -> SessionCore {
    let now = Now { at: tokio::time::Instant::now().into_std(), ms: 0 };
    SessionCore::new(law_facts(), log, SessionMeta::default(), Viewers::default(), Handover::default(), now)
}

/// A fold as another process finds it.
fn through_a_checkpoint(folded: &Projection) -> Projection {
    let id = SessionId::parse("ours").expect("an id");
    let checkpoint = folded.to_checkpoint(&id, usize::MAX).expect("all of it can be written");
    Projection::of_checkpoint(&id, &checkpoint).expect("it was just written")
}

/// What events lead to, of what the agent is told: enough to tell it again.
fn owed(mut log: Projection, batch: &[(u16, String)]) -> Vec<Told> {
    let mut owed = Vec::new();
    for (kind, payload) in batch {
        let event = Event::read(*kind, payload.as_bytes()).expect("just written");
        match &event {
            Event::Prompt(prompt) => owed.push(format!("session/prompt {:?}", Ticket::Turn(prompt.turn))),
            Event::CancelRequested(_) => owed.push("session/cancel".to_owned()),
            Event::PermissionResolved(resolution) => {
                let asked = log
                    .open_question(resolution.request)
                    .or_else(|| log.settled_question(resolution.request));
                let id =
                    asked.and_then(|question| question.agent_id.as_ref()).expect("it was asked").as_raw();
                owed.push(format!("result of {id}: {}", resolution.result.expect("it has one")));
            }
            Event::AgentRequest(request) => {
                let id = acpd_wire::member(request.message, "id").expect("a request");
                let error = acpd_wire::member(request.answer, "error").expect("it is unknown");
                owed.push(format!("error of {id}: {error}"));
            }
            _ => {}
        }
        log.apply(Position { seq: log.last_seq() + 1, at_ms: 0 }, &event);
    }
    owed
}

impl World {
    fn new(dies: bool) -> Self {
        let kept = || Kept {
            core: rebuilt(fold(&begun())),
            log: begun(),
            folded: fold(&begun()),
            position: 0,
            told: Vec::new(),
            answered: BTreeSet::new(),
            lost: BTreeSet::new(),
            requests: 0,
        };
        Self { sessions: [kept(), kept()], agent: Model::default(), read: 0, dies }
    }

    fn perform(&mut self, operation: &Operation, crash: Crash) {
        match operation {
            Operation::Agent(session, what) => self.agent_says(*session, *what),
            Operation::Client(session, what) => {
                if let Some(input) = self.client_input(*session, *what) {
                    self.hand(*session, vec![input], None, crash);
                }
            }
            Operation::Read(count) => {
                let until = (self.read + count).min(self.agent.said.len());
                self.read_until(until, crash);
            }
        }
    }

    /// The messages up to `until` reach their sessions, one after the other. What was committed before is not taken again.
    fn read_until(&mut self, until: usize, crash: Crash) {
        self.read = until;
        for session in [0, 1] {
            let position = self.sessions[session].position;
            let news = self.agent.said[..until].iter().enumerate();
            let news = news.filter(|(at, (of, _))| *of == session && *at >= position);
            let inputs: Vec<Input> = news.map(|(_, (_, said))| said.input()).collect();
            if inputs.is_empty() {
                continue;
            }
            if self.hand(session, inputs, Some(until), crash) {
                // Read again what was not committed.
                self.read_until(until, Crash::Never);
                return;
            }
        }
    }

    /// Gives a session inputs; true if the host died of it.
    fn hand(&mut self, session: usize, inputs: Vec<Input>, position: Option<usize>, crash: Crash) -> bool {
        if matches!(crash, Crash::BeforeCommit) {
            if self.dies {
                drop(
                    self.sessions[session]
                        .core
                        .handle(inputs, Now { at: tokio::time::Instant::now().into_std(), ms: 0 }),
                );
            }
            self.lose_connections();
            return true;
        }
        let kept = &mut self.sessions[session];
        let effects = kept.core.handle(inputs, Now { at: tokio::time::Instant::now().into_std(), ms: 0 });
        let (events, told) = (effects.recording.events(), told(&effects));
        let owed = if events.is_empty() { Vec::new() } else { owed(kept.folded.clone(), &events) };
        let mut owed = owed.into_iter().peekable();
        let is_owed: Vec<bool> = told.iter().map(|told| owed.next_if_eq(told).is_some()).collect();
        assert_eq!(owed.next(), None, "{events:?} {told:?}");
        let sent = match crash {
            Crash::AfterCommit(sent) => sent.min(told.len()),
            Crash::Never | Crash::BeforeCommit => told.len(),
        };
        let dies = !matches!(crash, Crash::Never);
        // What stands behind no event is lost with the connection of the client that wanted it.
        let takes_effect = !events.is_empty() || sent == told.len();
        let keeps = |(at, told): (usize, Told)| (at < sent || is_owed[at]).then_some(told);
        let told = told.into_iter().enumerate().filter_map(keeps);
        if takes_effect {
            for answer in &effects.answers {
                assert!(kept.answered.insert(answer.request.0), "{} was answered twice", answer.request.0);
                assert!(answer.after.expect("set") <= (kept.log.len() + events.len()) as u64);
            }
            for (kind, payload) in &events {
                let at = Position { seq: kept.folded.last_seq() + 1, at_ms: 0 };
                kept.folded.see(at, *kind, payload.as_bytes());
            }
            kept.log.extend(events);
            kept.position = position.unwrap_or(kept.position);
            // After a crash the successor sends what the events owe.
            kept.told.extend(told);
        } else if !self.dies {
            // The reference has not taken what a client wanted and what was lost with its connection.
            kept.core = rebuilt(kept.folded.clone());
        }
        if dies {
            self.lose_connections();
        }
        dies
    }

    /// The host dies, or only the connections are lost.
    fn lose_connections(&mut self) {
        for kept in &mut self.sessions {
            kept.lost.extend((0..kept.requests).filter(|request| !kept.answered.contains(request)));
            match self.dies {
                true => kept.core = rebuilt(through_a_checkpoint(&kept.folded)),
                false => {
                    let waiting = kept.core.volatile.turns.close();
                    drop(waiting);
                    for request in 0..kept.requests {
                        drop(kept.core.volatile.requests.take(ClientRequest(request)));
                    }
                }
            }
        }
    }

    fn client_input(&mut self, session: usize, what: Client) -> Option<Input> {
        let kept = &mut self.sessions[session];
        let mut next = || {
            kept.requests += 1;
            kept.requests - 1
        };
        Some(match what {
            Client::Prompt => prompt(next()),
            // Sometimes the prompt is another one.
            Client::PromptUnder(number) => {
                let request = next();
                keyed(request, &number.to_string(), if request % 7 == 0 { "other" } else { "x" })
            }
            Client::Cancel => cancel(),
            Client::Answer { valid } => {
                let number = kept.core.log().open_questions().next().map_or(99, |(number, _)| number.0);
                chosen(number, if valid { "yes" } else { "maybe" })
            }
            Client::SetMode => Input::Request {
                request: ClientRequest(next()),
                method: "session/set_mode".to_owned(),
                params: Some(r#"{"sessionId":"ours","modeId":"b"}"#.into()),
                client: client("me"),
            },
            Client::Withdraw => Input::Withdraw { request: ClientRequest(kept.requests.checked_sub(1)?) },
        })
    }

    fn agent_says(&mut self, session: usize, what: Agent) {
        let told = &self.sessions[session].told;
        let answered = |ticket: &Ticket| {
            let is_it = |said: &(usize, Said)| matches!(said, (of, Said::Answer(other, _)) if *of == session && other == ticket);
            self.agent.said.iter().any(is_it)
        };
        let said = match what {
            Agent::Text => Said::Text,
            Agent::Mode => Said::Mode(self.agent.said.len()),
            Agent::AnswerTurn { is_error } => {
                let prompts = told.iter().filter(|told| told.starts_with("session/prompt")).count() as u64;
                let open =
                    (1..=prompts).map(|turn| Ticket::Turn(TurnNumber(turn))).find(|ticket| !answered(ticket));
                let Some(ticket) = open else { return };
                Said::Answer(ticket, is_error)
            }
            Agent::AnswerRequest => {
                let request = |request: u64| Ticket::Client(ClientRequest(request));
                let was_told = |ticket: &Ticket| told.contains(&format!("session/set_mode {ticket:?}"));
                let mut open = (0..self.sessions[session].requests).map(request).filter(was_told);
                let Some(ticket) = open.find(|ticket| !answered(ticket)) else { return };
                Said::Answer(ticket, false)
            }
            Agent::AskPermission | Agent::AskUnknown => {
                self.agent.asked += 1;
                let number = self.agent.asked;
                if matches!(what, Agent::AskUnknown) {
                    Said::Unknown(number)
                } else {
                    self.agent.questions[session].push(number);
                    Said::Ask(number)
                }
            }
            Agent::WithdrawQuestion => {
                let Some(number) = self.agent.questions[session].pop() else { return };
                Said::Withdraw(number)
            }
        };
        self.agent.said.push((session, said));
    }

    /// What must be the same in both worlds.
    fn check(&self) {
        for kept in &self.sessions {
            assert_eq!(fold(&kept.log), *kept.core.log());
            // A client may cancel or withdraw as often as it likes.
            let once = |told: &&String| *told != "session/cancel" && !told.starts_with("withdraw");
            let distinct: BTreeSet<&String> = kept.told.iter().filter(once).collect();
            assert_eq!(
                distinct.len(),
                kept.told.iter().filter(once).count(),
                "the agent was told twice: {:?}",
                kept.told
            );
            let open = |request: &u64| kept.core.volatile.requests.get(ClientRequest(*request)).is_some();
            for request in 0..kept.requests {
                let is_settled =
                    kept.answered.contains(&request) || kept.lost.contains(&request) || open(&request);
                assert!(is_settled, "request {request} was forgotten");
            }
        }
    }
}

fn follow(operations: &[(Operation, Crash)]) {
    let (mut dying, mut reference) = (World::new(true), World::new(false));
    for (operation, crash) in operations {
        dying.perform(operation, *crash);
        reference.perform(operation, *crash);
    }
    for world in [&mut dying, &mut reference] {
        world.read_until(world.agent.said.len(), Crash::Never);
        world.check();
    }
    for (dying, reference) in dying.sessions.iter().zip(&reference.sessions) {
        assert_eq!(dying.log, reference.log);
        assert_eq!(dying.told, reference.told);
    }
}

/// `ACPD_LAW_SEED` repeats a run.
fn seed() -> u64 {
    let given = std::env::var("ACPD_LAW_SEED").ok().and_then(|seed| seed.parse().ok());
    given.unwrap_or_else(|| std::collections::hash_map::RandomState::new().build_hasher().finish())
}

// SE-8: nothing of a decision is anywhere but in the log, or said to be lost
#[test]
fn a_rebuilt_session_goes_on_to_the_same_end() {
    let seed = seed();
    eprintln!("again with: ACPD_LAW_SEED={seed}");
    std::thread::scope(|scope| {
        for thread in 0..THREADS {
            scope.spawn(move || follow_cases(seed, thread));
        }
    });
}

/// The cases of one thread.
fn follow_cases(seed: u64, thread: u8) {
    let mut bytes = [0; 32];
    bytes[..8].copy_from_slice(&seed.to_le_bytes());
    bytes[8] = thread;
    let rng = TestRng::from_seed(RngAlgorithm::ChaCha, &bytes);
    let config = Config { cases: CASES / u32::from(THREADS), failure_persistence: None, ..Config::default() };
    let operations = proptest::collection::vec(operation(), OPERATIONS..=OPERATIONS);
    let run = TestRunner::new_with_rng(config, rng).run(&operations, |operations| {
        follow(&operations);
        Ok(())
    });
    run.unwrap_or_else(|error| panic!("ACPD_LAW_SEED={seed}: {error}"));
}
