//! On a W5500-EVB-Pico: asks the server at 192.0.2.1 for ever.
#![no_std]
#![no_main]

use core::convert::Infallible;
use ebbtide_embassy_example::ask;
use embassy_executor::Spawner;
use embassy_net::{Config, IpEndpoint, Ipv4Address, Ipv4Cidr, StackResources, StaticConfigV4};
use embassy_net_wiznet::chip::W5500;
use embassy_net_wiznet::{Device, Runner, State};
use embassy_rp::clocks::RoscRng;
use embassy_rp::gpio::{Input, Level, Output, Pull};
use embassy_rp::peripherals::{DMA_CH0, DMA_CH1, SPI0};
use embassy_rp::spi::{Async, Config as SpiConfig, Spi};
use embassy_rp::{bind_interrupts, dma};
use embassy_time::Delay;
use embedded_hal_bus::spi::ExclusiveDevice;
use rand_core::TryRng;
use static_cell::StaticCell;

bind_interrupts!(struct Interrupts {
    DMA_IRQ_0 => dma::InterruptHandler<DMA_CH0>, dma::InterruptHandler<DMA_CH1>;
});

/// The board's ring oscillator.
struct Oscillator;

impl TryRng for Oscillator {
    type Error = Infallible;

    fn try_next_u32(&mut self) -> Result<u32, Infallible> {
        Ok(RoscRng.next_u32())
    }

    fn try_next_u64(&mut self) -> Result<u64, Infallible> {
        Ok(RoscRng.next_u64())
    }

    fn try_fill_bytes(&mut self, bytes: &mut [u8]) -> Result<(), Infallible> {
        RoscRng.fill_bytes(bytes);
        Ok(())
    }
}

type Ethernet = Runner<
    'static,
    W5500,
    ExclusiveDevice<Spi<'static, SPI0, Async>, Output<'static>, Delay>,
    Input<'static>,
    Output<'static>,
>;

#[embassy_executor::task]
async fn run_ethernet(runner: Ethernet) -> ! {
    runner.run().await
}

#[embassy_executor::task]
async fn run_stack(mut runner: embassy_net::Runner<'static, Device<'static>>) -> ! {
    runner.run().await
}

#[embassy_executor::main]
async fn main(spawner: Spawner) {
    let board = embassy_rp::init(Default::default());
    let mut speed = SpiConfig::default();
    speed.frequency = 50_000_000;
    let (clock, out, into) = (board.PIN_18, board.PIN_19, board.PIN_16);
    let spi =
        Spi::new(board.SPI0, clock, out, into, board.DMA_CH0, board.DMA_CH1, Interrupts, speed);
    let select = Output::new(board.PIN_17, Level::High);
    let (interrupt, reset) =
        (Input::new(board.PIN_21, Pull::Up), Output::new(board.PIN_20, Level::High));
    static STATE: StaticCell<State<4, 4>> = StaticCell::new();
    let Ok(spi) = ExclusiveDevice::new(spi, select, Delay);
    let state = STATE.init(State::new());
    let hardware = [0x02, 0, 0, 0, 0, 0x42];
    let opened = embassy_net_wiznet::new(hardware, state, spi, interrupt, reset).await;
    let Ok((device, runner)) = opened else { panic!("there is no W5500") };
    spawner.spawn(run_ethernet(runner).expect("it runs once"));
    let address = Ipv4Cidr::new(Ipv4Address::new(192, 0, 2, 2), 24);
    let addresses = StaticConfigV4 { address, gateway: None, dns_servers: Default::default() };
    static RESOURCES: StaticCell<StackResources<2>> = StaticCell::new();
    let resources = RESOURCES.init(StackResources::new());
    let config = Config::ipv4_static(addresses);
    let (stack, runner) = embassy_net::new(device, config, resources, RoscRng.next_u64());
    spawner.spawn(run_stack(runner).expect("it runs once"));
    let server = IpEndpoint::new(Ipv4Address::new(192, 0, 2, 1).into(), 5683);
    loop {
        ask(stack, server, 20, Oscillator).await;
    }
}

#[panic_handler]
fn panic(_: &core::panic::PanicInfo<'_>) -> ! {
    cortex_m::peripheral::SCB::sys_reset()
}
