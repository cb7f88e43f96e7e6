//! How often the kernel has killed for lack of memory in the control group of a program.
//!
//! Counted by the kernel itself, per memory control group (`oom_kill` in `memory.events.local` or `memory.events`, on
//! older systems in `memory.oom_control`), and readable without rights. The group is the keeper's own, in which the
//! program is started; one that moves to another group is not followed. In the root group, and where there is no
//! `/proc`, nothing is known, which counts as no kill. Not here: whether a kill was the program's own.

use std::path::{Path, PathBuf};

/// The counter of one control group, and what it said at the start.
#[derive(Debug)]
pub(super) struct OomKills {
    counter: Option<PathBuf>,
    before: u64,
}

impl OomKills {
    /// Looks at the counter of this process's control group.
    pub(super) fn watch() -> Self {
        let read = |path: &str| std::fs::read_to_string(path).unwrap_or_default();
        Self::of(&read("/proc/self/cgroup"), &read("/proc/self/mountinfo"))
    }

    fn of(groups: &str, mounts: &str) -> Self {
        let counters = counters(groups, mounts).into_iter();
        let mut known = counters.filter_map(|path| read_count(&path).map(|count| (path, count)));
        match known.next() {
            Some((path, before)) => Self { counter: Some(path), before },
            None => Self { counter: None, before: 0 },
        }
    }

    /// How many processes were killed since.
    pub(super) fn since(&self) -> u32 {
        let now = self.counter.as_deref().and_then(read_count).unwrap_or(self.before);
        u32::try_from(now.saturating_sub(self.before)).unwrap_or(u32::MAX)
    }
}

fn read_count(counter: &Path) -> Option<u64> {
    let text = std::fs::read_to_string(counter).ok()?;
    text.lines().find_map(|line| line.strip_prefix("oom_kill "))?.trim().parse().ok()
}

/// Where the counter may be, the best place first; `groups` and `mounts` are `/proc/self/cgroup` and
/// `/proc/self/mountinfo`.
fn counters(groups: &str, mounts: &str) -> Vec<PathBuf> {
    // A controller is in one hierarchy only: one of its own, or the unified one, whose number is 0.
    let of = |wanted: &dyn Fn(&str, &str) -> bool| {
        groups.lines().find_map(|line| {
            let mut fields = line.splitn(3, ':');
            let (number, controllers, path) = (fields.next()?, fields.next()?, fields.next()?);
            wanted(number, controllers).then_some(path)
        })
    };
    let own = of(&|_, controllers| controllers.split(',').any(|name| name == "memory"));
    let (group, filesystem, files): (_, _, &[&str]) = match own {
        Some(group) => (Some(group), "cgroup", &["memory.oom_control"]),
        // The figures of the group alone say more than those of all below it.
        None => (of(&|number, _| number == "0"), "cgroup2", &["memory.events.local", "memory.events"]),
    };
    let Some(group) = group else { return Vec::new() };
    let directories = mounts.lines().filter_map(|line| directory(line, filesystem, group));
    directories.flat_map(|directory| files.iter().map(move |file| directory.join(file))).collect()
}

/// Where a mount shows `group`, if it is a mount of that kind, with the memory controller, and shows it at all.
fn directory(mount: &str, filesystem: &str, group: &str) -> Option<PathBuf> {
    let (place, kind) = mount.split_once(" - ")?;
    let mut kind = kind.split(' ');
    let (name, _source, options) = (kind.next()?, kind.next()?, kind.next()?);
    let has_memory = filesystem == "cgroup2" || options.split(',').any(|option| option == "memory");
    if name != filesystem || !has_memory {
        return None;
    }
    let mut place = place.split(' ').skip(3).map(unescaped);
    let (root, point) = (place.next()?, place.next()?);
    // A container may see only a part of the hierarchy.
    let below = Path::new(group).strip_prefix(&root).ok()?;
    Some(Path::new(&point).join(below))
}

/// Blanks and backslashes are octal numbers in that file.
fn unescaped(field: &str) -> String {
    ["\\040", "\\011", "\\012", "\\134"]
        .iter()
        .zip([" ", "\t", "\n", "\\"])
        .fold(field.to_owned(), |text, (number, character)| text.replace(number, character))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A control group in a directory, and what `/proc` would say of it.
    struct Group {
        dir: tempfile::TempDir,
        groups: &'static str,
        mounts: String,
    }

    fn group(groups: &'static str, root: &str, kind: &str) -> Group {
        let dir = tempfile::tempdir().expect("a scratch directory");
        let mounts = format!(
            "30 23 0:28 / /proc rw - proc proc rw\n31 23 0:29 {root} {} rw,relatime shared:9 - {kind}\n",
            dir.path().display()
        );
        Group { dir, groups, mounts }
    }

    impl Group {
        fn says(&self, file: &str, count: u64) {
            let path = self.dir.path().join(file);
            std::fs::create_dir_all(path.parent().expect("it is in the directory")).expect("created");
            std::fs::write(path, format!("low 0\noom 9\noom_kill {count}\noom_group_kill 9\n"))
                .expect("written");
        }

        fn watch(&self) -> OomKills {
            OomKills::of(self.groups, &self.mounts)
        }
    }

    // contract 1.2: cause `out_of_memory`, from the unified hierarchy; the group alone before all below it
    #[test]
    fn kills_since_the_start_are_counted() {
        let group = group("0::/user/agent\n", "/", "cgroup2 cgroup2 rw,nsdelegate");
        group.says("user/agent/memory.events", 3);
        let all = group.watch();
        assert_eq!(all.since(), 0);
        group.says("user/agent/memory.events", 5);
        assert_eq!(all.since(), 2);
        group.says("user/agent/memory.events.local", 1);
        let own = group.watch();
        group.says("user/agent/memory.events", 9);
        assert_eq!(own.since(), 0);
        group.says("user/agent/memory.events.local", 2);
        assert_eq!(own.since(), 1);
    }

    // contract 1.2: the older hierarchy, beside an unified one without the controller
    #[test]
    fn an_own_hierarchy_of_the_controller_is_found() {
        let group = group("4:cpu,memory:/box\n0::/other\n", "/", "cgroup cgroup rw,cpu,memory");
        group.says("box/memory.oom_control", 7);
        group.says("other/memory.events", 7);
        let watch = group.watch();
        group.says("other/memory.events", 8);
        assert_eq!(watch.since(), 0);
        group.says("box/memory.oom_control", 8);
        assert_eq!(watch.since(), 1);
    }

    // A container that sees the hierarchy from its own group on, with a name that systemd escaped
    #[test]
    fn a_mount_may_show_a_part() {
        let group = group("0::/a\\x2db.slice/c", "/a\\134x2db.slice", "cgroup2 cgroup2 rw");
        group.says("c/memory.events", 0);
        let watch = group.watch();
        group.says("c/memory.events", 1);
        assert_eq!(watch.since(), 1);
    }

    #[test]
    fn what_is_not_known_is_no_kill() {
        let unseen = group("0::/elsewhere/c", "/a", "cgroup2 cgroup2 rw");
        unseen.says("c/memory.events", 1);
        let mute = group("0::/", "/", "cgroup2 cgroup2 rw");
        let broken = OomKills::of("0:\n:::", "31 23\n - \n31 23 0:1 / / - cgroup2\n");
        let gone = group("0::/c", "/", "cgroup2 cgroup2 rw");
        gone.says("c/memory.events", 1);
        let watch = gone.watch();
        std::fs::remove_dir_all(gone.dir.path().join("c")).expect("removed");
        for watch in [unseen.watch(), mute.watch(), broken, watch] {
            assert_eq!(watch.since(), 0, "{watch:?}");
        }
    }
}
