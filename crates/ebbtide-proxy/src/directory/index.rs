//! Registrations by the values of the attributes that look-ups name most often.

use super::endpoint::RegisteredEndpoint;
use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Bound;

/// The indexed attributes.
const INDEXED: [&str; 5] = ["ep", "d", "et", "rt", "if"];
/// The type of every endpoint (RFC 9176 section 6.4), which is not indexed.
const OF_ALL: &str = "core.rd-ep";

/// The most registrations that are gathered by the beginning of a value: beyond it a look at all of them costs less.
const MAX_FOUND: usize = 4096;
/// Bytes of a value that has an entry of its own.
const ENTRY: usize = 96;

/// See the [module](self).
#[derive(Debug, Default)]
pub(super) struct AttributeIndex(BTreeMap<(usize, String), BTreeSet<u32>>);

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

    /// The registrations that may have an attribute of this name with this value, or with one that begins with the text
    /// before its `*`. `None` if that is not known.
    pub(super) fn find(&self, name: &str, value: &str) -> Option<Cow<'_, BTreeSet<u32>>> {
        let at = position(name)?;
        let Some(start) = value.strip_suffix('*') else {
            let of_all = name == "rt" && value == OF_ALL;
            let found = self.0.get(&(at, value.to_owned()));
            return (!of_all).then(|| found.map_or_else(Cow::default, Cow::Borrowed));
        };
        if name == "rt" && OF_ALL.starts_with(start) {
            return None;
        }
        let from = Bound::Included((at, start.to_owned()));
        let found = self.0.range((from, Bound::Unbounded));
        let found = found.take_while(|((of, text), _)| *of == at && text.starts_with(start));
        let found = found.flat_map(|(_, numbers)| numbers).copied();
        let found: Vec<u32> = found.take(MAX_FOUND + 1).collect();
        (found.len() <= MAX_FOUND).then(|| Cow::Owned(found.into_iter().collect()))
    }
}
