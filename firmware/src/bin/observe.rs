//! A client that also observes a resource.
#![no_std]
#![no_main]

use ebbtide_firmware::app::block_wise::Put;
use ebbtide_firmware::app::gets::Gets;
use ebbtide_firmware::app::observing::Watch;
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
    let mut gets = Gets::new(server(arguments), arguments);
    drive(&mut link, &mut endpoint, &mut gets);
    gets.report();
    let mut put = Put::new(server(arguments), arguments);
    drive(&mut link, &mut endpoint, &mut put);
    put.report();
    drop(put);
    let mut watch = Watch::new(server(arguments), arguments);
    drive(&mut link, &mut endpoint, &mut watch);
    watch.report();
    drop(watch);
    report_figures(&endpoint);
}
