//! Settings that clients and servers share.

use super::setters::setters;
use super::{ClientConfig, MemoryLimits, Research, ServerConfig, TransportConfig};
#[cfg(feature = "edhoc")]
use crate::edhoc::{Edhoc, EdhocCredentials};
#[cfg(feature = "dtls")]
use crate::net::dtls::config::{DtlsConfig, KeyLogger};
use crate::net::network::DatagramNetwork;
#[cfg(feature = "oscore")]
use crate::oscore::OscoreContexts;
use ebbtide_core::cc::ControlConfig;
use ebbtide_core::endpoint::{Measurement, Scope};
use ebbtide_core::session::Verify;
use ebbtide_core::time::Micros;
#[cfg(feature = "dtls13")]
use ebbtide_dtls13::Dtls13Config;
use std::sync::Arc;
use std::time::Duration;

/// Defines the settings that clients and servers share: a server also asks its clients, and a client may answer servers
/// ([`Client::serving`](crate::Client::serving)).
macro_rules! shared_settings {
    ($config:ident) => {
        setters! {
            #[doc = "Settings that clients and servers share."]
            $config {
                /// Sets the congestion control of every peer for which `set_control` sets no other. Default
                /// `ebb`.
                control(control: ControlConfig) => endpoint.control = control;

                /// Sets the peers that share one congestion control: a transport address, which is the default, an IP
                /// address, or a prefix.
                scope(scope: Scope) => endpoint.scope = scope;

                /// Sets the first timeout of a Confirmable message to an unknown peer (ACK_TIMEOUT, RFC 7252
                /// section 4.8). Default 2 s.
                ack_timeout(span: Duration) =>
                    endpoint.params.ack_timeout = Micros::from_duration(span);

                /// Sets the maximum number of retransmissions of a Confirmable message (MAX_RETRANSMIT, RFC
                /// 7252 section 4.8). Default 4.
                max_retransmit(repetitions: u8) => endpoint.params.max_retransmit = repetitions;

                /// Sets how many Confirmable exchanges may be open to one scope (NSTART, RFC 7252 section
                /// 4.7). At least 1, which is the default and appropriate for shared networks.
                nstart(exchanges: u16) => endpoint.params.nstart = exchanges.max(1);

                /// Sets how long a request may take, from the look-up of the name to the last block of
                /// the response, unless the request sets a limit itself
                /// ([`Request::timeout`](crate::Request::timeout)). By default there is no limit for
                /// Confirmable requests, which end with their last retransmission, and
                /// MAX_TRANSMIT_SPAN (RFC 7252 section 4.8.2) for Non-confirmable ones. It does not
                /// limit observations, bursts or streamed bodies.
                request_timeout(span: Duration) => request_timeout = Some(span);

                /// Sets the option PM (draft-ietf-core-coap-pm), by which both ends and the nodes
                /// between them measure losses over UDP and DTLS: it goes into requests, and into
                /// what is sent to peers that have it in their messages. The other end must use the
                /// same settings. Default none.
                measurement(measurement: impl Into<Option<Measurement>>) =>
                    endpoint.measurement = measurement.into();

                /// Sets the maximum length of a body that is assembled from blocks, in either direction.
                /// Default 16 MiB.
                max_body(bytes: usize) => max_body = bytes;

                /// Sets the length of the blocks that are sent over UDP: 16, 32, 64, 128, 256, 512 or 1024 bytes (RFC
                /// 7959 section 2.2); other values are rounded down to one of these. Default 1024.
                block_size(bytes: usize) => block_size = bytes;

                /// Sets after which silence of a server an observation over UDP or DTLS checks the
                /// path, and at least after four retransmission timeouts of it. Over UDP the client
                /// registers again under the same token, since a server knows it by an address that a
                /// translator may have changed; over DTLS it sends a ping, which with a connection ID
                /// moves the session to a new address. A mapping of an address translator for UDP lasts
                /// at least 2 minutes (RFC 4787 section 4.3), in practice often 30 s; RFC 8085 section
                /// 3.5 wants at least 15 s. By default there is no check, so that devices sleep as long
                /// as nothing changes.
                observe_keep_alive(span: impl Into<Option<Duration>>) =>
                    observe_keep_alive = span.into();

                /// Sets how long a handler may take before its request is acknowledged, and answered later by a
                /// separate response (RFC 7252 section 5.2.2). Default 50 ms, which is shorter than the
                /// timeouts of clients that measure the round trip.
                acknowledge_after(span: Duration) => acknowledge_after = span;

                /// Sets the address validation: which addresses receive at most three times the bytes they sent
                /// until they have echoed a challenge (RFC 9175 section 2.4). Default: all but loopback
                /// addresses.
                verify(verify: Verify) => verify = verify;

                /// Sets the maximum number of requests per second from one address; further ones are answered
                /// 4.29 (RFC 8516). Default: no limit.
                max_rate(requests: u32) => max_rate = Some(requests);

                /// Sets what receives the secrets of each DTLS session.
                #[cfg(feature = "dtls")]
                key_log(logger: impl Into<Option<KeyLogger>>) => dtls.key_log = logger.into();

                /// Replaces all settings of DTLS.
                #[cfg(feature = "dtls")]
                dtls(dtls: DtlsConfig) => dtls = dtls;

                /// Sets whether DTLS 1.3 is used, and its limits: `Dtls13Config::default()` or
                /// `None`. A server with certificates then serves DTLS 1.2 and 1.3; a client speaks
                /// DTLS 1.3 alone with servers that it knows by certificates. Default `None`.
                #[cfg(feature = "dtls13")]
                dtls13(settings: impl Into<Option<Dtls13Config>>) => dtls.dtls13 = settings.into();

                /// Sets the security contexts of OSCORE (RFC 8613). A client protects all requests by
                /// the context of their server, and fails those for which there is none, and those to
                /// groups. A server verifies requests that are protected, and protects their answers.
                #[cfg(feature = "oscore")]
                oscore(contexts: OscoreContexts) =>
                    oscore = Some(contexts),
                    endpoint.oscore = true,
                    stream.connection.oscore = true;

                /// Sets whether a server refuses requests that are not protected by OSCORE: 4.01. By
                /// default it accepts them as those of clients without an identity.
                #[cfg(feature = "oscore")]
                oscore_required(required: bool) => oscore_required = required;
            }
        }

        impl $config {
            /// Sets the time without a request, a response or a notification after which a
            /// connection is released, unless a resource is being observed over it; `None`: never.
            /// Default never for a connection that a client has opened, and one hour at a server.
            pub fn idle_timeout(mut self, span: impl Into<Option<Duration>>) -> Self {
                let span = span.into();
                self.0.stream.connection.idle_timeout = span;
                self.0.stream_limits.idle_timeout = span;
                self
            }

            /// Makes security contexts of OSCORE by EDHOC (RFC 9528). A client that has no context
            /// for a server makes one before its first request to it. A server answers at
            /// `/.well-known/edhoc`.
            #[cfg(feature = "edhoc")]
            pub fn edhoc(mut self, credentials: EdhocCredentials) -> Self {
                self.0.edhoc = Some(Edhoc::new(credentials));
                let contexts = self.0.oscore.take().unwrap_or_else(OscoreContexts::empty);
                self.oscore(contexts)
            }

            /// Sets the network that carries all datagrams and connections, with and without DTLS and
            /// TLS; by default it is the system's. Options of sockets do not concern it, and names
            /// are still resolved by the system.
            pub fn network(mut self, network: impl DatagramNetwork + 'static) -> Self {
                let network: Arc<dyn DatagramNetwork> = Arc::new(network);
                self.0.stream.network = Some(network.clone());
                self.0.network = Some(network);
                self
            }

            /// Changes settings of the message layer, sockets and connections.
            pub fn transport(
                self,
                change: impl FnOnce(TransportConfig) -> TransportConfig,
            ) -> Self {
                Self(change(TransportConfig(self.0)).0)
            }

            /// Changes limits on memory.
            pub fn limits(self, change: impl FnOnce(MemoryLimits) -> MemoryLimits) -> Self {
                Self(change(MemoryLimits(self.0)).0)
            }

            /// Changes settings for studies and load generators.
            pub fn research(self, change: impl FnOnce(Research) -> Research) -> Self {
                Self(change(Research(self.0)).0)
            }
        }
    };
}

shared_settings!(ClientConfig);
shared_settings!(ServerConfig);
