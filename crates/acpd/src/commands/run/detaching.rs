//! `acpd run --detach`: the turn is started in the daemon, and left.

use super::conversation::Conversation;
use super::home::Home;
use crate::exit::Failure;
use crate::streams::print;

impl Conversation {
    /// Prompts the session without waiting for the turn, and prints its id: for a program that is what follows on, for a
    /// person too. A prompt that waits in line is as good as begun.
    pub(super) async fn detach(&mut self) -> Result<(), Failure> {
        let blocks = self.words.blocks(&self.capabilities);
        let (Some(session), Home::Daemon { daemon, .. }) = (&self.session, &self.home) else { return Ok(()) };
        match daemon.prompt(session, &blocks).await {
            Ok(_) => {
                // A program has read it in the first line.
                if self.show.lines().is_none() {
                    print(session)?;
                }
                self.outcome = Some(Ok(()));
            }
            Err(error) => self.outcome = Some(Err(error.into())),
        }
        Ok(())
    }
}
