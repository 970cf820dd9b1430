//! The server under test, behind a plain socket.
#![expect(clippy::disallowed_methods, reason = "a plain socket waits by the system's clock")]

use ebbtide_core::wire::{
    Code, Encoder, Message, MessageId, OptionNumber, ParseError, Token, Type,
};
use std::io;
use std::net::{SocketAddr, UdpSocket};
use std::time::{Duration, Instant};

/// A datagram of the server, of which a message can be read.
#[derive(Clone, Debug)]
pub(crate) struct ReceivedMessage {
    bytes: Vec<u8>,
    /// When it arrived.
    pub(super) at: Instant,
    /// Whether the server acknowledged the request before.
    pub(super) is_separate: bool,
}

impl ReceivedMessage {
    fn parse(&self) -> Result<Message<'_>, ParseError> {
        Message::parse(&self.bytes)
    }

    fn message(&self) -> Message<'_> {
        self.parse().unwrap_or(Message::EMPTY)
    }

    pub(super) fn len(&self) -> usize {
        self.bytes.len()
    }

    pub(super) fn kind(&self) -> Type {
        self.message().kind()
    }

    pub(super) fn code(&self) -> Code {
        self.message().code()
    }

    pub(super) fn id(&self) -> u16 {
        self.message().message_id().0
    }

    pub(super) fn token(&self) -> &[u8] {
        self.message().token_bytes()
    }

    pub(crate) fn payload(&self) -> Vec<u8> {
        self.message().payload().to_vec()
    }

    pub(super) fn option(&self, number: OptionNumber) -> Option<u32> {
        self.message().option(number).and_then(|option| option.as_uint())
    }

    /// Whether this acknowledges or resets the message with this ID.
    pub(super) fn ends(&self, id: u16) -> bool {
        self.id() == id && matches!(self.kind(), Type::Acknowledgement | Type::Reset)
    }

    pub(super) fn is_reset_of(&self, id: u16) -> bool {
        self.parse().is_ok() && self.kind() == Type::Reset && self.id() == id
    }

    /// Type and code, as in `ACK 2.05`.
    pub(super) fn describe(&self) -> String {
        match self.parse() {
            Ok(message) if message.code().is_empty() => {
                format!("an empty {}", message.kind())
            }
            Ok(message) => format!("{} {}", message.kind(), message.code()),
            Err(_) => format!("{} bytes that are not a CoAP message", self.bytes.len()),
        }
    }
}

/// A request before it has a message ID.
pub(super) struct Draft<'a> {
    pub(super) kind: Type,
    pub(super) code: Code,
    pub(super) token: &'a [u8],
    pub(super) path: &'a str,
    /// Further options and their values, in any order.
    pub(super) options: &'a [(OptionNumber, &'a [u8])],
}

impl Default for Draft<'_> {
    fn default() -> Self {
        Self {
            kind: Type::Confirmable,
            code: Code::GET,
            token: b"\x5e\xed\xc0\xde",
            path: "/.well-known/core",
            options: &[],
        }
    }
}

/// The socket towards the server.
pub(crate) struct CheckSocket {
    socket: UdpSocket,
    next_id: u16,
    /// How long an answer may take.
    wait: Duration,
}

/// How often a datagram is sent that gets no answer. Where a tenth is lost each way, all of them fail once in
/// twenty thousand times.
const TRIES: u32 = 6;
/// How long after the marker's answer an answer to the datagram before it may still arrive.
const GRACE: Duration = Duration::from_millis(60);

impl CheckSocket {
    /// Connects a socket, so that only datagrams of this address arrive.
    pub(crate) fn connect(server: SocketAddr, wait: Duration) -> io::Result<Self> {
        let any: SocketAddr = match server {
            SocketAddr::V4(_) => ([0, 0, 0, 0], 0).into(),
            SocketAddr::V6(_) => ([0u16; 8], 0).into(),
        };
        let socket = UdpSocket::bind(any)?;
        socket.connect(server)?;
        // Message IDs start anywhere, so that a second run is no repetition of the first (RFC 7252 section 4.4).
        let next_id = socket.local_addr()?.port();
        Ok(Self { socket, next_id, wait })
    }

    /// The address of the server.
    pub(crate) fn server(&self) -> io::Result<SocketAddr> {
        self.socket.peer_addr()
    }

    pub(super) fn is_local(&self) -> bool {
        self.server().is_ok_and(|server| server.ip().is_loopback())
    }

    pub(super) fn next_id(&mut self) -> u16 {
        self.next_id = self.next_id.wrapping_add(1);
        self.next_id
    }

    /// A request as bytes, with its message ID.
    pub(super) fn encode(&mut self, draft: &Draft<'_>) -> (Vec<u8>, u16) {
        let id = self.next_id();
        let mut buf = [0; 1280];
        let token = Token::new(draft.token).unwrap_or(Token::EMPTY);
        let mut options: Vec<(OptionNumber, &[u8])> = draft.options.to_vec();
        let segments = draft.path.split('/').filter(|segment| !segment.is_empty());
        options.extend(segments.map(|segment| (OptionNumber::URI_PATH, segment.as_bytes())));
        options.sort_by_key(|(number, _)| *number);
        let encoded = Encoder::new(&mut buf, draft.kind, draft.code, MessageId(id), token)
            .and_then(|mut message| {
                for (number, value) in options {
                    message.option(number, value)?;
                }
                Ok(message.finish().to_vec())
            });
        // Only a path of more than a kilobyte does not fit.
        (encoded.unwrap_or_default(), id)
    }

    /// Sends a datagram. One that the system refuses counts as lost.
    pub(super) fn send(&self, datagram: &[u8]) {
        let _ = self.socket.send(datagram);
    }

    /// The next datagram until `deadline`.
    pub(super) fn receive(&self, deadline: Instant) -> Option<ReceivedMessage> {
        let mut buf = vec![0; 65_536];
        loop {
            let left = deadline.checked_duration_since(Instant::now()).filter(|d| !d.is_zero())?;
            self.socket.set_read_timeout(Some(left)).ok()?;
            match self.socket.recv(&mut buf) {
                Ok(len) => {
                    let bytes = buf.get(..len).unwrap_or_default().to_vec();
                    return Some(ReceivedMessage { bytes, at: Instant::now(), is_separate: false });
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return None,
                // An ICMP report: the server may be about to start.
                Err(_) => std::thread::sleep(Duration::from_millis(20).min(left)),
            }
        }
    }

    /// Acknowledges or resets a message.
    pub(super) fn reply(&self, kind: Type, id: u16) {
        let [high, low] = id.to_be_bytes();
        self.send(&[0x40 | (kind as u8) << 4, 0, high, low]);
    }

    /// Sends a request until an answer to it arrives. A separate response is acknowledged.
    pub(super) fn ask(&mut self, draft: &Draft<'_>) -> Option<ReceivedMessage> {
        let (datagram, id) = self.encode(draft);
        self.ask_again(&datagram, id, draft.token)
    }

    /// Sends this datagram, which may have been sent before, until an answer arrives.
    pub(super) fn ask_again(
        &self,
        datagram: &[u8],
        id: u16,
        token: &[u8],
    ) -> Option<ReceivedMessage> {
        let mut is_separate = false;
        for _ in 0..TRIES {
            self.send(datagram);
            let mut deadline = Instant::now() + self.wait;
            while let Some(answer) = self.receive(deadline) {
                let is_of_id = answer.ends(id);
                if is_of_id && answer.code().is_empty() && answer.kind() != Type::Reset {
                    // The response follows (RFC 7252 section 5.2.2).
                    is_separate = true;
                    deadline = Instant::now() + self.wait * 10;
                    continue;
                }
                let is_response = answer.code().is_response() && answer.token() == token;
                if answer.kind() == Type::Confirmable && is_response {
                    self.reply(Type::Acknowledgement, answer.id());
                }
                if is_of_id || (is_response && answer.kind() != Type::Acknowledgement) {
                    return Some(ReceivedMessage { is_separate, ..answer });
                }
            }
        }
        None
    }

    /// The answer to a GET of this path.
    pub(crate) fn get(&mut self, path: &str) -> Option<ReceivedMessage> {
        self.ask(&Draft { path, ..Draft::default() })
    }

    /// Whether a GET is answered, by whatever.
    pub(crate) fn is_alive(&mut self) -> bool {
        (0..TRIES).any(|_| self.marker_arrives(&mut Vec::new()))
    }

    /// Sends a GET whose answer tells that everything before it was dealt with, and waits for it.
    /// Other datagrams go into `others`. A ping would not do: libcoap answers one of two that
    /// arrive together.
    fn marker_arrives(&mut self, others: &mut Vec<ReceivedMessage>) -> bool {
        let token = b"marker";
        let (datagram, id) = self.encode(&Draft { token, path: "/m", ..Draft::default() });
        self.send(&datagram);
        let deadline = Instant::now() + self.wait;
        while let Some(answer) = self.receive(deadline) {
            if answer.ends(id) {
                return true;
            }
            // An earlier one's is late.
            if answer.token() == token || self.ends_observation(&answer) {
                continue;
            }
            others.push(answer);
        }
        false
    }

    /// The same for a Confirmable message: it is sent again until one with its ID answers. Others may be late answers
    /// to something else.
    pub(super) fn provoke_until_answered(
        &mut self,
        datagram: &[u8],
        id: u16,
    ) -> (Vec<ReceivedMessage>, bool) {
        let mut last = (Vec::new(), true);
        for _ in 0..TRIES {
            last = self.provoke(datagram);
            if last.0.iter().any(|answer| answer.ends(id)) || !last.1 {
                break;
            }
        }
        last
    }

    /// Everything that the server sends after this datagram, and whether it is alive then.
    pub(super) fn provoke(&mut self, datagram: &[u8]) -> (Vec<ReceivedMessage>, bool) {
        let mut answers = Vec::new();
        self.send(datagram);
        if !self.marker_arrives(&mut answers) {
            let is_alive = self.is_alive();
            return (answers, is_alive);
        }
        let deadline = Instant::now() + GRACE;
        while let Some(answer) = self.receive(deadline) {
            if !self.ends_observation(&answer) {
                answers.push(answer);
            }
        }
        (answers, true)
    }

    /// Whether this is a notification, of an observation whose end was lost. The Reset ends it (RFC 7641 section 3.6).
    fn ends_observation(&self, answer: &ReceivedMessage) -> bool {
        let is_one = answer.kind() != Type::Acknowledgement
            && answer.option(OptionNumber::OBSERVE).is_some();
        if is_one {
            self.reply(Type::Reset, answer.id());
        }
        is_one
    }
}
