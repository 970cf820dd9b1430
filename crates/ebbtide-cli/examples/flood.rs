//! Sends datagrams from many forged addresses at a steady rate, to see what strangers can do to a
//! server. It only works where every forged address is one of this host's, as in the namespace
//! that `tests/strangers` makes: there is no way to point it at somebody else's network.
//!
//!     flood KIND TO RATE SECONDS SOURCES
//!
//! `KIND` is one of those below, `TO` an address and port, `RATE` in datagrams a second, and the
//! datagrams come from `SOURCES` addresses from 10.0.0.1 on, in turn.
#![expect(clippy::disallowed_methods, reason = "a program that sends at a rate reads the clock")]

use ebbtide::Code;
use ebbtide_core::wire::{Block, Content, MessageId, Opt, OptionNumber, Token, Type, encode_uint};
use quinn_udp::{Transmit, UdpSocketState};
use std::net::{IpAddr, Ipv4Addr, SocketAddr, UdpSocket};
use std::time::{Duration, Instant};

type Failure = Box<dyn std::error::Error>;

/// What strangers send.
#[derive(Copy, Clone, PartialEq)]
enum Kind {
    Get,
    LongGet,
    FolderList,
    Post,
    Observe,
    Block1,
    QBlock1,
    Ack,
    Reset,
    Ping,
    Malformed,
    /// Of DTLS.
    ClientHello,
    /// Of DTLS 1.3.
    ClientHello13,
    /// Of OSCORE, with a `kid` that the server knows and numbers that are new to it.
    Oscore,
    Mix,
}

const KINDS: [(&str, Kind); 15] = [
    ("get", Kind::Get),
    ("long-get", Kind::LongGet),
    ("folder-list", Kind::FolderList),
    ("post", Kind::Post),
    ("observe", Kind::Observe),
    ("block1", Kind::Block1),
    ("q-block1", Kind::QBlock1),
    ("ack", Kind::Ack),
    ("reset", Kind::Reset),
    ("ping", Kind::Ping),
    ("malformed", Kind::Malformed),
    // The mix is of those above.
    ("mix", Kind::Mix),
    ("client-hello", Kind::ClientHello),
    ("client-hello-13", Kind::ClientHello13),
    ("oscore", Kind::Oscore),
];

fn main() -> Result<(), Failure> {
    let arguments: Vec<_> = std::env::args().skip(1).collect();
    let [kind, to, rate, seconds, sources] = arguments.as_slice() else {
        return Err("usage: flood KIND TO RATE SECONDS SOURCES".into());
    };
    let kind = KINDS.iter().find(|(name, _)| name == kind).ok_or("KIND is not known")?.1;
    let to: SocketAddr = to.parse()?;
    let (rate, seconds, sources) = (rate.parse()?, seconds.parse()?, sources.parse()?);
    let sent = flood(kind, to, rate, Duration::from_secs(seconds), sources)?;
    println!("{sent}");
    Ok(())
}

/// Sends at `rate` for `span`, and counts what was sent.
fn flood(
    kind: Kind,
    to: SocketAddr,
    rate: u64,
    span: Duration,
    sources: u32,
) -> Result<u64, Failure> {
    let socket = UdpSocket::bind("0.0.0.0:40000")?;
    let state = UdpSocketState::new((&socket).into())?;
    let began = Instant::now();
    let (mut sent, mut next) = (0, 0);
    let mut datagram = [0; 1200];
    loop {
        let elapsed = began.elapsed();
        if elapsed >= span {
            return Ok(sent);
        }
        let due = (elapsed.as_secs_f64() * rate as f64) as u64;
        // What is more than 10 ms late is left out: a steady rate is what is measured.
        next = next.max(due.saturating_sub(rate / 100));
        for number in next..due {
            let source = 0x0a00_0001 + (number % u64::from(sources)) as u32;
            let length = kind.datagram(number, &mut datagram)?;
            let transmit = Transmit {
                destination: to,
                ecn: None,
                contents: &datagram[..length],
                segment_size: None,
                src_ip: Some(IpAddr::V4(Ipv4Addr::from_bits(source))),
            };
            // A full queue of the sender's own is not the server's doing.
            sent += u64::from(state.try_send((&socket).into(), &transmit).is_ok());
        }
        next = next.max(due);
        std::thread::sleep(Duration::from_micros(200));
    }
}

impl Kind {
    /// The datagram with this number.
    fn datagram(self, number: u64, bytes: &mut [u8]) -> Result<usize, Failure> {
        let simple = |bytes: &mut [u8], kind: u8, code: u8| {
            let [high, low] = (number as u16).to_be_bytes();
            bytes[..4].copy_from_slice(&[0x40 | kind << 4, code, high, low]);
            Ok(4)
        };
        let path =
            |text: &'static str| Opt { number: OptionNumber::URI_PATH, value: text.as_bytes() };
        let block = Block::new(0, true, 6)?;
        let mut value = [0; 4];
        let block = encode_uint(block.to_uint(), &mut value);
        // Flags, a Partial IV of four bytes, and `kid` 02 (RFC 8613 section 6.1).
        let [a, b, c, d] = (1 << 24 | number as u32).to_be_bytes();
        let oscore = [0x0c, a, b, c, d, 2];
        let (code, options): (Code, &[Opt<'_>]) = match self {
            Self::Get => (Code::GET, &[path("test")]),
            Self::LongGet => (Code::GET, &[path("large")]),
            Self::FolderList => (Code::GET, &[path(".well-known"), path("core")]),
            Self::Post => (Code::POST, &[path("count")]),
            Self::Observe => {
                (Code::GET, &[Opt { number: OptionNumber::OBSERVE, value: &[] }, path("time")])
            }
            Self::Block1 => {
                (Code::PUT, &[path("echo"), Opt { number: OptionNumber::BLOCK1, value: block }])
            }
            Self::QBlock1 => {
                (Code::PUT, &[path("echo"), Opt { number: OptionNumber::Q_BLOCK1, value: block }])
            }
            Self::Oscore => (Code::POST, &[Opt { number: OptionNumber::OSCORE, value: &oscore }]),
            Self::Ack => return simple(bytes, 2, 0),
            Self::Reset => return simple(bytes, 3, 0),
            Self::Ping => return simple(bytes, 0, 0),
            // A token that is longer than the message.
            Self::Malformed => {
                simple(bytes, 0, 1)?;
                bytes[0] = 0x48;
                return Ok(4);
            }
            Self::ClientHello => return Ok(client_hello(number, bytes)),
            Self::ClientHello13 => return Ok(client_hello_13(number, bytes)),
            Self::Mix => {
                let others = &KINDS[..KINDS.len() - 4];
                let (_, other) = others[(number % others.len() as u64) as usize];
                return other.datagram(number, bytes);
            }
        };
        let payload: &[u8] = match self {
            Self::Block1 | Self::QBlock1 => &[b'x'; 1024],
            // Code, path and tag of a GET, forged.
            Self::Oscore => &[7; 14],
            _ => &[],
        };
        let reliable = if self == Self::QBlock1 { Type::NonConfirmable } else { Type::Confirmable };
        let token = Token::new(&(number as u32).to_be_bytes()).ok_or("the token is too long")?;
        let content = Content { code, options, payload };
        Ok(content.encode(bytes, reliable, MessageId(number as u16), token)?.len)
    }
}

/// A ClientHello of DTLS 1.2 that offers suites with keys and with certificates, without a cookie. Only its
/// random value depends on the number.
fn client_hello(number: u64, bytes: &mut [u8]) -> usize {
    // PSK and ECDHE_ECDSA with AES_128_CCM_8; extended master secret, P-256, its points, ECDSA with SHA-256.
    let extensions =
        [0, 23, 0, 0, 0, 10, 0, 4, 0, 2, 0, 23, 0, 11, 0, 2, 1, 0, 0, 13, 0, 4, 0, 2, 4, 3];
    hello(number, bytes, &[0xc0, 0xa8, 0xc0, 0xae], &extensions)
}

/// A ClientHello of DTLS 1.3 with a key share, without a cookie. Only its random value depends on the number.
fn client_hello_13(number: u64, bytes: &mut [u8]) -> usize {
    // DTLS 1.3, X25519, ECDSA with SHA-256, a share of X25519.
    let mut extensions = vec![0, 43, 0, 3, 2, 0xfe, 0xfc, 0, 10, 0, 4, 0, 2, 0, 29];
    extensions.extend([0, 13, 0, 4, 0, 2, 4, 3, 0, 51, 0, 38, 0, 36, 0, 29, 0, 32]);
    extensions.extend([9; 32]);
    // AES_128_GCM_SHA256.
    hello(number, bytes, &[0x13, 0x01], &extensions)
}

/// A record with a ClientHello without session, cookie and compression.
fn hello(number: u64, bytes: &mut [u8], suites: &[u8], extensions: &[u8]) -> usize {
    let mut body = vec![0xfe, 0xfd];
    body.extend([7; 24]);
    body.extend(number.to_be_bytes());
    body.extend([0, 0, 0, suites.len() as u8]);
    body.extend(suites);
    body.extend([1, 0, 0, extensions.len() as u8]);
    body.extend(extensions);
    let length = body.len() as u8;
    let mut hello = vec![22, 0xfe, 0xfd, 0, 0, 0, 0, 0, 0, 0, 0, 0, 12 + length];
    hello.extend([1, 0, 0, length, 0, 0, 0, 0, 0, 0, 0, length]);
    hello.extend(body);
    bytes[..hello.len()].copy_from_slice(&hello);
    hello.len()
}
