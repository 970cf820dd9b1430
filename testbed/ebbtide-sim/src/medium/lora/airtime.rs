//! The time of a frame on the air (Semtech, application note AN1200.13, section 4; the same formula is in
//! the SX1276/77/78/79 datasheet, section 4.1.1.7).

/// Symbols of the preamble that a transmitter programs (LoRaWAN Regional Parameters 1.0.3, section 2.2.2).
const PREAMBLE: u64 = 8;

/// Everything on which the time of a frame depends, apart from its length.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct Modulation {
    /// The spreading factor, 7 to 12.
    pub spreading_factor: u8,
    /// The bandwidth, Hz.
    pub bandwidth: u32,
    /// `n` of the coding rate 4/(4 + n), from 1 to 4.
    pub coding_rate: u8,
    /// Whether the payload has a checksum. Downlinks of LoRaWAN have none.
    pub has_crc: bool,
}

impl Modulation {
    /// The time of a symbol, `2^SF / BW`, ns.
    pub const fn symbol_ns(self) -> u64 {
        (1_000_000_000 << self.spreading_factor) / self.bandwidth as u64
    }

    /// Whether low data rate optimisation is required: symbols of more than 16 ms.
    const fn is_slow(self) -> bool {
        self.symbol_ns() > 16_000_000
    }
}

/// The time on the air of a frame of `bytes` (PHYPayload) with an explicit header, ns.
pub const fn airtime(modulation: Modulation, bytes: u32) -> u64 {
    let factor = modulation.spreading_factor as i64;
    let crc = if modulation.has_crc { 16 } else { 0 };
    let bits = 8 * bytes as i64 - 4 * factor + 28 + crc;
    let per_block = 4 * (factor - if modulation.is_slow() { 2 } else { 0 });
    let blocks = if bits > 0 { (bits + per_block - 1) / per_block } else { 0 };
    let payload = 8 + blocks as u64 * (modulation.coding_rate as u64 + 4);
    // The preamble is 4.25 symbols longer than it is programmed.
    let quarters = 4 * (PREAMBLE + payload) + 17;
    modulation.symbol_ns() * quarters / 4
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Spreading factor, bytes, microseconds: the calculators of The Things Network's community (13 and 37 bytes)
    /// and of RF Wireless World (10 bytes), both at 125 kHz and coding rate 4/5 with a checksum.
    #[test]
    fn frames_take_as_long_as_published() {
        for (spreading_factor, bytes, micros) in [
            (7, 10, 41_216),
            (11, 10, 577_536),
            (9, 13, 164_864),
            (7, 37, 82_176),
            (8, 37, 143_872),
            (9, 37, 267_264),
            (10, 37, 493_568),
            (11, 37, 1_069_056),
            (12, 37, 1_974_272),
        ] {
            let modulation =
                Modulation { spreading_factor, bandwidth: 125_000, coding_rate: 1, has_crc: true };
            let name = format!("SF{spreading_factor}, {bytes} bytes");
            assert_eq!(airtime(modulation, bytes), micros * 1000, "{name}");
        }
    }

    #[test]
    fn a_downlink_saves_its_checksum() {
        let with =
            Modulation { spreading_factor: 7, bandwidth: 125_000, coding_rate: 1, has_crc: true };
        let without = Modulation { has_crc: false, ..with };
        // 13 bytes: 120 bits in 5 blocks with the checksum, 104 bits in 4 without.
        assert_eq!(airtime(with, 13) - airtime(without, 13), 5 * with.symbol_ns());
    }
}
