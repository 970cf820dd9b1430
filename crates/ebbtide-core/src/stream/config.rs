//! Connection configuration.

use crate::time::Duration;

/// Settings of a [`Connection`](super::Connection): bounds on memory, and on patience.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct Config {
    /// Bytes of the longest message, in either direction: what our CSM says (RFC 8323 section
    /// 5.3.1), and no longer one is sent, even to a peer that would take it. Above 1152 bytes it
    /// offers BERT (section 6). Default 66688: 64 KiB of payload, and 1152 bytes for the rest.
    pub max_message_size: u32,
    /// Requests of ours that are unanswered at once, observations included. Default 1024.
    pub max_requests: u16,
    /// Bytes of the token of our requests, at most 4. Default 4: the place of a request and how often
    /// that was used, so that a late response finds no other request. Fewer leave out the latter,
    /// and bound how many can be open: 256 with one byte, one with none, which is enough where
    /// requests are made one after another (RFC 7252 section 5.3.1).
    pub token_length: u8,
    /// Requests of the peer that are unanswered at once; then no more is read until one is
    /// answered. Default 1024.
    pub max_unanswered: u32,
    /// Bytes that wait to be sent. From half of it on no more is read, so that a peer that does
    /// not take its answers cannot ask for more. Default 256 KiB.
    pub max_output: usize,
    /// How long the peer may take for its first CSM. Default 30 s.
    pub csm_timeout: Duration,
    /// How long a message that has begun to arrive may take for the rest. Default 60 s.
    pub message_timeout: Duration,
    /// How long the transport may take none of the bytes that wait. Default 60 s.
    pub write_timeout: Duration,
    /// How long a request of ours waits for its response. Default 247 s, EXCHANGE_LIFETIME, as over
    /// UDP.
    pub response_timeout: Duration,
    /// How long the peer may take to close the connection after our Release. Default 10 s.
    pub release_timeout: Duration,
    /// Idle time after which a Ping is sent (RFC 8323 section 5.4). Default `None`: no Ping is sent,
    /// and a peer that vanished is noticed when the transport notices.
    pub keep_alive: Option<Duration>,
    /// How long a Ping may go unanswered. Default 20 s.
    pub pong_timeout: Duration,
    /// After which time without a request, a response or a notification the connection is
    /// released, unless [`Connection::keep`](super::Connection::keep) holds it. Default: never.
    pub idle_timeout: Option<Duration>,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            max_message_size: (64 << 10) + 1152,
            max_requests: 1024,
            token_length: 4,
            max_unanswered: 1024,
            max_output: 256 << 10,
            csm_timeout: Duration::from_secs(30),
            message_timeout: Duration::from_secs(60),
            write_timeout: Duration::from_secs(60),
            response_timeout: Duration::from_secs(247),
            release_timeout: Duration::from_secs(10),
            keep_alive: None,
            pong_timeout: Duration::from_secs(20),
            idle_timeout: None,
        }
    }
}
