//! Switches for studies.

/// Switches that only a study sets.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct StudySettings {
    /// Whether every peer is known to answer each copy of a request with that copy's own token and
    /// options, as this endpoint does. Otherwise a mark is trusted only if it names the last copy, until
    /// the peer has answered two copies of one request with the mark of each. Default no.
    pub trusts_marks: bool,
    /// Whether message IDs are kept unique for EXCHANGE_LIFETIME (RFC 7252 section 4.4). Default
    /// yes; only a load generator, which measures a server and not a network, may switch this off.
    pub unique_message_ids: bool,
    /// Whether a message is given up no sooner than MAX_TRANSMIT_SPAN after its first transmission,
    /// whatever the congestion control decides ([`Shell::patience`](crate::cc::Shell::patience)).
    /// Default yes; only a study that compares controls as they were published switches it off.
    pub patience: bool,
}

impl StudySettings {
    /// Peers have to show that their marks can be trusted, message IDs are unique, and every control is patient.
    pub const DEFAULT: Self =
        Self { trusts_marks: false, unique_message_ids: true, patience: true };

    /// The same settings, with trust in marks or without.
    #[must_use]
    pub const fn trusting_marks(self, trusts_marks: bool) -> Self {
        Self { trusts_marks, ..self }
    }

    /// The same settings, with message IDs that are kept unique or not.
    #[must_use]
    pub const fn keeping_message_ids_unique(self, unique_message_ids: bool) -> Self {
        Self { unique_message_ids, ..self }
    }

    /// The same settings, with patience or without.
    #[must_use]
    pub const fn being_patient(self, patience: bool) -> Self {
        Self { patience, ..self }
    }
}

impl Default for StudySettings {
    fn default() -> Self {
        Self::DEFAULT
    }
}
