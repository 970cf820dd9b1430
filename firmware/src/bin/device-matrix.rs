//! A server of the interoperability matrix, in fixed tables.
#![no_std]
#![no_main]

use ebbtide_core::device::DeviceTables;
use ebbtide_firmware::arguments::Arguments;
use ebbtide_firmware::fixed::matrix::{DATAGRAM, MatrixServing};
use ebbtide_firmware::fixed::{Driver, config};
use ebbtide_firmware::{program, semihosting};

program!(run);

fn run(arguments: &Arguments) {
    let mut tables = DeviceTables::<_, _, 8, 4, DATAGRAM>::new();
    let mut endpoint = tables.endpoint(config(arguments));
    let mut driver = Driver::new(arguments);
    let mut serving = MatrixServing::default();
    semihosting::say("serving\n");
    driver.drive_in(&mut [0; DATAGRAM], &mut endpoint, &mut serving);
}
