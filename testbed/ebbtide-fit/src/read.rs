//! Reading a capture: pcap and pcapng files, down to the CoAP messages in them.

use super::error::FitError;
use ebbtide_core::PeerToken;
use ebbtide_core::wire::{Code, Message, OptionNumber, Type};
use etherparse::{LaxNetSlice, LaxSlicedPacket, TransportSlice};
use flate2::read::MultiGzDecoder;
use pcap_file::pcap::PcapReader;
use pcap_file::pcapng::blocks::interface_description::InterfaceDescriptionOption;
use pcap_file::pcapng::{Block, PcapNgReader};
use pcap_file::{DataLink, PcapError};
use std::cell::Cell;
use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, Cursor, ErrorKind, Read};
use std::net::{IpAddr, SocketAddr};
use std::rc::Rc;

/// A CoAP message as it was seen at one place.
#[derive(Clone, Debug)]
pub(super) struct CapturedDatagram {
    /// Nanoseconds since the epoch of the capture.
    pub(super) at: u64,
    /// The number of its interface in the file.
    pub(super) interface: usize,
    pub(super) from: SocketAddr,
    pub(super) to: SocketAddr,
    /// Length of the IP packet in bytes.
    pub(super) bytes: u32,
    pub(super) kind: Type,
    pub(super) code: Code,
    pub(super) id: u16,
    pub(super) token: PeerToken,
    /// Bytes of its options.
    pub(super) options: u32,
    /// Bytes of its payload.
    pub(super) payload: u32,
    /// A hash of the message: copies of it have the same one.
    pub(super) hash: u64,
    /// The identification of its IPv4 packet; 0 if there is none.
    pub(super) ip_id: u16,
    pub(super) is_notification: bool,
    /// The number of its path among [`Contents::paths`].
    pub(super) path: Option<u32>,
}

/// The contents of a capture.
#[derive(Debug, Default)]
pub(super) struct Contents {
    /// The messages in the order of time.
    pub(super) datagrams: Vec<CapturedDatagram>,
    /// The names of the interfaces, in the file's order.
    pub(super) interfaces: Vec<Option<String>>,
    /// The distinct paths of requests, at most [`PATHS`].
    pub(super) paths: Vec<String>,
    /// Packets that hold no CoAP message, and their bytes.
    pub(super) others: (u64, u64),
    /// Packets of link types that are not supported.
    pub(super) unsupported: u64,
    /// IP fragments, whose messages are not put together.
    pub(super) fragments: u64,
    /// CoAP packets that were captured twice and counted once.
    pub(super) twice: usize,
    /// DTLS records at the port of CoAP.
    pub(super) dtls: u64,
    /// The pairs of ends between which they were, at most [`DEVICES`]: with one server, its devices.
    pub(super) dtls_devices: BTreeSet<[SocketAddr; 2]>,
    /// UDP packets at each port.
    pub(super) ports: BTreeMap<u16, u64>,
    /// Packets at the port of which too little was captured (snap length).
    pub(super) cut_packets: u64,
    /// The file ends within a packet.
    pub(super) is_cut: bool,
}

impl Contents {
    /// The three UDP ports that most packets use.
    pub(super) fn busiest(&self) -> Vec<(u16, u64)> {
        let mut ports: Vec<(u16, u64)> =
            self.ports.iter().map(|(port, count)| (*port, *count)).collect();
        ports.sort_by_key(|(port, count)| (std::cmp::Reverse(*count), *port));
        ports.truncate(3);
        ports
    }
}

/// The block type of a section header (pcapng section 4.1), the same in both byte orders.
const SECTION: [u8; 4] = [0x0a, 0x0d, 0x0d, 0x0a];

/// Interfaces of a capture. Each may be compared with each.
const INTERFACES: usize = 1024;
/// Distinct paths that are remembered.
const PATHS: usize = 64;
/// Devices behind DTLS that are counted.
const DEVICES: usize = 1_000_000;

/// RFC 1952 section 2.3.1.
const GZIP: [u8; 2] = [0x1f, 0x8b];

/// Reads a capture whose CoAP messages use this port.
pub(super) fn read(mut source: impl Read, port: u16, most: usize) -> Result<Contents, FitError> {
    let magic = beginning(&mut source)?;
    if magic[..2] != GZIP {
        return read_plain(magic, source, port, most);
    }
    let mut plain = MultiGzDecoder::new(Cursor::new(magic).chain(source));
    let magic = beginning(&mut plain)?;
    read_plain(magic, plain, port, most)
}

/// The first four bytes, which tell the format.
fn beginning(source: &mut impl Read) -> Result<[u8; 4], FitError> {
    let mut magic = [0; 4];
    let mut have = 0;
    while have < magic.len() {
        match source.read(&mut magic[have..]) {
            Ok(0) if have == 0 => return Err(FitError::Empty),
            Ok(0) => return Err(FitError::NotACapture),
            Ok(more) => have += more,
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) => return Err(FitError::Io(error)),
        }
    }
    Ok(magic)
}

/// Reads the rest of a capture that begins like this.
fn read_plain(
    magic: [u8; 4],
    source: impl Read,
    port: u16,
    most: usize,
) -> Result<Contents, FitError> {
    let taken = Rc::new(Cell::new(0));
    let whole = Counted { source: Cursor::new(magic).chain(source), taken: Rc::clone(&taken) };
    let (contents, used) = (Contents::default(), 0);
    let has_blocks = magic == SECTION;
    let mut reader = CaptureReader { contents, port, most, used, longest: 0, has_blocks };
    let ended = match magic {
        SECTION => reader.pcapng(whole)?,
        // In both byte orders, with microseconds and with nanoseconds.
        [0xa1, 0xb2, 0xc3, 0xd4]
        | [0xd4, 0xc3, 0xb2, 0xa1]
        | [0xa1, 0xb2, 0x3c, 0x4d]
        | [0x4d, 0x3c, 0xb2, 0xa1] => reader.pcap(whole)?,
        _ => return Err(FitError::NotACapture),
    };
    if ended == CaptureEnd::Cut {
        reader.refuse_damage(taken.get())?;
    }
    let mut contents = reader.contents;
    contents.is_cut = ended == CaptureEnd::Cut;
    // Captures of several interfaces may be slightly out of order.
    contents.datagrams.sort_by_key(|datagram| datagram.at);
    Ok(contents)
}

/// How the file ends.
#[derive(Copy, Clone, PartialEq, Eq)]
enum CaptureEnd {
    Whole,
    Cut,
}

struct CaptureReader {
    contents: Contents,
    port: u16,
    most: usize,
    /// Bytes of the frames that were read, with the least that a format adds to each.
    used: u64,
    /// The longest of them.
    longest: u64,
    /// Whether the format is pcapng.
    has_blocks: bool,
}

/// A source that counts the bytes that are taken from it.
struct Counted<R> {
    source: R,
    taken: Rc<Cell<u64>>,
}

impl<R: Read> Read for Counted<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let more = self.source.read(buffer)?;
        self.taken.set(self.taken.get() + more as u64);
        Ok(more)
    }
}

/// A damaged or unfinished block ends the capture: what came before it counts.
fn is_cut(error: PcapError) -> Result<(), FitError> {
    match error {
        PcapError::IncompleteBuffer => Ok(()),
        PcapError::IoError(error) if error.kind() == ErrorKind::UnexpectedEof => Ok(()),
        PcapError::IoError(error) => Err(FitError::Io(error)),
        other => Err(FitError::Damaged(other.to_string())),
    }
}

impl CaptureReader {
    /// A capture that was cut lacks a part of its last packet. Where much more than that was left,
    /// a length within it is wrong.
    fn refuse_damage(&self, taken: u64) -> Result<(), FitError> {
        let left = taken.saturating_sub(self.used);
        // The blocks of pcapng have more than the 16 bytes of pcap's records.
        let more = if self.has_blocks { self.used } else { 0 };
        if left <= 4096 + 2 * self.longest + more {
            return Ok(());
        }
        let packets = self.contents.others.0 + self.contents.datagrams.len() as u64;
        Err(FitError::Damaged(format!(
            "after {packets} packets a length is wrong, and {left} of {taken} bytes cannot be read; editcap -r FILE PART \
             1-{packets} keeps what comes before"
        )))
    }

    fn pcap(&mut self, source: impl Read) -> Result<CaptureEnd, FitError> {
        let mut reader = match PcapReader::new(source) {
            Ok(reader) => reader,
            Err(error) => return is_cut(error).map(|()| CaptureEnd::Cut),
        };
        let link = reader.header().datalink;
        self.contents.interfaces.push(None);
        while let Some(packet) = reader.next_packet() {
            match packet {
                Ok(packet) => {
                    let at = u64::try_from(packet.timestamp.as_nanos()).unwrap_or(u64::MAX);
                    self.frame((at, 0), link, &packet.data)?;
                }
                Err(error) => return is_cut(error).map(|()| CaptureEnd::Cut),
            }
        }
        Ok(CaptureEnd::Whole)
    }

    fn pcapng(&mut self, source: impl Read) -> Result<CaptureEnd, FitError> {
        let mut reader = match PcapNgReader::new(source) {
            Ok(reader) => reader,
            Err(error) => return is_cut(error).map(|()| CaptureEnd::Cut),
        };
        // The interfaces of the present section: their numbers begin anew with each.
        let mut section: Vec<Interface> = Vec::new();
        loop {
            let block = match reader.next_block() {
                None => return Ok(CaptureEnd::Whole),
                Some(Err(error)) => return is_cut(error).map(|()| CaptureEnd::Cut),
                Some(Ok(block)) => block,
            };
            match block {
                Block::SectionHeader(_) => section.clear(),
                Block::InterfaceDescription(block) => {
                    let mut name = None;
                    // pcapng section 4.2: microseconds unless if_tsresol says otherwise.
                    let (mut unit, mut offset) = (6, 0);
                    for option in &block.options {
                        match option {
                            InterfaceDescriptionOption::IfName(own) => {
                                name = Some(own.to_string());
                            }
                            InterfaceDescriptionOption::IfTsResol(own) => unit = *own,
                            InterfaceDescriptionOption::IfTsOffset(own) => offset = *own,
                            _ => {}
                        }
                    }
                    // The same interface in several sections is one place.
                    let known = &mut self.contents.interfaces;
                    let number = match known.iter().position(|own| name.is_some() && *own == name) {
                        Some(number) => number,
                        None if known.len() >= INTERFACES => {
                            let why = format!("it names more than {INTERFACES} interfaces");
                            return Err(FitError::Damaged(why));
                        }
                        None => {
                            known.push(name);
                            known.len() - 1
                        }
                    };
                    section.push(Interface { number, link: block.linktype, unit, offset });
                }
                Block::EnhancedPacket(packet) => {
                    let own = usize::try_from(packet.interface_id).ok();
                    let Some(own) = own.and_then(|own| section.get(own)) else {
                        return Err(FitError::Damaged("a packet names no interface".to_owned()));
                    };
                    // The reader counts every unit as a nanosecond.
                    let units = u64::try_from(packet.timestamp.as_nanos()).unwrap_or(u64::MAX);
                    let (at, number, link) = (own.nanos(units), own.number, own.link);
                    self.frame((at, number), link, &packet.data)?;
                }
                _ => {}
            }
        }
    }

    /// Takes a frame that was captured at an instant at an interface.
    fn frame(&mut self, at: (u64, usize), link: DataLink, frame: &[u8]) -> Result<(), FitError> {
        self.used += 16 + frame.len() as u64;
        self.longest = self.longest.max(frame.len() as u64);
        let Some(packet) = network_layer(link, frame) else {
            match link {
                DataLink::ETHERNET | DataLink::LINUX_SLL | DataLink::LINUX_SLL2 => {
                    self.other(frame);
                }
                _ => self.contents.unsupported += 1,
            }
            return Ok(());
        };
        let Some(datagram) = self.datagram(at.0, at.1, packet) else {
            self.other(packet);
            return Ok(());
        };
        if self.contents.datagrams.len() >= self.most {
            return Err(FitError::TooLong(self.most));
        }
        self.contents.datagrams.push(datagram);
        Ok(())
    }

    fn other(&mut self, packet: &[u8]) {
        self.contents.others.0 += 1;
        self.contents.others.1 += packet.len() as u64;
    }

    /// The CoAP message in an IP packet, if there is one.
    fn datagram(&mut self, at: u64, interface: usize, packet: &[u8]) -> Option<CapturedDatagram> {
        let sliced = LaxSlicedPacket::from_ip(packet).ok()?;
        let (from, to, header, ip_id) = match sliced.net.as_ref()? {
            LaxNetSlice::Ipv4(ip) => {
                let header = ip.header();
                let ends = (header.source_addr(), header.destination_addr());
                (IpAddr::V4(ends.0), IpAddr::V4(ends.1), 20 + 8, header.identification())
            }
            LaxNetSlice::Ipv6(ip) => {
                let header = ip.header();
                let ends = (header.source_addr(), header.destination_addr());
                (IpAddr::V6(ends.0), IpAddr::V6(ends.1), 40 + 8, 0)
            }
            LaxNetSlice::Arp(_) => return None,
        };
        if sliced.ip_payload().is_some_and(|payload| payload.fragmented) {
            self.contents.fragments += 1;
            return None;
        }
        let Some(TransportSlice::Udp(udp)) = &sliced.transport else { return None };
        let ports = (udp.source_port(), udp.destination_port());
        *self.contents.ports.entry(ports.0).or_default() += 1;
        if ports.0 != ports.1 {
            *self.contents.ports.entry(ports.1).or_default() += 1;
        }
        if udp.source_port() != self.port && udp.destination_port() != self.port {
            return None;
        }
        if is_dtls(udp.payload()) {
            self.contents.dtls += 1;
            let (from, to) = (SocketAddr::new(from, ports.0), SocketAddr::new(to, ports.1));
            let known = &mut self.contents.dtls_devices;
            if known.len() < DEVICES {
                known.insert([from.min(to), from.max(to)]);
            }
            return None;
        }
        // The capture may have kept only the beginning: the header has the length.
        let length = u32::from(udp.length()).saturating_sub(8).max(udp.payload().len() as u32);
        let missing = length - udp.payload().len() as u32;
        let Ok(message) = Message::parse(udp.payload()) else {
            self.contents.cut_packets += u64::from(missing > 0);
            return None;
        };
        let token = PeerToken::new(message.token_bytes());
        let payload = message.payload().len() as u32 + missing;
        let marker = u32::from(payload > 0);
        let fixed = 4 + token.encoded_len() as u32 + marker + payload;
        let path = match message.code().is_request() {
            true => self.path(&message),
            false => None,
        };
        Some(CapturedDatagram {
            at,
            interface,
            from: SocketAddr::new(from, udp.source_port()),
            to: SocketAddr::new(to, udp.destination_port()),
            bytes: header + length,
            kind: message.kind(),
            code: message.code(),
            id: message.message_id().0,
            token,
            options: length.saturating_sub(fixed),
            payload,
            hash: fnv(udp.payload()),
            ip_id,
            is_notification: message.code().is_response()
                && message.option(OptionNumber::OBSERVE).is_some(),
            path,
        })
    }

    /// The number of a request's path.
    fn path(&mut self, message: &Message<'_>) -> Option<u32> {
        let mut text = String::new();
        for segment in message.options().filter(|o| o.number == OptionNumber::URI_PATH) {
            if !text.is_empty() {
                text.push('/');
            }
            text.push_str(&String::from_utf8_lossy(segment.value));
        }
        let known = &mut self.contents.paths;
        let place = known.iter().position(|own| *own == text);
        let place = place.or_else(|| {
            (known.len() < PATHS).then(|| {
                known.push(text);
                known.len() - 1
            })
        });
        place.and_then(|place| u32::try_from(place).ok())
    }
}

/// An interface of a pcapng section.
struct Interface {
    /// Its number in [`Contents::interfaces`].
    number: usize,
    link: DataLink,
    /// The unit of its times (if_tsresol).
    unit: u8,
    /// Seconds to be added to its times (if_tsoffset).
    offset: u64,
}

impl Interface {
    /// The nanoseconds of a number of its units.
    fn nanos(&self, units: u64) -> u64 {
        let exponent = u32::from(self.unit & 0x7f);
        let units = u128::from(units);
        let nanos = if self.unit & 0x80 == 0 {
            // 10^-n s.
            match exponent {
                0..=9 => units * 10u128.pow(9 - exponent),
                10..=38 => units / 10u128.pow(exponent - 9),
                _ => 0,
            }
        } else {
            // 2^-n s.
            (units * 1_000_000_000).checked_shr(exponent).unwrap_or(0)
        };
        let nanos = nanos + u128::from(self.offset) * 1_000_000_000;
        u64::try_from(nanos).unwrap_or(u64::MAX)
    }
}

/// The IP packet in a frame, if there is one.
fn network_layer(link: DataLink, frame: &[u8]) -> Option<&[u8]> {
    const IPV4: u16 = 0x0800;
    const IPV6: u16 = 0x86dd;
    let word = |at: usize| Some(u16::from_be_bytes([*frame.get(at)?, *frame.get(at + 1)?]));
    let packet = match link {
        DataLink::RAW | DataLink::IPV4 | DataLink::IPV6 => frame,
        DataLink::ETHERNET => {
            let mut at = 12;
            // IEEE 802.1Q and 802.1ad: tags of four bytes.
            while matches!(word(at)?, 0x8100 | 0x88a8 | 0x9100) {
                at += 4;
            }
            match word(at)? {
                IPV4 | IPV6 => frame.get(at + 2..)?,
                // RFC 2516 section 4: six bytes, then PPP's protocol: IPv4 or IPv6 (RFC 5072).
                0x8864 => {
                    matches!(word(at + 8)?, 0x0021 | 0x0057).then(|| frame.get(at + 10..))??
                }
                // RFC 3032 section 2.1: labels of four bytes; the last one has the bit S.
                0x8847 | 0x8848 => {
                    at += 2;
                    while frame.get(at + 2)? & 1 == 0 {
                        at += 4;
                    }
                    frame.get(at + 4..)?
                }
                _ => return None,
            }
        }
        // A header of 16 bytes that ends with the protocol.
        DataLink::LINUX_SLL => matches!(word(14)?, IPV4 | IPV6).then(|| frame.get(16..))??,
        // A header of 20 bytes that begins with the protocol.
        DataLink::LINUX_SLL2 => matches!(word(0)?, IPV4 | IPV6).then(|| frame.get(20..))??,
        // Four bytes with the address family, whose numbers differ between systems; the version
        // of IP tells.
        DataLink::NULL | DataLink::LOOP => frame.get(4..)?,
        _ => return None,
    };
    matches!(packet.first()? >> 4, 4 | 6).then_some(packet)
}

/// Whether a datagram begins as a record of DTLS 1.2 (RFC 6347 section 4.1, RFC 9146) or 1.3 (RFC 9147 section 4).
/// The version of CoAP in the first two bits tells it from a message.
fn is_dtls(datagram: &[u8]) -> bool {
    match datagram {
        [20..=26, 0xfe, 0xfd | 0xff, ..] => true,
        [first, ..] => first >> 5 == 1,
        [] => false,
    }
}

/// FNV-1a with 64 bits.
fn fnv(bytes: &[u8]) -> u64 {
    let step = |hash: u64, byte: &u8| (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3);
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, step)
}

impl From<io::Error> for FitError {
    fn from(error: io::Error) -> Self {
        Self::Io(error)
    }
}
