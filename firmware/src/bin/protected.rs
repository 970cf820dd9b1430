//! A client on the message layer, whose messages OSCORE protects.
#![no_std]
#![no_main]

use ebbtide_firmware::app::protected::ProtectedGets;
use ebbtide_firmware::app::{endpoint, report_figures, server};
use ebbtide_firmware::arguments::Arguments;
use ebbtide_firmware::driver::drive;
use ebbtide_firmware::link::Link;
use ebbtide_firmware::{memory, program};

program!(run);

fn run(arguments: &Arguments) {
    memory::init_heap();
    let mut link = Link::open();
    let mut endpoint = endpoint(arguments);
    let Ok(mut gets) = ProtectedGets::new(server(arguments), arguments) else { return };
    drive(&mut link, &mut endpoint, &mut gets);
    gets.report();
    report_figures(&endpoint);
}
