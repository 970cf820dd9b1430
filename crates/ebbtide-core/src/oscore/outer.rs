//! Which parts of a message are outside of the ciphertext (RFC 8613 section 4.1, figure 5).

use super::option::OscoreValue;
use crate::wire::{Code, Content, Opt, OptionNumber};

/// Where an option stands.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(super) enum OptionPlace {
    /// Encrypted (Class E). That is also the place of all options that are not known.
    Inner,
    /// For proxies (Class U).
    Outer,
    /// In both places: Observe.
    Both,
}

impl OptionPlace {
    /// The place of the options that Ebbtide protects. Options that RFC 8613 allows in both places,
    /// Max-Age, the block options and No-Response among them, are inner ones: their outer forms are
    /// for proxies to change or to add.
    pub(super) const fn of(number: OptionNumber) -> Self {
        match number {
            OptionNumber::OBSERVE => Self::Both,
            OptionNumber::URI_HOST
            | OptionNumber::URI_PORT
            | OptionNumber::OSCORE
            | OptionNumber::EDHOC
            | OptionNumber::HOP_LIMIT
            | OptionNumber::PROXY_URI
            | OptionNumber::PROXY_SCHEME => Self::Outer,
            _ => Self::Inner,
        }
    }
}

/// The parts of a protected message.
#[derive(Copy, Clone, Debug)]
pub struct OuterMessage<'b> {
    /// The code that proxies see.
    pub code: Code,
    /// The value of the OSCORE option.
    pub value: OscoreValue,
    /// The payload: ciphertext and tag.
    pub payload: &'b [u8],
}

impl OuterMessage<'_> {
    /// The options of the message that protects `content`, in no particular order.
    pub fn options<'o>(&'o self, content: &Content<'o>) -> impl Iterator<Item = Opt<'o>> {
        let oscore = Opt { number: OptionNumber::OSCORE, value: self.value.as_slice() };
        let outer = |opt: &&Opt<'_>| OptionPlace::of(opt.number) != OptionPlace::Inner;
        content.options.iter().filter(outer).copied().chain([oscore])
    }
}
