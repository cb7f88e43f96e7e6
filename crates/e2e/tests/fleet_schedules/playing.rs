//! A schedule as it is played on what runs: each loss at its time, and the end of it; then all is whole again.

use crate::board::Board;
use crate::schedule::{Disturbance, Look, Loss, Schedule};
use crate::world::{NAMES, World};
use acpd_e2e::Carries;
use rustix::process::Signal;
use std::time::Duration;

/// What a slow link adds to each piece of what it carries.
const SLOW: Duration = Duration::from_millis(80);

enum Act {
    Begin(Disturbance),
    Look(Look),
    End(Disturbance),
}

/// Plays it to its end; all is whole then.
pub(crate) fn play(world: &mut World, schedule: &Schedule, board: &Board) {
    let all = &schedule.disturbances;
    let begins = all.iter().map(|one| (one.begins, Act::Begin(*one)));
    let looks = schedule.looks().into_iter().map(|look| (look.at, Act::Look(look)));
    let ends = all.iter().map(|one| (one.ends, Act::End(*one)));
    // What ends when something else begins ends first.
    let mut acts: Vec<_> = looks.chain(ends).chain(begins).collect();
    acts.sort_by_key(|(at, _)| *at);
    // By how much it is late: what comes then comes as much later, so that everything lasts as long as it is to, at least.
    let mut late = Duration::ZERO;
    for (at, act) in acts {
        board.pause((at + late).saturating_sub(board.now()));
        match act {
            Act::Begin(one) => begin(world, one, board),
            Act::End(one) => end(world, one, board),
            Act::Look(look) => judge(world, &look, board),
        }
        late = late.max(board.now().saturating_sub(at));
    }
    board.pause((schedule.length + late).saturating_sub(board.now()));
}

fn begin(world: &mut World, Disturbance { loss, which, .. }: Disturbance, board: &Board) {
    match loss {
        Loss::NodeKilled => {
            board.goes_down(which, false);
            world.nodes[which].daemon.kill();
        }
        Loss::NodeStopped => {
            board.goes_down(which, true);
            world.nodes[which].daemon.signal(Signal::STOP);
        }
        Loss::LinksCut => set(world, which, Carries::NoConnection),
        Loss::LinksStill => set(world, which, Carries::Nothing),
        Loss::LinksSlow => set(world, which, Carries::Slowly(SLOW)),
        Loss::ServerKilled => world.servers[which].kill(),
    }
    board.done(&format!("{loss:?} {which}"));
}

fn end(world: &mut World, Disturbance { loss, which, .. }: Disturbance, board: &Board) {
    match loss {
        Loss::NodeKilled => {
            world.nodes[which].again();
            board.is_up(which);
        }
        Loss::NodeStopped => {
            world.nodes[which].daemon.signal(Signal::CONT);
            board.is_up(which);
        }
        Loss::LinksCut | Loss::LinksStill | Loss::LinksSlow => set(world, which, Carries::All),
        Loss::ServerKilled => world.servers[which].again(),
    }
    board.done(&format!("{loss:?} {which} is over"));
}

fn set(world: &World, node: usize, carries: Carries) {
    for link in &world.nodes[node].links {
        link.set(carries);
    }
}

fn judge(world: &World, look: &Look, board: &Board) {
    board.told().looks += look.by.len();
    for by in &look.by {
        let answer = world.nodes[*by].get("/v1/nodes").json();
        let nodes = answer["nodes"].as_array().into_iter().flatten();
        let lost = nodes.filter(|node| node["name"] == NAMES[look.lost]).collect::<Vec<_>>();
        if !lost.iter().all(|lost| lost["reachable"] == false) {
            board.wrong(format!("node {by} shows node {} as reachable: {answer}", look.lost));
        }
    }
}
