//! A capture that Wireshark decrypts with the key log. Without tshark this test says so and passes.

use crate::common::{Pair, client_config, credentials};
use ebbtide_core::time::Duration;
use ebbtide_dtls::Config;
use std::fs;
use std::net::{IpAddr, SocketAddr};
use std::process::Command;
use std::sync::{Arc, Mutex};

/// GET /time with a token.
const REQUEST: &[u8] = b"\x41\x01\x12\x34\x77\xb4time";
/// Its response.
const RESPONSE: &[u8] = b"\x61\x45\x12\x34\x77\xffnoon";

/// A file in pcap's format with one IPv4 packet for each datagram.
fn capture(datagrams: &[(SocketAddr, SocketAddr, Vec<u8>)]) -> Vec<u8> {
    // Magic number, version 2.4, time zone, accuracy, longest packet, LINKTYPE_RAW.
    let mut file = Vec::new();
    for word in [0xa1b2_c3d4_u32, 0x0004_0002, 0, 0, 65_535, 101] {
        file.extend_from_slice(&word.to_le_bytes());
    }
    for (number, (from, to, payload)) in (1_u32..).zip(datagrams) {
        let mut packet = vec![0x45, 0];
        packet.extend_from_slice(&(28 + payload.len() as u16).to_be_bytes());
        packet.extend_from_slice(&[0, 0, 0, 0, 64, 17, 0, 0]);
        for address in [from, to] {
            let IpAddr::V4(ip) = address.ip() else { continue };
            packet.extend_from_slice(&ip.octets());
        }
        packet.extend_from_slice(&from.port().to_be_bytes());
        packet.extend_from_slice(&to.port().to_be_bytes());
        packet.extend_from_slice(&(8 + payload.len() as u16).to_be_bytes());
        packet.extend_from_slice(&[0, 0]);
        packet.extend_from_slice(payload);
        for word in [number, 0, packet.len() as u32, packet.len() as u32] {
            file.extend_from_slice(&word.to_le_bytes());
        }
        file.extend_from_slice(&packet);
    }
    file
}

#[test]
fn tshark_decrypts_a_capture_with_the_key_log() {
    if Command::new("tshark").arg("--version").output().is_err() {
        println!("tshark is not installed: nothing was tested");
        return;
    }
    for cid_length in [None, Some(6)] {
        let mut pair = Pair::new(client_config(), Config { cid_length, ..Config::default() });
        let lines: Arc<Mutex<Vec<String>>> = Arc::default();
        let log = Arc::clone(&lines);
        pair.client.log_keys(Box::new(move |line: &str| log.lock().unwrap().push(line.to_owned())));
        let (at_client, at_server) = (pair.client_address, pair.server_address);
        let session = pair.connect(credentials("device", b"secret"));
        let mut datagrams = Vec::new();
        // Each side's flights in turn: what the network carried.
        pair.run_with(Duration::from_secs(5), &mut |datagram| {
            datagrams.push(datagram.to_vec());
            vec![(Duration::ZERO, datagram.to_vec())]
        });
        let is_first = |number: usize| number.is_multiple_of(2);
        let mut packets: Vec<_> = (0..)
            .zip(datagrams)
            .map(|(number, datagram)| match is_first(number) {
                true => (at_client, at_server, datagram),
                false => (at_server, at_client, datagram),
            })
            .collect();
        let mut record = Vec::new();
        pair.client.send(pair.now, session, REQUEST, &mut record).unwrap();
        packets.push((at_client, at_server, record));
        let (other, _) = pair.at_server.established()[0];
        let mut record = Vec::new();
        pair.server.send(pair.now, other, RESPONSE, &mut record).unwrap();
        packets.push((at_server, at_client, record));

        let folder = std::env::temp_dir();
        let name = |kind: &str| folder.join(format!("ebbtide-{}.{kind}", std::process::id()));
        let (file, keys) = (name("pcap"), name("keys"));
        fs::write(&file, capture(&packets)).unwrap();
        fs::write(&keys, lines.lock().unwrap().join("\n") + "\n").unwrap();
        let preference = format!("tls.keylog_file:{}", keys.display());
        let mut command = Command::new("tshark");
        command.args(["-d", "udp.port==5684,dtls", "-o", &preference, "-r"]).arg(&file);
        let said = command.args(["-O", "coap"]).output().unwrap();
        fs::remove_file(&file).unwrap();
        fs::remove_file(&keys).unwrap();
        let text = String::from_utf8_lossy(&said.stdout);
        for expected in ["Code: GET", "Uri-Path: time", "Code: 2.05 Content"] {
            assert!(text.contains(expected), "{cid_length:?}: no '{expected}' in {text} {said:?}");
        }
    }
}
