//! What smoltcp sees of the network: a packet that arrives, and packets that leave.

use smoltcp::phy::{self, Checksum, ChecksumCapabilities, DeviceCapabilities, Medium};
use smoltcp::time::Instant;
use std::ops::Range;

/// A device without hardware: the simulation puts packets in and takes them out.
#[derive(Debug)]
pub(super) struct Device {
    /// The largest IP packet, bytes.
    mtu: usize,
    arriving: Option<Vec<u8>>,
    leaving: Leaving,
}

/// Packets that leave, one after another in one buffer.
#[derive(Debug, Default)]
struct Leaving {
    bytes: Vec<u8>,
    packets: Vec<Range<usize>>,
}

impl Device {
    pub(super) fn new(mtu: usize) -> Self {
        Self { mtu, arriving: None, leaving: Leaving::default() }
    }

    /// Puts in a packet; smoltcp takes it when it is polled for one.
    pub(super) fn arrive(&mut self, packet: &[u8]) {
        self.arriving = Some(packet.to_vec());
    }

    /// Lets a packet leave that smoltcp did not make.
    pub(super) fn send(&mut self, packet: &[u8]) {
        phy::TxToken::consume(Departure(&mut self.leaving), packet.len(), |room| {
            room.copy_from_slice(packet);
        });
    }

    /// The packets that leave, in order; [`Self::clear`] takes them out.
    pub(super) fn leaving(&self) -> impl Iterator<Item = &[u8]> {
        self.leaving.packets.iter().map(|range| &self.leaving.bytes[range.clone()])
    }

    pub(super) fn clear(&mut self) {
        self.leaving.bytes.clear();
        self.leaving.packets.clear();
    }
}

impl phy::Device for Device {
    type RxToken<'a> = Arrival;
    type TxToken<'a> = Departure<'a>;

    fn receive(&mut self, _now: Instant) -> Option<(Arrival, Departure<'_>)> {
        Some((Arrival(self.arriving.take()?), Departure(&mut self.leaving)))
    }

    fn transmit(&mut self, _now: Instant) -> Option<Departure<'_>> {
        Some(Departure(&mut self.leaving))
    }

    fn capabilities(&self) -> DeviceCapabilities {
        let mut capabilities = DeviceCapabilities::default();
        capabilities.medium = Medium::Ip;
        capabilities.max_transmission_unit = self.mtu;
        // Captures need checksums; nothing on the way changes a byte, so nobody need check them.
        let mut checksums = ChecksumCapabilities::default();
        checksums.ipv4 = Checksum::Tx;
        checksums.tcp = Checksum::Tx;
        capabilities.checksum = checksums;
        capabilities
    }
}

/// A packet that arrives.
pub(super) struct Arrival(Vec<u8>);

impl phy::RxToken for Arrival {
    fn consume<R, F: FnOnce(&[u8]) -> R>(self, f: F) -> R {
        f(&self.0)
    }
}

/// Room for a packet that leaves.
pub(super) struct Departure<'d>(&'d mut Leaving);

impl phy::TxToken for Departure<'_> {
    fn consume<R, F: FnOnce(&mut [u8]) -> R>(self, len: usize, f: F) -> R {
        let start = self.0.bytes.len();
        self.0.bytes.resize(start + len, 0);
        self.0.packets.push(start..start + len);
        f(&mut self.0.bytes[start..])
    }
}
