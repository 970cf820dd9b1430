//! The socket that clients under test ask.
#![expect(clippy::disallowed_methods, reason = "a plain socket waits by the system's clock")]

use ebbtide_core::wire::{Message, Type};
use std::cell::Cell;
use std::collections::VecDeque;
use std::io;
use std::net::{SocketAddr, UdpSocket};
use std::time::{Duration, Instant};

/// A datagram of a client.
#[derive(Clone, Debug)]
pub(crate) struct ClientDatagram {
    pub(super) from: SocketAddr,
    pub(super) bytes: Vec<u8>,
    /// When it arrived.
    pub(super) at: Instant,
}

impl ClientDatagram {
    fn message(&self) -> Message<'_> {
        Message::parse(&self.bytes).unwrap_or(Message::EMPTY)
    }

    pub(super) fn id(&self) -> u16 {
        self.message().message_id().0
    }

    pub(super) fn is(&self, kind: Type, id: u16) -> bool {
        let message = self.message();
        (message.kind(), message.message_id().0) == (kind, id) && message.code().is_empty()
    }

    pub(super) fn token(&self) -> Vec<u8> {
        self.message().token_bytes().to_vec()
    }

    /// A Confirmable request. Its datagram is at least a header long.
    fn is_request(&self) -> bool {
        let message = self.message();
        message.kind() == Type::Confirmable && message.code().is_request()
    }

    /// Another transmission of the same message.
    pub(super) fn is_copy_of(&self, original: &Self) -> bool {
        self.is_request() && (self.from, self.id()) == (original.from, original.id())
    }

    /// Code, options and payload: what copies have in common, whatever marks their tokens carry.
    pub(super) fn content(&self) -> Option<(u8, &[u8])> {
        let token_len = usize::from(self.bytes.first()? & 0x0f);
        Some((*self.bytes.get(1)?, self.bytes.get(4 + token_len..)?))
    }
}

/// Datagrams and requests that are kept for later; more are dropped.
const MOST_KEPT: usize = 256;

/// The server that a client under test asks.
pub(crate) struct Listener {
    socket: UdpSocket,
    next_id: u16,
    /// Datagrams that belong to later lessons.
    waiting: VecDeque<ClientDatagram>,
    /// Requests that lessons were about.
    done: VecDeque<ClientDatagram>,
    /// The pings that were answered.
    pings: Cell<usize>,
}

impl Listener {
    pub(crate) fn bind(address: SocketAddr) -> io::Result<Self> {
        let socket = UdpSocket::bind(address)?;
        let next_id = socket.local_addr()?.port();
        Ok(Self {
            socket,
            next_id,
            waiting: VecDeque::new(),
            done: VecDeque::new(),
            pings: Cell::new(0),
        })
    }

    pub(crate) fn local_addr(&self) -> io::Result<SocketAddr> {
        self.socket.local_addr()
    }

    pub(super) fn next_id(&mut self) -> u16 {
        self.next_id = self.next_id.wrapping_add(1);
        self.next_id
    }

    /// Sends a datagram. One that the system refuses counts as lost.
    pub(super) fn send(&self, to: SocketAddr, datagram: &[u8]) {
        let _ = self.socket.send_to(datagram, to);
    }

    /// Sends a message of this type, code and ID; `rest` begins with the token.
    pub(super) fn say(&self, to: SocketAddr, head: Head, token: &[u8], rest: &[u8]) {
        let [high, low] = head.id.to_be_bytes();
        let first = 0x40 | (head.kind as u8) << 4 | token.len() as u8;
        self.send(to, &[&[first, head.code, high, low], token, rest].concat());
    }

    fn receive(&self, deadline: Instant) -> Option<ClientDatagram> {
        let mut buf = vec![0; 65_536];
        loop {
            let left = deadline.checked_duration_since(Instant::now()).filter(|d| !d.is_zero())?;
            self.socket.set_read_timeout(Some(left)).ok()?;
            match self.socket.recv_from(&mut buf) {
                Ok((len, from)) => {
                    let bytes = buf.get(..len).unwrap_or_default().to_vec();
                    let datagram = ClientDatagram { from, bytes, at: Instant::now() };
                    // Every server answers pings (RFC 7252 section 4.3), with which a client may find out why it waits.
                    if datagram.is(Type::Confirmable, datagram.id()) {
                        let head = Head { kind: Type::Reset, code: 0, id: datagram.id() };
                        self.say(from, head, b"", b"");
                        self.pings.update(|pings| pings + 1);
                        continue;
                    }
                    return Some(datagram);
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return None,
                // An ICMP report of a client that has ended.
                Err(_) => {}
            }
        }
    }

    /// How many pings have been answered so far.
    pub(super) fn pings(&self) -> usize {
        self.pings.get()
    }

    fn is_old(&self, datagram: &ClientDatagram) -> bool {
        self.done.iter().any(|done| datagram.is_copy_of(done))
    }

    /// The next request that no lesson was about.
    pub(crate) fn request(&mut self, wait: Duration) -> Option<ClientDatagram> {
        let deadline = Instant::now() + wait;
        loop {
            let next = self.waiting.pop_front().or_else(|| self.receive(deadline))?;
            if next.is_request() && !self.is_old(&next) {
                if self.done.len() == MOST_KEPT {
                    self.done.pop_front();
                }
                self.done.push_back(next.clone());
                return Some(next);
            }
        }
    }

    /// The next datagram until `deadline` that `wanted` accepts. Others wait for later lessons.
    pub(super) fn next(
        &mut self,
        deadline: Instant,
        wanted: impl Fn(&ClientDatagram) -> bool,
    ) -> Option<ClientDatagram> {
        if let Some(place) = self.waiting.iter().position(&wanted) {
            return self.waiting.remove(place);
        }
        while let Some(datagram) = self.receive(deadline) {
            if wanted(&datagram) {
                return Some(datagram);
            }
            if self.waiting.len() < MOST_KEPT && !self.is_old(&datagram) {
                self.waiting.push_back(datagram);
            }
        }
        None
    }

    /// How many other requests of this client's socket wait.
    pub(super) fn others(&self, request: &ClientDatagram) -> usize {
        let is_other = |each: &&ClientDatagram| {
            each.from == request.from && each.is_request() && !each.is_copy_of(request)
        };
        let mut ids: Vec<u16> =
            self.waiting.iter().filter(is_other).map(ClientDatagram::id).collect();
        ids.sort_unstable();
        ids.dedup();
        ids.len()
    }
}

/// The header of a message without its token.
#[derive(Copy, Clone, Debug)]
pub(super) struct Head {
    pub(super) kind: Type,
    pub(super) code: u8,
    pub(super) id: u16,
}
