//! Messages in human-readable form: names instead of numbers, values in their formats.

use super::ContentFormat;
use core::fmt::{self, Display, Formatter};
use ebbtide_core::wire::{Block, Code, Frame, Message, Opt, OptionNumber, SignalOption};
use std::borrow::Cow;

/// Whether the values in queries are shown, which may be secrets of an application.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(crate) enum Queries {
    Shown,
    /// Their names remain.
    Hidden,
}

impl Queries {
    /// The text of an option, without the values of its query.
    fn of(self, number: OptionNumber, text: &str) -> Cow<'_, str> {
        let from = match (self, number) {
            (Self::Shown, _) => None,
            (_, OptionNumber::URI_QUERY | OptionNumber::LOCATION_QUERY) => Some('='),
            (_, OptionNumber::PROXY_URI) => Some('?'),
            _ => None,
        };
        match from.and_then(|from| text.split_once(from).map(|(name, _)| (name, from))) {
            Some((name, from)) => format!("{name}{from}...").into(),
            None => text.into(),
        }
    }
}

/// `CON GET, MID 0x7d34, token 53aa01, Uri-Path "time", Observe 0, 5 bytes of payload`.
pub(crate) struct DisplayMessage<'m>(pub(crate) &'m Message<'m>, pub(crate) Queries);

impl Display for DisplayMessage<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let message = self.0;
        write!(f, "{} ", message.kind())?;
        code(f, message.code())?;
        write!(f, ", MID {}", message.message_id())?;
        token(f, message.token_bytes())?;
        for opt in message.options() {
            write!(f, ", {}", ShownOption(&opt, self.1))?;
        }
        payload(f, message.payload())
    }
}

/// Shows a message of a reliable transport, where there is neither type nor message ID, but signals:
/// `7.01 CSM, Max-Message-Size 66688, Block-Wise-Transfer`.
pub(crate) struct ShownFrame<'m>(pub(crate) &'m Frame<'m>, pub(crate) Queries);

impl Display for ShownFrame<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let message = self.0;
        code(f, message.code())?;
        token(f, message.token_bytes())?;
        for opt in message.options() {
            f.write_str(", ")?;
            if message.code().is_signaling() {
                signal_option(f, message.code(), &opt)?;
            } else {
                ShownOption(&opt, self.1).fmt(f)?;
            }
        }
        payload(f, message.payload())
    }
}

fn code(f: &mut Formatter<'_>, code: Code) -> fmt::Result {
    match code.name() {
        Some(name) if code.is_request() || code.is_empty() => f.write_str(name),
        Some(name) => write!(f, "{code} {name}"),
        None => code.fmt(f),
    }
}

fn token(f: &mut Formatter<'_>, token: &[u8]) -> fmt::Result {
    if token.is_empty() { Ok(()) } else { write!(f, ", token {}", Hex(token)) }
}

fn payload(f: &mut Formatter<'_>, payload: &[u8]) -> fmt::Result {
    match payload.len() {
        0 => Ok(()),
        1 => f.write_str(", 1 byte of payload"),
        bytes => write!(f, ", {bytes} bytes of payload"),
    }
}

/// The option's number has a meaning only together with the signal's code (RFC 8323 section 5.2).
fn signal_option(f: &mut Formatter<'_>, code: Code, opt: &Opt<'_>) -> fmt::Result {
    let name = match (code, opt.number) {
        (Code::CSM, SignalOption::MAX_MESSAGE_SIZE) => "Max-Message-Size",
        (Code::CSM, SignalOption::EXTENDED_TOKEN_LENGTH) => "Extended-Token-Length",
        (Code::CSM, SignalOption::BLOCK_WISE_TRANSFER) => {
            return f.write_str("Block-Wise-Transfer");
        }
        (Code::PING | Code::PONG, SignalOption::CUSTODY) => return f.write_str("Custody"),
        (Code::RELEASE, SignalOption::ALTERNATIVE_ADDRESS) => {
            return match opt.as_str() {
                Some(text) => write!(f, "Alternative-Address {text:?}"),
                None => write!(f, "Alternative-Address {}", Hex(opt.value)),
            };
        }
        (Code::RELEASE, SignalOption::HOLD_OFF) => "Hold-Off",
        (Code::ABORT, SignalOption::BAD_CSM_OPTION) => "Bad-CSM-Option",
        (_, number) => return write!(f, "option {} {}", number.0, Hex(opt.value)),
    };
    match opt.as_uint() {
        Some(number) => write!(f, "{name} {number}"),
        None => write!(f, "{name} {}", Hex(opt.value)),
    }
}

/// An option's name, and its value in the format that the option's definition gives (RFC 7252
/// section 5.10). A value that does not fit the format is shown in hexadecimal.
struct ShownOption<'o>(&'o Opt<'o>, Queries);

impl Display for ShownOption<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let opt = self.0;
        opt.number.fmt(f)?;
        if opt.value.is_empty() && opt.number == OptionNumber::IF_NONE_MATCH {
            return Ok(());
        }
        f.write_str(" ")?;
        let number = opt.as_uint();
        match opt.number {
            OptionNumber::URI_HOST
            | OptionNumber::URI_PATH
            | OptionNumber::URI_QUERY
            | OptionNumber::LOCATION_PATH
            | OptionNumber::LOCATION_QUERY
            | OptionNumber::PROXY_URI
            | OptionNumber::PROXY_SCHEME => match opt.as_str() {
                // Quoted, with control characters escaped, so that a peer cannot control the
                // terminal.
                Some(text) => write!(f, "{:?}", self.1.of(opt.number, text)),
                None => Hex(opt.value).fmt(f),
            },
            OptionNumber::CONTENT_FORMAT | OptionNumber::ACCEPT => {
                match number.and_then(|number| u16::try_from(number).ok()) {
                    Some(number) => ContentFormat(number).fmt(f),
                    None => Hex(opt.value).fmt(f),
                }
            }
            OptionNumber::BLOCK1
            | OptionNumber::BLOCK2
            | OptionNumber::Q_BLOCK1
            | OptionNumber::Q_BLOCK2 => match Block::from_reliable(opt) {
                Ok(block) => {
                    let more = if block.more() { "more" } else { "last" };
                    write!(f, "{}/{more}/", block.num())?;
                    match block.szx() {
                        // Several blocks of 1024 bytes (RFC 8323 section 6).
                        Block::BERT_SZX => f.write_str("BERT"),
                        _ => block.size().fmt(f),
                    }
                }
                Err(_) => Hex(opt.value).fmt(f),
            },
            OptionNumber::OBSERVE
            | OptionNumber::URI_PORT
            | OptionNumber::MAX_AGE
            | OptionNumber::HOP_LIMIT
            | OptionNumber::SIZE1
            | OptionNumber::SIZE2
            | OptionNumber::NO_RESPONSE => match number {
                Some(number) => number.fmt(f),
                None => Hex(opt.value).fmt(f),
            },
            _ => Hex(opt.value).fmt(f),
        }
    }
}

struct Hex<'b>(&'b [u8]);

impl Display for Hex<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        if self.0.is_empty() {
            return f.write_str("(empty)");
        }
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ebbtide_core::wire::{Content, FrameHeader, Framing, MessageId, Token, Type};

    fn shown(code: Code, options: &[(OptionNumber, &[u8])], payload: &[u8]) -> String {
        let options: Vec<_> =
            options.iter().map(|&(number, value)| Opt { number, value }).collect();
        let content = Content { code, options: &options, payload };
        let mut buf = [0; 256];
        let token = Token::new(&[0x53, 0xaa]).unwrap();
        let encoded =
            content.encode(&mut buf, Type::Confirmable, MessageId(0x7d34), token).unwrap();
        let message = Message::parse(&buf[..encoded.len]).unwrap();
        DisplayMessage(&message, Queries::Hidden).to_string()
    }

    #[test]
    fn the_values_of_queries_are_shown_on_request_only() {
        let opt = |number, value| Opt { number, value };
        for (number, value, hidden) in [
            (OptionNumber::URI_QUERY, "token=secret", "Uri-Query \"token=...\""),
            (OptionNumber::URI_QUERY, "all", "Uri-Query \"all\""),
            (OptionNumber::LOCATION_QUERY, "a=b=c", "Location-Query \"a=...\""),
            (OptionNumber::PROXY_URI, "coap://h/p?k=v", "Proxy-Uri \"coap://h/p?...\""),
            (OptionNumber::URI_PATH, "a=b?c", "Uri-Path \"a=b?c\""),
        ] {
            let opt = opt(number, value.as_bytes());
            assert_eq!(ShownOption(&opt, Queries::Hidden).to_string(), hidden);
            let shown = ShownOption(&opt, Queries::Shown).to_string();
            assert!(shown.ends_with(&format!("\"{value}\"")), "{shown}");
        }
    }

    #[test]
    fn options_are_shown_by_name_with_what_their_values_mean() {
        let options = [
            (OptionNumber::ETAG, [1, 2].as_slice()),
            (OptionNumber::OBSERVE, &[]),
            (OptionNumber::URI_PATH, b"time"),
            (OptionNumber::CONTENT_FORMAT, &[50]),
            (OptionNumber::ACCEPT, &[60]),
            (OptionNumber::BLOCK2, &[0x3e]),
            (OptionNumber(65000), &[9]),
        ];
        assert_eq!(
            shown(Code::GET, &options, b"hello"),
            "CON GET, MID 0x7d34, token 53aa, ETag 0102, Observe 0, Uri-Path \"time\", \
             Content-Format application/json, Accept application/cbor, Block2 3/more/1024, \
             option 65000 09, 5 bytes of payload"
        );
    }

    #[test]
    fn bytes_of_a_peer_cannot_control_the_terminal() {
        let text = shown(Code::GET, &[(OptionNumber::URI_PATH, b"\x1b[2J\n")], b"");
        assert!(!text.contains('\x1b') && !text.contains('\n'), "{text}");
        let text = shown(Code::GET, &[(OptionNumber::URI_PATH, &[0xff, 0x1b])], b"");
        assert!(text.ends_with("Uri-Path ff1b"), "{text}");
    }

    #[test]
    fn signals_are_shown_by_name_with_their_options() {
        let shown = |bytes: &[u8]| {
            let header = FrameHeader::parse(Framing::Stream, bytes).unwrap().unwrap();
            ShownFrame(&Frame::parse(header, bytes).unwrap(), Queries::Hidden).to_string()
        };
        let csm = [0x50, 0xe1, 0x23, 1, 4, 0x80, 0x20];
        assert_eq!(shown(&csm), "7.01 CSM, Max-Message-Size 66688, Block-Wise-Transfer");
        assert_eq!(shown(&[0x10, 0xe2, 0x20]), "7.02 Ping, Custody");
        assert_eq!(
            shown(&[0x30, 0xe4, 0x22, b'a', 0x1b]),
            "7.04 Release, Alternative-Address \"a\\u{1b}\""
        );
        assert_eq!(shown(&[0x21, 1, 0x53, 0xb1, b'x']), "GET, token 53, Uri-Path \"x\"");
    }
}
