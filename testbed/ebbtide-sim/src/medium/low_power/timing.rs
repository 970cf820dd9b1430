//! Durations at 2.4 GHz (IEEE 802.15.4-2006, sections 6.4, 6.5 and 7.4), in nanoseconds, exactly.

/// A symbol: 4 bits at 250 kbit/s, 16 µs.
pub const SYMBOL: u64 = 16_000;
/// aUnitBackoffPeriod: 20 symbols.
pub const BACKOFF_UNIT: u64 = 20 * SYMBOL;
/// A clear channel assessment: 8 symbols (section 6.9.9).
pub const ASSESSMENT: u64 = 8 * SYMBOL;
/// aTurnaroundTime: 12 symbols from receiving to transmitting.
pub const TURNAROUND: u64 = 12 * SYMBOL;
/// Preamble 4, start of frame 1, length 1 (section 6.3).
pub const PHY_BYTES: u32 = 6;
/// An acknowledgement: control 2, sequence number 1, checksum 2; 11 bytes with preamble.
pub const ACK_BYTES: u32 = 5;
/// aMaxPHYPacketSize.
pub const LARGEST_FRAME: u32 = 127;
/// macAckWaitDuration: aUnitBackoffPeriod + aTurnaroundTime + phySHRDuration (10 symbols) +
/// 6 bytes, 54 symbols (section 7.4.2).
pub const ACK_WAIT: u64 = 54 * SYMBOL;

/// How long a frame of `bytes` is on the air, preamble included.
pub const fn airtime(bytes: u32) -> u64 {
    (PHY_BYTES + bytes) as u64 * 2 * SYMBOL
}

/// The time that a receiver needs before the next frame: macMinSIFSPeriod, 12 symbols, after at
/// most aMaxSIFSFrameSize (18) bytes, otherwise macMinLIFSPeriod, 40 symbols (section 7.5.1.3).
pub const fn interframe_spacing(bytes: u32) -> u64 {
    if bytes <= 18 { 12 * SYMBOL } else { 40 * SYMBOL }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_are_those_of_the_standard() {
        assert_eq!(airtime(LARGEST_FRAME), 4_256_000);
        assert_eq!(airtime(ACK_BYTES), 352_000);
        assert_eq!(ACK_WAIT, 864_000);
        assert_eq!((interframe_spacing(18), interframe_spacing(19)), (192_000, 640_000));
        assert_eq!((BACKOFF_UNIT, ASSESSMENT, TURNAROUND), (320_000, 128_000, 192_000));
    }
}
