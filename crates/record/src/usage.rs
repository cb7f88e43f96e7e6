//! What a session has used, as far as its agent tells: tokens for each turn, and what all of it has cost so far.
//!
//! Sums are whole numbers, so that they are the same in whatever order and from whatever checkpoint they are made. What an
//! agent writes wrongly is as good as not told. Not here: what is in the agent's context window, which the snapshot has.

use crate::message::update_of;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use std::borrow::Cow;
use std::collections::BTreeMap;

/// Kinds of tokens, and currencies, that are told apart. An agent names them; what comes later is not counted.
const KINDS: usize = 16;
const CURRENCIES: usize = 8;

/// Bytes of the name of either.
const NAME: usize = 64;

/// What the name of a count ends with in the usage of a turn.
const TOKENS: &str = "Tokens";

/// Billionths of a unit of a currency: 18 billion units fit.
const NANOS: f64 = 1e9;

/// Tokens, and what they cost.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Usage {
    /// By kind.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    tokens: BTreeMap<Box<str>, u64>,
    /// By currency, in billionths.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    cost_nanos: BTreeMap<Box<str>, u64>,
}

/// What a session has used, as clients see it: the sums over its turns. A kind or currency that its agent never told is
/// absent.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(rename = "Usage"))]
pub struct ShownUsage {
    /// Tokens by kind, as its agent names them: `input`, `output`, `thought`, `cachedRead`, `cachedWrite`, and `total`, which is
    /// the agent's own sum.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub tokens: BTreeMap<String, u64>,
    /// What they cost by currency, as its agent names it: `USD`, or a unit such as `credits`.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub cost: BTreeMap<String, f64>,
}

impl Usage {
    /// Whether nothing was told.
    pub fn is_empty(&self) -> bool {
        self.tokens.is_empty() && self.cost_nanos.is_empty()
    }

    /// Tokens by kind.
    pub fn tokens(&self) -> impl Iterator<Item = (&str, u64)> {
        self.tokens.iter().map(|(kind, count)| (&**kind, *count))
    }

    /// What they cost by currency, in billionths.
    pub fn cost_nanos(&self) -> impl Iterator<Item = (&str, u64)> {
        self.cost_nanos.iter().map(|(currency, nanos)| (&**currency, *nanos))
    }

    /// What was used since it was `before`.
    pub fn since(&self, before: &Self) -> Self {
        Self {
            tokens: growth(&self.tokens, &before.tokens),
            cost_nanos: growth(&self.cost_nanos, &before.cost_nanos),
        }
    }

    /// As clients see it; nothing where nothing was told.
    pub fn shown(&self) -> Option<ShownUsage> {
        let tokens = self.tokens().map(|(kind, count)| (kind.to_owned(), count));
        // The quotient is the number that is nearest to the decimal fraction, so it is written as that.
        let cost = self.cost_nanos().map(|(currency, nanos)| (currency.to_owned(), nanos as f64 / NANOS));
        (!self.is_empty()).then(|| ShownUsage { tokens: tokens.collect(), cost: cost.collect() })
    }
}

fn growth(now: &BTreeMap<Box<str>, u64>, before: &BTreeMap<Box<str>, u64>) -> BTreeMap<Box<str>, u64> {
    let grown = now.iter().map(|(name, amount)| {
        (name.clone(), amount.saturating_sub(before.get(name).copied().unwrap_or_default()))
    });
    grown.filter(|(_, more)| *more > 0).collect()
}

/// Counts what the agent of a session tells.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Meter {
    used: Usage,
    /// The agent's running totals by currency. There is one for each currency of which something was counted.
    told: BTreeMap<Box<str>, RunningTotal>,
}

/// What the agent said last of what a session has cost so far.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
struct RunningTotal {
    nanos: u64,
    /// It was said in an earlier run, or of the session that this one is a fork of.
    is_old: bool,
}

/// A running total as agents send it. An amount out of the range of `f64` is none, as in the form that every reader takes
/// ([`acpd_wire::readable`]): nobody knows what was paid.
#[derive(Deserialize)]
struct Cost<'a> {
    amount: f64,
    #[serde(borrow)]
    currency: Cow<'a, str>,
}

impl Meter {
    /// What was counted.
    pub(crate) fn used(&self) -> &Usage {
        &self.used
    }

    /// A turn ended with this result of the agent.
    pub(crate) fn turn_ended(&mut self, result: &RawValue) {
        #[derive(Deserialize)]
        struct Result<'a> {
            #[serde(borrow, default)]
            usage: Option<BTreeMap<Cow<'a, str>, &'a RawValue>>,
        }
        let told = serde_json::from_str::<Result<'_>>(result.get()).ok().and_then(|result| result.usage);
        for (name, count) in told.unwrap_or_default() {
            let Some(kind) = name.strip_suffix(TOKENS).filter(|kind| is_name(kind)) else { continue };
            let Ok(count) = serde_json::from_str::<u64>(count.get()) else { continue };
            if let Some(sum) = entry(&mut self.used.tokens, kind, KINDS) {
                *sum = sum.saturating_add(count);
            }
        }
    }

    /// An agent tells in a `usage_update` what the session has cost so far: what counts is the growth.
    pub(crate) fn updated(&mut self, line: &[u8]) {
        #[derive(Deserialize)]
        struct Update<'a> {
            #[serde(borrow, default)]
            cost: Option<&'a RawValue>,
        }
        let cost = update_of::<Update<'_>>(line).and_then(|update| update.cost);
        let cost = cost.and_then(|cost| serde_json::from_str::<Cost<'_>>(cost.get()).ok());
        let Some(Cost { amount, currency }) = cost.filter(|cost| cost.amount >= 0.0) else { return };
        if is_name(&currency) {
            // More than fits is as much as fits.
            self.told(&currency, (amount * NANOS).round() as u64);
        }
    }

    fn told(&mut self, currency: &str, nanos: u64) {
        let Some(total) = entry(&mut self.told, currency, CURRENCIES) else { return };
        let more = match nanos.checked_sub(total.nanos) {
            Some(more) => more,
            // The agent has begun to count anew.
            None if total.is_old => nanos,
            // What was paid stays paid.
            None => 0,
        };
        *total = RunningTotal { nanos, is_old: false };
        let sum = self.used.cost_nanos.entry(currency.into()).or_default();
        *sum = sum.saturating_add(more);
    }

    /// A run began. An agent that goes on with its session goes on counting, or begins anew, which shows when its total is less
    /// than before; in a new session of its own it begins anew (`is_anew`).
    pub(crate) fn run_started(&mut self, is_anew: bool) {
        for total in self.told.values_mut() {
            total.is_old = true;
            if is_anew {
                total.nanos = 0;
            }
        }
    }

    /// What was counted up to now is what the source of a fork has used. Some agents go on with its total in the fork.
    pub(crate) fn forked(&mut self) {
        self.used = Usage::default();
        self.run_started(false);
    }
}

impl Default for RunningTotal {
    fn default() -> Self {
        Self { nanos: 0, is_old: true }
    }
}

fn is_name(name: &str) -> bool {
    (1..=NAME).contains(&name.len())
}

/// The entry of a name, as long as there is room for it.
fn entry<'a, T: Default>(map: &'a mut BTreeMap<Box<str>, T>, name: &str, most: usize) -> Option<&'a mut T> {
    (map.len() < most || map.contains_key(name)).then(|| map.entry(name.into()).or_default())
}

#[cfg(test)]
mod tests;
