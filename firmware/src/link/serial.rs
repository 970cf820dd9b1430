//! Datagrams over a serial line: each is a frame of RFC 1055, and begins with the remote's IPv4 address and port.

use super::Datagrams;
use crate::board;
use core::net::SocketAddr;

const END: u8 = 0o300;
const ESC: u8 = 0o333;
const ESC_END: u8 = 0o334;
const ESC_ESC: u8 = 0o335;
const ADDRESS: usize = 6;

/// The serial line of the board.
#[derive(Debug, Default)]
pub struct Serial {
    address: [u8; ADDRESS],
}

impl Serial {
    /// Opens the line.
    #[must_use]
    pub fn open() -> Self {
        board::start_serial();
        Self::default()
    }

    /// Puts a byte of a frame in its place.
    fn put(&mut self, at: usize, byte: u8, buffer: &mut [u8]) {
        let place = match at.checked_sub(ADDRESS) {
            None => self.address.get_mut(at),
            Some(at) => buffer.get_mut(at),
        };
        if let Some(place) = place {
            *place = byte;
        }
    }
}

impl Datagrams for Serial {
    fn receive(&mut self, buffer: &mut [u8]) -> Option<(usize, SocketAddr)> {
        let mut byte = board::read_byte()?;
        let mut at = 0;
        // A frame that has begun is read to its end: the line is faster than the core.
        loop {
            if byte == END {
                if at > ADDRESS {
                    break;
                }
                at = 0;
            } else {
                if byte == ESC {
                    byte = match next_byte() {
                        ESC_END => END,
                        ESC_ESC => ESC,
                        other => other,
                    };
                }
                self.put(at, byte, buffer);
                at += 1;
            }
            byte = next_byte();
        }
        let [a, b, c, d, high, low] = self.address;
        let from = SocketAddr::from(([a, b, c, d], u16::from_be_bytes([high, low])));
        Some(((at - ADDRESS).min(buffer.len()), from))
    }

    fn send(&mut self, to: SocketAddr, datagram: &[u8]) {
        let SocketAddr::V4(to) = to else { return };
        let port = to.port().to_be_bytes();
        for &byte in to.ip().octets().iter().chain(&port).chain(datagram) {
            let stuffed: &[u8] = match byte {
                END => &[ESC, ESC_END],
                ESC => &[ESC, ESC_ESC],
                _ => &[byte],
            };
            stuffed.iter().for_each(|byte| board::write_byte(*byte));
        }
        board::write_byte(END);
    }
}

fn next_byte() -> u8 {
    loop {
        if let Some(byte) = board::read_byte() {
            return byte;
        }
        // A core that only reads registers keeps QEMU from filling them.
        board::pause();
    }
}
