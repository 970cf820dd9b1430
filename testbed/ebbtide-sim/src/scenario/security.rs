//! `[security]`: how messages are protected on the way.

use super::Scenario;
use super::limits::LONGEST_SPAN;
use super::units::Time;
use crate::keys::{Check, keys, names, require, texts};
use serde::{Deserialize, Serialize};

keys! {
    /// The protection of messages between clients and server, over UDP.
    #[derive(Copy, Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
    #[serde(deny_unknown_fields, default)]
    pub struct Security {
        /// None, or DTLS.
        pub mode: SecurityMode,
        /// The state with which a client comes: nothing, a session to resume, or one to continue.
        #[serde(rename = "return")]
        pub returns as "return": Return,
        /// When the flights of a handshake are repeated.
        pub timers: Timers,
        /// The server's first timeout for its own flights; 0: as `timers` has it; with
        /// `control`, the library's default.
        pub server_timeout: Time,
    }
}

/// The protocol that protects messages.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum SecurityMode {
    /// Messages are sent as they are.
    #[default]
    None,
    /// DTLS 1.2 with pre-shared keys (TLS_PSK_WITH_AES_128_CCM_8).
    DtlsPsk,
}

/// The state that a client kept while it was away.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Return {
    /// Nothing: a full handshake is necessary.
    #[default]
    Handshake,
    /// The secrets of a session, which the server resumes.
    Resumption,
    /// The session, at another address: its connection ID is enough (RFC 9146).
    ConnectionId,
}

/// When a client's flights are repeated.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Timers {
    /// After 1 s, 2 s, 4 s and so on up to 60 s (RFC 6347 section 4.2.4.1).
    Rfc6347,
    /// After 9 s, 18 s and so on up to 60 s (RFC 7925 section 11).
    Rfc7925,
    /// After the first timeout of the client's congestion control, which learns from the round trips of
    /// flights, then after twice that, and so on.
    #[default]
    Control,
}

impl Security {
    /// Whether nothing is protected.
    #[must_use]
    pub const fn is_none(&self) -> bool {
        matches!(self.mode, SecurityMode::None)
    }

    pub(super) fn is_default(&self) -> bool {
        *self == Self::default()
    }
}

/// Bytes that a record of DTLS adds to a message: header 13, connection ID up to 8, nonce 8, tag 8, and
/// the content type inside.
const RECORD: u32 = 38;

pub(super) fn check(s: &Scenario) -> Check {
    if s.security.is_none() {
        let message = "needs security.mode = \"dtls-psk\"";
        return require(s.security.is_default(), "security", message);
    }
    let key = "security.mode";
    require(s.network.mesh().is_none(), key, "is for networks without [network.mesh]")?;
    let room = s.network.mtu.saturating_sub(s.network.header);
    let message =
        "needs a network.mtu that leaves 256 bytes for a datagram, and 38 bytes of each for DTLS";
    let longest = s.workload.request_payload.max(s.workload.response_payload) + 32 + RECORD;
    require(room >= 256 && room >= longest, key, message)?;
    let timeout = s.security.server_timeout.0;
    let fits = timeout == 0 || (10_000_000..=LONGEST_SPAN.0).contains(&timeout);
    require(fits, "security.server_timeout", "must be 0, or from 10 ms to a day (86400 s)")
}

texts! {
    SecurityMode => names::<Self>(),
    Return => names::<Self>(),
    Timers => names::<Self>(),
}
