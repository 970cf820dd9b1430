//! A client that also sends and receives bodies in blocks, in fixed tables.
#![no_std]
#![no_main]

use ebbtide_core::device::DeviceTables;
use ebbtide_firmware::arguments::Arguments;
use ebbtide_firmware::fixed::gets::FixedGets;
use ebbtide_firmware::fixed::put::{FixedPut, path};
use ebbtide_firmware::fixed::{Driver, config};
use ebbtide_firmware::program;

program!(run);

fn run(arguments: &Arguments) {
    let mut tables = DeviceTables::<_, _, 1, 1, 320>::new();
    let mut endpoint = tables.endpoint(config(arguments));
    let mut driver = Driver::new(arguments);
    let mut gets = FixedGets::new(arguments);
    driver.drive(&mut endpoint, &mut gets);
    gets.report();
    let path = path(arguments);
    let mut put = FixedPut::new(&path, arguments);
    driver.drive(&mut endpoint, &mut put);
    put.report();
}
