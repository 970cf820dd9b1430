//! Asks the server at 10.97.0.1 over the TAP device `tap97`, which `check.sh` makes in a network namespace.

use ebbtide_core::device::{DeviceConfig, DeviceTables};
use ebbtide_embassy::{Gets, drive};
use embassy_executor::{Executor, Spawner};
use embassy_net::udp::{PacketMetadata, UdpSocket};
use embassy_net::{
    Config, IpAddress, IpEndpoint, Ipv4Address, Ipv4Cidr, Runner, Stack, StackResources,
    StaticConfigV4,
};
use embassy_net_tuntap::TunTapDevice;
use static_cell::StaticCell;
use std::hash::{BuildHasher, RandomState};

const GETS: u32 = 20;

#[expect(clippy::disallowed_methods, reason = "this is where the system's randomness comes in")]
fn random() -> u32 {
    RandomState::new().hash_one(0) as u32
}

#[embassy_executor::task]
async fn network(mut runner: Runner<'static, TunTapDevice>) {
    runner.run().await;
}

#[embassy_executor::task]
async fn client(stack: Stack<'static>, port: u16) {
    let (mut rx_meta, mut tx_meta) = ([PacketMetadata::EMPTY; 4], [PacketMetadata::EMPTY; 4]);
    let (mut rx, mut tx) = ([0; 1280], [0; 1280]);
    let mut socket = UdpSocket::new(stack, &mut rx_meta, &mut rx, &mut tx_meta, &mut tx);
    socket.bind(5683).expect("the port is free");
    let mut tables = DeviceTables::<_, _, 1, 1, 64>::new();
    let mut config = DeviceConfig::fasor_token();
    config.params.max_retransmit = 12;
    let mut endpoint = tables.endpoint(config);
    let server = IpEndpoint::new(IpAddress::v4(10, 97, 0, 1), port);
    let mut gets = Gets::new(server, GETS);
    drive(&socket, random, &mut endpoint, &mut gets).await;
    println!("delivered {}", gets.delivered);
    std::process::exit(i32::from(gets.delivered != GETS));
}

fn start(spawner: Spawner) {
    static RESOURCES: StaticCell<StackResources<2>> = StaticCell::new();
    let port = std::env::args().nth(1).and_then(|port| port.parse().ok());
    let port = port.expect("the server's port is the argument");
    let device = TunTapDevice::new("tap97").expect("the TAP device exists");
    let address = Ipv4Cidr::new(Ipv4Address::new(10, 97, 0, 2), 24);
    let config = StaticConfigV4 { address, gateway: None, dns_servers: Default::default() };
    let seed = u64::from(random()) << 32 | u64::from(random());
    let (stack, runner) = embassy_net::new(
        device,
        Config::ipv4_static(config),
        RESOURCES.init(StackResources::new()),
        seed,
    );
    spawner.spawn(network(runner).expect("it is spawned once"));
    spawner.spawn(client(stack, port).expect("it is spawned once"));
}

fn main() {
    static EXECUTOR: StaticCell<Executor> = StaticCell::new();
    EXECUTOR.init(Executor::new()).run(start)
}
