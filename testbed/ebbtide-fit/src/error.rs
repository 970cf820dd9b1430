//! Why no scenario can be fitted to a capture.

use super::wording::time;
use std::net::SocketAddr;
use std::{fmt, io};

/// Why no scenario can be fitted.
#[derive(Debug)]
#[non_exhaustive]
pub enum FitError {
    /// The source cannot be read.
    Io(io::Error),
    /// It has no bytes.
    Empty,
    /// It is neither pcap nor pcapng.
    NotACapture,
    /// A block of it contradicts the format.
    Damaged(String),
    /// It holds no CoAP messages.
    NoCoap {
        /// The port at which they were expected.
        port: u16,
        /// Packets that it holds instead.
        packets: u64,
        /// Packets of link types that are not supported.
        unsupported: u64,
        /// DTLS records among them, at the port.
        dtls: u64,
        /// The devices that sent or received them.
        dtls_devices: usize,
        /// Packets at the port that were captured in part, too little to be read.
        cut: u64,
        /// The UDP ports that most packets use, with the number of packets.
        busiest: Vec<(u16, u64)>,
    },
    /// It holds one direction: which one, and the number of its messages.
    OneDirection(&'static str, usize),
    /// It holds messages in both directions, but no answer to any of this many requests.
    NoExchange(usize),
    /// It holds fewer answered requests than an estimate needs: how many.
    TooFew(usize),
    /// One interface holds the packets of both ends, this many nanoseconds apart.
    BothEnds(u64),
    /// Its two interfaces show a host under these two addresses: the path translates addresses (NAT).
    Translated((SocketAddr, SocketAddr)),
    /// One interface shows the same, on both sides of a translator.
    TranslatedHere((SocketAddr, SocketAddr)),
    /// It was said to be taken at both ends, but all of it was captured at one interface.
    OnePlace,
    /// It holds more than this many messages.
    TooLong(usize),
    /// The estimates are not a valid scenario.
    Scenario(String),
}

impl fmt::Display for FitError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Io(error) => write!(f, "cannot be read: {error}"),
            Self::Empty => f.write_str("is empty"),
            Self::NotACapture => f.write_str("is not a capture: neither pcap nor pcapng"),
            Self::Damaged(what) => write!(f, "is a damaged capture: {what}"),
            Self::NoCoap { packets: 0, unsupported: 0, .. } => f.write_str("holds no packets"),
            Self::NoCoap { packets: 0, unsupported, .. } => write!(
                f,
                "holds {unsupported} packets of a link type that is not supported; there are Ethernet, \
                 Linux cooked, raw IP and loopback"
            ),
            Self::NoCoap { port, dtls, dtls_devices, .. } if *dtls > 0 => write!(
                f,
                "holds no CoAP messages that can be read at port {port}: {} DTLS records, of {}, which \
                 fit cannot read; capture without DTLS",
                are(*dtls, "packet is a", "packets are"),
                are(*dtls_devices as u64, "device", "devices")
            ),
            Self::NoCoap { port, cut, .. } if *cut > 0 => write!(
                f,
                "holds no CoAP message that can be read at port {port}: {} captured in part; capture whole packets \
                 (tcpdump -s 0)",
                are(*cut, "packet was", "packets were")
            ),
            Self::NoCoap { port, packets, busiest, .. } => write!(
                f,
                "holds no CoAP messages over UDP at port {port} among its {packets} packets; name \
                 another port with --port{}",
                ports(busiest)
            ),
            Self::OneDirection(what, count) => write!(
                f,
                "holds only one direction: {count} messages, {what}; capture both directions"
            ),
            Self::NoExchange(count) => write!(
                f,
                "holds {count} requests and no answer to any of them; capture both directions"
            ),
            Self::TooFew(count) => {
                write!(f, "holds too few exchanges with an answer ({count}); capture more")
            }
            Self::BothEnds(nanos) => write!(
                f,
                "holds each packet twice, about {} apart: both ends of the path in one interface; \
                 give the capture of one place, or a pcapng file with an interface for each place",
                time(*nanos as f64 / 1e9)
            ),
            Self::Translated((one, other)) => write!(
                f,
                "shows the same messages under {one} at one interface and under {other} at the other: the \
                 path translates addresses (NAT), so its ends cannot be compared; use one of them with \
                 --taken-at clients or --taken-at server"
            ),
            Self::TranslatedHere((one, other)) => write!(
                f,
                "holds the same messages under {one} and under {other}: both sides of a translator (NAT) in \
                 one interface; capture one side, such as tcpdump -i with the name of an interface"
            ),
            Self::OnePlace => f.write_str(
                "was captured at one interface, so --taken-at must be clients or server; for link \
                 the file needs an interface for each end",
            ),
            Self::TooLong(most) => write!(
                f,
                "holds more than {most} CoAP messages; take a part of it, such as editcap -r FILE \
                 PART 1-{most}, or allow more with --most-messages"
            ),
            Self::Scenario(error) => write!(f, "leads to an impossible scenario: {error}"),
        }
    }
}

/// A number of things with the words that suit it.
fn are(count: u64, one: &str, many: &str) -> String {
    if count == 1 { format!("1 {one}") } else { format!("{count} {many}") }
}

/// The busiest ports, in parentheses.
fn ports(busiest: &[(u16, u64)]) -> String {
    if busiest.is_empty() {
        return "; there are no UDP packets".to_owned();
    }
    let each =
        |(port, count): &(u16, u64)| format!("{port} with {}", are(*count, "packet", "packets"));
    let list: Vec<String> = busiest.iter().map(each).collect();
    format!("; the busiest UDP ports are {}", list.join(", "))
}

impl std::error::Error for FitError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Io(error) => Some(error),
            _ => None,
        }
    }
}
