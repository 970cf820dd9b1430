//! The metrics of sessions and handshakes over DTLS.

use super::family::{Family, Kind, numbers};

/// Sessions and handshakes over DTLS, zero where no socket speaks it.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq)]
pub struct DtlsCounts {
    /// Sessions and handshakes with state now.
    pub sessions: usize,
    /// ClientHellos that were answered by a cookie.
    pub hellos_challenged: u64,
    /// Completed full handshakes.
    pub full: u64,
    /// Completed handshakes that resumed a session.
    pub resumed: u64,
    /// Handshakes that failed because the identity is unknown.
    pub unknown_identities: u64,
    /// Handshakes that failed because the peer's key was wrong.
    pub wrong_keys: u64,
    /// Handshakes that failed because the peer's certificate was not accepted, or missing.
    pub certificates_refused: u64,
    /// Handshakes that failed for other reasons.
    pub failed: u64,
    /// Sessions and handshakes dropped because a limit was reached.
    pub evicted: u64,
    /// Records that were not valid or belonged to no session.
    pub malformed: u64,
    /// Records that had been received before, or were too old.
    pub replayed: u64,
    /// Records whose authentication tag was wrong.
    pub not_authentic: u64,
    /// Records withheld from an address that was not confirmed.
    pub withheld: u64,
    /// ClientHellos dropped because their source has its share of those that wait for a signature.
    pub hellos_withheld: u64,
    /// Peers that confirmed a new address.
    pub addresses_changed: u64,
    /// New addresses that were not confirmed.
    pub addresses_refused: u64,
}

impl DtlsCounts {
    /// Completed handshakes.
    #[must_use]
    pub const fn established(&self) -> u64 {
        self.full + self.resumed
    }

    /// Handshakes that failed.
    #[must_use]
    pub const fn handshakes_failed(&self) -> u64 {
        self.unknown_identities + self.wrong_keys + self.certificates_refused + self.failed
    }

    /// Adds those of a socket.
    #[cfg(feature = "dtls")]
    pub(crate) fn add(&mut self, sessions: usize, counters: &ebbtide_dtls::Counters) {
        let named =
            counters.unknown_identities + counters.wrong_keys + counters.certificates_refused;
        for (sum, more) in [
            (&mut self.hellos_challenged, counters.hellos_verified),
            (&mut self.full, counters.established - counters.resumed),
            (&mut self.resumed, counters.resumed),
            (&mut self.unknown_identities, counters.unknown_identities),
            (&mut self.wrong_keys, counters.wrong_keys),
            (&mut self.certificates_refused, counters.certificates_refused),
            (&mut self.failed, counters.handshakes_failed - named),
            (&mut self.evicted, counters.evicted),
            (&mut self.malformed, counters.records_malformed),
            (&mut self.replayed, counters.records_replayed),
            (&mut self.not_authentic, counters.records_not_authentic),
            (&mut self.withheld, counters.unverified_withheld),
            (&mut self.hellos_withheld, counters.hellos_withheld),
            (&mut self.addresses_changed, counters.addresses_changed),
            (&mut self.addresses_refused, counters.addresses_refused),
        ] {
            *sum += more;
        }
        self.sessions += sessions;
    }

    pub(super) fn families(&self) -> [Family; 6] {
        [
            Family::number(
                Kind::Gauge,
                "ebbtide_dtls_sessions",
                "DTLS sessions and handshakes with state.",
                self.sessions as u64,
            ),
            Family::number(
                Kind::Counter,
                "ebbtide_dtls_hellos_challenged_total",
                "ClientHellos that were answered by a cookie.",
                self.hellos_challenged,
            ),
            Family::labelled(
                Kind::Counter,
                "ebbtide_dtls_handshakes_total",
                "outcome",
                "DTLS handshakes that have ended.",
                numbers([
                    ("full", self.full),
                    ("resumed", self.resumed),
                    ("unknown-identity", self.unknown_identities),
                    ("wrong-key", self.wrong_keys),
                    ("certificate-refused", self.certificates_refused),
                    ("failed", self.failed),
                ]),
            ),
            Family::number(
                Kind::Counter,
                "ebbtide_dtls_evicted_total",
                "DTLS sessions and handshakes dropped because a limit was reached.",
                self.evicted,
            ),
            Family::labelled(
                Kind::Counter,
                "ebbtide_dtls_records_dropped_total",
                "reason",
                "DTLS records that were not processed, or not sent.",
                numbers([
                    ("malformed", self.malformed),
                    ("replayed", self.replayed),
                    ("not-authentic", self.not_authentic),
                    ("withheld", self.withheld),
                    ("hello-beyond-share", self.hellos_withheld),
                ]),
            ),
            Family::labelled(
                Kind::Counter,
                "ebbtide_dtls_addresses_total",
                "outcome",
                "New addresses of DTLS peers.",
                numbers([("changed", self.addresses_changed), ("refused", self.addresses_refused)]),
            ),
        ]
    }
}
