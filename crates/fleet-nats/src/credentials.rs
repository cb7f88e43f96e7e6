//! A file with credentials, as `nsc` writes it: what the servers gave this node, and the key that shows it to be its own.
//!
//! Not left to the client, which reads such a file by regular expressions, and their engine is a megabyte of the
//! program (docs/adr/0028).

use async_nats::{AuthError, ConnectOptions};
use nkeys::KeyPair;
use std::io;
use std::path::Path;
use std::sync::Arc;

/// What such a file has.
#[derive(Debug)]
pub(crate) struct Credentials {
    jwt: String,
    key: KeyPair,
}

impl Credentials {
    /// Reads a file.
    pub(crate) async fn read(file: &Path) -> io::Result<Self> {
        Self::parse(&tokio::fs::read_to_string(file).await?)
    }

    fn parse(text: &str) -> io::Result<Self> {
        let unfit = |why: &str| io::Error::new(io::ErrorKind::InvalidData, why.to_owned());
        let mut found = decorated(text);
        let jwt = found.next().ok_or_else(|| unfit("there is no JWT of a user in it"))?;
        let seed = found.next().ok_or_else(|| unfit("there is no seed of a key in it"))?;
        let key = KeyPair::from_seed(seed).map_err(|error| unfit(&format!("the seed: {error}")))?;
        Ok(Self { jwt: jwt.to_owned(), key })
    }

    /// Has connections show them.
    pub(crate) fn shown_by(self, options: ConnectOptions) -> ConnectOptions {
        let key = Arc::new(self.key);
        options.jwt(self.jwt, move |nonce| {
            let signature = key.sign(&nonce).map_err(AuthError::new);
            std::future::ready(signature)
        })
    }
}

/// Words that stand alone between two lines with dashes at both ends.
fn decorated(text: &str) -> impl Iterator<Item = &str> {
    let is_dashed = |line: &str| line.len() >= 6 && line.starts_with("---") && line.ends_with("---");
    let is_of_a_word = |char: char| char.is_ascii_alphanumeric() || "-_.=".contains(char);
    let lines = || text.lines().map(str::trim);
    let between = lines().zip(lines().skip(1)).zip(lines().skip(2));
    between.filter_map(move |((before, word), after)| {
        let is_word = !word.is_empty() && word.chars().all(is_of_a_word);
        (is_word && is_dashed(before) && is_dashed(after)).then_some(word)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    // contract 7.2: credentials are a file as `nsc` writes it
    #[test]
    fn a_file_of_nsc_has_a_token_and_a_seed() {
        let seed = KeyPair::new_user().seed().expect("it was just made");
        let file = |jwt: &str, seed: &str| {
            format!(
                "-----BEGIN NATS USER JWT-----\n{jwt}\n------END NATS USER JWT------\n\n\
                 ************************* IMPORTANT *************************\n\
                 NKEY Seed printed below can be used to sign and prove identity.\n\n\
                 -----BEGIN USER NKEY SEED-----\n{seed}\n------END USER NKEY SEED------\n\n\
                 *************************************************************\n"
            )
        };
        let good = file("eyJ0.eyJq-_=.Zm9v", &seed);
        for text in [&good, &good.replace('\n', "\r\n"), good.trim_end_matches(['*', '\n'])] {
            let read = Credentials::parse(text).expect("it is a file of nsc");
            assert_eq!((&*read.jwt, read.key.seed().ok()), ("eyJ0.eyJq-_=.Zm9v", Some(seed.clone())));
        }
        for bad in ["", "---", &seed, &file("eyJ0 .", &seed), &file("eyJ0", "SUAB"), &file("", "")] {
            let error = Credentials::parse(bad).expect_err("something is missing");
            assert_eq!(error.kind(), io::ErrorKind::InvalidData, "{bad}: {error}");
        }
    }
}
