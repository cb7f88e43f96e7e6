//! Reading a session out of the archive, a run at a time.
//!
//! Memory is bounded by a run. What retention has removed is not there: then the first event is a later one than was asked for.

use crate::archive::{Assembly, Position, Run};
use crate::engine::{Engine, EngineError};
use acpd_record::SessionId;
use std::sync::Arc;

/// The events of a session in the archive.
#[derive(Debug)]
pub struct History {
    engine: Arc<dyn Engine>,
    session: SessionId,
    behind: Position,
    assembly: Assembly,
    /// The last event that was given, or where it began.
    reached: u64,
    last: u64,
}

impl History {
    pub(crate) async fn open(
        engine: Arc<dyn Engine>,
        session: SessionId,
        after: u64,
    ) -> Result<Self, EngineError> {
        let found = engine.last(&session).await?;
        let (last, end) = found.map_or((0, Position::default()), |(piece, at)| (piece.whole_until(), at));
        let behind = begin(&*engine, &session, after, end).await?;
        Ok(Self { engine, session, behind, assembly: Assembly::default(), reached: after, last })
    }

    /// The last event that was given, or where it began.
    pub fn position(&self) -> u64 {
        self.reached
    }

    /// The last event that was there at the beginning.
    pub fn last(&self) -> u64 {
        self.last
    }

    /// The next run with events that were not given; its first ones may have been. None at the end.
    ///
    /// # Errors
    /// When the engine does not answer. It can be asked again.
    pub async fn next(&mut self) -> Result<Option<Run>, EngineError> {
        while let Some((piece, position)) = self.engine.read(&self.session, self.behind).await? {
            self.behind = position;
            let run = self.assembly.take(piece).filter(|run| run.last > self.reached);
            if let Some(run) = run {
                self.reached = run.last;
                return Ok(Some(run));
            }
        }
        Ok(None)
    }
}

/// A place up to which no piece has an event behind `after`: by halves, since places do not count events.
async fn begin(
    engine: &dyn Engine,
    session: &SessionId,
    after: u64,
    end: Position,
) -> Result<Position, EngineError> {
    let (mut low, mut high) = (0, if after == 0 { 0 } else { end.0 });
    while low < high {
        let middle = low + (high - low) / 2;
        match engine.read(session, Position(middle)).await? {
            Some((piece, at)) if piece.last <= after => low = at.0,
            _ => high = middle,
        }
    }
    Ok(Position(low))
}
