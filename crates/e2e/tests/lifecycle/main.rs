//! The life of sessions over ACP: ending, listing, taking up again, forking (contract 1.1 to 1.5).

mod asking;
mod attaching;
mod bounds;
mod causes;
mod closing;
mod contested;
mod forks;
mod isolation;
mod late_replays;
mod listing;
mod memory;
mod optional_methods;
mod paging;
mod replays;
mod runs;
mod secrets;
mod shared;
mod spare;
mod stalling;
mod starts;
mod state;
mod stderr_logs;
mod stored;
mod tapped;
mod terminate;
mod transcripts;
