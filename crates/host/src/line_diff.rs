//! The lines that differ between two texts.
//!
//! Pure, and bounded in cost: texts with very many lines of their own are all out, then all in. Not here: which of them are shown, and how.

/// Above this product of line counts an exact comparison costs too much.
const EXACT: usize = 1 << 20;

/// A line of two texts that are compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LineChange<'a> {
    /// Both have it.
    Kept(&'a str),
    /// Only the old text has it.
    Removed(&'a str),
    /// Only the new text has it.
    Added(&'a str),
}

/// Returns the lines of both texts, in order.
pub fn line_changes<'a>(old: &'a str, new: &'a str) -> Vec<LineChange<'a>> {
    let (old, new): (Vec<&str>, Vec<&str>) = (old.lines().collect(), new.lines().collect());
    let head = old.iter().zip(&new).take_while(|(old, new)| old == new).count();
    let (first, old, new) = (&old[..head], &old[head..], &new[head..]);
    let tail = old.iter().rev().zip(new.iter().rev()).take_while(|(old, new)| old == new).count();
    let (last, old, new) = (&old[old.len() - tail..], &old[..old.len() - tail], &new[..new.len() - tail]);
    let mut lines: Vec<_> = first.iter().map(|line| LineChange::Kept(line)).collect();
    if old.len().saturating_mul(new.len()) > EXACT {
        lines.extend(old.iter().map(|line| LineChange::Removed(line)));
        lines.extend(new.iter().map(|line| LineChange::Added(line)));
    } else {
        walk(old, new, &common(old, new), &mut lines);
    }
    lines.extend(last.iter().map(|line| LineChange::Kept(line)));
    lines
}

/// `common[i][j]`, row by row: how many lines `old[i..]` and `new[j..]` have in common, in order.
fn common(old: &[&str], new: &[&str]) -> Vec<Vec<u32>> {
    let mut table = vec![vec![0; new.len() + 1]; old.len() + 1];
    for i in (0..old.len()).rev() {
        for j in (0..new.len()).rev() {
            table[i][j] =
                if old[i] == new[j] { table[i + 1][j + 1] + 1 } else { table[i + 1][j].max(table[i][j + 1]) };
        }
    }
    table
}

fn walk<'a>(old: &[&'a str], new: &[&'a str], common: &[Vec<u32>], lines: &mut Vec<LineChange<'a>>) {
    let (mut i, mut j) = (0, 0);
    while i < old.len() || j < new.len() {
        if i < old.len() && j < new.len() && old[i] == new[j] {
            lines.push(LineChange::Kept(old[i]));
            (i, j) = (i + 1, j + 1);
        } else if j == new.len() || (i < old.len() && common[i + 1][j] >= common[i][j + 1]) {
            lines.push(LineChange::Removed(old[i]));
            i += 1;
        } else {
            lines.push(LineChange::Added(new[j]));
            j += 1;
        }
    }
}
