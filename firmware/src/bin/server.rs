//! A server with a resource that can be observed.
#![no_std]
#![no_main]

use ebbtide_firmware::app::serving::Serving;
use ebbtide_firmware::app::{endpoint, report_figures};
use ebbtide_firmware::arguments::Arguments;
use ebbtide_firmware::driver::drive;
use ebbtide_firmware::link::Link;
use ebbtide_firmware::semihosting::report;
use ebbtide_firmware::{memory, program};

program!(run);

fn run(arguments: &Arguments) {
    memory::init_heap();
    let mut link = Link::open();
    let mut endpoint = endpoint(arguments);
    let mut serving = Serving::default();
    report("serving", memory::heap_used());
    drive(&mut link, &mut endpoint, &mut serving);
    serving.report();
    report_figures(&endpoint);
}
