//! Durations in nanoseconds, exactly.

use super::Dcf;
use crate::units::Rate;

/// An acknowledgement: control 2, duration 2, receiver 6, checksum 4 (IEEE 802.11-1999, section
/// 7.2.1.3).
const ACK_BYTES: u32 = 14;
/// The lowest mandatory rate, at which EIFS takes an acknowledgement to be sent (section 9.2.10).
const LOWEST: Rate = Rate(1_000_000);

impl Dcf {
    /// The length of the frame around an IP packet of `bytes`.
    pub const fn frame_bytes(&self, bytes: u32) -> u32 {
        bytes.saturating_add(self.mac_header).saturating_add(self.llc_header)
    }

    /// How long a data frame of `bytes`, MAC header included, is on the air.
    pub const fn data_airtime(&self, bytes: u32) -> u64 {
        self.airtime(bytes, self.data_rate)
    }

    /// How long an acknowledgement is on the air.
    pub const fn ack_airtime(&self) -> u64 {
        self.airtime(ACK_BYTES, self.basic_rate)
    }

    /// DIFS: SIFS and two slots (section 9.2.10).
    pub const fn difs(&self) -> u64 {
        self.sifs.0 + 2 * self.slot.0
    }

    /// EIFS, in place of DIFS after a frame that could not be read: SIFS, an acknowledgement at the
    /// lowest rate, DIFS (section 9.2.10).
    pub const fn eifs(&self) -> u64 {
        self.sifs.0 + self.airtime(ACK_BYTES, LOWEST) + self.difs()
    }

    /// The time from the end of a data frame to the end of its acknowledgement. The frame's
    /// duration field announces it (section 7.2.2), and the sender waits for it: the standard
    /// gives no value for ACKTimeout, and with this one the sender and other stations agree on the
    /// end of the attempt.
    pub const fn ack_wait(&self) -> u64 {
        self.sifs.0 + self.ack_airtime()
    }

    /// The minimum duration of one delivery, from one idle channel to the next, without waiting
    /// for slots.
    pub const fn exchange(&self, bytes: u32) -> u64 {
        self.difs() + self.data_airtime(bytes) + self.ack_wait()
    }

    /// Preamble, header, and the bytes at their rate, rounded up to a microsecond (802.11b section
    /// 18.3.4).
    const fn airtime(&self, bytes: u32, rate: Rate) -> u64 {
        let rate = if rate.0 == 0 { 1 } else { rate.0 };
        let bits = bytes as u64 * 8;
        self.plcp.0 + (bits * 1_000_000).div_ceil(rate) * 1000
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::units::Time;

    #[test]
    fn durations_are_those_of_the_standard() {
        let dcf = Dcf::default();
        // 1500 bytes of IP: 1536 at 11 Mbit/s are 1117.1 µs; 14 at 1 Mbit/s are 112.
        assert_eq!(dcf.frame_bytes(1500), 1536);
        assert_eq!(dcf.data_airtime(1536), (192 + 1118) * 1000);
        assert_eq!(dcf.ack_airtime(), 304_000);
        assert_eq!((dcf.difs(), dcf.eifs(), dcf.ack_wait()), (50_000, 364_000, 314_000));
        // RCOAP's 106 bytes: 142 at 11 Mbit/s are 103.3 µs.
        assert_eq!(dcf.data_airtime(dcf.frame_bytes(106)), 296_000);
        let fast = Dcf { basic_rate: Rate(11_000_000), plcp: Time(96_000), ..dcf };
        assert_eq!(fast.ack_airtime(), 107_000);
        assert_eq!(fast.eifs(), 10_000 + 96_000 + 112_000 + 50_000);
        let middle = Dcf { data_rate: Rate(5_500_000), ..dcf };
        assert_eq!(middle.data_airtime(11), 208_000);
    }
}
