//! At most one epoch of a session adds to its archive at a time, and each event is there once and in order.

use acpd_fleet::{Assembly, Epoch, Piece};

/// What is wrong with the pieces of a session.
pub(crate) fn judge(pieces: &[Piece]) -> Vec<String> {
    let (mut wrong, mut assembly) = (Vec::new(), Assembly::default());
    let (mut epoch, mut reached) = (Epoch::default(), 0);
    for piece in pieces {
        if piece.epoch < epoch {
            let (Epoch(old), Epoch(new)) = (piece.epoch, epoch);
            wrong
                .push(format!("a piece of epoch {old}, events {:?}, is behind one of {new}", piece.events()));
        }
        epoch = epoch.max(piece.epoch);
        if let Some(run) = assembly.take(piece.clone()) {
            if run.first != reached + 1 {
                wrong.push(format!("the events {} to {} are behind event {reached}", run.first, run.last));
            }
            reached = run.last;
        }
    }
    wrong
}

#[cfg(test)]
mod tests {
    use super::*;

    fn piece((epoch, first, last, part, parts): (u64, u64, u64, u32, u32)) -> Piece {
        Piece { epoch: Epoch(epoch), first, last, part, parts, bytes: vec![1].into() }
    }

    // design fleet, tests: at most one epoch of a session appends at a time
    #[test]
    fn an_older_epoch_and_events_out_of_order_are_found() {
        for (what, pieces, count) in [
            ("nothing", vec![], 0),
            ("one owner", vec![(3, 1, 2, 0, 1), (3, 3, 3, 0, 1)], 0),
            ("the next one opens", vec![(3, 1, 2, 0, 1), (5, 3, 2, 0, 1), (5, 3, 4, 0, 1)], 0),
            ("half a run is said again", vec![(3, 1, 2, 0, 2), (5, 1, 0, 0, 1), (5, 1, 2, 0, 1)], 0),
            ("a run in parts", vec![(3, 1, 2, 0, 2), (3, 1, 2, 1, 2), (3, 3, 3, 0, 1)], 0),
            ("the last owner adds", vec![(3, 1, 2, 0, 1), (5, 3, 2, 0, 1), (3, 3, 4, 0, 1)], 1),
            ("twice", vec![(3, 1, 2, 0, 1), (3, 2, 3, 0, 1)], 1),
            ("a hole", vec![(3, 1, 2, 0, 1), (3, 4, 4, 0, 1)], 1),
            ("no begin", vec![(3, 2, 2, 0, 1)], 1),
        ] {
            let pieces: Vec<_> = pieces.into_iter().map(piece).collect();
            let found = judge(&pieces);
            assert_eq!(found.len(), count, "{what}: {found:?}");
        }
    }
}
