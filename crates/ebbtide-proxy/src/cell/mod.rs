//! Cells: networks whose devices share a link, and how many requests each may have in flight.

mod budget;
mod gate;
mod queue;
mod shares;
mod taken;

pub(crate) use budget::ExchangeEnd;
pub(crate) use gate::{CellGate, GateLoad, Permit};
pub(crate) use queue::{Applicant, FairQueue, Place};

use crate::access::Prefix;
use gate::Overdue;
use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

/// The bits that the addresses of a cell have in common if no configured cell has them.
const V4_BITS: u8 = 24;
const V6_BITS: u8 = 64;
/// Cells that are not configured are forgotten while they are idle, once there are so many.
const MAX_IDLE: usize = 4096;

/// The addresses behind one shared link. Cells that are not configured are IPv4 /24 and IPv6 /64 prefixes.
#[derive(Clone, Debug)]
pub struct CellConfig {
    prefixes: Vec<Prefix>,
    max: Option<u32>,
}

impl CellConfig {
    /// The addresses with one of these prefixes are a cell.
    #[must_use]
    pub fn new(prefixes: impl IntoIterator<Item = Prefix>) -> Self {
        Self { prefixes: prefixes.into_iter().collect(), max: None }
    }

    /// Sets the maximum number of requests in flight; at least 1. By default that of the gateway.
    #[must_use]
    pub fn max_in_flight(mut self, requests: u32) -> Self {
        self.max = Some(requests);
        self
    }
}

/// All cells and devices of a gateway.
#[derive(Debug)]
pub(crate) struct Cells {
    configured: Vec<(Vec<Prefix>, Arc<CellGate>)>,
    others: Mutex<Swept<Prefix, Arc<CellGate>>>,
    devices: Mutex<Swept<SocketAddr, Weak<CellGate>>>,
    limits: CellLimits,
}

/// A table that drops its idle entries when it has grown to twice the number of those that were in
/// use at the last time.
#[derive(Debug)]
struct Swept<K, V> {
    table: BTreeMap<K, V>,
    full: usize,
}

impl<K, V> Default for Swept<K, V> {
    fn default() -> Self {
        Self { table: BTreeMap::new(), full: MAX_IDLE }
    }
}

impl<K: Ord, V> Swept<K, V> {
    fn sweep(&mut self, is_used: impl Fn(&V) -> bool) {
        if self.table.len() >= self.full {
            self.table.retain(|_, value| is_used(value));
            self.full = MAX_IDLE.max(2 * self.table.len());
        }
    }
}

/// The requests in flight that a cell without a number of its own and a device may have.
#[derive(Copy, Clone, Debug)]
pub(crate) struct CellLimits {
    pub(crate) cell: u32,
    pub(crate) device: u32,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Cells {
    pub(crate) fn new(configured: Vec<CellConfig>, limits: CellLimits) -> Self {
        let gate = |cell: CellConfig| {
            let max = cell.max.unwrap_or(limits.cell);
            (cell.prefixes, CellGate::new(max, Overdue::Freed))
        };
        Self {
            configured: configured.into_iter().map(gate).collect(),
            others: Mutex::default(),
            devices: Mutex::default(),
            limits,
        }
    }

    /// The cells with their loads: those that are configured, and others that have been used.
    pub(crate) fn loads(&self) -> Vec<(String, GateLoad)> {
        let name = |prefixes: &[Prefix]| {
            prefixes.iter().map(Prefix::to_string).collect::<Vec<_>>().join(", ")
        };
        let configured =
            self.configured.iter().map(|(prefixes, gate)| (name(prefixes), gate.load()));
        let others = lock(&self.others);
        let others = others.table.iter().map(|(prefix, gate)| (prefix.to_string(), gate.load()));
        configured.chain(others).collect()
    }

    /// The addresses of devices that were asked, at most so many.
    pub(crate) fn addresses(&self, max: usize) -> Vec<SocketAddr> {
        lock(&self.devices).table.keys().take(max).copied().collect()
    }

    /// The gate of the cell with this address.
    pub(crate) fn cell(&self, address: IpAddr) -> Arc<CellGate> {
        let named = |prefixes: &[Prefix]| prefixes.iter().any(|prefix| prefix.contains(address));
        if let Some((_, gate)) = self.configured.iter().find(|(prefixes, _)| named(prefixes)) {
            return gate.clone();
        }
        let address = address.to_canonical();
        let bits = if address.is_ipv4() { V4_BITS } else { V6_BITS };
        let mut others = lock(&self.others);
        // Its permits hold a gate that is in use.
        others.sweep(|gate| Arc::strong_count(gate) > 1);
        let gate = others.table.entry(Prefix::new(address, bits));
        gate.or_insert_with(|| CellGate::new(self.limits.cell, Overdue::Freed)).clone()
    }

    /// The gate of one device, which exists while a request uses it.
    pub(crate) fn device(&self, address: SocketAddr) -> Arc<CellGate> {
        let mut devices = lock(&self.devices);
        if let Some(gate) = devices.table.get(&address).and_then(Weak::upgrade) {
            return gate;
        }
        devices.sweep(|gate| gate.strong_count() > 0);
        let gate = CellGate::new(self.limits.device, Overdue::Kept);
        devices.table.insert(address, Arc::downgrade(&gate));
        gate
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_configured_cell_takes_its_addresses_and_the_others_are_divided_by_prefix() {
        let prefixes = ["10.1.0.0/16", "10.9.9.9"].map(|text| text.parse().unwrap());
        let cell = CellConfig::new(prefixes).max_in_flight(1);
        let cells = Cells::new(vec![cell], CellLimits { cell: 64, device: 1 });
        let gate = |text: &str| cells.cell(text.parse().unwrap());
        let same = |a: &str, b: &str| Arc::ptr_eq(&gate(a), &gate(b));
        assert!(same("10.1.2.3", "10.9.9.9"));
        assert!(same("192.0.2.1", "192.0.2.200") && !same("192.0.2.1", "192.0.3.1"));
        assert!(same("2001:db8::1", "2001:db8::2:1") && !same("2001:db8::1", "2001:db8:0:1::1"));
    }

    #[test]
    fn cells_and_devices_that_nobody_uses_do_not_accumulate() {
        let cells = Cells::new(Vec::new(), CellLimits { cell: 64, device: 1 });
        for n in 0..20_000_u32 {
            let address = IpAddr::V4((n << 8).into());
            cells.cell(address);
            cells.device(SocketAddr::new(address, 5683));
        }
        assert!(lock(&cells.others).table.len() <= MAX_IDLE);
        assert!(lock(&cells.devices).table.len() <= MAX_IDLE);
    }
}
