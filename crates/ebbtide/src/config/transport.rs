//! Settings of the message layer, sockets and connections.

use super::AllSettings;
use super::setters::setters;
use ebbtide_core::q_block::QBlockParameters;
use ebbtide_core::time::Micros;
use std::time::Duration;

/// Settings of the message layer (RFC 7252), of UDP sockets, and of connections over TCP, TLS and
/// WebSockets. The defaults are right for most networks.
#[derive(Clone, Debug)]
#[must_use]
pub struct TransportConfig(pub(super) AllSettings);

setters! {
    TransportConfig {
        /// Sets how long a request that was acknowledged, sent Non-confirmable or sent over a connection waits
        /// for its response. Default 247 s.
        response_timeout(span: Duration) =>
            endpoint.params.response_timeout = Micros::from_duration(span),
            stream.connection.response_timeout = span;

        /// Sets the spread of first timeouts: 1 to `factor` times ACK_TIMEOUT (ACK_RANDOM_FACTOR, RFC
        /// 7252 section 4.8). At least 1; default 1.5.
        ack_random_factor(factor: f64) =>
            endpoint.params.ack_random_permille = (factor.clamp(1.0, 1000.0) * 1000.0).round().max(1000.0) as u32;

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
        default_leisure(span: Duration) =>
            endpoint.params.default_leisure = Micros::from_duration(span);

        /// Sets the length of the tokens of requests: 0 to 8 bytes over UDP, where a control that marks tokens
        /// adds one, and at most 4 over connections. Default 4 (RFC 7252 section 5.3.1: at least 32 bits).
        token_length(bytes: u8) =>
            endpoint.token_length = bytes.min(8),
            stream.connection.token_length = bytes.min(4);

        /// Sets the pace of bodies in the blocks of RFC 9177: of requests with
        /// [`q_block`](crate::Request::q_block), and of a server's responses to clients that use it.
        q_block(parameters: QBlockParameters) => q_block = parameters;

        /// Sets whether the blocks of RFC 9177 are supported. If not, a client that uses them receives 4.02 and
        /// uses those of RFC 7959. Default true.
        q_block_supported(yes: bool) => endpoint.q_block = yes;

        /// Sets the hop limit, or time to live, of datagrams to one host. By default the system chooses it.
        hop_limit(hops: u8) => socket.hop_limit = Some(hops);

        /// Sets the hop limit of requests to groups. The system's choice is mostly 1: they stay on the link.
        multicast_hop_limit(hops: u8) => socket.multicast_hop_limit = Some(hops);

        /// Sets the index of the interface that requests to groups leave by
        /// ([`interface_index`](crate::server::interface_index)). By default the system chooses it.
        multicast_interface(index: u32) => socket.multicast_interface = Some(index);

        /// Sets the code point of Differentiated Services (RFC 2474), 0 to 63; another one is an error when a
        /// socket is opened.
        dscp(code_point: u8) => socket.dscp = Some(code_point);

        /// Sets the interface by which all datagrams leave and arrive (SO_BINDTODEVICE; Linux).
        interface(name: impl Into<String>) => socket.interface = Some(name.into());

        /// Sets how long establishing a connection may take: for a client the TCP, TLS and WebSocket handshakes
        /// together, for a server each of the latter two. Default 15 s.
        handshake_timeout(span: Duration) => stream.handshake_timeout = span;

        /// Sets how long the peer may take for its first CSM. Default 30 s.
        csm_timeout(span: Duration) => stream.connection.csm_timeout = span;

        /// Sets how long a client waits for the server's CSM: this time, or four times the time that connecting
        /// took if that is longer, but never longer than [`csm_timeout`](Self::csm_timeout). A server sends its CSM
        /// first (RFC 8323 section 5.3), so one that takes much longer does not send any. Default 5 s.
        csm_wait(span: Duration) => stream.csm_wait = span;

        /// Sets whether segments leave at once. Otherwise a short segment waits until the one before it is
        /// acknowledged (Nagle's algorithm, RFC 9293 section 3.7.4). Default true.
        nodelay(yes: bool) => stream.nodelay = yes;

        /// Sets the length of the longest message of a connection in either direction, which the CSM announces
        /// (RFC 8323 section 5.3.1). A value above 1152 bytes announces BERT (section 6). Default 66688 bytes.
        max_message_size(bytes: u32) => stream.connection.max_message_size = bytes;

        /// Sets the idle time after which a Ping is sent over a connection (RFC 8323 section 5.4); `None`: never.
        /// Default 240 s.
        keep_alive(span: impl Into<Option<Duration>>) => stream.connection.keep_alive = span.into();

        /// Sets how long a Ping may go unanswered. Default 20 s.
        pong_timeout(span: Duration) => stream.connection.pong_timeout = span;

        /// Sets how long a message that has begun to arrive over a connection may take to arrive completely. Default
        /// 60 s.
        message_timeout(span: Duration) => stream.connection.message_timeout = span;

        /// Sets how long a connection may accept none of the waiting bytes. Default 60 s.
        write_timeout(span: Duration) => stream.connection.write_timeout = span;

        /// Sets how long the peer may take to close a connection after our Release. Default 10 s.
        release_timeout(span: Duration) => stream.connection.release_timeout = span;
    }
}

#[cfg(target_os = "linux")]
#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::ClientConfig;
    use crate::net::shared::Shared;
    use crate::server::interface_index;
    use socket2::SockRef;
    use std::sync::Arc;

    fn opened(address: &str, config: &ClientConfig) -> Arc<Shared> {
        Shared::new(address.parse().unwrap(), config.0.socket(), None).unwrap()
    }

    #[tokio::test]
    async fn socket_options_are_set_in_the_operating_system() {
        let index = interface_index("lo").unwrap();
        let config = ClientConfig::new().transport(|transport| {
            transport
                .interface("lo")
                .multicast_interface(index)
                .hop_limit(7)
                .multicast_hop_limit(3)
                .dscp(46)
        });
        let shared = opened("127.0.0.1:0", &config);
        let socket = SockRef::from(shared.device.socket().unwrap().as_udp());
        assert_eq!(socket.ttl_v4().unwrap(), 7);
        assert_eq!(socket.multicast_ttl_v4().unwrap(), 3);
        assert_eq!(socket.tos_v4().unwrap(), 46 << 2, "the two bits of ECN are not set");
        assert_eq!(socket.device().unwrap(), Some(b"lo".to_vec()));
        if std::fs::read_to_string("/proc/net/if_inet6").unwrap_or_default().is_empty() {
            println!("skipped: no IPv6");
            return;
        }
        let shared = opened("[::1]:0", &config);
        let socket = SockRef::from(shared.device.socket().unwrap().as_udp());
        assert_eq!(socket.unicast_hops_v6().unwrap(), 7);
        assert_eq!(socket.multicast_hops_v6().unwrap(), 3);
        assert_eq!(socket.tclass_v6().unwrap(), 46 << 2);
        assert_eq!(socket.multicast_if_v6().unwrap(), index);
    }

    #[tokio::test]
    async fn an_option_that_is_not_set_is_the_systems_choice() {
        let plain = opened("127.0.0.1:0", &ClientConfig::new());
        let bare = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
        let (socket, bare) =
            (SockRef::from(plain.device.socket().unwrap().as_udp()), SockRef::from(&bare));
        assert_eq!(socket.ttl_v4().unwrap(), bare.ttl_v4().unwrap());
        assert_eq!(socket.tos_v4().unwrap(), bare.tos_v4().unwrap());
        assert_eq!(socket.device().unwrap(), None);
    }

    #[tokio::test]
    async fn an_impossible_socket_option_is_an_error_that_names_it() {
        type Setting = fn(TransportConfig) -> TransportConfig;
        let settings: [(Setting, &str); 2] = [
            (|transport| transport.dscp(64), "DSCP 64: it is 0 to 63"),
            (|transport| transport.interface("none0"), "No such device"),
        ];
        for (setting, named) in settings {
            let client = crate::Client::with_config(ClientConfig::new().transport(setting));
            let error = client.get("coap://127.0.0.1/").await.unwrap_err().to_string();
            assert!(error.contains(named), "{error}");
        }
    }
}
