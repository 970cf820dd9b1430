//! Option numbers and their properties (RFC 7252 sections 5.4 and 5.10).

use super::code::Code;
use core::fmt;

use coap_numbers::option;

/// The number of an option. The number itself determines how an unknown option is treated (RFC
/// 7252 section 5.4.6).
#[derive(Copy, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct OptionNumber(pub u16);

/// The longest value that the option format can express: 65535 of the two-byte extension plus its
/// base of 269 (RFC 7252 section 3.1).
pub const MAX_OPTION_LEN: usize = 65_535 + 269;

/// The limits in an option's definition.
#[derive(Copy, Clone)]
struct Format {
    min: u16,
    max: u16,
    repeatable: bool,
}

/// Declares the constants of [`OptionNumber`] from the registry's, and the table of their formats.
/// `foreign` marks an option that no layer of this crate implements; see
/// [`OptionNumber::is_known`].
macro_rules! options {
    ($($(#[doc = $doc:literal])* $name:ident $min:literal..=$max:literal $repeat:ident $known:ident;)*) => {
        impl OptionNumber {
            $($(#[doc = $doc])* pub const $name: Self = Self(option::$name);)*

            #[inline]
            const fn format(self) -> Option<Format> {
                Some(match self.0 {
                    $(option::$name => {
                        Format { min: $min, max: $max, repeatable: options!(@ $repeat) }
                    })*
                    _ => return None,
                })
            }

            /// Whether Ebbtide implements this option. It does not implement OSCORE, EDHOC and
            /// Q-Block at this layer: their numbers and formats are defined here, but an endpoint
            /// that does not implement one of them must reject a message with it (RFC 7252 section
            /// 5.4.1, RFC 8613 section 2).
            #[inline]
            #[must_use]
            pub const fn is_known(self) -> bool {
                match self.0 {
                    $(option::$name => options!(@ $known),)*
                    _ => false,
                }
            }
        }
    };
    (@ many) => { true };
    (@ once) => { false };
    (@ known) => { true };
    (@ foreign) => { false };
}

options! {
    /// RFC 7252 section 5.10.8.1.
    IF_MATCH 0..=8 many known;
    /// RFC 7252 section 5.10.1.
    URI_HOST 1..=255 once known;
    /// RFC 7252 section 5.10.6. In a response at most one (section 5.10.6.1).
    ETAG 1..=8 many known;
    /// RFC 7252 section 5.10.8.2.
    IF_NONE_MATCH 0..=0 once known;
    /// RFC 7641 section 2.
    OBSERVE 0..=3 once known;
    /// RFC 7252 section 5.10.1.
    URI_PORT 0..=2 once known;
    /// RFC 7252 section 5.10.7.
    LOCATION_PATH 0..=255 many known;
    /// RFC 8613 section 2.
    OSCORE 0..=255 once foreign;
    /// RFC 7252 section 5.10.1.
    URI_PATH 0..=255 many known;
    /// RFC 7252 section 5.10.3.
    CONTENT_FORMAT 0..=2 once known;
    /// RFC 7252 section 5.10.5.
    MAX_AGE 0..=4 once known;
    /// RFC 7252 section 5.10.1.
    URI_QUERY 0..=255 many known;
    /// RFC 8768 section 3.
    HOP_LIMIT 1..=1 once known;
    /// RFC 7252 section 5.10.4.
    ACCEPT 0..=2 once known;
    /// RFC 9177 section 4.1.
    Q_BLOCK1 0..=3 once foreign;
    /// RFC 7252 section 5.10.7.
    LOCATION_QUERY 0..=255 many known;
    /// RFC 9668 section 3.1.
    EDHOC 0..=0 once foreign;
    /// RFC 7959 section 2.1.
    BLOCK2 0..=3 once known;
    /// RFC 7959 section 2.1.
    BLOCK1 0..=3 once known;
    /// RFC 7959 section 4.
    SIZE2 0..=4 once known;
    /// RFC 9177 section 4.1. Repeatable in requests for missing blocks.
    Q_BLOCK2 0..=3 many foreign;
    /// RFC 7252 section 5.10.2.
    PROXY_URI 1..=1034 once known;
    /// RFC 7252 section 5.10.2.
    PROXY_SCHEME 1..=255 once known;
    /// RFC 7252 section 5.10.9, RFC 7959 section 4.
    SIZE1 0..=4 once known;
    /// RFC 9175 section 2.2.1.
    ECHO 1..=40 once known;
    /// RFC 7967 section 2.
    NO_RESPONSE 0..=1 once known;
    /// RFC 9175 section 3.2.1.
    REQUEST_TAG 0..=8 many known;
}

impl OptionNumber {
    /// PM (draft-ietf-core-coap-pm), for which no number is assigned: one of the experimental
    /// range, elective, unsafe to forward.
    pub const PM: Self = Self(65_022);
    /// Whether Ebbtide [implements](Self::is_known) this option in messages with such a code. A critical
    /// option that is defined for requests only counts as unrecognized in a response (RFC 7252 section
    /// 5.4).
    #[inline]
    #[must_use]
    pub const fn is_known_in(self, code: Code) -> bool {
        self.is_known()
            && (code.is_request()
                || !self.is_critical()
                || matches!(self, Self::BLOCK1 | Self::BLOCK2))
    }

    /// Whether it is one of the block options of RFC 9177, which count as recognized where its blocks are supported.
    #[inline]
    #[must_use]
    pub const fn is_q_block(self) -> bool {
        matches!(self, Self::Q_BLOCK1 | Self::Q_BLOCK2)
    }

    /// Whether a message with this option must be rejected by a receiver that does not understand
    /// the option; other options are ignored (RFC 7252 section 5.4.1).
    #[inline]
    #[must_use]
    pub const fn is_critical(self) -> bool {
        self.0 & 1 != 0
    }

    /// Whether a proxy that does not understand this option must not forward the message (RFC 7252
    /// section 5.4.2).
    #[inline]
    #[must_use]
    pub const fn is_unsafe_to_forward(self) -> bool {
        self.0 & 2 != 0
    }

    /// Whether requests that differ in this option only may share a cached response. Has a meaning
    /// only for options that are safe to forward (RFC 7252 section 5.4.6, figure 11).
    #[inline]
    #[must_use]
    pub const fn is_no_cache_key(self) -> bool {
        self.0 & 0x1e == 0x1c
    }

    /// Whether the option's definition allows it to be repeated in a message (RFC 7252 section
    /// 5.4.5, table 4). `false` for an option without a constant here.
    #[inline]
    #[must_use]
    pub const fn is_repeatable(self) -> bool {
        matches!(self.format(), Some(Format { repeatable: true, .. }))
    }

    /// The shortest and the longest value that the option's definition allows (RFC 7252 section
    /// 5.4.3, table 4), if it has a constant here.
    #[inline]
    #[must_use]
    pub const fn length_bounds(self) -> Option<(u16, u16)> {
        match self.format() {
            Some(format) => Some((format.min, format.max)),
            None => None,
        }
    }

    /// Whether a value of `len` bytes is within [`Self::length_bounds`]; true if the option has no
    /// bounds.
    #[inline]
    #[must_use]
    pub const fn allows_length(self, len: usize) -> bool {
        match self.format() {
            Some(format) => format.min as usize <= len && len <= format.max as usize,
            None => true,
        }
    }

    /// The registered name, such as `Uri-Path`.
    #[must_use]
    pub fn name(self) -> Option<&'static str> {
        option::to_name(self.0)
    }
}

impl fmt::Display for OptionNumber {
    /// The name if there is one, else `option 65000`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.name() {
            Some(name) => f.write_str(name),
            None => write!(f, "option {}", self.0),
        }
    }
}

impl fmt::Debug for OptionNumber {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "OptionNumber({} {})", self.0, self.name().unwrap_or("unregistered"))
    }
}
