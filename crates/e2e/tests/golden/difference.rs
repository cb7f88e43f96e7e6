//! Where two texts differ, for people: the first lines that do, with the part in which they do.

/// Differences that are shown.
const SHOWN: usize = 8;
/// Characters of a line that are shown before and behind its first difference.
const AROUND: usize = 160;

/// What differs; None when nothing does.
pub(crate) fn difference(expected: &str, got: &str) -> Option<String> {
    if expected == got {
        return None;
    }
    let (left, right): (Vec<&str>, Vec<&str>) = (expected.lines().collect(), got.lines().collect());
    let (mut at, mut to) = (0, 0);
    let mut found = Vec::new();
    let mut section = "";
    while (at < left.len() || to < right.len()) && found.len() < SHOWN {
        let (one, other) = (left.get(at).copied(), right.get(to).copied());
        if one == other {
            section = one.filter(|line| line.starts_with("## ")).unwrap_or(section);
            (at, to) = (at + 1, to + 1);
            continue;
        }
        let (missing, more) = until_equal(&left[at..], &right[to..]);
        found.push(format!("in {section}\n"));
        for offset in 0..missing.max(more).min(SHOWN) {
            let one = left.get(at + offset).filter(|_| offset < missing).copied();
            let other = right.get(to + offset).filter(|_| offset < more).copied();
            let (one, other) = shortened(one, other);
            let (here, there) = (at + offset + 1, to + offset + 1);
            found.push(format!("  line {here}, expected: {one}\n  line {there}, got:      {other}\n"));
        }
        (at, to) = (at + missing, to + more);
    }
    Some(found.concat())
}

/// How many lines of each side to pass by until they agree again.
fn until_equal(left: &[&str], right: &[&str]) -> (usize, usize) {
    /// A block that is longer than this is told as a change of each of its lines.
    const FAR: usize = 200;
    for distance in 1..FAR {
        for missing in 0..=distance {
            let more = distance - missing;
            if let (Some(one), Some(other)) = (left.get(missing), right.get(more))
                && one == other
            {
                return (missing, more);
            }
        }
    }
    (left.len().min(FAR), right.len().min(FAR))
}

/// Both lines around the place from which on they differ.
fn shortened(one: Option<&str>, other: Option<&str>) -> (String, String) {
    let same = match (one, other) {
        (Some(one), Some(other)) => one.chars().zip(other.chars()).take_while(|(a, b)| a == b).count(),
        _ => 0,
    };
    let cut = |line: Option<&str>| match line {
        None => "(no such line)".to_owned(),
        Some(line) => {
            let from = same.saturating_sub(AROUND);
            let shown: String = line.chars().skip(from).take(2 * AROUND).collect();
            let all = line.chars().count();
            let (before, behind) =
                (if from > 0 { "..." } else { "" }, if from + 2 * AROUND < all { "..." } else { "" });
            format!("{before}{shown}{behind}")
        }
    };
    (cut(one), cut(other))
}

// A comparison that finds nothing would show nothing.
#[test]
fn differences_are_found_and_shortened() {
    assert_eq!(difference("a\nb\n", "a\nb\n"), None);
    let told = difference("## x\na\nb\nc\n", "## x\na\nc\n").expect("a line is missing");
    assert_eq!(told, "in ## x\n  line 3, expected: b\n  line 3, got:      (no such line)\n");
    let long = "x".repeat(1000);
    let told = difference(&format!("{long}1"), &format!("{long}2")).expect("the end differs");
    let shown = "x".repeat(AROUND);
    assert_eq!(told, format!("in \n  line 1, expected: ...{shown}1\n  line 1, got:      ...{shown}2\n"));
    assert!(difference("a", "a\n").is_some() && difference("", "a").is_some());
}
