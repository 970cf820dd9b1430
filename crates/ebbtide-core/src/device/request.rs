//! The messages of a request: the program's options, and those that are added.

use crate::wire::{Code, Content, Opt, OptionNumber, encode_uint};

/// The options of a message, at most, and the added ones among them: in a request Echo,
/// Request-Tag, Block1, Block2, Size1 and Observe, in a response ETag, Content-Format, Max-Age,
/// Block1, Block2, Size2, Observe and Echo.
const OPTIONS: usize = 16;
const ADDED: usize = 8;
/// The longest value that is added, an Echo (RFC 9175 section 2.2.1).
const VALUE: usize = 40;

/// A request without an address: a method, options, and the length of its body.
#[derive(Copy, Clone, Debug)]
pub struct DeviceRequestParts<'r> {
    /// The method.
    pub code: Code,
    /// The options of all its messages, including those of the URI: at most nine.
    pub options: &'r [Opt<'r>],
    /// The length of the body in bytes.
    pub length: usize,
    /// The size exponent of blocks: they have `2^(szx + 4)` bytes (RFC 7959 section 2.2). A message
    /// must have room for one.
    pub szx: u8,
}

impl DeviceRequestParts<'_> {
    /// Whether the request is idempotent, by the rule of
    /// [`Message::is_idempotent`](crate::wire::Message::is_idempotent).
    pub(super) fn is_idempotent(&self) -> bool {
        Content { code: self.code, options: self.options, payload: &[] }.is_idempotent()
    }
}

/// The program's part of a message.
pub(super) struct Parts<'p> {
    pub(super) code: Code,
    pub(super) options: &'p [Opt<'p>],
    /// An option that this message does not have.
    pub(super) without: Option<OptionNumber>,
}

impl Parts<'_> {
    /// A message that has the added options alone.
    pub(super) const fn added(code: Code) -> Self {
        Self { code, options: &[], without: None }
    }
}

/// An option that is added.
#[derive(Copy, Clone)]
pub(super) struct Added {
    number: OptionNumber,
    value: [u8; VALUE],
    length: u8,
}

/// The options that are added to those of the program.
pub(super) struct AddedOptions {
    all: [Added; ADDED],
    length: usize,
}

impl AddedOptions {
    pub(super) const NONE: Self = Self {
        all: [Added { number: OptionNumber(0), value: [0; VALUE], length: 0 }; ADDED],
        length: 0,
    };

    pub(super) fn push(&mut self, number: OptionNumber, value: &[u8]) {
        let Some(place) = self.all.get_mut(self.length) else { return };
        let Some(room) = place.value.get_mut(..value.len()) else { return };
        room.copy_from_slice(value);
        (place.number, place.length) = (number, value.len() as u8);
        self.length += 1;
    }

    pub(super) fn push_uint(&mut self, number: OptionNumber, value: u32) {
        self.push(number, encode_uint(value, &mut [0; 4]));
    }

    /// Calls `send` with the content of a message that has the program's options, except for one, and these.
    pub(super) fn with<R>(
        &self,
        parts: Parts<'_>,
        payload: &[u8],
        send: impl FnOnce(&Content<'_>) -> R,
    ) -> R {
        let mut options = [Opt { number: OptionNumber(0), value: &[] }; OPTIONS];
        let own = parts.options.iter().filter(|opt| Some(opt.number) != parts.without);
        let added = self.all.iter().take(self.length);
        let added = added.map(|it| Opt {
            number: it.number,
            value: it.value.get(..usize::from(it.length)).unwrap_or_default(),
        });
        let mut length = 0;
        for (place, opt) in options.iter_mut().zip(own.copied().chain(added)) {
            *place = opt;
            length += 1;
        }
        let options = options.get(..length).unwrap_or_default();
        send(&Content { code: parts.code, options, payload })
    }
}
