//! A client on the message layer, in fixed tables, over DTLS with a pre-shared key.
#![no_std]
#![no_main]

use ebbtide_core::device::DeviceTables;
use ebbtide_firmware::arguments::Arguments;
use ebbtide_firmware::fixed::gets::FixedGets;
use ebbtide_firmware::fixed::{config, secured};
use ebbtide_firmware::semihosting::report;
use ebbtide_firmware::{memory, program};

program!(run);

fn run(arguments: &Arguments) {
    memory::init_heap();
    let mut tables = DeviceTables::<_, _, 1, 1, 64>::new();
    let mut endpoint = tables.endpoint(config(arguments));
    let mut gets = FixedGets::new(arguments);
    secured::drive(arguments, &mut endpoint, &mut gets);
    gets.report();
    report("heap_peak", memory::heap_peak());
}
