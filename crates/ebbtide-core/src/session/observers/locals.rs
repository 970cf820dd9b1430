//! Local addresses, of which there are few while observers are many: an index of two bytes instead
//! of seventeen.

use alloc::vec::Vec;
use core::net::IpAddr;

/// The local address from which notifications leave: 0 if that does not matter, otherwise its index
/// plus one.
#[derive(Copy, Clone, Debug)]
pub(super) struct Local(u16);

/// The local addresses to which observers have sent their requests.
#[derive(Debug, Default)]
pub(super) struct Locals(Vec<IpAddr>);

impl Locals {
    /// The index of an address. Beyond 65535 the system chooses an address.
    pub(super) fn intern(&mut self, local: Option<IpAddr>) -> Local {
        let Some(local) = local else { return Local(0) };
        let known = self.0.iter().position(|known| *known == local);
        let place = known.unwrap_or_else(|| {
            if self.0.len() < usize::from(u16::MAX) {
                self.0.push(local);
            }
            self.0.len() - 1
        });
        match self.0.get(place) {
            Some(known) if *known == local => Local(place as u16 + 1),
            _ => Local(0),
        }
    }

    pub(super) fn get(&self, local: Local) -> Option<IpAddr> {
        self.0.get(usize::from(local.0).checked_sub(1)?).copied()
    }
}
