//! Which programs of a supervisor run, and whether a process belongs to one of them.
//!
//! A process belongs to a program when the program's keeper is among its ancestors, or when it carries the program's mark:
//! the one still shows a program that has taken the mark out of its environment, the other a process whose keeper
//! was killed. Only marks and keepers of this supervisor count, so that what belongs to another one below or above is
//! foreign. Not here: what follows from it.

use crate::procfs;
use crate::sweep::{MARK, ProcessMark};
use parking_lot::{Mutex, MutexGuard};
use rustix::process::Pid;
use std::collections::HashMap;
use std::sync::Arc;

/// Where a process comes from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Lineage {
    /// From no program of this supervisor, as far as can be seen.
    Stranger,
    /// From a program with this label. None: it has none, or runs no more.
    Program(Option<Arc<str>>),
    /// There is no such process any more, so it may have come from anywhere.
    Gone,
}

/// The programs that run.
#[derive(Clone, Debug, Default)]
pub(crate) struct Kept(Arc<Mutex<HashMap<ProcessMark, KeptProgram>>>);

#[derive(Debug)]
struct KeptProgram {
    /// None: it has ended, and its end is not recorded yet.
    keeper: Option<u32>,
    label: Option<Arc<str>>,
}

/// A program is known until this is dropped.
#[derive(Debug)]
pub(crate) struct Known {
    kept: Kept,
    mark: ProcessMark,
}

impl Drop for Known {
    fn drop(&mut self) {
        self.kept.programs().remove(&self.mark);
    }
}

impl Kept {
    fn programs(&self) -> MutexGuard<'_, HashMap<ProcessMark, KeptProgram>> {
        self.0.lock()
    }

    pub(crate) fn add(&self, mark: ProcessMark, keeper: Option<u32>, label: Option<Arc<str>>) -> Known {
        self.programs().insert(mark.clone(), KeptProgram { keeper, label });
        Known { kept: self.clone(), mark }
    }

    pub(crate) fn has(&self, mark: &ProcessMark) -> bool {
        self.programs().contains_key(mark)
    }

    /// Where the process `pid` comes from, for the supervisor of `host`.
    pub(crate) fn lineage(&self, host: &str, pid: u32) -> Lineage {
        let parent_of = |pid| Some(procfs::stat(as_pid(pid)?)?.1);
        let Some(line) = line_of(pid, parent_of) else {
            // Where nothing can be seen at all, nothing is known of any process.
            let sees = parent_of(std::process::id()).is_some();
            return if sees { Lineage::Gone } else { Lineage::Stranger };
        };
        {
            let programs = self.programs();
            if let Some(program) =
                programs.values().find(|program| program.keeper.is_some_and(|keeper| line.contains(&keeper)))
            {
                return Lineage::Program(program.label.clone());
            }
        }
        let marked = line.iter().find_map(|pid| {
            let environment = procfs::environment(as_pid(*pid)?).known();
            ProcessMark::all_in(procfs::variable(&environment, MARK)?).find(|mark| mark.is_of(host))
        });
        marked.map_or(Lineage::Stranger, |mark| {
            Lineage::Program(self.programs().get(&mark).and_then(|program| program.label.clone()))
        })
    }
}

fn as_pid(pid: u32) -> Option<Pid> {
    Pid::from_raw(pid.cast_signed())
}

/// How often a line is begun anew. Each time one of it has ended meanwhile.
const TRIES: usize = 16;
/// More generations than any line has; a look at a system in motion must not run in a circle.
const GENERATIONS: usize = 4096;

/// A process and its ancestors, up to the last that can be seen. None: it is gone, or its ancestors are faster than the
/// look at them.
fn line_of(pid: u32, parent_of: impl Fn(u32) -> Option<u32>) -> Option<Vec<u32>> {
    'again: for _ in 0..TRIES {
        let (mut line, mut child) = (vec![pid], pid);
        let mut parent = parent_of(pid)?;
        while parent > 1 && line.len() < GENERATIONS {
            let Some(next) = parent_of(parent) else {
                // One that ends hands its children on; one that is only hidden keeps them.
                if parent_of(child) == Some(parent) && parent_of(parent).is_none() {
                    return Some(line);
                }
                continue 'again;
            };
            line.push(parent);
            (child, parent) = (parent, next);
        }
        return Some(line);
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::RefCell;

    /// Gives the answers of one process after another, and repeats the last.
    fn told(answers: &[(u32, &[Option<u32>])]) -> impl Fn(u32) -> Option<u32> {
        let left: RefCell<HashMap<u32, Vec<Option<u32>>>> =
            RefCell::new(answers.iter().map(|(pid, parents)| (*pid, parents.to_vec())).collect());
        move |pid| {
            let mut left = left.borrow_mut();
            let answers = left.get_mut(&pid)?;
            if answers.len() > 1 { answers.remove(0) } else { answers[0] }
        }
    }

    // contract 7.2: the ancestors of a process, while they come and go
    #[test]
    fn a_line_is_what_can_be_seen_of_it() {
        for (name, answers, line) in [
            (
                "to the first process",
                &[(9, &[Some(8)][..]), (8, &[Some(7)]), (7, &[Some(1)])][..],
                Some(vec![9, 8, 7]),
            ),
            ("to what is outside", &[(9, &[Some(8)]), (8, &[Some(0)])], Some(vec![9, 8])),
            ("gone", &[], None),
            ("to what is hidden", &[(9, &[Some(8)]), (8, &[Some(7)])], Some(vec![9, 8])),
            (
                "a parent that ends hands it on",
                &[(9, &[Some(8), Some(5)]), (5, &[Some(1)])],
                Some(vec![9, 5]),
            ),
            (
                "an ancestor that ends hands it on",
                &[(9, &[Some(8)]), (8, &[Some(7), Some(5)]), (5, &[Some(1)])],
                Some(vec![9, 8, 5]),
            ),
            ("gone meanwhile", &[(9, &[Some(8), None])], None),
        ] {
            assert_eq!(line_of(9, told(answers)), line, "{name}");
        }
        assert_eq!(line_of(9, |pid| Some(pid + 1)).map(|line| line.len()), Some(GENERATIONS));
    }
}
