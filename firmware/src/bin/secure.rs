//! A client on the message layer, over DTLS with a pre-shared key.
#![no_std]
#![no_main]

use ebbtide_firmware::app::{endpoint, report_figures, secure, server};
use ebbtide_firmware::arguments::Arguments;
use ebbtide_firmware::link::Link;
use ebbtide_firmware::{memory, program};

program!(run);

fn run(arguments: &Arguments) {
    memory::init_heap();
    let mut link = Link::open();
    let mut endpoint = endpoint(arguments);
    secure::run(&mut link, &mut endpoint, server(arguments), arguments);
    report_figures(&endpoint);
}
