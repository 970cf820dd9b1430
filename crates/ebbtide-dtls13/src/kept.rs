//! First ClientHellos that are kept until the second one arrives.

use ebbtide_core::sharing_prefix;
use std::collections::VecDeque;
use std::net::{IpAddr, SocketAddr};

/// A part of the places that one source can take: anyone can send a first hello, from any port.
const PART_OF_SOURCE: usize = 8;

/// Kept hellos, each of at most [`MAX_HANDSHAKE_DATAGRAM`](crate::hello::MAX_HANDSHAKE_DATAGRAM) bytes.
pub(crate) struct KeptHellos {
    /// The oldest first.
    hellos: VecDeque<KeptHello>,
    most: usize,
}

struct KeptHello {
    from: SocketAddr,
    source: IpAddr,
    /// The cookie in its answer. It is another one for another hello, even from the same address.
    cookie: [u8; 32],
    body: Vec<u8>,
}

impl KeptHellos {
    pub(crate) const fn new(most: usize) -> Self {
        Self { hellos: VecDeque::new(), most }
    }

    /// Keeps the body of a hello as the newest one. An IPv4 address, or an IPv6 prefix of 64 bits, that has its part of the
    /// places loses its oldest hello. One with another cookie from the same address may be forged, so it does not
    /// replace a hello.
    pub(crate) fn keep(&mut self, from: SocketAddr, cookie: [u8; 32], body: &[u8]) {
        let source = sharing_prefix(from.ip());
        let (mut taken, mut oldest, mut same) = (0, None, None);
        for (place, hello) in self.hellos.iter().enumerate() {
            if hello.source == source {
                taken += 1;
                oldest = oldest.or(Some(place));
                if hello.from == from && hello.cookie == cookie {
                    same = Some(place);
                }
            }
        }
        let is_full = (self.hellos.len() >= self.most).then_some(0);
        let of_source = oldest.filter(|_| taken >= self.most / PART_OF_SOURCE);
        let gone = same.or(of_source).or(is_full);
        let gone = gone.and_then(|place| self.hellos.remove(place));
        let mut kept = gone.map_or_else(Vec::new, |hello| hello.body);
        kept.clear();
        kept.extend_from_slice(body);
        self.hellos.push_back(KeptHello { from, source, cookie, body: kept });
    }

    /// The kept hello from an address that was answered with this cookie.
    pub(crate) fn find(&self, from: SocketAddr, cookie: &[u8; 32]) -> Option<&[u8]> {
        let mut hellos = self.hellos.iter();
        let found = hellos.find(|hello| hello.from == from && hello.cookie == *cookie);
        found.map(|hello| &hello.body[..])
    }
}
