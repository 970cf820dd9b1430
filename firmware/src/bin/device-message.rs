//! A client on the message layer, in fixed tables.
#![no_std]
#![no_main]

use ebbtide_core::device::DeviceTables;
use ebbtide_firmware::arguments::Arguments;
use ebbtide_firmware::fixed::gets::FixedGets;
use ebbtide_firmware::fixed::{Driver, config};
use ebbtide_firmware::program;

program!(run);

fn run(arguments: &Arguments) {
    let mut tables = DeviceTables::<_, _, 1, 1, 64>::new();
    let mut endpoint = tables.endpoint(config(arguments));
    let mut gets = FixedGets::new(arguments);
    Driver::new(arguments).drive(&mut endpoint, &mut gets);
    gets.report();
}
