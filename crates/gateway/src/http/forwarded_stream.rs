//! A stream of events that comes from another node: it ends with a reason when that node is lost.
//!
//! Invariant: the reason is written between two events only. In the middle of one the stream breaks off, as it does from the node
//! itself, and its reader drops that event.

use super::sse::Sse;
use bytes::Bytes;
use futures_util::stream::{self, Stream, StreamExt};
use std::pin::Pin;

/// What ends an event, and a comment.
const BLANK_LINE: [u8; 2] = *b"\n\n";

struct Forwarded<S> {
    chunks: S,
    gone: Pin<Box<dyn Future<Output = ()> + Send>>,
    /// The last bytes that were passed on.
    tail: [u8; 2],
    reason: String,
}

/// What comes of `chunks` until it ends, or `gone` is done; `reason` is what is said of a node that is lost, which breaks off or says nothing.
pub(super) fn forwarded<E>(
    chunks: impl Stream<Item = Result<Bytes, E>> + Send + Unpin,
    gone: impl Future<Output = ()> + Send + 'static,
    reason: String,
) -> impl Stream<Item = Result<Bytes, E>> + Send
where
    E: Send,
{
    let begun = Forwarded { chunks, gone: Box::pin(gone), tail: BLANK_LINE, reason };
    stream::unfold(Some(begun), async |state| {
        let mut state = state?;
        let lost = tokio::select! {
            // What has come is passed on first.
            biased;
            chunk = state.chunks.next() => match chunk? {
                Ok(chunk) => {
                    state.pass(&chunk);
                    return Some((Ok(chunk), Some(state)));
                }
                Err(error) => Err(error),
            },
            () = &mut state.gone => Ok(()),
        };
        match lost {
            _ if state.tail == BLANK_LINE => {
                Some((Ok(Sse::closed_for_now("unreachable", &state.reason)), None))
            }
            Ok(()) => None,
            Err(error) => Some((Err(error), None)),
        }
    })
}

impl<S> Forwarded<S> {
    fn pass(&mut self, chunk: &[u8]) {
        for byte in &chunk[chunk.len().saturating_sub(BLANK_LINE.len())..] {
            self.tail = [self.tail[1], *byte];
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn all(
        chunks: &[Result<&'static str, &'static str>],
        is_gone: bool,
    ) -> Vec<Result<String, &'static str>> {
        let chunks: Vec<_> =
            chunks.iter().map(|chunk| chunk.map(|text| Bytes::from_static(text.as_bytes()))).collect();
        let gone = async move {
            if !is_gone {
                std::future::pending::<()>().await;
            }
        };
        let chunks = stream::iter(chunks);
        let text = |chunk: Bytes| String::from_utf8_lossy(&chunk).into_owned();
        match is_gone {
            true => {
                forwarded(chunks.chain(stream::pending()), gone, "it is lost".to_owned())
                    .map(|chunk| chunk.map(text))
                    .collect()
                    .await
            }
            false => {
                forwarded(chunks, gone, "it is lost".to_owned()).map(|chunk| chunk.map(text)).collect().await
            }
        }
    }

    // contract 7.3: a stream by another node ends with the reason, and never in the middle of an event
    #[tokio::test]
    async fn the_reason_stands_between_events() {
        let is_closed = |end: &Result<String, &str>| {
            end.as_ref().is_ok_and(|end| {
                end.starts_with("event: closed\ndata: ")
                    && end.contains(r#""unreachable""#)
                    && end.contains("retryMs")
            })
        };
        let whole = [Ok("id: 1\ndata: {}\n"), Ok("\n")];
        assert_eq!(
            all(&whole, false).await,
            whole.map(|chunk| chunk.map(str::to_owned)),
            "its own end says why"
        );
        for begun in [&whole[..], &[]] {
            let broken: Vec<_> = begun.iter().copied().chain([Err("reset")]).collect();
            let told = all(&broken, false).await;
            assert_eq!(told.len(), broken.len());
            assert!(told.last().is_some_and(is_closed), "{told:?}");
        }
        let in_an_event = [Ok("id: 1\ndata: {}\n\nid: 2\nda"), Err("reset")];
        assert_eq!(all(&in_an_event, false).await[1], Err("reset"));
        let told = all(&whole, true).await;
        assert!(told.len() == 3 && told.last().is_some_and(is_closed), "{told:?}");
        assert_eq!(all(&[Ok("id: 1\n")], true).await, [Ok("id: 1\n".to_owned())]);
    }
}
