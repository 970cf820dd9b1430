//! Registrations by the values of the attributes that look-ups name most often.

use super::endpoint::RegisteredEndpoint;
use super::lookup::Lookup;
use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Bound;

/// The indexed attributes.
const INDEXED: [&str; 5] = ["ep", "d", "et", "rt", "if"];
/// The type of every endpoint (RFC 9176 section 6.4), which is not indexed.
const OF_ALL: &str = "core.rd-ep";

/// The most registrations that are gathered by the beginning of a value: beyond it a look at all of them costs less.
const MAX_GATHERED: usize = 4096;
/// The most that are gathered for one look-up, in multiples of that.
const BEGINNINGS: usize = 4;
/// Registrations that are gathered in a step of a client's work.
const IN_A_STEP: usize = 16;
/// So few candidates are looked at rather than compared with the beginnings of values.
const FEW: usize = 8;
/// Bytes of a value that has an entry of its own.
const ENTRY: usize = 96;

/// See the [module](self).
#[derive(Debug, Default)]
pub(super) struct AttributeIndex(BTreeMap<(usize, String), BTreeSet<u32>>);

/// The registrations that a look-up has to pass.
#[derive(Debug)]
pub(super) struct Candidates<'i> {
    /// `None` for all of them.
    pub(super) numbers: Option<Cow<'i, BTreeSet<u32>>>,
    /// The steps of work that it took to gather them.
    pub(super) steps: usize,
}

/// The position of an attribute in the index.
fn position(name: &str) -> Option<usize> {
    INDEXED.iter().position(|indexed| *indexed == name)
}

/// The indexed values of an endpoint and its links. An attribute with several values has the whole
/// text and each of them.
fn values(endpoint: &RegisteredEndpoint) -> BTreeSet<(usize, String)> {
    let links = endpoint.links.iter().flat_map(|link| &link.attributes);
    let named = endpoint
        .attributes
        .iter()
        .chain(links)
        .filter_map(|attribute| Some((position(&attribute.name)?, attribute.value())));
    let name = Some(&endpoint.name.name).into_iter().map(|name| (0, name.clone()));
    let sector = endpoint.name.sector.iter().map(|sector| (1, sector.clone()));
    let whole: Vec<_> = name.chain(sector).chain(named).collect();
    let parts =
        whole.iter().flat_map(|(at, text)| text.split(' ').map(|part| (*at, part.to_owned())));
    parts.chain(whole.iter().cloned()).collect()
}

/// The most bytes that an endpoint takes in the index.
pub(super) fn cost(endpoint: &RegisteredEndpoint) -> usize {
    values(endpoint).iter().map(|(_, text)| ENTRY + text.len()).sum()
}

impl AttributeIndex {
    #[cfg(test)]
    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(super) fn add(&mut self, number: u32, endpoint: &RegisteredEndpoint) {
        for value in values(endpoint) {
            self.0.entry(value).or_default().insert(number);
        }
    }

    pub(super) fn remove(&mut self, number: u32, endpoint: &RegisteredEndpoint) {
        for value in values(endpoint) {
            if let Some(numbers) = self.0.get_mut(&value) {
                numbers.remove(&number);
                if numbers.is_empty() {
                    self.0.remove(&value);
                }
            }
        }
    }

    /// The registrations that a look-up has to pass. Gathers no more than so many steps allow.
    pub(super) fn candidates(&self, lookup: &Lookup, max_steps: usize) -> Candidates<'_> {
        let (beginnings, whole): (Vec<_>, Vec<_>) =
            lookup.values().partition(|(_, value)| value.ends_with('*'));
        // Whole values first: their registrations are gathered already.
        let whole = whole.into_iter().filter_map(|(name, value)| self.find(name, value));
        let mut numbers = whole.min_by_key(|numbers| numbers.len());
        let all = max_steps.saturating_mul(IN_A_STEP).min(BEGINNINGS * MAX_GATHERED);
        let mut left = all;
        for (name, value) in beginnings {
            let fewest = numbers.as_ref().map_or(MAX_GATHERED, |numbers| numbers.len());
            if fewest <= FEW || left == 0 {
                break;
            }
            let max = fewest.min(MAX_GATHERED).min(left);
            let Some(found) = self.beginning(name, value, max + 1) else { continue };
            left = left.saturating_sub(found.len());
            if found.len() <= max {
                numbers = Some(Cow::Owned(found.into_iter().collect()));
            }
        }
        Candidates { numbers, steps: (all - left).div_ceil(IN_A_STEP) }
    }

    /// The registrations that may have an attribute of this name with this value. `None` if that is not known.
    fn find(&self, name: &str, value: &str) -> Option<Cow<'_, BTreeSet<u32>>> {
        let at = position(name)?;
        if name == "rt" && value == OF_ALL {
            return None;
        }
        let found = self.0.get(&(at, value.to_owned()));
        Some(found.map_or_else(Cow::default, Cow::Borrowed))
    }

    /// The same for values that begin with the text before the `*`: at most so many, each perhaps several times.
    fn beginning(&self, name: &str, value: &str, max: usize) -> Option<Vec<u32>> {
        let (at, start) = (position(name)?, value.strip_suffix('*')?);
        if name == "rt" && OF_ALL.starts_with(start) {
            return None;
        }
        let from = Bound::Included((at, start.to_owned()));
        let found = self.0.range((from, Bound::Unbounded));
        let found = found.take_while(|((of, text), _)| *of == at && text.starts_with(start));
        Some(found.flat_map(|(_, numbers)| numbers).copied().take(max).collect())
    }
}
