//! Endpoint configuration.

use super::measurement::Measurement;
use super::peers::Scope;
use super::study::StudySettings;
use crate::cc::{Algorithm, ControlConfig, Shell};
use crate::params::Parameters;
use crate::peer::PeerId;
use crate::shared::Shared;
use crate::time::{Duration, Micros};
use crate::wire::{MAX_TOKEN_LEN, OptionNumber};
use core::hash::{Hash, Hasher};
use siphasher::sip::SipHasher24;

/// Settings that endpoints share: counted atomically where the target can. A program with many
/// endpoints that are alike keeps one copy of their settings.
pub type SharedConfig = Shared<EndpointConfig>;

/// Settings of an [`Endpoint`](super::Endpoint).
#[derive(Clone, Debug)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "each is a protocol that the application implements, or not"
)]
pub struct EndpointConfig {
    /// RFC 7252's transmission parameters.
    pub params: Parameters,
    /// The congestion control of every peer without one of its own.
    pub control: ControlConfig,
    /// The peers that share one congestion control.
    pub scope: Scope,
    /// Bytes of randomness in the tokens of requests, 0 to 8. A control that marks tokens adds one
    /// byte for the ordinal, up to 8 in all. Default 4 (RFC 7252 section 5.3.1: at least 32 bits).
    pub token_length: u8,
    /// The number of the option Rexmit-Cnt, for which no number is assigned. Default 65020, from
    /// the experimental range; elective, safe to forward, not part of the cache key.
    pub rexmit_count_option: OptionNumber,
    /// The option PM, by which both ends and the nodes between them measure losses. Default none.
    pub measurement: Option<Measurement>,
    /// Whether the application implements RFC 9177. If not, messages with its options are rejected
    /// because the options are critical; a Confirmable request is answered with 4.02, which shows
    /// a client that Q-Block is not supported. Default no.
    pub q_block: bool,
    /// Whether the application implements OSCORE (RFC 8613), and answers the option of EDHOC (RFC
    /// 9668). If not, messages with these options are rejected because they are critical. Default
    /// no.
    pub oscore: bool,
    /// Whether the application is a proxy. Then critical options that are safe to forward and that
    /// are not understood are left to it, in requests with Proxy-Uri or Proxy-Scheme and in
    /// responses (RFC 7252 section 5.7.1). Default no.
    pub forwards: bool,
    /// Where the message IDs of each peer begin. `None`, the default, draws it; an endpoint that outlives its
    /// program's restarts computes it, so that no ID is used again while a peer remembers it.
    pub message_id_start: Option<MessageIdStart>,
    /// Whether [`Endpoint::controls`](super::Endpoint::controls) counts messages, round trips and
    /// timeouts under each control, which takes 440 bytes for each. Default yes.
    pub count_per_control: bool,
    /// Bounds on memory.
    pub limits: Limits,
    /// Switches that only a study sets.
    #[doc(hidden)]
    pub study: StudySettings,
}

impl EndpointConfig {
    /// The parameters from which the derived times follow: the path is as long as the first timeout of
    /// the control says.
    #[must_use]
    pub fn params_of_path(&self) -> Parameters {
        self.params.under(self.control.settings.first_timeout(&self.params))
    }

    /// How long a message is tried at least under `control`.
    pub(super) fn patience(&self, control: &ControlConfig) -> Micros {
        match self.study.patience {
            true => Shell::patience(&self.params, &control.settings),
            false => Micros::ZERO,
        }
    }
}

impl Default for EndpointConfig {
    fn default() -> Self {
        Self {
            params: Parameters::DEFAULT,
            control: ControlConfig::new(Algorithm::DEFAULT),
            scope: Scope::TransportAddress,
            token_length: 4,
            rexmit_count_option: OptionNumber(65020),
            measurement: None,
            q_block: false,
            oscore: false,
            forwards: false,
            message_id_start: None,
            count_per_control: true,
            limits: Limits::default(),
            study: StudySettings::DEFAULT,
        }
    }
}

/// Lets message IDs go on after a restart of the program, without having stored one of them: those of each
/// start begin as far as possible from those of the starts before (RFC 7252 section 4.4). After twenty
/// restarts within EXCHANGE_LIFETIME a peer may have been sent 1900 messages by each of them, and by fewer
/// restarts more, until an ID is used that the peer may remember.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct MessageIdStart {
    /// The secret by which peers begin at different places. It must be the same after a restart.
    pub key: u64,
    /// How often the program was started before.
    pub restarts: u32,
}

impl MessageIdStart {
    /// The first message ID for a peer.
    pub(super) fn of(&self, peer: PeerId) -> u16 {
        // The golden section of 65536: its multiples are spread evenly over the circle, however many.
        const STEP: u32 = 40_503;
        let mut hasher = SipHasher24::new_with_keys(self.key, 0);
        peer.hash(&mut hasher);
        (hasher.finish() as u16).wrapping_add(self.restarts.wrapping_mul(STEP) as u16)
    }
}

/// Limits on the memory of an endpoint. Reaching a limit returns an error to the caller or refuses
/// the peer, and is always counted.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Scopes with congestion control state. Default 131072.
    pub peers: usize,
    /// Exchanges, including queued ones. Default 65536.
    pub exchanges: usize,
    /// Messages per scope that wait for permission to leave. Default 64.
    pub queue_per_peer: u16,
    /// Bytes of one message, without the headers of DTLS, UDP and IP. Default 1152, which fits a packet of
    /// 1280 bytes, the minimum MTU of IPv6, whatever these headers are (RFC 7252 section 4.6). Over UDP
    /// and IPv6 alone 1232 bytes fit.
    pub message_bytes: usize,
    /// Messages remembered for deduplication. Default 65536. An address, or an IPv6 prefix of 64
    /// bits, holds at most as many of them as are free, hence at most half. As many
    /// [verified](super::Endpoint::remember_verified) requests are remembered as well.
    pub remembered_messages: usize,
    /// Bytes of responses stored for duplicates of non-idempotent requests. Default 8 MiB.
    pub remembered_bytes: usize,
    /// Requests that the application answers later, whose copies are recognized meanwhile
    /// ([`Endpoint::defer`](super::Endpoint::defer)). Default 16384.
    pub deferred_requests: usize,
    /// Bytes of the longest token of a request that is processed (RFC 8974). Requests with a longer one are
    /// answered with 4.00, and so are those whose token takes more than half of `message_bytes`, beside which an answer
    /// may have no room. Default 8: a longer one is a format error, as it was before RFC 8974.
    pub token_bytes: usize,
    /// Bytes of datagrams that wait for the driver, with what is noted of each. Default 16 MiB.
    pub outbox_bytes: usize,
    /// How long a scope's state is kept after its last use. Default 255 s (cocoa-03 section 4.3).
    /// The effective time is at least EXCHANGE_LIFETIME, because message IDs depend on it.
    pub peer_retention: Duration,
}

impl Limits {
    /// Bytes of the longest token of a request that is processed.
    pub(super) fn longest_token(&self) -> usize {
        self.token_bytes.min(self.message_bytes / 2).max(MAX_TOKEN_LEN)
    }

    /// Limits for a device with a handful of peers and blocks of at most 512 bytes: a few kilobytes at most, on demand.
    /// One that needs less has [`device`](crate::device).
    #[must_use]
    pub const fn device() -> Self {
        Self {
            peers: 4,
            exchanges: 8,
            queue_per_peer: 4,
            message_bytes: 576,
            remembered_messages: 16,
            remembered_bytes: 1024,
            deferred_requests: 2,
            token_bytes: 8,
            outbox_bytes: 2048,
            peer_retention: Duration::from_secs(255),
        }
    }
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            peers: 131_072,
            exchanges: 65_536,
            queue_per_peer: 64,
            message_bytes: 1_152,
            remembered_messages: 65_536,
            remembered_bytes: 8 << 20,
            deferred_requests: 16_384,
            token_bytes: 8,
            outbox_bytes: 16 << 20,
            peer_retention: Duration::from_secs(255),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use core::net::SocketAddr;

    #[test]
    fn message_ids_of_twenty_starts_are_far_from_each_other() {
        let peer = PeerId::Address(SocketAddr::from(([192, 0, 2, 1], 5683)));
        let first = |restarts| MessageIdStart { key: 7, restarts }.of(peer);
        for one in 0..20 {
            for other in 0..20 {
                let apart = first(one).wrapping_sub(first(other));
                assert!(one == other || apart >= 1900, "{one} and {other}: {apart}");
            }
        }
    }
}
