//! The order of notifications (RFC 8613 sections 4.1.3.5.2 and 7.4.1).

/// The notifications of one observation that a client has accepted.
#[derive(Copy, Clone, Debug, Default)]
pub struct NotificationOrder {
    /// The greatest Partial IV accepted (the Notification Number).
    latest: Option<u64>,
    /// How many were accepted.
    accepted: u32,
}

impl NotificationOrder {
    /// Whether a verified notification with this Partial IV is newer than those before. Returns the
    /// value that Observe is to have. Only the first response can do without a Partial IV.
    ///
    /// The value counts the accepted notifications: they arrive here in their order, and all values
    /// are then newer than those before, also where the first response had no Partial IV.
    pub(super) fn accept(&mut self, partial_iv: Option<u64>) -> Option<u32> {
        let is_newer = match partial_iv {
            Some(number) => self.latest.is_none_or(|latest| number > latest),
            None => self.accepted == 0,
        };
        if !is_newer {
            return None;
        }
        self.latest = partial_iv.or(self.latest);
        self.accepted = self.accepted.wrapping_add(1);
        Some(self.accepted & 0xff_ffff)
    }
}
