//! Captures: pcapng files that Wireshark reads.

use etherparse::PacketBuilder;
use pcap_file::pcapng::PcapNgWriter;
use pcap_file::pcapng::blocks::enhanced_packet::EnhancedPacketBlock;
use pcap_file::pcapng::blocks::interface_description::{
    InterfaceDescriptionBlock, InterfaceDescriptionOption,
};
use pcap_file::{DataLink, Endianness, PcapError};
use std::borrow::Cow;
use std::io::{self, Write};
use std::net::{SocketAddr, SocketAddrV4};
use std::time::Duration;

/// Where packets are seen in a capture, in the order of its interfaces.
pub const PLACES: [&str; 2] = ["clients", "server"];
/// Where frames are seen in a capture of a low-power network.
pub const AIR: [&str; 1] = ["air"];

/// A capture at several places of a network. Every packet says at which one it was seen, so that
/// the time it spent between two of them can be read off.
pub struct Capture<W: Write> {
    writer: PcapNgWriter<W>,
    is_ipv6: bool,
    /// Whether it is of frames, not of packets.
    is_of_frames: bool,
}

/// Bytes of the headers of IPv6 and UDP.
const IPV6_HEADER: u32 = 48;

/// Nanoseconds: 10^-9 (pcapng section 4.2, if_tsresol).
const NANOSECONDS: u8 = 9;

impl<W: Write> Capture<W> {
    /// Starts a capture with an interface per place, in order.
    ///
    /// # Errors
    ///
    /// Returns an error if the sink fails.
    pub fn new(sink: W, places: &[&str]) -> io::Result<Self> {
        Self::with_linktype(sink, places, DataLink::RAW)
    }

    /// Starts a capture of frames of IEEE 802.15.4 with their checksums, with an interface per place;
    /// see [`packet`](Self::packet).
    ///
    /// # Errors
    ///
    /// Returns an error if the sink fails.
    pub fn of_frames(sink: W, places: &[&str]) -> io::Result<Self> {
        Self::with_linktype(sink, places, DataLink::IEEE802_15_4)
    }

    fn with_linktype(sink: W, places: &[&str], linktype: DataLink) -> io::Result<Self> {
        // The same bytes on every machine, whatever its own order.
        let mut writer = PcapNgWriter::with_endianness(sink, Endianness::Little).map_err(to_io)?;
        for place in places {
            let block = InterfaceDescriptionBlock {
                linktype,
                snaplen: 0,
                options: vec![
                    InterfaceDescriptionOption::IfName(Cow::Borrowed(place)),
                    InterfaceDescriptionOption::IfTsResol(NANOSECONDS),
                ],
            };
            writer.write_pcapng_block(block).map_err(to_io)?;
        }
        let is_of_frames = linktype == DataLink::IEEE802_15_4;
        Ok(Self { writer, is_ipv6: false, is_of_frames })
    }

    /// Writes CoAP messages in packets whose header has this length, if there are such: with 48 bytes in IPv6 and
    /// UDP, otherwise in IPv4 and UDP, which have 28.
    pub const fn with_header(mut self, bytes: u32) -> Self {
        self.is_ipv6 = bytes == IPV6_HEADER;
        self
    }

    /// Adds a CoAP message seen at a place (by its number), in the order of time; `ns` counts from
    /// the start of the simulation. Addresses other than IPv4 are left out: the testbed has none. In IPv6 they
    /// are the last bytes of an address in 2001:db8::/96 (RFC 3849).
    ///
    /// # Errors
    ///
    /// Returns an error if the sink fails, or if the message does not fit an IPv4 packet.
    pub fn datagram(
        &mut self,
        place: u32,
        ns: u64,
        from: SocketAddr,
        to: SocketAddr,
        message: &[u8],
    ) -> io::Result<()> {
        let (SocketAddr::V4(from), SocketAddr::V4(to)) = (from, to) else { return Ok(()) };
        let bytes = packet(from, to, message, self.is_ipv6)?;
        self.packet(place, Duration::from_nanos(ns), &bytes)
    }

    /// Adds an IP packet, or a frame, as it was seen at a place, in the order of time; the time counts from
    /// 1970 where the packets are real ones.
    ///
    /// # Errors
    ///
    /// Returns an error if the sink fails.
    pub fn packet(&mut self, place: u32, at: Duration, packet: &[u8]) -> io::Result<()> {
        let block = EnhancedPacketBlock {
            interface_id: place,
            timestamp: at,
            original_len: u32::try_from(packet.len()).unwrap_or(u32::MAX),
            data: Cow::Borrowed(packet),
            options: Vec::new(),
        };
        self.writer.write_pcapng_block(block).map_err(to_io)?;
        Ok(())
    }

    /// Whether it is one of frames on the air.
    pub(crate) const fn is_of_frames(&self) -> bool {
        self.is_of_frames
    }

    /// The sink, with everything written.
    pub fn into_inner(self) -> W {
        self.writer.into_inner()
    }
}

fn packet(
    from: SocketAddrV4,
    to: SocketAddrV4,
    message: &[u8],
    is_ipv6: bool,
) -> io::Result<Vec<u8>> {
    let in_ipv6 = |address: &SocketAddrV4| {
        let [a, b, c, d] = address.ip().octets();
        [0x20, 0x01, 0x0d, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0, a, b, c, d]
    };
    let builder = match is_ipv6 {
        true => PacketBuilder::ipv6(in_ipv6(&from), in_ipv6(&to), 64),
        false => PacketBuilder::ipv4(from.ip().octets(), to.ip().octets(), 64),
    };
    let builder = builder.udp(from.port(), to.port());
    let mut packet = Vec::with_capacity(builder.size(message.len()));
    builder.write(&mut packet, message).map_err(io::Error::other)?;
    Ok(packet)
}

fn to_io(error: PcapError) -> io::Error {
    match error {
        PcapError::IoError(error) => error,
        other => io::Error::other(other.to_string()),
    }
}
