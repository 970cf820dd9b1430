//! The packets under way, by slot.

/// Bytes that may be under way at the same time.
const MAX_BYTES: u64 = 256 << 20;
/// Packets that may be under way at the same time.
const MAX_PACKETS: usize = 1 << 20;

/// The packets under way, limited in number and bytes.
#[derive(Debug)]
pub(super) struct Packets<P> {
    places: Vec<Option<StoredPacket<P>>>,
    free: Vec<u32>,
    bytes: u64,
    refused: u64,
}

#[derive(Debug)]
struct StoredPacket<P> {
    bytes: u32,
    device: u32,
    packet: P,
}

impl<P> Default for Packets<P> {
    fn default() -> Self {
        Self { places: Vec::new(), free: Vec::new(), bytes: 0, refused: 0 }
    }
}

impl<P> Packets<P> {
    /// Stores a packet and returns its slot; at a limit, counts it and returns `None`.
    pub(super) fn put(&mut self, bytes: u32, device: u32, packet: P) -> Option<u32> {
        if self.bytes + u64::from(bytes) > MAX_BYTES || self.count() >= MAX_PACKETS {
            self.refused += 1;
            return None;
        }
        self.bytes += u64::from(bytes);
        let stored = Some(StoredPacket { bytes, device, packet });
        if let Some(place) = self.free.pop() {
            self.places[place as usize] = stored;
            return Some(place);
        }
        self.places.push(stored);
        // MAX_PACKETS is below 2^32.
        Some((self.places.len() - 1) as u32)
    }

    /// The length of the packet in a slot, and the number of its device.
    pub(super) fn about(&self, place: u32) -> (u32, u32) {
        let packet = self.places.get(place as usize).and_then(Option::as_ref);
        packet.map_or((0, 0), |stored| (stored.bytes, stored.device))
    }

    /// Takes the packet out of its slot, which is then free.
    pub(super) fn take(&mut self, place: u32) -> Option<P> {
        let StoredPacket { bytes, packet, .. } = self.places.get_mut(place as usize)?.take()?;
        self.free.push(place);
        self.bytes -= u64::from(bytes);
        Some(packet)
    }

    pub(super) fn count(&self) -> usize {
        self.places.len() - self.free.len()
    }

    pub(super) const fn refused(&self) -> u64 {
        self.refused
    }
}
