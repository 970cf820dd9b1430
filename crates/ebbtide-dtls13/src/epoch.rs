//! Instants of the driver and those of the standard library, which `dimpl` takes.

use ebbtide_core::time::Instant;

/// The standard library's name for the driver's instant zero.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Epoch(pub(crate) std::time::Instant);

impl Epoch {
    pub(crate) fn to_std(self, at: Instant) -> std::time::Instant {
        self.0 + at.saturating_since(Instant::ZERO)
    }

    /// The inverse of [`Self::to_std`].
    pub(crate) fn instant_of(self, at: std::time::Instant) -> Instant {
        Instant::from_nanos(at.saturating_duration_since(self.0).as_nanos() as u64)
    }
}
