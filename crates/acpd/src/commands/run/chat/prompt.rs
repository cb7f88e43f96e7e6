//! What a line becomes as a prompt: its words, and the files behind an `@`.

use super::super::attachments::{Attachment, Takes, read_all};
use serde_json::{Value, json};
use std::path::{Path, PathBuf};

/// The content blocks of a line, with what was attached beside it; or why it cannot be sent. `cwd` is None when its files
/// are on another machine.
pub(super) fn blocks(
    text: &str,
    mut attached: Vec<Attachment>,
    cwd: Option<&Path>,
    takes: Takes<'_>,
) -> Result<Vec<Value>, String> {
    let named = cwd.map(|cwd| files(text, cwd)).unwrap_or_default();
    // They are named behind an @ here.
    let in_place = |wrong: String| wrong.replacen("--file ", "@", 1);
    let read = read_all(&named, &[]).map_err(|failure| in_place(failure.to_string()))?;
    attached.extend(read);
    let words = Ok(json!({"type": "text", "text": text}));
    let attached = attached.iter().map(|one| one.block(takes).map_err(in_place));
    std::iter::once(words).chain(attached).collect()
}

/// The files below a directory that words behind an `@` name, each once. Other words that begin so are words.
fn files(text: &str, cwd: &Path) -> Vec<PathBuf> {
    let Ok(root) = std::fs::canonicalize(cwd) else { return Vec::new() };
    let mut found = Vec::new();
    for word in text.split_whitespace().filter_map(|word| word.strip_prefix('@')) {
        // A sentence may end behind it.
        let ends = [word, word.trim_end_matches(['.', ',', ';', ':', '!', '?', ')'])];
        let file = ends.iter().find_map(|word| {
            let whole = std::fs::canonicalize(root.join(word)).ok()?;
            (whole.is_file() && whole.starts_with(&root)).then_some(whole)
        });
        if let Some(file) = file.filter(|file| !found.contains(file)) {
            found.push(file);
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    // contract 7.1: `@file` is embedded; what is no file below the directory is a word
    #[test]
    fn files_behind_an_at_are_embedded() {
        let dir = tempfile::tempdir().expect("a directory");
        let cwd = dir.path().join("work");
        std::fs::create_dir_all(cwd.join("sub")).expect("a directory");
        for (path, text) in [("work/a.txt", "A"), ("work/sub/b.txt", "B"), ("out.txt", "OUT")] {
            std::fs::write(dir.path().join(path), text).expect("a file");
        }
        std::os::unix::fs::symlink("../out.txt", cwd.join("link")).expect("a link");
        let capabilities = json!({"promptCapabilities": {"embeddedContext": true}});
        let takes = Takes { capabilities: &capabilities, roots: &[] };
        for (text, embedded) in [
            ("see @a.txt", vec!["A"]),
            ("see @sub/b.txt, and (@a.txt, @a.txt).", vec!["B", "A"]),
            ("@a.txt. @./sub/b.txt", vec!["A", "B"]),
            ("@a.txt @a.txt", vec!["A"]),
            ("me@a.txt @sub @none @../out.txt @/etc/passwd @link @", vec![]),
        ] {
            let blocks = blocks(text, Vec::new(), Some(&cwd), takes).expect("it can be sent");
            assert_eq!(blocks[0], json!({"type": "text", "text": text}));
            let texts: Vec<_> = blocks[1..].iter().map(|block| block["resource"]["text"].clone()).collect();
            assert_eq!(texts, embedded, "{text}");
            let elsewhere = super::blocks(text, Vec::new(), None, takes).expect("it can be sent");
            assert_eq!(elsewhere.len(), 1, "files of another machine are not looked for");
        }
        let whole = std::fs::canonicalize(&cwd).expect("it is there");
        let takes = Takes { capabilities: &json!({}), roots: &[whole] };
        let linked = blocks("@a.txt", Vec::new(), Some(&cwd), takes).expect("it can be sent");
        assert_eq!((&linked[1]["type"], &linked[1]["name"]), (&json!("resource_link"), &json!("a.txt")));
    }
}
