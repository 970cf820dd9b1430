//! What `fit` reads and refuses: formats, link types, damage, and captures that hold too little.

use crate::captures::capture;
use ebbtide_fit::{ClientsBy, Estimate, Fit, FitError, Options, TakenAt, fit};
use ebbtide_sim::scenario::{Override, Scenario, load};
use etherparse::PacketBuilder;
use flate2::Compression;
use flate2::write::GzEncoder;
use pcap_file::pcap::{PcapHeader, PcapPacket, PcapWriter};
use pcap_file::pcapng::blocks::enhanced_packet::EnhancedPacketBlock;
use pcap_file::pcapng::blocks::interface_description::{
    InterfaceDescriptionBlock, InterfaceDescriptionOption,
};
use pcap_file::pcapng::{Block, PcapNgReader, PcapNgWriter};
use pcap_file::{DataLink, TsResolution};
use std::io::Write;
use std::time::Duration;

fn scenario(settings: &[(&str, &str)]) -> Scenario {
    let change = |(key, value): &(&str, &str)| Override {
        key: (*key).to_owned(),
        value: (*value).to_owned(),
    };
    let common = [("clients", "4"), ("exchanges", "10")];
    let changes: Vec<Override> = common.iter().chain(settings).map(change).collect();
    load("nb-iot").unwrap().scenario(&changes).unwrap()
}

fn of_clients() -> Vec<u8> {
    capture(&scenario(&[]), "default", Some(0), 1)
}

fn fitted(bytes: &[u8]) -> Result<Fit, FitError> {
    fit(bytes, &Options::default())
}

fn refusal(bytes: &[u8]) -> String {
    fitted(bytes).unwrap_err().to_string()
}

/// The packets of a pcapng file of ours, with their times.
fn packets(bytes: &[u8]) -> Vec<(Duration, Vec<u8>)> {
    let mut reader = PcapNgReader::new(bytes).unwrap();
    let mut all = Vec::new();
    while let Some(block) = reader.next_block() {
        if let Block::EnhancedPacket(packet) = block.unwrap() {
            all.push((packet.timestamp, packet.data.to_vec()));
        }
    }
    all
}

/// A pcap file of these packets, each behind a header of its link type.
fn pcap(link: DataLink, header: &[u8], packets: &[(Duration, Vec<u8>)]) -> Vec<u8> {
    let own = PcapHeader {
        datalink: link,
        ts_resolution: TsResolution::NanoSecond,
        ..PcapHeader::default()
    };
    let mut writer = PcapWriter::with_header(Vec::new(), own).unwrap();
    for (at, packet) in packets {
        let frame = [header, packet].concat();
        let length = u32::try_from(frame.len()).unwrap();
        writer.write_packet(&PcapPacket::new(*at, length, &frame)).unwrap();
    }
    writer.into_writer()
}

#[test]
fn every_link_type_gives_the_same_scenario() {
    let bytes = of_clients();
    let expected =
        fit(&bytes[..], &Options { taken_at: Some(TakenAt::Clients), ..Options::default() });
    let expected = expected.unwrap().scenario;
    let packets = packets(&bytes);
    let ethernet = [&[2; 12][..], &[0x08, 0x00]].concat();
    let tagged = [&[2; 12][..], &[0x81, 0x00, 0, 7, 0x08, 0x00]].concat();
    let cooked = [&[0; 14][..], &[0x08, 0x00]].concat();
    let cooked_2 = [&[0x08, 0x00][..], &[0; 18]].concat();
    for (link, header) in [
        (DataLink::RAW, &[][..]),
        (DataLink::IPV4, &[]),
        (DataLink::ETHERNET, &ethernet),
        (DataLink::ETHERNET, &tagged),
        (DataLink::LINUX_SLL, &cooked),
        (DataLink::LINUX_SLL2, &cooked_2),
        (DataLink::NULL, &[2, 0, 0, 0]),
        (DataLink::LOOP, &[0, 0, 0, 2]),
    ] {
        let found = fitted(&pcap(link, header, &packets)).unwrap();
        assert_eq!(found.scenario, expected, "{link:?}");
        assert_eq!(found.taken_at, TakenAt::Clients);
    }
}

#[test]
fn ipv6_counts_its_longer_header() {
    let packets: Vec<(Duration, Vec<u8>)> = packets(&of_clients())
        .into_iter()
        .map(|(at, packet)| {
            let address = |part: &[u8]| {
                let mut address = [0; 16];
                address[..2].copy_from_slice(&[0x20, 0x01]);
                address[12..].copy_from_slice(part);
                address
            };
            let ends = (address(&packet[12..16]), address(&packet[16..20]));
            let builder = PacketBuilder::ipv6(ends.0, ends.1, 64).udp(5683, 5683);
            let mut longer = Vec::new();
            builder.write(&mut longer, &packet[28..]).unwrap();
            (at, longer)
        })
        .collect();
    let found = fitted(&pcap(DataLink::RAW, &[], &packets)).unwrap();
    assert_eq!(found.scenario.network.header, 48);
    assert_eq!(found.scenario.clients.count, 4);
}

#[test]
fn what_is_no_capture_is_refused() {
    assert_eq!(refusal(b""), "is empty");
    for bytes in [&b"\x0a\x0d"[..], b"[network]\nheader = 28\n", &[0; 4000]] {
        assert_eq!(refusal(bytes), "is not a capture: neither pcap nor pcapng");
    }
}

#[test]
fn a_capture_that_is_cut_off_counts_up_to_there_and_says_so() {
    let bytes = of_clients();
    let found = fitted(&bytes[..bytes.len() * 3 / 4 + 3]).unwrap();
    assert!(found.unknown.iter().any(|own| own.contains("ends in the middle of a packet")));
    assert!(found.messages > 40 && found.messages < 80, "{}", found.messages);
}

#[test]
fn nothing_panics_wherever_a_capture_is_cut_or_damaged() {
    let bytes = capture(&scenario(&[("clients", "2"), ("exchanges", "2")]), "default", None, 1);
    for end in (0..bytes.len()).step_by(5) {
        let _ = fitted(&bytes[..end]);
        let mut damaged = bytes.clone();
        damaged[end] ^= 0xff;
        let _ = fitted(&damaged);
    }
}

#[test]
fn a_capture_without_coap_says_so_and_how_to_name_another_port() {
    let bytes = of_clients();
    let other = fit(&bytes[..], &Options { port: 61616, ..Options::default() });
    let message = other.unwrap_err().to_string();
    let expected = "holds no CoAP messages over UDP at port 61616 among its 80 packets; name another port with --port; \
        the busiest UDP ports are 5683 with 80 packets";
    assert!(message.starts_with(expected), "{message}");
    let frames = pcap(DataLink::IEEE802_15_4, &[], &packets(&bytes));
    assert!(refusal(&frames).starts_with("holds 80 packets of a link type that is not supported"));
    assert_eq!(refusal(&pcap(DataLink::RAW, &[], &[])), "holds no packets");
}

#[test]
fn a_capture_of_one_direction_says_which() {
    let packets = packets(&of_clients());
    // The second byte of the message behind the headers is its code: requests are 0.01 to 0.31.
    let is_request = |packet: &[u8]| (1..32).contains(&packet[29]);
    let (up, down): (Vec<_>, Vec<_>) =
        packets.into_iter().partition(|(_, packet)| is_request(packet));
    let of = |packets: &[(Duration, Vec<u8>)]| refusal(&pcap(DataLink::RAW, &[], packets));
    let expected =
        "holds only one direction: 40 messages, requests but no answers; capture both directions";
    assert_eq!(of(&up), expected);
    let expected =
        "holds only one direction: 40 messages, answers but no requests; capture both directions";
    assert_eq!(of(&down), expected);
}

#[test]
fn more_messages_than_allowed_are_refused() {
    let bytes = of_clients();
    let few = fit(&bytes[..], &Options { most_messages: 79, ..Options::default() });
    let message = few.unwrap_err().to_string();
    assert!(message.starts_with("holds more than 79 CoAP messages"), "{message}");
    assert!(message.ends_with("or allow more with --most-messages"), "{message}");
    assert!(fit(&bytes[..], &Options { most_messages: 80, ..Options::default() }).is_ok());
}

#[test]
fn more_interfaces_than_a_machine_has_are_refused() {
    let packets = seen(&of_clients());
    assert!(fitted(&interfaces(1024, &packets)).is_ok());
    let message = refusal(&interfaces(1025, &packets));
    assert_eq!(message, "is a damaged capture: it names more than 1024 interfaces");
}

#[test]
fn one_interface_is_not_both_ends() {
    let options = Options { taken_at: Some(TakenAt::Link), ..Options::default() };
    let message = fit(&of_clients()[..], &options).unwrap_err().to_string();
    assert!(message.starts_with("was captured at one interface"), "{message}");
}

/// These packets, and each once more after some time.
fn twice(packets: &[(Duration, Vec<u8>)], later: Duration) -> Vec<(Duration, Vec<u8>)> {
    let again = packets.iter().map(|(at, packet)| (*at + later, packet.clone()));
    let mut all: Vec<_> = packets.iter().cloned().chain(again).collect();
    all.sort_by_key(|(at, _)| *at);
    all
}

/// A packet with the number of its interface and its time.
type Seen = (u32, Duration, Vec<u8>);

/// The packets of a pcapng file of ours with their interfaces.
fn seen(bytes: &[u8]) -> Vec<Seen> {
    let mut reader = PcapNgReader::new(bytes).unwrap();
    let mut all = Vec::new();
    while let Some(block) = reader.next_block() {
        if let Block::EnhancedPacket(packet) = block.unwrap() {
            all.push((packet.interface_id, packet.timestamp, packet.data.to_vec()));
        }
    }
    all
}

/// A pcapng file with two interfaces without names.
fn two_interfaces(packets: &[Seen]) -> Vec<u8> {
    interfaces(2, packets)
}

/// A pcapng file with interfaces without names.
fn interfaces(count: usize, packets: &[Seen]) -> Vec<u8> {
    let mut writer = PcapNgWriter::new(Vec::new()).unwrap();
    for _ in 0..count {
        let block = InterfaceDescriptionBlock {
            linktype: DataLink::RAW,
            snaplen: 0,
            // The writer counts times in nanoseconds.
            options: vec![InterfaceDescriptionOption::IfTsResol(9)],
        };
        writer.write_pcapng_block(block).unwrap();
    }
    for (interface_id, timestamp, data) in packets {
        let block = EnhancedPacketBlock {
            interface_id: *interface_id,
            timestamp: *timestamp,
            original_len: u32::try_from(data.len()).unwrap(),
            data: data.into(),
            options: Vec::new(),
        };
        writer.write_pcapng_block(block).unwrap();
    }
    writer.into_inner()
}

/// These packets at one interface, and at another one that much later.
fn at_both(packets: &[(Duration, Vec<u8>)], later: Duration) -> Vec<u8> {
    let of = |number: u32, later: Duration| {
        packets.iter().map(move |(at, packet)| (number, *at + later, packet.clone()))
    };
    two_interfaces(&of(0, Duration::ZERO).chain(of(1, later)).collect::<Vec<Seen>>())
}

/// A figure with its estimate, whether it is known, and its range.
fn figure<'f>(fit: &'f Fit, key: &str) -> &'f Estimate {
    fit.figures.iter().find(|own| own.key == key).unwrap()
}

/// Every range holds its estimate, and nothing is negative.
fn assert_sensible(fit: &Fit) {
    for own in &fit.figures {
        assert!(own.value >= 0.0 && own.low.is_none_or(|low| low >= 0.0), "{own:?}");
        assert!(own.low.zip(own.high).is_none_or(|(low, high)| low <= high), "{own:?}");
        assert!(!own.range_text().contains("at least 0"), "{own:?}");
    }
}

#[test]
fn packets_that_were_captured_twice_count_once() {
    let packets = packets(&of_clients());
    let expected = fitted(&pcap(DataLink::RAW, &[], &packets)).unwrap();
    let micros = Duration::from_micros;
    for bytes in [
        pcap(DataLink::RAW, &[], &twice(&packets, micros(0))),
        pcap(DataLink::RAW, &[], &twice(&packets, micros(70))),
        at_both(&packets, micros(0)),
        at_both(&packets, micros(70)),
    ] {
        let found = fitted(&bytes).unwrap();
        assert_eq!((found.messages, &found.scenario), (80, &expected.scenario));
        let said = "80 packets appear twice and were counted once; capture one interface.";
        assert!(found.unknown.iter().any(|own| own == said), "{:?}", found.unknown);
    }
    assert!(!expected.unknown.iter().any(|own| own.contains("twice")));
}

#[test]
fn both_ends_in_one_interface_are_refused() {
    let both = capture(&scenario(&[]), "default", None, 1);
    let mut packets = packets(&both);
    packets.sort_by_key(|(at, _)| *at);
    let message = refusal(&pcap(DataLink::RAW, &[], &packets));
    assert!(message.starts_with("holds each packet twice, about "), "{message}");
    assert!(message.contains("an interface for each place"), "{message}");
}

/// A packet as it is behind a translator: the address and the port of whichever end is not the server are others.
fn translated(packet: &[u8]) -> Vec<u8> {
    let mut packet = packet.to_vec();
    let (address, port) = if (1..32).contains(&packet[29]) { (12, 20) } else { (16, 22) };
    // Each client keeps a port of its own at the translator's one address.
    let client = packet[address + 3];
    packet[address..address + 4].copy_from_slice(&[198, 51, 100, 7]);
    packet[port..port + 2].copy_from_slice(&(40_000 + u16::from(client)).to_be_bytes());
    packet
}

#[test]
fn a_path_that_translates_addresses_is_named_and_one_of_its_ends_can_be_used() {
    let both = seen(&capture(&scenario(&[]), "default", None, 1));
    let at_server = |(place, at, packet): &Seen| {
        (*place, *at, if *place == 1 { translated(packet) } else { packet.clone() })
    };
    let bytes = two_interfaces(&both.iter().map(at_server).collect::<Vec<_>>());
    let message = refusal(&bytes);
    assert!(message.contains("the path translates addresses (NAT)"), "{message}");
    assert!(message.contains(" and under 198.51.100.7:400"), "{message}");
    assert!(message.ends_with("use one of them with --taken-at clients or --taken-at server"));
    for taken_at in [TakenAt::Clients, TakenAt::Server] {
        let options = Options { taken_at: Some(taken_at), ..Options::default() };
        let found = fit(&bytes[..], &options).unwrap();
        assert_eq!((found.taken_at, found.scenario.clients.count), (taken_at, 4));
    }
}

#[test]
fn both_sides_of_a_translator_in_one_interface_are_refused() {
    let own = packets(&of_clients());
    let micros = Duration::from_micros(40);
    let behind = own.iter().map(|(at, packet)| (*at + micros, translated(packet)));
    let mut all: Vec<_> = own.iter().cloned().chain(behind).collect();
    all.sort_by_key(|(at, _)| *at);
    let message = refusal(&pcap(DataLink::RAW, &[], &all));
    assert!(message.contains("both sides of a translator (NAT) in one interface"), "{message}");
}

#[test]
fn a_response_is_captured_when_it_leaves_the_server() {
    let slow = scenario(&[("server.processing", "2 s")]);
    let all = seen(&capture(&slow, "default", None, 1));
    assert!(all.windows(2).all(|pair| pair[0].1 <= pair[1].1), "in the order of time");
    // The first client's message ID and the codes tell a request from its response.
    let at_server: Vec<&Seen> = all.iter().filter(|(place, ..)| *place == 1).collect();
    let (_, asked, request) = at_server[0];
    let is_answer = |own: &&&Seen| own.2[30..32] == request[30..32] && own.2[29] == 69;
    let (_, answered, _) = at_server.iter().find(is_answer).unwrap();
    assert_eq!(*answered - *asked, Duration::from_secs(2));
    let found = fitted(&capture(&slow, "default", None, 1)).unwrap();
    let (low, high) = found.scenario.server.processing.ends();
    assert!((1_999_000_000..2_001_000_000).contains(&(low + high).div_ceil(2)), "{low} to {high}");
}

#[test]
fn a_scenario_in_ipv6_is_captured_in_ipv6() {
    let truth = scenario(&[("network.header", "48"), ("clients", "20"), ("exchanges", "20")]);
    let found = fitted(&capture(&truth, "default", None, 1)).unwrap();
    assert_eq!(found.scenario.network.header, 48);
    let rate = figure(&found, "network.down.rate").value;
    assert!((rate / truth.network.down.rate.0 as f64 - 1.0).abs() < 0.01, "{rate}");
}

#[test]
fn too_few_exchanges_are_refused() {
    let bytes = capture(&scenario(&[("clients", "1"), ("exchanges", "1")]), "default", Some(0), 1);
    let expected = "holds too few exchanges with an answer (1); capture more";
    assert_eq!(refusal(&bytes), expected);
}

#[test]
fn dtls_records_are_named() {
    let mut packets = packets(&of_clients());
    for (_, packet) in &mut packets {
        packet[28..31].copy_from_slice(&[23, 0xfe, 0xfd]);
    }
    let message = refusal(&pcap(DataLink::RAW, &[], &packets));
    let says = "80 packets are DTLS records, of 4 devices, which fit cannot read";
    assert!(message.contains(says), "{message}");
}

#[test]
fn bursts_of_clients_with_several_open_requests_are_bursts() {
    for nstart in ["1", "2", "4"] {
        let bursts = scenario(&[
            ("workload", "bursts"),
            ("workload.burst", "4"),
            ("workload.period", "20 s"),
            ("exchanges", "40"),
            ("coap.nstart", nstart),
        ]);
        for place in [Some(0), None] {
            let found = fitted(&capture(&bursts, "default", place, 1)).unwrap();
            assert_eq!(found.workload_text(), "bursts, period 20.0 s", "{nstart} {place:?}");
            let workload = &found.scenario.workload;
            assert_eq!(
                (workload.at_once(), workload.clocked().unwrap().period.0),
                (4, 20_000_000_000)
            );
            assert_eq!(found.scenario.clients.processing, bursts.clients.processing);
        }
    }
}

#[test]
fn from_one_place_the_range_of_a_known_rate_holds_the_true_one() {
    let truth = scenario(&[("clients", "30"), ("exchanges", "20")]);
    for place in [0, 1] {
        let found = fitted(&capture(&truth, "default", Some(place), 1)).unwrap();
        assert_sensible(&found);
        let rates = [
            ("network.up.rate", truth.network.up.rate.0),
            ("network.down.rate", truth.network.down.rate.0),
        ];
        for (key, rate) in rates {
            let own = figure(&found, key);
            let (low, high) = (own.low.unwrap_or(0.0), own.high.unwrap_or(f64::INFINITY));
            assert!(low <= rate as f64 && rate as f64 <= high, "{place}: {own:?}");
            assert!(!own.is_known || high >= 1.09 * low, "{place}: {own:?}");
        }
        for key in ["network.up.loss", "network.down.loss"] {
            assert!(!figure(&found, key).is_known);
        }
    }
}

#[test]
fn a_capture_from_next_to_the_server_is_recognized_although_it_is_said_to_be_of_the_clients() {
    let bytes = capture(&scenario(&[]), "default", Some(1), 1);
    // A file without names of interfaces.
    let bytes = pcap(DataLink::RAW, &[], &packets(&bytes));
    let options = Options { taken_at: Some(TakenAt::Clients), ..Options::default() };
    let found = fit(&bytes[..], &options).unwrap();
    assert_sensible(&found);
    let said = |own: &String| own.contains("this capture is from next to the server");
    assert!(found.unknown.iter().any(said), "{:?}", found.unknown);
}

#[test]
fn interfaces_whose_clocks_differ_are_not_compared() {
    let both = seen(&capture(&scenario(&[]), "default", None, 1));
    for late in [0, 1] {
        let shifted: Vec<Seen> = both
            .iter()
            .map(|(place, at, packet)| {
                let later = Duration::from_secs(if *place == late { 5 } else { 0 });
                (*place, *at + later, packet.clone())
            })
            .collect();
        let found = fitted(&two_interfaces(&shifted)).unwrap();
        assert_eq!(found.taken_at, TakenAt::Clients);
        assert_sensible(&found);
        let said = found.unknown.iter().find(|own| own.contains("clocks")).unwrap();
        let (start, end) = ("The clocks of the interfaces differ by about ", "were used: clients.");
        assert!(said.starts_with(start) && said.ends_with(end), "{said}");
    }
}

#[test]
fn times_that_one_link_does_not_explain_leave_the_figures_unknown() {
    let truth = load("two-bottlenecks").unwrap().scenario(&[]).unwrap();
    let found = fitted(&capture(&truth, "default", None, 1)).unwrap();
    assert_sensible(&found);
    let said = "The times do not suit one link with a constant rate";
    assert!(found.unknown.iter().any(|own| own.starts_with(said)), "{:?}", found.unknown);
    assert!(!found.unknown.iter().any(|own| own.contains("clocks of the two places")));
    for key in ["network.up.rate", "network.down.rate", "round_trip"] {
        assert!(!figure(&found, key).is_known, "{key}");
    }
}

#[test]
fn a_rate_of_the_scenario_is_not_below_its_own_bound() {
    for clients in ["1", "2", "4"] {
        let truth = scenario(&[("clients", clients)]);
        let found = fitted(&capture(&truth, "default", None, 1)).unwrap();
        for (key, rate) in [
            ("network.up.rate", found.scenario.network.up.rate.0),
            ("network.down.rate", found.scenario.network.down.rate.0),
        ] {
            let own = figure(&found, key);
            assert!(own.is_known || rate as f64 + 1.0 > own.low.unwrap_or(0.0), "{own:?} {rate}");
        }
        assert!(!found.unknown.iter().any(|own| own.contains("another device took over")));
        assert!(found.toml.lines().all(|line| !line.starts_with('#') || line.len() <= 80));
    }
}

/// The packets of four clients with the source port of each exchange another one, as of a program that is started for
/// each request.
fn with_a_port_for_each_exchange() -> Vec<(Duration, Vec<u8>)> {
    let mut all = packets(&of_clients());
    for (_, packet) in &mut all {
        // IPv4 without options, then UDP; the message ID is at the third byte of CoAP.
        let id = u16::from_be_bytes([packet[30], packet[31]]);
        let port = (20_000 + id % 40_000).to_be_bytes();
        // The port of the client: the source of what does not come from the server.
        let at = if packet[12..16] == [192, 0, 2, 1] { 22 } else { 20 };
        packet[at..at + 2].copy_from_slice(&port);
        // No checksum (RFC 768).
        packet[26..28].copy_from_slice(&[0, 0]);
    }
    all
}

#[test]
fn ports_that_follow_each_other_at_an_address_are_one_client() {
    let bytes = pcap(DataLink::RAW, &[], &with_a_port_for_each_exchange());
    let clients = |by: Option<ClientsBy>| {
        let options = Options { clients_by: by, ..Options::default() };
        let found = fit(&bytes[..], &options).unwrap();
        (found.scenario.clients.count, found.scenario.workload.exchanges, found.unknown.join(" "))
    };
    let (count, exchanges, says) = clients(None);
    assert_eq!((count, exchanges), (4, 10), "{says}");
    assert!(
        says.contains("40 ports of 4 addresses") && says.contains("--clients-by port"),
        "{says}"
    );
    assert_eq!(clients(Some(ClientsBy::Address)).0, 4);
    let (count, exchanges, says) = clients(Some(ClientsBy::Port));
    assert_eq!((count, exchanges), (40, 1), "{says}");
    assert!(says.contains("--clients-by address"), "{says}");
    // Devices that keep their ports are counted as before, and nothing is said.
    let plain = fitted(&of_clients()).unwrap();
    assert_eq!(plain.scenario.clients.count, 4);
    assert!(!plain.unknown.join(" ").contains("--clients-by"));
}

#[test]
fn pppoe_and_mpls_are_read() {
    let plain = fitted(&of_clients()).unwrap();
    let ethernet = |rest: &[u8]| [&[0; 12][..], rest].concat();
    for header in [
        ethernet(&[0x88, 0x64, 0x11, 0, 0, 7, 0, 0, 0x00, 0x21]),
        ethernet(&[0x88, 0x47, 0, 1, 0x00, 64, 0, 2, 0x01, 64]),
    ] {
        let bytes = pcap(DataLink::ETHERNET, &header, &packets(&of_clients()));
        assert_eq!(fitted(&bytes).unwrap().exchanges, plain.exchanges);
    }
}

#[test]
fn a_damaged_capture_is_told_from_one_that_was_cut() {
    let all = packets(&of_clients());
    let all: Vec<_> = (0..40).flat_map(|_| all.clone()).collect();
    let mut bytes = pcap(DataLink::RAW, &[], &all);
    let cut = fitted(&bytes[..bytes.len() - 5]).unwrap();
    assert!(cut.unknown.join(" ").contains("ends in the middle of a packet"));
    // The length of a record in the middle: after the file's header and fifty records.
    let place = 24 + all[..50].iter().map(|(_, packet)| 16 + packet.len()).sum::<usize>();
    bytes[place + 9..place + 12].copy_from_slice(&[0xff, 0x03, 0]);
    let says = refusal(&bytes);
    assert!(says.contains("after 50 packets") && says.contains("editcap"), "{says}");
}

#[test]
fn a_compressed_capture_gives_the_same_scenario_and_a_cut_one_what_it_has() {
    let plain = of_clients();
    let mut packed = GzEncoder::new(Vec::new(), Compression::fast());
    packed.write_all(&plain).unwrap();
    let packed = packed.finish().unwrap();
    assert_eq!(fitted(&packed).unwrap().toml, fitted(&plain).unwrap().toml);
    assert!(refusal(&[0x1f, 0x8b, 8, 0, 0, 0]).contains("unexpected end of file"));
    let cut = fitted(&packed[..packed.len() * 9 / 10]).unwrap();
    assert!(cut.unknown.join(" ").contains("ends in the middle of a packet"), "{:?}", cut.unknown);
}

#[test]
fn the_requests_of_a_capture_are_a_log_with_their_instants_and_devices() {
    let found = fitted(&of_clients()).unwrap();
    let log = found.request_log();
    let lines: Vec<(&str, &str)> =
        log.lines().skip(1).map(|line| line.split_once(',').unwrap()).collect();
    assert_eq!((lines.len(), lines[0].0), (40, "0.000000000"));
    let mut devices: Vec<&str> = lines.iter().map(|line| line.1).collect();
    devices.sort_unstable();
    devices.dedup();
    assert_eq!(devices.len(), 4);
    let seconds = |line: &(&str, &str)| line.0.parse::<f64>().unwrap();
    assert!(lines.windows(2).all(|pair| seconds(&pair[0]) <= seconds(&pair[1])));
    assert!(seconds(&lines[39]) > 5.0, "ten exchanges of 660 ms and more");
}

#[test]
fn a_figure_without_a_range_says_none() {
    let found = fitted(&of_clients()).unwrap();
    // Nothing queued upwards, and downwards the longest queue is all that shows.
    let [up, down] = ["network.up.buffer", "network.down.buffer"].map(|key| figure(&found, key));
    assert_eq!(
        (up.is_known, up.value_text(), up.range_text()),
        (false, "no limit".into(), String::new())
    );
    assert_eq!((down.is_known, down.range_text()), (false, "at least 188 B".to_owned()));
    let line = "network.up.buffer NOT KNOWN: no limit; assumed";
    assert!(found.toml.contains(line), "{}", found.toml);
}

#[test]
fn shortened_captures_say_what_to_do() {
    let short: Vec<_> = packets(&of_clients())
        .into_iter()
        .map(|(at, packet)| (at, packet[..30.min(packet.len())].to_vec()))
        .collect();
    let says = refusal(&pcap(DataLink::RAW, &[], &short));
    assert!(says.contains("captured in part") && says.contains("tcpdump -s 0"), "{says}");
}
