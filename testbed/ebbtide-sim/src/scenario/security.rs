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
        /// None, DTLS, or OSCORE with a context that both sides know.
        pub mode: SecurityMode,
        /// With DTLS, the state with which a client comes: nothing, a session to resume, or one to continue.
        #[serde(rename = "return")]
        pub returns as "return": Return,
        /// With DTLS, when the flights of a handshake are repeated.
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
    /// OSCORE with AES-CCM-16-64-128 and a context that client and server know.
    Oscore,
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
    pub const fn is_none(&self) -> bool {
        matches!(self.mode, SecurityMode::None)
    }

    pub(super) fn is_default(&self) -> bool {
        *self == Self::default()
    }

    /// Whether messages travel in sessions of DTLS.
    pub const fn has_sessions(&self) -> bool {
        matches!(self.mode, SecurityMode::DtlsPsk)
    }

    /// Bytes that the protection adds to a message at most.
    pub(super) const fn overhead(&self) -> u32 {
        match self.mode {
            SecurityMode::None => 0,
            // A record: header 13, connection ID up to 8, nonce 8, tag 8, and the content type inside.
            SecurityMode::DtlsPsk => 38,
            // The option: head 1, flags 1, Partial IV and ID up to 3 each. Code 1 and tag 8 in the
            // ciphertext, and its marker.
            SecurityMode::Oscore => 18,
        }
    }
}

pub(super) fn check(s: &Scenario) -> Check {
    let security = &s.security;
    if !security.has_sessions() {
        let of_mode = Security { mode: security.mode, ..Security::default() };
        let message = "has keys of sessions, which need security.mode = \"dtls-psk\"";
        require(*security == of_mode, "security", message)?;
    }
    let key = "security.mode";
    match security.mode {
        SecurityMode::None => return Ok(()),
        SecurityMode::DtlsPsk => {
            let message = "= \"dtls-psk\" is for networks without [network.mesh]";
            require(s.network.mesh().is_none(), key, message)?;
            let room = s.network.mtu.saturating_sub(s.network.header);
            let message = "needs a network.mtu that leaves 256 bytes for a datagram of a handshake";
            require(room >= 256, key, message)?;
        }
        SecurityMode::Oscore => {
            let has_mote_servers = s.network.mesh().is_some() && s.network.up.is_missing();
            let is_of_motes = s.is_cloud()
                || s.classes().iter().any(|class| class.scenario.workload.is_reporting());
            let message = "= \"oscore\" is for devices that ask a server in the Internet: with [network.mesh], \
                           for a workload of its devices, with network.up and network.down";
            require(!has_mote_servers && !is_of_motes, key, message)?;
        }
    }
    let timeout = security.server_timeout.0;
    let fits = timeout == 0 || (10_000_000..=LONGEST_SPAN.0).contains(&timeout);
    require(fits, "security.server_timeout", "must be 0, or from 10 ms to a day (86400 s)")
}

texts! {
    SecurityMode => names::<Self>(),
    Return => names::<Self>(),
    Timers => names::<Self>(),
}
