//! Very many clients in one socket: it sends from any address of the loopback network, and what
//! is sent to any of them comes back to it.

use ebbtide::socket::{Inbox, Outbound, Socket};
use ebbtide_core::wire::{Code, Content, Message, MessageId, Opt, OptionNumber, Token, Type};
use std::net::{IpAddr, Ipv4Addr, SocketAddr};

pub(crate) struct ManyClients {
    socket: Socket,
    inbox: Inbox,
    out: Outbound<()>,
    server: SocketAddr,
}

/// A message to be sent.
#[derive(Copy, Clone, Debug)]
pub(crate) struct Outgoing<'a> {
    pub(crate) kind: Type,
    pub(crate) code: Code,
    pub(crate) id: u16,
    pub(crate) token: &'a [u8],
    pub(crate) options: &'a [(u16, &'a [u8])],
    pub(crate) payload: &'a [u8],
}

/// A Confirmable GET.
pub(crate) const GET: Outgoing<'_> = Outgoing {
    kind: Type::Confirmable,
    code: Code::GET,
    id: 0,
    token: &[],
    options: &[],
    payload: &[],
};

/// The address of client `n`: 127.0.0.0 and the server's 127.0.0.1 are left out.
pub(crate) fn address(n: u32) -> Ipv4Addr {
    Ipv4Addr::from_bits(0x7f00_0002 + n)
}

impl ManyClients {
    pub(crate) fn new(server: SocketAddr) -> Self {
        Self {
            socket: Socket::bind("0.0.0.0:0".parse().unwrap()).unwrap(),
            inbox: Inbox::new(),
            out: Outbound::default(),
            server,
        }
    }

    /// Client `n` says something.
    pub(crate) fn say(&mut self, n: u32, say: &Outgoing<'_>) {
        let options: Vec<_> = say
            .options
            .iter()
            .map(|&(number, value)| Opt { number: OptionNumber(number), value })
            .collect();
        let content = Content { code: say.code, options: &options, payload: say.payload };
        let mut buf = [0; 1280];
        let token = Token::new(say.token).unwrap();
        let encoded = content.encode(&mut buf, say.kind, MessageId(say.id), token).unwrap();
        self.out.push(self.server, Some(address(n).into()), &buf[..encoded.len], ());
    }

    /// Sends what was said; what finds no room is lost.
    pub(crate) fn flush(&mut self) {
        let _ = self.out.flush(&self.socket, |_, (), error| panic!("{error}"));
    }

    /// What has come for whom: up to a batch. Acknowledges what wants to be, for those clients for
    /// which `acknowledges` holds.
    pub(crate) fn hear(
        &mut self,
        acknowledges: impl Fn(u32) -> bool,
        mut heard: impl FnMut(u32, &Message<'_>),
    ) -> usize {
        if self.inbox.receive(&self.socket).is_err() {
            return 0;
        }
        let mut count = 0;
        for datagram in self.inbox.datagrams() {
            count += 1;
            let Some(IpAddr::V4(to)) = datagram.to else { panic!("no destination") };
            let n = to.to_bits() - 0x7f00_0002;
            let message = Message::parse(datagram.bytes).unwrap();
            heard(n, &message);
            if message.kind() == Type::Confirmable && acknowledges(n) {
                let [high, low] = message.message_id().0.to_be_bytes();
                self.out.push(self.server, Some(to.into()), &[0x60, 0, high, low], ());
            }
        }
        self.flush();
        count
    }
}
