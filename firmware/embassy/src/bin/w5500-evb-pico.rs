//! WIZnet's W5500-EVB-Pico: an RP2040 whose SPI0 leads to an Ethernet controller. Asks the server at 192.168.1.1.
#![no_std]
#![no_main]

use ebbtide_core::device::{DeviceConfig, DeviceTables};
use ebbtide_embassy::{Gets, drive};
use embassy_executor::Spawner;
use embassy_net::udp::{PacketMetadata, UdpSocket};
use embassy_net::{
    Config, IpAddress, IpEndpoint, Ipv4Address, Ipv4Cidr, Runner, StackResources, StaticConfigV4,
};
use embassy_net_wiznet::chip::W5500;
use embassy_net_wiznet::{Device, State};
use embassy_rp::clocks::RoscRng;
use embassy_rp::gpio::{Input, Level, Output, Pull};
use embassy_rp::peripherals::{DMA_CH0, DMA_CH1, SPI0};
use embassy_rp::spi::{Async, Spi};
use embassy_rp::{bind_interrupts, dma};
use embassy_time::Delay;
use embedded_hal_bus::spi::ExclusiveDevice;
use static_cell::StaticCell;

bind_interrupts!(struct Interrupts {
    DMA_IRQ_0 => dma::InterruptHandler<DMA_CH0>, dma::InterruptHandler<DMA_CH1>;
});

type Controller = ExclusiveDevice<Spi<'static, SPI0, Async>, Output<'static>, Delay>;

#[embassy_executor::task]
async fn ethernet(
    runner: embassy_net_wiznet::Runner<'static, W5500, Controller, Input<'static>, Output<'static>>,
) -> ! {
    runner.run().await
}

#[embassy_executor::task]
async fn network(mut runner: Runner<'static, Device<'static>>) -> ! {
    runner.run().await
}

fn random() -> u32 {
    RoscRng.next_u32()
}

#[embassy_executor::main]
async fn main(spawner: Spawner) {
    static STATE: StaticCell<State<4, 4>> = StaticCell::new();
    static RESOURCES: StaticCell<StackResources<2>> = StaticCell::new();
    let it = embassy_rp::init(Default::default());
    let mut settings = embassy_rp::spi::Config::default();
    settings.frequency = 50_000_000;
    let spi = Spi::new(
        it.SPI0, it.PIN_18, it.PIN_19, it.PIN_16, it.DMA_CH0, it.DMA_CH1, Interrupts, settings,
    );
    let select = Output::new(it.PIN_17, Level::High);
    let Ok(controller) = ExclusiveDevice::new(spi, select, Delay);
    let interrupt = Input::new(it.PIN_21, Pull::Up);
    let reset = Output::new(it.PIN_20, Level::High);
    let hardware = [2, 0, 0, 0, 0, 1];
    let state = STATE.init(State::new());
    let started = embassy_net_wiznet::new(hardware, state, controller, interrupt, reset).await;
    let Ok((device, runner)) = started else { return };
    let address = Ipv4Cidr::new(Ipv4Address::new(192, 168, 1, 2), 24);
    let config = StaticConfigV4 { address, gateway: None, dns_servers: Default::default() };
    let seed = RoscRng.next_u64();
    let (stack, stack_runner) = embassy_net::new(
        device,
        Config::ipv4_static(config),
        RESOURCES.init(StackResources::new()),
        seed,
    );
    let (Ok(ethernet), Ok(network)) = (ethernet(runner), network(stack_runner)) else { return };
    spawner.spawn(ethernet);
    spawner.spawn(network);

    let (mut rx_meta, mut tx_meta) = ([PacketMetadata::EMPTY; 4], [PacketMetadata::EMPTY; 4]);
    let (mut rx, mut tx) = ([0; 1280], [0; 1280]);
    let mut socket = UdpSocket::new(stack, &mut rx_meta, &mut rx, &mut tx_meta, &mut tx);
    if socket.bind(5683).is_err() {
        return;
    }
    let mut tables = DeviceTables::<_, _, 1, 1, 64>::new();
    let mut endpoint = tables.endpoint(DeviceConfig::fasor_token());
    let server = IpEndpoint::new(IpAddress::v4(192, 168, 1, 1), 5683);
    let mut gets = Gets::new(server, u32::MAX);
    drive(&socket, random, &mut endpoint, &mut gets).await;
}

#[panic_handler]
fn panic(_: &core::panic::PanicInfo<'_>) -> ! {
    loop {
        core::hint::spin_loop();
    }
}
