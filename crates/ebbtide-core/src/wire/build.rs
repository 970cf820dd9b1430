//! Writes a message into a caller's buffer, option by option.

use super::PAYLOAD_MARKER;
use super::code::Code;
use super::error::EncodeError;
use super::frame::{Framing, frame_header};
use super::header::{HEADER_LEN, MessageId, Type};
use super::length::{extend, extension_len};
use super::number::{MAX_OPTION_LEN, OptionNumber};
use super::option::{MAX_OPTION_HEADER, encode_uint};
use super::token::MAX_EXTENDED_TOKEN_LEN;

/// Writes one message from left to right: header and token first, then options in the order of
/// their numbers, then a payload.
///
/// The encoder does not check the message as a whole: whether the code suits the type (RFC 7252
/// section 4.3, table 1) and whether an Empty message stays empty (section 4.1) is up to the
/// caller. After an error the message is as it was before the call.
///
/// ```
/// use ebbtide_core::wire::{Code, Encoder, MessageId, OptionNumber, Token, Type};
///
/// let mut buf = [0; 32];
/// let mut ack =
///     Encoder::new(&mut buf, Type::Acknowledgement, Code::CONTENT, MessageId(1), Token::EMPTY)?;
/// ack.uint_option(OptionNumber::CONTENT_FORMAT, 0)?.payload(b"22.3 C")?;
/// assert_eq!(ack.finish(), b"\x60\x45\x00\x01\xc0\xff22.3 C");
/// # Ok::<(), ebbtide_core::wire::EncodeError>(())
/// ```
#[derive(Debug)]
pub struct Encoder<'b> {
    buf: &'b mut [u8],
    len: usize,
    last_option: OptionNumber,
    /// The end of the options, once there is a payload.
    options_end: Option<usize>,
}

impl<'b> Encoder<'b> {
    /// Begins a message in `buf`.
    ///
    /// # Errors
    ///
    /// [`EncodeError::BufferTooSmall`]: [`MAX_HEADER`](super::MAX_HEADER) bytes suffice for a
    /// [`Token`](super::Token). [`EncodeError::TokenTooLong`].
    #[inline]
    pub fn new(
        buf: &'b mut [u8],
        kind: Type,
        code: Code,
        id: MessageId,
        token: impl AsRef<[u8]>,
    ) -> Result<Self, EncodeError> {
        let token = token.as_ref();
        let [id_high, id_low] = id.0.to_be_bytes();
        let mut extension = [0; 2];
        let (nibble, extended) = extend(&mut extension, 0, token.len());
        let header = buf.first_chunk_mut().ok_or(EncodeError::BufferTooSmall)?;
        *header = [kind.first_byte(nibble), code.0, id_high, id_low];
        let extension = extension.get(..extended).unwrap_or_default();
        let len = if extended > 0 { append(buf, HEADER_LEN, extension)? } else { HEADER_LEN };
        Self::begin(buf, len, token)
    }

    /// Begins a message for a reliable transport. `rest_len` is the length of its options, payload
    /// marker and payload, since the length comes first (RFC 8323 section 3.2).
    ///
    /// # Errors
    ///
    /// [`EncodeError::BufferTooSmall`] or [`EncodeError::TokenTooLong`].
    #[inline]
    pub fn framed(
        buf: &'b mut [u8],
        framing: Framing,
        code: Code,
        token: impl AsRef<[u8]>,
        rest_len: usize,
    ) -> Result<Self, EncodeError> {
        let token = token.as_ref();
        let (header, len) = frame_header(framing, code, token.len(), rest_len);
        let len = append(buf, 0, header.get(..len).unwrap_or_default())?;
        Self::begin(buf, len, token)
    }

    /// Begins a message whose header takes the first `header` bytes.
    #[inline]
    fn begin(buf: &'b mut [u8], header: usize, token: &[u8]) -> Result<Self, EncodeError> {
        if token.len() > MAX_EXTENDED_TOKEN_LEN {
            return Err(EncodeError::TokenTooLong { len: token.len() });
        }
        let len = append(buf, header, token)?;
        Ok(Self { buf, len, last_option: OptionNumber(0), options_end: None })
    }

    /// Appends an option.
    ///
    /// # Errors
    ///
    /// [`EncodeError::OptionOrder`] if a greater number or a payload came before,
    /// [`EncodeError::OptionTooLong`] or [`EncodeError::BufferTooSmall`].
    #[inline]
    pub fn option(&mut self, number: OptionNumber, value: &[u8]) -> Result<&mut Self, EncodeError> {
        if self.options_end.is_some() {
            return Err(EncodeError::OptionOrder { previous: self.last_option, number });
        }
        let room = self.buf.get_mut(self.len..).unwrap_or_default();
        self.len += encode_option(room, self.last_option, number, value)?;
        self.last_option = number;
        Ok(self)
    }

    /// Appends an option whose value is an unsigned integer, in its shortest form (RFC 7252 section
    /// 3.2).
    ///
    /// # Errors
    ///
    /// As [`Self::option`].
    #[inline]
    pub fn uint_option(
        &mut self,
        number: OptionNumber,
        value: u32,
    ) -> Result<&mut Self, EncodeError> {
        self.option(number, encode_uint(value, &mut [0; 4]))
    }

    /// Appends to the payload; the marker precedes its first byte. An empty payload is omitted
    /// (RFC 7252 section 3).
    ///
    /// # Errors
    ///
    /// [`EncodeError::BufferTooSmall`].
    #[inline]
    pub fn payload(&mut self, payload: &[u8]) -> Result<&mut Self, EncodeError> {
        if payload.is_empty() {
            return Ok(self);
        }
        match self.options_end {
            Some(_) => self.len = append(self.buf, self.len, payload)?,
            None => {
                let after_marker = put(self.buf, self.len, PAYLOAD_MARKER)?;
                let len = append(self.buf, after_marker, payload)?;
                self.options_end = Some(self.len);
                self.len = len;
            }
        }
        Ok(self)
    }

    /// The length of the message so far, in bytes.
    #[inline]
    #[must_use]
    #[expect(
        clippy::len_without_is_empty,
        reason = "never empty: the header is there from the start"
    )]
    pub const fn len(&self) -> usize {
        self.len
    }

    /// The end of the options: the payload marker, or the end of the message.
    #[inline]
    #[must_use]
    pub fn options_end(&self) -> usize {
        self.options_end.unwrap_or(self.len)
    }

    /// The number of the option written last; 0 if there is none.
    #[inline]
    #[must_use]
    pub const fn last_option(&self) -> OptionNumber {
        self.last_option
    }

    /// The message.
    #[inline]
    #[must_use]
    pub fn finish(self) -> &'b [u8] {
        self.buf.get(..self.len).unwrap_or_default()
    }
}

/// Writes one byte to `buf[at]` and returns the place after it.
#[inline]
fn put(buf: &mut [u8], at: usize, byte: u8) -> Result<usize, EncodeError> {
    *buf.get_mut(at).ok_or(EncodeError::BufferTooSmall)? = byte;
    Ok(at + 1)
}

/// Copies `bytes` to `buf[at..]` and returns where they end.
#[inline]
fn append(buf: &mut [u8], at: usize, bytes: &[u8]) -> Result<usize, EncodeError> {
    let end = at + bytes.len();
    buf.get_mut(at..end).ok_or(EncodeError::BufferTooSmall)?.copy_from_slice(bytes);
    Ok(end)
}

/// Writes one option to the start of `buf` and returns its length there; `previous` is the number
/// of the option before it, 0 if it is the first (RFC 7252 section 3.1).
///
/// # Errors
///
/// [`EncodeError::OptionOrder`] if `number` is less than `previous`,
/// [`EncodeError::OptionTooLong`] or [`EncodeError::BufferTooSmall`].
#[inline]
pub fn encode_option(
    buf: &mut [u8],
    previous: OptionNumber,
    number: OptionNumber,
    value: &[u8],
) -> Result<usize, EncodeError> {
    let delta = number.0.checked_sub(previous.0);
    let delta = delta.ok_or(EncodeError::OptionOrder { previous, number })?;
    // The most frequent case: one byte, then the value. Numbers below 13 fit four bits. It saves time, which a
    // microcontroller has more of than flash.
    if !cfg!(target_os = "none") && delta < 13 && value.len() < 13 {
        let header = ((delta as u8) << 4) | value.len() as u8;
        let at = put(buf, 0, header)?;
        return append(buf, at, value);
    }
    if value.len() > MAX_OPTION_LEN {
        return Err(EncodeError::OptionTooLong { number, len: value.len() });
    }
    let mut header = [0; MAX_OPTION_HEADER];
    let (delta_nibble, at) = extend(&mut header, 1, delta.into());
    let (length_nibble, header_len) = extend(&mut header, at, value.len());
    header[0] = (delta_nibble << 4) | length_nibble;
    let at = append(buf, 0, header.get(..header_len).unwrap_or_default())?;
    append(buf, at, value)
}

/// The number of bytes that [`encode_option`] writes before a value of `len` bytes; `delta` is the
/// difference to the previous option's number.
#[inline]
pub(super) const fn option_header_len(delta: u16, len: usize) -> usize {
    1 + extension_len(delta as usize) + extension_len(len)
}
