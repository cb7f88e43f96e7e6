//! What a prompt takes from standard input.
//!
//! Read before anything is started, so that a signal still ends the process as it ends any other. Not here: whether
//! it is to be read.

use crate::cli::Prompt;
use crate::exit::Failure;
use crate::streams::remark;
use std::io::Read;
use std::time::Duration;

/// The most that is appended to words, in bytes; a prompt of its own is bounded by the length of a message.
const APPENDED: u64 = 16 << 20;
/// After so long it is said what is waited for: standard input may have been left open.
const NOTICED: Duration = Duration::from_secs(1);

/// The whole prompt.
pub(crate) async fn whole(prompt: Prompt) -> Result<String, Failure> {
    match prompt {
        Prompt::Words(words) => Ok(words),
        Prompt::WordsAndStdin(words) => {
            // One more shows whether there is more.
            let text = read(APPENDED + 1).await?;
            if text.len() as u64 > APPENDED {
                return Err(Failure::Usage(format!(
                    "standard input has more than {} MiB, which is the most that is appended to words; `-` alone reads \
                     all of it",
                    APPENDED >> 20
                )));
            }
            Ok(appended(words, &text))
        }
        Prompt::Stdin => {
            let text = read(u64::MAX).await?;
            match text.trim().is_empty() {
                true => Err(Failure::Usage("the prompt on stdin is empty".to_owned())),
                false => Ok(text),
            }
        }
    }
}

/// Words, and on a line of its own what came behind them.
fn appended(words: String, text: &str) -> String {
    if text.trim().is_empty() { words } else { format!("{words}\n{text}") }
}

/// Reads standard input to its end, at most so many bytes of it.
async fn read(most: u64) -> Result<String, Failure> {
    let reading = tokio::task::spawn_blocking(move || {
        let mut bytes = Vec::new();
        std::io::stdin().lock().take(most).read_to_end(&mut bytes).map(|_| bytes)
    });
    let read = notice(reading, || remark("reading standard input; </dev/null to skip")).await;
    let cannot =
        |why: &dyn std::fmt::Display| Failure::Usage(format!("cannot read the prompt from stdin: {why}"));
    let bytes = read.map_err(|error| cannot(&error))?.map_err(|error| cannot(&error))?;
    // Cut in the middle of a character it is too long, not unreadable.
    if bytes.len() as u64 == most {
        return Ok(String::from_utf8_lossy(&bytes).into_owned());
    }
    String::from_utf8(bytes).map_err(|_| cannot(&"it is not UTF-8"))
}

/// Waits for `reading`; calls `tell` once if that takes longer than [`NOTICED`].
async fn notice<T>(reading: impl Future<Output = T>, tell: impl FnOnce()) -> T {
    tokio::pin!(reading);
    match tokio::time::timeout(NOTICED, &mut reading).await {
        Ok(read) => read,
        Err(_) => {
            tell();
            reading.await
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{NOTICED, appended, notice};
    use std::time::Duration;

    // contract 7.1: standard input is appended to the words, and nothing is added to words without any
    #[test]
    fn what_is_on_stdin_follows_the_words() {
        for (text, whole) in
            [("", "review"), (" \n", "review"), ("a\n", "review\na\n"), ("a\nb", "review\na\nb")]
        {
            assert_eq!(appended("review".to_owned(), text), whole);
        }
    }

    // contract 7.1: a wait for standard input is told once, and only one that a person notices
    #[tokio::test(start_paused = true)]
    async fn a_long_wait_is_told() {
        let moment = Duration::from_millis(1);
        for (wait, times) in [(NOTICED - moment, 0), (NOTICED + moment, 1), (NOTICED * 5, 1)] {
            let mut told = 0;
            let reading = tokio::time::timeout(wait, std::future::pending::<()>());
            notice(reading, || told += 1).await.expect_err("nothing comes");
            assert_eq!(told, times, "{wait:?}");
        }
    }
}
