//! The Ethernet controller of the LM3S6965, by polling.

use smoltcp::phy::{Device, DeviceCapabilities, Medium, RxToken, TxToken};
use smoltcp::time::Instant;

const MAC: usize = 0x4004_8000;
const RECEIVE_CONTROL: usize = 0x08;
const TRANSMIT_CONTROL: usize = 0x0c;
const DATA: usize = 0x10;
const ADDRESS_LOW: usize = 0x14;
const ADDRESS_HIGH: usize = 0x18;
const NUMBER_OF_FRAMES: usize = 0x34;
const TRANSMIT: usize = 0x38;
const HEADER: usize = 14;
/// With the headers of Ethernet, IPv4 and UDP.
const FRAME: usize = 1294;

/// This board's address.
pub(super) const ADDRESS: [u8; 6] = [0x02, 0, 0, 0, 0, 0x42];

fn read(register: usize) -> u32 {
    // SAFETY: these registers exist.
    unsafe { ((MAC + register) as *const u32).read_volatile() }
}

fn write(register: usize, value: u32) {
    // SAFETY: as above.
    unsafe { ((MAC + register) as *mut u32).write_volatile(value) }
}

/// The controller with a frame in each direction.
pub(super) struct Ethernet {
    received: [u8; FRAME],
    sent: [u8; FRAME],
}

impl Ethernet {
    /// Enables it.
    pub(super) fn open() -> Self {
        let [a, b, c, d, e, f] = ADDRESS;
        write(ADDRESS_LOW, u32::from_le_bytes([a, b, c, d]));
        write(ADDRESS_HIGH, u32::from_le_bytes([e, f, 0, 0]));
        // Pads, adds the checksum, full duplex; enabled.
        write(TRANSMIT_CONTROL, 0x10 | 4 | 2 | 1);
        // Drops frames with a wrong checksum; enabled.
        write(RECEIVE_CONTROL, 8 | 4 | 2 | 1);
        Self { received: [0; FRAME], sent: [0; FRAME] }
    }

    /// The length of the next frame, which is now in `received`.
    fn read_frame(&mut self) -> Option<usize> {
        if read(NUMBER_OF_FRAMES) == 0 {
            return None;
        }
        // The length, in two bytes before the frame, counts itself and the checksum of four bytes.
        let first = read(DATA).to_le_bytes();
        let total = usize::from(u16::from_le_bytes([first[0], first[1]]));
        let length = total.saturating_sub(6);
        let rest = (4..total).step_by(4).flat_map(|_| read(DATA).to_le_bytes());
        for (at, byte) in first[2..].iter().copied().chain(rest).enumerate() {
            if let Some(place) = self.received[..].get_mut(at).filter(|_| at < length) {
                *place = byte;
            }
        }
        (length <= FRAME).then_some(length)
    }
}

fn write_frame(frame: &[u8]) {
    // The length, in two bytes before the frame, does not count the header.
    let length = ((frame.len() - HEADER) as u16).to_le_bytes();
    let mut word = [length[0], length[1], 0, 0];
    let mut filled = 2;
    for byte in frame {
        word[filled] = *byte;
        filled += 1;
        if filled == 4 {
            write(DATA, u32::from_le_bytes(word));
            filled = 0;
        }
    }
    if filled > 0 {
        write(DATA, u32::from_le_bytes(word));
    }
    write(TRANSMIT, 1);
}

pub(super) struct Received<'a>(&'a [u8]);

pub(super) struct Place<'a>(&'a mut [u8]);

impl RxToken for Received<'_> {
    fn consume<R, F: FnOnce(&[u8]) -> R>(self, read: F) -> R {
        read(self.0)
    }
}

impl TxToken for Place<'_> {
    fn consume<R, F: FnOnce(&mut [u8]) -> R>(self, length: usize, fill: F) -> R {
        let frame = &mut self.0[..length];
        let result = fill(frame);
        write_frame(frame);
        result
    }
}

impl Device for Ethernet {
    type RxToken<'a> = Received<'a>;
    type TxToken<'a> = Place<'a>;

    fn receive(&mut self, _: Instant) -> Option<(Received<'_>, Place<'_>)> {
        let length = self.read_frame()?;
        Some((Received(&self.received[..length]), Place(&mut self.sent)))
    }

    fn transmit(&mut self, _: Instant) -> Option<Place<'_>> {
        Some(Place(&mut self.sent))
    }

    fn capabilities(&self) -> DeviceCapabilities {
        let mut capabilities = DeviceCapabilities::default();
        capabilities.medium = Medium::Ethernet;
        capabilities.max_transmission_unit = FRAME;
        capabilities.max_burst_size = Some(1);
        capabilities
    }
}
