//! The board, the link and nothing else: what the other programs have beside Ebbtide. It returns datagrams until
//! one has a single byte.
#![no_std]
#![no_main]

use ebbtide_firmware::arguments::Arguments;
use ebbtide_firmware::link::{Datagrams, Link};
use ebbtide_firmware::{board, program};

program!(run);

fn run(_: &Arguments) {
    let mut link = Link::open();
    let mut buffer = [0; 640];
    loop {
        match link.receive(&mut buffer) {
            Some((1, _)) => return,
            Some((length, from)) => link.send(from, &buffer[..length]),
            None => board::idle(),
        }
    }
}
