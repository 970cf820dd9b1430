//! A server, in fixed tables.
#![no_std]
#![no_main]

use ebbtide_core::device::DeviceTables;
use ebbtide_firmware::arguments::Arguments;
use ebbtide_firmware::fixed::serve::FixedServing;
use ebbtide_firmware::fixed::{Driver, config};
use ebbtide_firmware::{program, semihosting};

program!(run);

fn run(arguments: &Arguments) {
    let mut tables = DeviceTables::<_, _, 4, 4, 320>::new();
    let mut endpoint = tables.endpoint(config(arguments));
    let mut driver = Driver::new(arguments);
    let mut serving = FixedServing::new(&mut driver.rng);
    semihosting::say("serving\n");
    driver.drive(&mut endpoint, &mut serving);
    serving.report();
}
