//! Settings of the message layer: RFC 7252's parameters, congestion control, tokens, and bodies in blocks.

use super::{Config, setters};
use ebbtide_core::cc::ControlConfig;
use ebbtide_core::endpoint::{EndpointConfig, Scope};
use ebbtide_core::q_block::QBlockParameters;
use ebbtide_core::time::Micros;
use ebbtide_core::wire::OptionNumber;
use std::time::Duration;

setters! {
    /// Sets the congestion control of every peer for which `set_control` sets no other. Default
    /// `ebb`.
    control(control: ControlConfig) => endpoint.control = control;

    /// Sets the peers that share one congestion control: a transport address, which is the default, an IP
    /// address, or a prefix.
    scope(scope: Scope) => endpoint.scope = scope;

    /// Sets how long a client's request may take, from the look-up of the name to the last block of the
    /// response, unless the request sets a limit itself ([`Request::timeout`](crate::Request::timeout)). By default there
    /// is no limit for Confirmable requests, which end with their last retransmission, and MAX_TRANSMIT_SPAN (RFC
    /// 7252 section 4.8.2) for Non-confirmable ones. It does not limit observations, bursts or streamed bodies.
    request_timeout(span: Duration) => request_timeout = Some(span);

    /// Sets how many Confirmable exchanges may be open to one scope (NSTART, RFC 7252 section
    /// 4.7). At least 1, which is the default and appropriate for shared networks.
    nstart(exchanges: u16) => endpoint.params.nstart = exchanges.max(1);

    /// Sets the first timeout of a Confirmable message to an unknown peer (ACK_TIMEOUT, RFC 7252
    /// section 4.8). Default 2 s.
    ack_timeout(span: Duration) => endpoint.params.ack_timeout = Micros::from_duration(span);

    /// Sets the spread of first timeouts: 1 to `factor` times ACK_TIMEOUT (ACK_RANDOM_FACTOR, RFC
    /// 7252 section 4.8). At least 1; default 1.5.
    ack_random_factor(factor: f64) => endpoint.params.ack_random_permille =
        (factor.clamp(1.0, 1000.0) * 1000.0).round().max(1000.0) as u32;

    /// Sets the maximum number of retransmissions of a Confirmable message (MAX_RETRANSMIT, RFC
    /// 7252 section 4.8). Default 4.
    max_retransmit(repetitions: u8) => endpoint.params.max_retransmit = repetitions;

    /// Sets the average rate, in bytes a second, towards a peer that does not respond (PROBING_RATE, RFC
    /// 7252 section 4.7). At least 1, which is the default.
    /// The control `default` and its variants obey it; others may send one Non-confirmable message in each
    /// retransmission timeout.
    probing_rate(bytes: u32) => endpoint.params.probing_rate = bytes.max(1);

    /// Sets the maximum time for which a datagram may be in the network (MAX_LATENCY, RFC 7252
    /// section 4.8.2), from which EXCHANGE_LIFETIME follows. Default 100 s.
    max_latency(span: Duration) => endpoint.params.max_latency = Micros::from_duration(span);

    /// Sets the span over which a server spreads its answers to a group (DEFAULT_LEISURE, RFC 7252 section
    /// 8.2). Default 5 s.
    default_leisure(span: Duration) => endpoint.params.default_leisure = Micros::from_duration(span);

    /// Sets whether a message is given up no sooner than MAX_TRANSMIT_SPAN after its first transmission,
    /// whatever the congestion control decides. Default true; only a study that compares controls as they
    /// were published switches it off.
    patience(yes: bool) => endpoint.params.patience = yes;

    /// Sets whether to trust that every peer answers each copy of a request with that copy's own
    /// token and options, as Ebbtide does. Otherwise the marks of a peer are trusted only once it
    /// has shown this. Default false.
    trust_marks(yes: bool) => endpoint.trust_marks = yes;

    /// Sets the number of the option Rexmit-Cnt, for which no number is assigned. Default 65020, from the
    /// experimental range.
    rexmit_count_option(number: OptionNumber) => endpoint.rexmit_count_option = number;

    /// Sets whether message IDs are kept unique for EXCHANGE_LIFETIME (RFC 7252 section 4.4). Default true;
    /// only a load generator, which measures a server and not a network, may switch this off.
    unique_message_ids(yes: bool) => endpoint.unique_message_ids = yes;

    /// Sets whether messages, round trips and timeouts are counted under each congestion control, which
    /// takes 440 bytes for each. Default true.
    count_per_control(yes: bool) => endpoint.count_per_control = yes;

    /// Sets the maximum length of a body that is assembled from blocks, in either direction.
    /// Default 16 MiB.
    max_body(bytes: usize) => max_body = bytes;

    /// Sets the length of the blocks that are sent over UDP: 16, 32, 64, 128, 256, 512 or 1024 bytes (RFC
    /// 7959 section 2.2); other values are rounded down to one of these. Default 1024.
    block_size(bytes: usize) => block_size = bytes;

    /// Sets the pace of bodies in the blocks of RFC 9177: of requests with
    /// [`q_block`](crate::Request::q_block), and of a server's responses to clients that use it.
    q_block(parameters: QBlockParameters) => q_block = parameters;

    /// Sets whether the blocks of RFC 9177 are supported. If not, a client that uses them receives 4.02 and
    /// uses those of RFC 7959. Default true.
    q_block_supported(yes: bool) => endpoint.q_block = yes;

    /// Replaces all settings of the core's [endpoint](ebbtide_core::endpoint), as a testbed has them.
    endpoint(endpoint: EndpointConfig) => endpoint = endpoint;
}

impl Config {
    /// Sets how long a request that was acknowledged, sent Non-confirmable or sent over a connection waits
    /// for its response. Default 247 s.
    pub fn response_timeout(mut self, span: Duration) -> Self {
        self.endpoint.params.response_timeout = Micros::from_duration(span);
        self.stream.connection.response_timeout = span;
        self
    }

    /// Sets the length of the tokens of requests: 0 to 8 bytes over UDP, where a control that marks tokens
    /// adds one, and at most 4 over connections. Default 4 (RFC 7252 section 5.3.1: at least 32 bits).
    pub fn token_length(mut self, bytes: u8) -> Self {
        self.endpoint.token_length = bytes.min(8);
        self.stream.connection.token_length = bytes.min(4);
        self
    }
}
