//! Packets under way, in places that are used again.

use crate::growth::room;
use crate::host::{Tag, tagged};
use crate::net::{Direction, Fate};
use crate::record::Details;
use crate::scenario::Transport;
use ebbtide_core::time::Instant;
use smallvec::SmallVec;

/// Attributes of a packet in transit, apart from its bytes.
#[derive(Copy, Clone, Debug, Default)]
pub(super) struct PooledPacket {
    pub(super) client: u32,
    pub(super) tag: Tag,
    /// At most 65535 bytes: the limit of an endpoint's messages and of an IP packet.
    pub(super) length: u16,
    pub(super) transport: Transport,
    /// Whether a queue on its way has marked it: Congestion Experienced (RFC 3168 section 5).
    pub(super) is_marked: bool,
}

impl PooledPacket {
    pub(super) fn details(
        self,
        datagram: &[u8],
        direction: Direction,
        now: Instant,
    ) -> Details<'_> {
        Details {
            direction,
            transport: self.transport,
            tagged: tagged(self.client, self.tag),
            datagram,
            queued: 0,
            fate: Fate::Delivered { at: now },
            left: None,
        }
    }
}

/// Longer packets than this are kept apart from shorter ones.
const SHORT: usize = 32;

/// Packets under way, by place. A request of a few bytes does not take the room of a long response.
#[derive(Debug, Default)]
pub(super) struct Pool {
    /// The short ones and the long ones; the last bit of a place says where it is.
    shelves: [Shelf; 2],
}

impl Pool {
    #[inline]
    pub(super) fn put(
        &mut self,
        client: u32,
        transport: Transport,
        datagram: &[u8],
        tag: Tag,
    ) -> u32 {
        let shelf = u32::from(datagram.len() > SHORT);
        self.shelves[shelf as usize].put(client, transport, datagram, tag) << 1 | shelf
    }

    /// A packet and its bytes.
    #[inline]
    pub(super) fn get(&self, place: u32) -> (PooledPacket, &[u8]) {
        self.shelves[(place & 1) as usize].get(place >> 1)
    }

    /// A packet without its bytes.
    #[inline]
    pub(super) fn packet(&self, place: u32) -> PooledPacket {
        self.shelves[(place & 1) as usize].packets[(place >> 1) as usize]
    }

    /// The bytes of a packet of this length.
    #[inline]
    pub(super) fn bytes(&self, place: u32, length: u16) -> &[u8] {
        self.shelves[(place & 1) as usize].bytes(place >> 1, length)
    }

    /// The place of a copy of a packet.
    pub(super) fn copy(&mut self, place: u32) -> u32 {
        let (packet, bytes) = self.get(place);
        let bytes = SmallVec::<[u8; 128]>::from_slice(bytes);
        let copy = self.put(packet.client, packet.transport, &bytes, packet.tag);
        if packet.is_marked {
            self.mark(copy);
        }
        copy
    }

    /// A queue has marked a packet.
    pub(super) fn mark(&mut self, place: u32) {
        self.shelves[(place & 1) as usize].packets[(place >> 1) as usize].is_marked = true;
    }

    /// The place may be used again.
    #[inline]
    pub(super) fn release(&mut self, place: u32) {
        self.shelves[(place & 1) as usize].release(place >> 1);
    }
}

/// Packets of about one length, by place. All bytes are in one buffer. The place that became free last is
/// used next, because its memory is still in the processor's cache. A packet that joins a long queue when
/// another one has left it takes the place of that, so the packets of a queue still lie side by side in about
/// the order in which they leave it.
#[derive(Debug, Default)]
struct Shelf {
    packets: Vec<PooledPacket>,
    bytes: Vec<u8>,
    /// Bytes of each place: what the longest packet so far needs.
    stride: usize,
    free: Vec<u32>,
}

impl Shelf {
    #[inline]
    fn put(&mut self, client: u32, transport: Transport, datagram: &[u8], tag: Tag) -> u32 {
        if datagram.len() > self.stride {
            self.widen(datagram.len());
        }
        let place = self.free.pop().unwrap_or_else(|| {
            let more = room(self.packets.len(), self.packets.capacity());
            self.packets.reserve_exact(more);
            self.packets.push(PooledPacket::default());
            self.bytes.reserve_exact(more * self.stride);
            self.bytes.resize(self.packets.len() * self.stride, 0);
            // As many as fit in memory, far below 2^31.
            (self.packets.len() - 1) as u32
        });
        self.packets[place as usize] = PooledPacket {
            client,
            transport,
            length: datagram.len() as u16,
            tag,
            is_marked: false,
        };
        let start = place as usize * self.stride;
        self.bytes[start..start + datagram.len()].copy_from_slice(datagram);
        place
    }

    /// A packet and its bytes.
    #[inline]
    fn get(&self, place: u32) -> (PooledPacket, &[u8]) {
        let packet = self.packets[place as usize];
        (packet, self.bytes(place, packet.length))
    }

    #[inline]
    fn bytes(&self, place: u32, length: u16) -> &[u8] {
        &self.bytes[place as usize * self.stride..][..usize::from(length)]
    }

    /// The place may be used again.
    #[inline]
    fn release(&mut self, place: u32) {
        self.free.push(place);
    }

    fn widen(&mut self, longest: usize) {
        let (before, stride) = (self.stride, longest.next_multiple_of(16));
        let mut bytes = vec![0; self.packets.len() * stride];
        for place in 0..self.packets.len() {
            bytes[place * stride..][..before]
                .copy_from_slice(&self.bytes[place * before..][..before]);
        }
        (self.bytes, self.stride) = (bytes, stride);
    }
}
