//! How long the frames of a datagram are: 6LoWPAN header compression (RFC 6282) and fragmentation
//! (RFC 4944 section 5.3).

use super::timing::LARGEST_FRAME;
use serde::{Deserialize, Serialize};

/// Link-layer addresses.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Addresses {
    /// EUI-64, 8 bytes.
    #[default]
    Long,
    /// 16 bits.
    Short,
}

/// IPv6 40 and UDP 8 bytes, which compression replaces and fragment offsets count.
const UNCOMPRESSED: u32 = 48;
/// The fragment header's datagram_size has 11 bits.
pub(crate) const LARGEST_DATAGRAM: u32 = 2047 - UNCOMPRESSED;
/// FRAG1 without, FRAGN with an offset.
const FIRST_HEADER: u32 = 4;
const NEXT_HEADER: u32 = 5;

/// The part of a datagram's addresses that a hop can leave out.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(crate) struct ElidedAddresses {
    /// Whether its source is the hop's sender, whose link-layer address says it all.
    pub(crate) from_sender: bool,
    /// Whether its destination is the hop's receiver.
    pub(crate) to_receiver: bool,
    /// Whether one end is in the Internet, with an address of its own of 16 bytes.
    pub(crate) beyond: bool,
}

/// The frames of a datagram: `count` of them, all but first and last of one length.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(crate) struct Fragments {
    /// Their number.
    pub(crate) count: u32,
    first: u32,
    middle: u32,
    last: u32,
}

impl Fragments {
    /// The length of a frame in bytes, MAC header and checksum included.
    pub(crate) const fn bytes(&self, index: u32) -> u32 {
        if index == 0 {
            self.first
        } else if index + 1 == self.count {
            self.last
        } else {
            self.middle
        }
    }
}

/// Control 2, sequence number 1, PAN 2, two addresses, checksum 2 (IEEE 802.15.4-2006 section 7.2).
const fn mac_bytes(addresses: Addresses) -> u32 {
    7 + 2 * match addresses {
        Addresses::Long => 8,
        Addresses::Short => 2,
    }
}

/// Bytes of the compressed IPv6 and UDP headers: IPHC 2, hop limit 1 unless it is still 64,
/// interface identifiers as far as the link-layer addresses do not say them, a full address for a
/// host in the Internet (RFC 6282 section 3); UDP 1, both ports 4, checksum 2 (section 4.3).
pub(crate) const fn compressed_header(addresses: Addresses, ends: ElidedAddresses) -> u32 {
    let identifier = match addresses {
        Addresses::Long => 8,
        Addresses::Short => 2,
    };
    let mut bytes = 2 + 7;
    if !ends.from_sender {
        bytes += 1 + identifier;
    }
    if !ends.to_receiver {
        bytes += identifier;
    }
    if ends.beyond {
        bytes += 16 - identifier;
    }
    bytes
}

/// The frames of a datagram with `payload` bytes of UDP payload and `header` bytes of compressed
/// headers. Only the last fragment may end elsewhere than at a multiple of 8 bytes of the
/// uncompressed datagram.
pub(crate) const fn fragments(addresses: Addresses, header: u32, payload: u32) -> Fragments {
    let mac = mac_bytes(addresses);
    let room = LARGEST_FRAME - mac;
    if header + payload <= room {
        let bytes = mac + header + payload;
        return Fragments { count: 1, first: bytes, middle: bytes, last: bytes };
    }
    let first = (UNCOMPRESSED + room - FIRST_HEADER - header) / 8 * 8 - UNCOMPRESSED;
    let each = (room - NEXT_HEADER) / 8 * 8;
    let rest = payload - first;
    let more = rest.div_ceil(each);
    Fragments {
        count: 1 + more,
        first: mac + FIRST_HEADER + header + first,
        middle: mac + NEXT_HEADER + each,
        last: mac + NEXT_HEADER + rest - (more - 1) * each,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const AT_HOME: ElidedAddresses =
        ElidedAddresses { from_sender: true, to_receiver: true, beyond: false };

    #[test]
    fn headers_are_as_long_as_the_rfcs_say() {
        let (long, short) = (Addresses::Long, Addresses::Short);
        assert_eq!(compressed_header(long, AT_HOME), 9);
        let forwarded = ElidedAddresses { from_sender: false, to_receiver: false, beyond: false };
        assert_eq!(compressed_header(long, forwarded), 26);
        assert_eq!(compressed_header(short, forwarded), 14);
        let to_internet = ElidedAddresses { from_sender: true, to_receiver: false, beyond: true };
        assert_eq!(compressed_header(long, to_internet), 25);
        assert_eq!((mac_bytes(long), mac_bytes(short)), (23, 11));
    }

    #[test]
    fn a_datagram_that_fits_is_one_frame() {
        let one = fragments(Addresses::Long, 9, 95);
        assert_eq!((one.count, one.bytes(0)), (1, 127));
        let two = fragments(Addresses::Long, 9, 96);
        // 104 bytes of room: 4 + 9 + 88 in the first (48 + 88 = 17 x 8), 8 in the second.
        assert_eq!((two.count, two.bytes(0), two.bytes(1)), (2, 23 + 101, 23 + 5 + 8));
    }

    proptest! {
        #[test]
        fn fragments_carry_the_payload_once_and_fit(payload in 0u32..=LARGEST_DATAGRAM, header in 9u32..40) {
            for addresses in [Addresses::Long, Addresses::Short] {
                let frames = fragments(addresses, header, payload);
                let mac = mac_bytes(addresses);
                let overhead = match frames.count {
                    1 => mac + header,
                    count => mac + FIRST_HEADER + header + (count - 1) * (mac + NEXT_HEADER),
                };
                let sum: u32 = (0..frames.count).map(|index| frames.bytes(index)).sum();
                prop_assert_eq!(sum, overhead + payload);
                prop_assert!((0..frames.count).all(|index| frames.bytes(index) <= LARGEST_FRAME));
            }
        }
    }
}
