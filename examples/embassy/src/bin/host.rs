//! On Linux: `host TAP SERVER GETS`, at 10.84.0.2 of the TAP device's network.

use ebbtide_embassy_example::ask;
use embassy_executor::Spawner;
use embassy_net::{Config, Ipv4Address, Ipv4Cidr, Runner, StackResources, StaticConfigV4};
use embassy_net_tuntap::TunTapDevice;
use rand_core::{TryRng, UnwrapErr};
use static_cell::StaticCell;
use std::net::SocketAddrV4;

/// The system's random numbers.
struct System;

impl TryRng for System {
    type Error = getrandom::Error;

    fn try_next_u32(&mut self) -> Result<u32, Self::Error> {
        getrandom::u32()
    }

    fn try_next_u64(&mut self) -> Result<u64, Self::Error> {
        getrandom::u64()
    }

    fn try_fill_bytes(&mut self, bytes: &mut [u8]) -> Result<(), Self::Error> {
        getrandom::fill(bytes)
    }
}

#[embassy_executor::task]
async fn run_stack(mut runner: Runner<'static, TunTapDevice>) -> ! {
    runner.run().await
}

#[embassy_executor::main]
async fn main(spawner: Spawner) {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [tap, server, gets] = &arguments[..] else { panic!("host TAP SERVER GETS") };
    let server: SocketAddrV4 = server.parse().expect("SERVER is an IPv4 address with a port");
    let gets = gets.parse().expect("GETS is a number");
    let device = TunTapDevice::new(tap).expect("the TAP device can be opened");
    let address = Ipv4Cidr::new(Ipv4Address::new(10, 84, 0, 2), 24);
    let addresses = StaticConfigV4 { address, gateway: None, dns_servers: Default::default() };
    static RESOURCES: StaticCell<StackResources<2>> = StaticCell::new();
    let resources = RESOURCES.init(StackResources::new());
    let seed = getrandom::u64().expect("the system has random numbers");
    let (stack, runner) = embassy_net::new(device, Config::ipv4_static(addresses), resources, seed);
    spawner.spawn(run_stack(runner).expect("it runs once"));
    let answered = ask(stack, server.into(), gets, UnwrapErr(System)).await;
    println!("answered {answered} of {gets}");
    std::process::exit(i32::from(answered != gets));
}
