//! Strangers, of two addresses and many ports: they forge, replay and guess, and answer nothing.

use super::devices::address;
use super::world::{DEVICES, PLAIN, SECURE, SERVER, millis};
use ebbtide_core::wire::{Code, Content, Message, MessageId, Opt, OptionNumber, Token, Type};
use ebbtide_sim::random::uniform;
use ebbtide_testnet::{Conditions, PacketFate, TestNetwork, TracedPacket};
use rand_chacha::ChaCha8Rng;
use rand_core::Rng as _;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::time::Duration;
use tokio::time::sleep;

const OBSERVE: OptionNumber = OptionNumber(6);
const PATH: OptionNumber = OptionNumber(11);
const Q_BLOCK1: OptionNumber = OptionNumber(19);
const BLOCK2: OptionNumber = OptionNumber(23);
const BLOCK1: OptionNumber = OptionNumber(27);
const Q_BLOCK2: OptionNumber = OptionNumber(31);
const SIZE1: OptionNumber = OptionNumber(60);

const NET: [u8; 2] = [10, 9];
const HOSTS: u8 = 2;
/// Of one to six datagrams each.
const WAVES: u32 = 150;
/// How old a replayed request may be; the server knows copies for 247 s.
const FRESH: Duration = Duration::from_secs(100);

pub(super) fn is_one(address: SocketAddr) -> bool {
    matches!(address.ip(), IpAddr::V4(ip) if ip.octets()[..2] == NET)
}

/// A request, for whatever it is worth.
struct Forged {
    kind: Type,
    code: Code,
    options: &'static [(OptionNumber, &'static [u8])],
    payload: &'static [u8],
}

const CON: Type = Type::Confirmable;
const NON: Type = Type::NonConfirmable;

const fn get(kind: Type, options: &'static [(OptionNumber, &'static [u8])]) -> Forged {
    Forged { kind, code: Code::GET, options, payload: b"" }
}

const fn with(kind: Type, code: Code, options: &'static [(OptionNumber, &'static [u8])]) -> Forged {
    Forged { kind, code, options, payload: &[b'7'; 16] }
}

const REQUESTS: [Forged; 13] = [
    get(CON, &[(PATH, b"long")]),
    get(NON, &[(PATH, b"long")]),
    get(CON, &[(PATH, b"long"), (BLOCK2, b"\x16")]),
    get(NON, &[(PATH, b"long"), (Q_BLOCK2, b"\x0e")]),
    get(NON, &[(PATH, b"long"), (Q_BLOCK2, b"\x06"), (Q_BLOCK2, b"\x16")]),
    get(CON, &[(OBSERVE, b""), (PATH, b"values"), (PATH, b"0")]),
    get(NON, &[(OBSERVE, b""), (PATH, b"values"), (PATH, b"1")]),
    get(CON, &[(PATH, b".well-known"), (PATH, b"core")]),
    with(CON, Code::POST, &[(PATH, b"log")]),
    with(CON, Code::POST, &[(PATH, b"later")]),
    with(CON, Code::PUT, &[(PATH, b"scratch"), (BLOCK1, b"\x08"), (SIZE1, &[0x80, 0])]),
    with(NON, Code::PUT, &[(PATH, b"scratch"), (Q_BLOCK1, b"\x08"), (SIZE1, &[0x80, 0])]),
    with(NON, Code::DELETE, &[(PATH, b"none")]),
];

impl Forged {
    fn encode(&self, id: u16, token: &[u8], payload: &[u8]) -> Vec<u8> {
        let options: Vec<_> =
            self.options.iter().map(|&(number, value)| Opt { number, value }).collect();
        let content = Content { code: self.code, options: &options, payload };
        let mut buffer = [0; 256];
        let token = Token::new(token).unwrap();
        let encoded = content.encode(&mut buffer, self.kind, MessageId(id), token).unwrap();
        buffer[..encoded.len].to_vec()
    }
}

/// Floods the server.
pub(super) async fn rage(network: TestNetwork, mut random: ChaCha8Rng) {
    let pause = uniform(&mut random, 50, 3000);
    let hosts = uniform(&mut random, 1, HOSTS.into());
    for host in 1..=HOSTS {
        // So that the trace has once what was sent once to them.
        network.set_direction(SERVER, [NET[0], NET[1], 0, host], Conditions::new());
    }
    let mut overheard = Vec::new();
    for number in 0..WAVES {
        sleep(millis(&mut random, 0, pause)).await;
        if number % 16 == 0 {
            overheard = network.trace().packets().to_vec();
        }
        for _ in 0..uniform(&mut random, 1, 6) {
            attack(&network, &mut random, hosts, &overheard);
        }
    }
}

fn attack(network: &TestNetwork, random: &mut ChaCha8Rng, hosts: u64, overheard: &[TracedPacket]) {
    let host = Ipv4Addr::new(NET[0], NET[1], 0, uniform(random, 1, hosts) as u8);
    let own = SocketAddr::from((host, 1000 + uniform(random, 0, 40) as u16));
    let to = |port| SocketAddr::from((SERVER, port));
    let id = uniform(random, 0, 0xffff) as u16;
    match uniform(random, 0, 9) {
        // Requests of their own.
        0..=4 => {
            let forged = &REQUESTS[uniform(random, 0, REQUESTS.len() as u64 - 1) as usize];
            let name = format!("stranger {}", random.next_u64());
            let payload = if forged.payload.is_empty() { b"" } else { name.as_bytes() };
            let token = &random.next_u64().to_be_bytes()[..uniform(random, 0, 8) as usize];
            network.forge(own, to(PLAIN), &forged.encode(id, token, payload));
        }
        // What is no message, or cut off.
        5 => {
            let mut junk = random.next_u64().to_be_bytes().repeat(4);
            junk.truncate(uniform(random, 0, 32) as usize);
            let port = [PLAIN, SECURE][uniform(random, 0, 1) as usize];
            network.forge(own, to(port), &junk);
        }
        // Acknowledgements and Resets of devices, and the server's, with a message ID that may be right.
        6 => {
            let [high, low] = id.to_be_bytes();
            let kind = [0x60, 0x70][uniform(random, 0, 1) as usize];
            let device = address(uniform(random, 0, DEVICES as u64 - 1) as usize);
            let (from, to) = match uniform(random, 0, 1) {
                0 => (device, to(PLAIN)),
                _ => (to(PLAIN), device),
            };
            network.forge(from, to, &[kind, 0, high, low]);
        }
        // What a device has sent, once more, from its own address or from theirs.
        _ => replay(network, random, own, overheard),
    }
}

fn replay(
    network: &TestNetwork,
    random: &mut ChaCha8Rng,
    own: SocketAddr,
    overheard: &[TracedPacket],
) {
    let fresh = overheard.iter().rev();
    let fresh: Vec<_> = fresh.take_while(|one| one.at + FRESH > network.elapsed()).collect();
    let Some(last) = (fresh.len() as u64).checked_sub(1) else { return };
    let packet = fresh[uniform(random, 0, last) as usize];
    let to_server = packet.to.ip() == IpAddr::from(SERVER);
    let message = Message::parse(&packet.datagram);
    let code = message.as_ref().map_or(Code::EMPTY, Message::code);
    let has_oscore = message.is_ok_and(|message| message.option(OptionNumber::OSCORE).is_some());
    let is_secure = packet.to.port() == SECURE || has_oscore;
    // A record that has not arrived is accepted whenever it comes, as one that the network delays:
    // a PUT in it takes effect then, after later ones. Only records that have arrived are known as
    // replayed (RFC 6347 section 4.1.2.6).
    let has_arrived = matches!(packet.fate, PacketFate::Arrives(at) if at <= network.elapsed());
    if is_secure && !has_arrived {
        return;
    }
    // An old PUT is a PUT: without protection it takes effect again, whoever sends it.
    if !to_server || is_one(packet.from) || code == Code::PUT && !is_secure {
        return;
    }
    let poses = uniform(random, 0, 1) == 0;
    // From another address a POST is another request.
    let from = if poses || code == Code::POST && !is_secure { packet.from } else { own };
    network.forge(from, packet.to, &packet.datagram);
}
