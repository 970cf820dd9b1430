//! Sans-IO CoAP: bytes and instants in, bytes and instants out.
#![no_std]
#[cfg(feature = "alloc")]
extern crate alloc;
#[cfg(any(test, doc))]
extern crate std;

pub mod time;
pub mod wire;
pub mod cc;
pub mod params;
