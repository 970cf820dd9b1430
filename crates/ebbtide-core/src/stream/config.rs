//! Connection configuration.

use crate::time::Duration;
use crate::wire::{MAX_EXTENDED_TOKEN_LEN, MAX_TOKEN_LEN};

/// Settings of a [`Connection`](super::Connection): limits on memory and on waiting times.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct Config {
    /// Bytes of the longest message in either direction. Our CSM announces this limit (RFC 8323
    /// section 5.3.1), and no longer message is sent even if the peer would accept it. A value
    /// above 1152 bytes announces BERT (section 6). Default 66688: 64 KiB of payload, and 1152
    /// bytes for the rest.
    pub max_message_size: u32,
    /// Our requests that may be unanswered at the same time, including observations. Default 1024.
    pub max_requests: u16,
    /// Bytes of the tokens of our requests, at most 4. Default 4: the slot of a request and the
    /// number of uses of the slot, so that a late response does not match another request. Shorter
    /// tokens omit the number of uses and limit the number of open requests: 256 with one byte;
    /// one with an empty token, which is enough if requests are made one after another (RFC 7252
    /// section 5.3.1).
    pub token_length: u8,
    /// Bytes of the longest token that the peer's messages may have, 8 to 65804. Above 8, our CSM announces
    /// it (RFC 8974 section 2.2.1). Default 8.
    pub max_token_length: u32,
    /// The peer's requests that may be unanswered at the same time. At this limit nothing more is
    /// read until one is answered. Default 1024.
    pub max_unanswered: u32,
    /// Bytes that may wait to be sent. From half of this limit on nothing more is read, so that a
    /// peer that does not accept its responses cannot request more. Default 256 KiB.
    pub max_output: usize,
    /// How long the peer may take for its first CSM. Default 30 s.
    pub csm_timeout: Duration,
    /// How long a message that has begun to arrive may take to arrive completely. Default 60 s.
    pub message_timeout: Duration,
    /// How long the transport may accept none of the waiting bytes. Default 60 s.
    pub write_timeout: Duration,
    /// How long a request of ours waits for its response. Default 247 s (EXCHANGE_LIFETIME), as
    /// over UDP.
    pub response_timeout: Duration,
    /// How long the peer may take to close the connection after our Release. Default 10 s.
    pub release_timeout: Duration,
    /// Idle time after which a Ping is sent (RFC 8323 section 5.4). Default `None`: no Ping is
    /// sent, and a vanished peer is noticed only when the transport reports it.
    pub keep_alive: Option<Duration>,
    /// How long a Ping may go unanswered. Default 20 s.
    pub pong_timeout: Duration,
    /// Whether messages may have the options of OSCORE (RFC 8613) and EDHOC (RFC 9668), which are
    /// critical. Default false.
    pub oscore: bool,
    /// Whether the application is a proxy, to which critical options that are safe to forward are
    /// left (RFC 7252 section 5.7.1). Default no.
    pub forwards: bool,
    /// Time without a request, a response or a notification after which the connection is
    /// released, unless [`Connection::keep`](super::Connection::keep) holds it. Default `None`:
    /// never.
    pub idle_timeout: Option<Duration>,
}

impl Config {
    /// The length of the longest token that is accepted.
    pub(super) fn token_limit(&self) -> u32 {
        self.max_token_length.clamp(MAX_TOKEN_LEN as u32, MAX_EXTENDED_TOKEN_LEN as u32)
    }
}

impl Default for Config {
    fn default() -> Self {
        Self {
            max_message_size: (64 << 10) + 1152,
            max_requests: 1024,
            token_length: 4,
            max_token_length: MAX_TOKEN_LEN as u32,
            max_unanswered: 1024,
            max_output: 256 << 10,
            csm_timeout: Duration::from_secs(30),
            message_timeout: Duration::from_secs(60),
            write_timeout: Duration::from_secs(60),
            response_timeout: Duration::from_secs(247),
            release_timeout: Duration::from_secs(10),
            keep_alive: None,
            pong_timeout: Duration::from_secs(20),
            oscore: false,
            forwards: false,
            idle_timeout: None,
        }
    }
}
