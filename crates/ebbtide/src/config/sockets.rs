//! Settings of UDP sockets, and of DTLS.

use super::{Config, setters};
#[cfg(feature = "dtls13")]
use crate::net::dtls::config::Dtls13Config;
#[cfg(feature = "dtls")]
use crate::net::dtls::config::{Certificates, DtlsBind, DtlsConfig, KeyLogger};
use crate::net::network::DatagramNetwork;
#[cfg(feature = "oscore")]
use crate::oscore::OscoreContexts;
#[cfg(feature = "dtls")]
use ebbtide_dtls::Credentials;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

setters! {
    /// Sets the address and port to which a client's UDP socket is bound, for peers of its family; port 0 is
    /// any port. By default the system chooses both. A client has one socket for `coap` and one for `coaps`, so with a
    /// port of its own it can use one of them: the other is [`ErrorKind::Bind`](crate::ErrorKind::Bind). A server's
    /// addresses are arguments of `Server::bind`.
    local_address(address: SocketAddr) => local_address = Some(address);

    /// Sets after which silence of a server an observation over UDP or DTLS checks the path, and at least after
    /// four retransmission timeouts of it. Over UDP the client registers again under the same token, since a
    /// server knows it by an address that a translator may have changed; over DTLS it sends a ping, which with a
    /// connection ID moves the session to a new address. A mapping of an address translator for UDP lasts at least 2
    /// minutes (RFC 4787 section 4.3), in practice often 30 s; RFC 8085 section 3.5 wants at least 15 s. By
    /// default there is no check, so that devices sleep as long as nothing changes.
    observe_keep_alive(span: impl Into<Option<Duration>>) => observe_keep_alive = span.into();

    /// Sets the index of the interface that requests to groups leave by
    /// ([`interface_index`](crate::server::interface_index)). By default the system chooses it.
    multicast_interface(index: u32) => socket.multicast_interface = Some(index);

    /// Sets the hop limit, or time to live, of datagrams to one host. By default the system chooses it.
    hop_limit(hops: u8) => socket.hop_limit = Some(hops);

    /// Sets the hop limit of requests to groups. The system's choice is mostly 1: they stay on the link.
    multicast_hop_limit(hops: u8) => socket.multicast_hop_limit = Some(hops);

    /// Sets the code point of Differentiated Services (RFC 2474), 0 to 63; another one is an error when a
    /// socket is opened.
    dscp(code_point: u8) => socket.dscp = Some(code_point);

    /// Sets how long a socket keeps polling for datagrams after the last ones before it sleeps. Polling saves
    /// the time of a wake-up, which on a virtual machine is most of a short round trip, and keeps a core busy.
    /// Default zero.
    busy_poll(span: Duration) => busy_poll = span;
}

impl Config {
    /// Sets the network that carries all datagrams, with and without DTLS; by default it is the system's. Options of
    /// sockets do not concern it, and names are still resolved by the system.
    pub fn network(mut self, network: impl DatagramNetwork + 'static) -> Self {
        self.network = Some(Arc::new(network));
        self
    }

    /// Sets the interface by which all datagrams leave and arrive (SO_BINDTODEVICE; Linux).
    pub fn interface(mut self, name: impl Into<String>) -> Self {
        self.socket.interface = Some(name.into());
        self
    }
}

#[cfg(feature = "dtls")]
setters! {
    /// Sets a client's identity and key for `coaps`; the same for all servers.
    credentials(credentials: impl Into<Option<Credentials>>) => dtls.credentials = credentials.into();

    /// Sets which servers a client of `coaps` accepts by their certificates, and its own certificate; not used if
    /// there are [`credentials`](Config::credentials).
    certificates(certificates: impl Into<Option<Certificates>>) => dtls.certificates = certificates.into();

    /// Sets what receives the secrets of each DTLS session.
    key_log(logger: impl Into<Option<KeyLogger>>) => dtls.key_log = logger.into();

    /// Replaces all settings of DTLS.
    dtls(dtls: DtlsConfig) => dtls = dtls;
}

#[cfg(feature = "dtls13")]
setters! {
    /// Sets whether DTLS 1.3 is used, and its limits: `Dtls13Config::default()` or `None`. A server with
    /// certificates then serves DTLS 1.2 and 1.3; a client speaks DTLS 1.3 alone with servers that it knows by
    /// certificates. Default `None`.
    dtls13(settings: impl Into<Option<Dtls13Config>>) => dtls.dtls13 = settings.into();
}

#[cfg(feature = "dtls")]
impl Config {
    /// Adds an address at which a server serves over DTLS (`coaps`), to clients whose key it knows, or with
    /// a certificate.
    pub fn bind_dtls(mut self, at: DtlsBind) -> Self {
        self.dtls_binds.push(at);
        self
    }
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;
    use crate::net::shared::Shared;
    use crate::server::interface_index;
    use socket2::SockRef;

    #[expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]
    fn opened(address: &str, config: &Config) -> Arc<Shared> {
        Shared::new(address.parse().unwrap(), config.socket(), None).unwrap()
    }

    #[tokio::test]
    async fn socket_options_are_set_in_the_operating_system() {
        let index = interface_index("lo").unwrap();
        let config = Config::new()
            .interface("lo")
            .multicast_interface(index)
            .hop_limit(7)
            .multicast_hop_limit(3)
            .dscp(46);
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
        let plain = opened("127.0.0.1:0", &Config::new());
        let bare = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
        let (socket, bare) =
            (SockRef::from(plain.device.socket().unwrap().as_udp()), SockRef::from(&bare));
        assert_eq!(socket.ttl_v4().unwrap(), bare.ttl_v4().unwrap());
        assert_eq!(socket.tos_v4().unwrap(), bare.tos_v4().unwrap());
        assert_eq!(socket.device().unwrap(), None);
    }

    #[tokio::test]
    async fn an_impossible_socket_option_is_an_error_that_names_it() {
        for (config, named) in [
            (Config::new().dscp(64), "DSCP 64: it is 0 to 63"),
            (Config::new().interface("none0"), "No such device"),
        ] {
            let client = crate::Client::with_config(config);
            let error = client.get("coap://127.0.0.1/").await.unwrap_err().to_string();
            assert!(error.contains(named), "{error}");
        }
    }
}

#[cfg(feature = "oscore")]
impl Config {
    /// Sets the security contexts of OSCORE (RFC 8613). A client protects all requests over UDP and DTLS by the context of their
    /// server, and fails those for which there is none, or over other transports. A server verifies requests that are protected, and
    /// protects their answers.
    pub fn oscore(mut self, contexts: OscoreContexts) -> Self {
        self.oscore = Some(contexts);
        self.endpoint.oscore = true;
        self
    }
}

#[cfg(feature = "oscore")]
setters! {
    /// Sets whether a server refuses requests that are not protected by OSCORE: 4.01. By default it accepts them as those of
    /// clients without an identity. Requests over connections are not protected yet, so all of them are refused then.
    oscore_required(required: bool) => oscore_required = required;
}
