//! Observers (RFC 7641).

/// What clients observe.
#[derive(Clone, Debug, Default)]
pub struct Subject;

impl Subject {
    /// The state changed.
    pub fn changed(&self) {}
}

/// The observers of one socket.
#[derive(Debug, Default)]
pub(crate) struct Observers;

impl Observers {
    pub(crate) fn arrived(&mut self, _observer: u32) {}
    pub(crate) fn lost(&mut self, _observer: u32) {}
}
