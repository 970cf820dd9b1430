//! Options that own their values.

use crate::wire::{Opt, OptionIter, OptionNumber, encode_uint};
use alloc::boxed::Box;
use alloc::vec::Vec;
use core::fmt;

/// The maximum number of options without an allocation.
const INLINE: usize = 4;
/// The maximum length of their values without an allocation.
const SHORT: usize = 8;

/// The options of a message, in the order in which they were added.
///
/// Up to four options of at most eight bytes each need no allocation: for example a Content-Format,
/// an ETag and a block option.
#[derive(Clone)]
pub struct Options {
    short: [ShortOption; INLINE],
    len: u8,
    /// Most messages need none: 8 bytes instead of 24.
    more: Option<Box<LongOptions>>,
}

type LongOptions = Vec<(OptionNumber, Box<[u8]>)>;

#[derive(Copy, Clone)]
struct ShortOption {
    number: u16,
    len: u8,
    value: [u8; SHORT],
}

impl ShortOption {
    const EMPTY: Self = Self { number: 0, len: 0, value: [0; SHORT] };
}

impl Default for Options {
    #[inline]
    fn default() -> Self {
        Self::new()
    }
}

impl Options {
    /// Creates an empty list.
    #[inline]
    #[must_use]
    pub const fn new() -> Self {
        Self { short: [ShortOption::EMPTY; INLINE], len: 0, more: None }
    }

    /// Adds an option.
    #[inline]
    pub fn push(&mut self, number: OptionNumber, value: &[u8]) {
        // Once one did not fit, all further ones go to the end, so that those of one number keep
        // their order.
        if self.more.is_none()
            && let Some(place) = self.short.get_mut(usize::from(self.len))
            && let Some(start) = place.value.get_mut(..value.len())
        {
            start.copy_from_slice(value);
            place.number = number.0;
            place.len = value.len() as u8;
            self.len += 1;
        } else {
            self.more.get_or_insert_default().push((number, value.into()));
        }
    }

    /// Adds an option whose value is an unsigned integer (RFC 7252 section 3.2).
    #[inline]
    pub fn push_uint(&mut self, number: OptionNumber, value: u32) {
        self.push(number, encode_uint(value, &mut [0; 4]));
    }

    /// Replaces all options of a number by one.
    #[inline]
    pub fn set_uint(&mut self, number: OptionNumber, value: u32) {
        self.remove(number);
        self.push_uint(number, value);
    }

    /// Removes all options of a number.
    #[inline]
    pub fn remove(&mut self, number: OptionNumber) {
        if !self.is_empty() && self.get(number).is_some() {
            self.remove_some(number);
        }
    }

    fn remove_some(&mut self, number: OptionNumber) {
        let kept: Self = self.iter().filter(|opt| opt.number != number).collect();
        *self = kept;
    }

    /// Iterates over the options in the order in which they were added.
    #[inline]
    pub fn iter(&self) -> impl Iterator<Item = Opt<'_>> {
        let short = self.short.iter().take(usize::from(self.len)).map(|short| Opt {
            number: OptionNumber(short.number),
            value: short.value.get(..usize::from(short.len)).unwrap_or_default(),
        });
        short.chain(self.more().iter().map(|(number, value)| Opt { number: *number, value }))
    }

    #[inline]
    fn more(&self) -> &[(OptionNumber, Box<[u8]>)] {
        self.more.as_deref().map_or(&[], Vec::as_slice)
    }

    /// The first option of a number.
    #[inline]
    #[must_use]
    pub fn get(&self, number: OptionNumber) -> Option<Opt<'_>> {
        self.iter().find(|opt| opt.number == number)
    }

    /// The first option of a number as an unsigned integer.
    #[inline]
    #[must_use]
    pub fn get_uint(&self, number: OptionNumber) -> Option<u32> {
        self.get(number)?.as_uint()
    }

    /// The number of options.
    #[inline]
    #[must_use]
    pub fn len(&self) -> usize {
        usize::from(self.len) + self.more().len()
    }

    /// Whether there are no options.
    #[inline]
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Calls `with` with all options as a slice, which allocates only for more than eight.
    #[inline]
    pub fn with_slice<R>(&self, extra: Option<Opt<'_>>, with: impl FnOnce(&[Opt<'_>]) -> R) -> R {
        with_options(self.iter().chain(extra), with)
    }
}

/// Calls `with` with these options as a slice, which allocates only for more than eight.
#[doc(hidden)]
#[inline]
pub fn with_options<'o, R>(
    mut options: impl Iterator<Item = Opt<'o>>,
    with: impl FnOnce(&[Opt<'o>]) -> R,
) -> R {
    let mut few = [Opt { number: OptionNumber(0), value: &[] }; 8];
    for (count, place) in few.iter_mut().enumerate() {
        let Some(opt) = options.next() else {
            return with(few.get(..count).unwrap_or_default());
        };
        *place = opt;
    }
    match options.next() {
        None => with(&few),
        Some(next) => with(&few.into_iter().chain([next]).chain(options).collect::<Vec<_>>()),
    }
}

impl<'a> FromIterator<Opt<'a>> for Options {
    fn from_iter<I: IntoIterator<Item = Opt<'a>>>(options: I) -> Self {
        let mut collected = Self::new();
        for opt in options {
            collected.push(opt.number, opt.value);
        }
        collected
    }
}

impl From<OptionIter<'_>> for Options {
    fn from(options: OptionIter<'_>) -> Self {
        options.collect()
    }
}

impl fmt::Debug for Options {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.iter()).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec::Vec;

    #[test]
    fn options_of_one_number_keep_their_order_whatever_their_length() {
        let mut options = Options::new();
        for segment in ["a", "rather-long-segment", "b", "c", "d", "e"] {
            options.push(OptionNumber::URI_PATH, segment.as_bytes());
        }
        let path: Vec<_> = options.iter().filter_map(|opt| opt.as_str()).collect();
        assert_eq!(path, ["a", "rather-long-segment", "b", "c", "d", "e"]);
    }

    #[test]
    fn setting_an_option_replaces_it() {
        let mut options = Options::new();
        assert!(options.is_empty());
        options.push_uint(OptionNumber::MAX_AGE, 5);
        assert!(!options.is_empty());
        options.push_uint(OptionNumber::BLOCK2, 6);
        options.set_uint(OptionNumber::MAX_AGE, 70_000);
        assert_eq!(options.get_uint(OptionNumber::MAX_AGE), Some(70_000));
        assert_eq!(options.len(), 2);
    }
}
