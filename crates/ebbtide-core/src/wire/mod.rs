//! The codec: CoAP messages as bytes (RFC 7252 section 3), with no allocator and no panics.
//!
//! Reading: [`Message::parse`] examines every byte of a datagram once. It returns a view of the
//! message, or the error and whether a Reset is to be sent. The methods of a `Message` are then
//! infallible.
//!
//! Over reliable transports (RFC 8323) a message is a [`Frame`], which differs only in its header.
//!
//! Writing: [`Content`] (a code, options in any order, a payload) is encoded into a caller's
//! buffer; [`Encoder`] does the same option by option.
//!
//! ```
//! use ebbtide_core::wire::{Code, Content, Message, MessageId, Opt, OptionNumber, Token, Type};
//!
//! let path = [Opt { number: OptionNumber::URI_PATH, value: b"temperature" }];
//! let get = Content { code: Code::GET, options: &path, payload: &[] };
//! let mut buf = [0; 64];
//! let encoded = get.encode(&mut buf, Type::Confirmable, MessageId(0x7d34), Token::EMPTY)?;
//!
//! let message = Message::parse(&buf[..encoded.len]).map_err(|_| "sent to ourselves")?;
//! assert_eq!(message.code(), Code::GET);
//! assert!(message.path().eq([b"temperature"]));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod block;
mod body;
mod build;
mod code;
mod content;
mod error;
mod frame;
mod header;
mod length;
mod message;
mod missing;
mod number;
mod option;
mod signal;
mod token;

pub use block::{Block, BlockError};
#[cfg(feature = "alloc")]
pub(crate) use body::OptionSet;
pub use body::{Body, Path};
pub use build::{Encoder, encode_option};
pub use code::Code;
pub use content::{Content, Encoded};
pub use error::{EncodeError, FormatError, ParseError};
pub use frame::{Frame, FrameHeader, Framing, MAX_FRAME_HEADER};
pub use header::{HEADER_LEN, MAX_HEADER, MessageId, Type};
pub use message::Message;
pub use missing::{MissingBlocks, MissingError};
pub use number::{MAX_OPTION_LEN, OptionNumber};
pub use option::{MAX_OPTION_HEADER, Opt, OptionIter, encode_uint};
pub use signal::{
    BASE_MAX_MESSAGE_SIZE, Csm, Release, SignalOption, critical_signal_option, signal_option,
};
pub use token::{MAX_EXTENDED_TOKEN_LEN, MAX_TOKEN_LEN, Token, encoded_token_len};

/// The separator between options and payload (RFC 7252 section 3).
pub(crate) const PAYLOAD_MARKER: u8 = 0xff;
