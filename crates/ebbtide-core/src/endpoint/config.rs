//! Endpoint configuration.

use super::peers::Scope;
use crate::cc::{Algorithm, Config};
use crate::params::Parameters;
use crate::time::Duration;
use crate::wire::OptionNumber;
#[cfg(not(target_has_atomic = "ptr"))]
use alloc::rc::Rc as Shared;
#[cfg(target_has_atomic = "ptr")]
use alloc::sync::Arc as Shared;

/// Settings that endpoints share: counted atomically where the target can. A program with many
/// endpoints that are alike keeps one copy of their settings.
pub type SharedConfig = Shared<EndpointConfig>;

/// Settings of an [`Endpoint`](super::Endpoint).
#[derive(Clone, Debug)]
#[expect(clippy::struct_excessive_bools, reason = "each is a choice of its own")]
pub struct EndpointConfig {
    /// RFC 7252's transmission parameters.
    pub params: Parameters,
    /// The congestion control of every peer that is not given another one.
    pub control: Config,
    /// What shares one congestion control.
    pub scope: Scope,
    /// Bytes of randomness in the tokens of requests, 0 to 8; a control that marks tokens adds one
    /// byte for the ordinal, up to 8 in all. Default 4 (RFC 7252 section 5.3.1: at least 32 bits).
    pub token_length: u8,
    /// Whether every peer is vouched for to answer each copy of a request with that copy's own
    /// token and options, as this endpoint does. Otherwise a peer is believed once it has done so.
    pub faithful_peers: bool,
    /// The number of the option Rexmit-Cnt, which has none assigned. Default 65020, from the range
    /// for experiments; elective, safe to forward, no cache key.
    pub rexmit_count_option: OptionNumber,
    /// Whether the application implements RFC 9177. Otherwise messages with its options are refused,
    /// since these are critical: a Confirmable request with 4.02, by which a client tells. Default
    /// no.
    pub q_block: bool,
    /// Whether message IDs are kept unique for EXCHANGE_LIFETIME (RFC 7252 section 4.4). Only a
    /// load generator, which measures a server and not a network, may say no.
    pub unique_message_ids: bool,
    /// Whether [`Endpoint::controls`](super::Endpoint::controls) counts messages, round trips and
    /// timeouts under each control, which takes 440 bytes for each. Default yes.
    pub counts_by_control: bool,
    /// Bounds on memory.
    pub limits: Limits,
}

impl Default for EndpointConfig {
    fn default() -> Self {
        Self {
            params: Parameters::DEFAULT,
            control: Config::new(Algorithm::FasorToken),
            scope: Scope::Endpoint,
            token_length: 4,
            faithful_peers: false,
            rexmit_count_option: OptionNumber(65020),
            q_block: false,
            unique_message_ids: true,
            counts_by_control: true,
            limits: Limits::default(),
        }
    }
}

/// Bounds on what an endpoint holds. Reaching one is an error to the caller, or a refusal to the
/// peer, and always counted.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Scopes with congestion state. Default 131072.
    pub peers: usize,
    /// Exchanges, queued ones included. Default 65536.
    pub exchanges: usize,
    /// Messages that wait for permission to leave, per scope. Default 64.
    pub queue_per_peer: u16,
    /// Bytes of one message. Default 1280, IPv6's least MTU, beyond which datagrams are fragmented;
    /// RFC 7252 section 4.6 recommends 1152 where nothing is known about the path.
    pub message_bytes: usize,
    /// Messages remembered against duplicates. Default 65536. No address, and no IPv6 prefix of 64
    /// bits, holds more of them than are free for all others, hence half at most.
    pub remembered_messages: usize,
    /// Bytes of responses stored for duplicates of requests that are not idempotent. Default 8 MiB.
    pub remembered_bytes: usize,
    /// Bytes of datagrams that wait for the driver. Default 16 MiB.
    pub outbox_bytes: usize,
    /// How long a scope's state is kept after its last use. Default 255 s (cocoa-03 section 4.3); at
    /// least EXCHANGE_LIFETIME, whatever is set here, for the sake of message IDs.
    pub peer_retention: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            peers: 131_072,
            exchanges: 65_536,
            queue_per_peer: 64,
            message_bytes: 1_280,
            remembered_messages: 65_536,
            remembered_bytes: 8 << 20,
            outbox_bytes: 16 << 20,
            peer_retention: Duration::from_secs(255),
        }
    }
}
