//! The addresses of `ebbtide serve`: `--bind ADDR` or `--bind SCHEME://ADDR`.

use crate::failure::Failure;
use ebbtide::stream::{Listen, TlsServer};
use ebbtide::{DEFAULT_PORT, Scheme};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

/// Sockets for datagrams, and listeners for connections.
#[derive(Debug, Default)]
pub(crate) struct Binds {
    pub(crate) sockets: Vec<SocketAddr>,
    /// Sockets for datagrams over DTLS.
    pub(crate) dtls: Vec<SocketAddr>,
    pub(crate) listeners: Vec<Listen>,
}

impl Binds {
    /// The addresses in the arguments; without any, UDP on all addresses of this machine.
    ///
    /// # Errors
    ///
    /// Returns an error if an address is not valid, if TLS is requested without a certificate, or
    /// if there are pre-shared keys but no address for DTLS.
    pub(crate) async fn read(
        texts: &[String],
        tls: Option<&TlsServer>,
        psk: bool,
    ) -> Result<Self, Failure> {
        if texts.is_empty() {
            let any: [IpAddr; 2] = [Ipv4Addr::UNSPECIFIED.into(), Ipv6Addr::UNSPECIFIED.into()];
            let sockets = any.map(|ip| SocketAddr::new(ip, DEFAULT_PORT)).to_vec();
            // A certificate that DTLS cannot show is no reason to refuse TLS.
            let certificate = tls.is_some_and(TlsServer::is_for_dtls);
            let dtls = match psk || certificate {
                true => any.map(|ip| SocketAddr::new(ip, Scheme::Coaps.default_port())).to_vec(),
                false => Vec::new(),
            };
            return Ok(Self { sockets, dtls, listeners: Vec::new() });
        }
        let mut binds = Self::default();
        for text in texts {
            let (scheme, address) = split(text)?;
            let found = tokio::net::lookup_host(address.as_str()).await.map_err(|error| {
                Failure::usage(format_args!(
                    "--bind {text}: {error}; it takes HOST:PORT, such as 127.0.0.1:5683 or \
                     [::]:5683, and before it coap+tcp:// or another scheme"
                ))
            })?;
            for address in found {
                if scheme == Scheme::Coaps {
                    if !psk && tls.is_none() {
                        let why = format_args!(
                            "--bind {text}: DTLS needs --psk-file FILE, --raw-key FILE, or --cert FILE and --key FILE"
                        );
                        return Err(Failure::usage(why));
                    }
                    binds.dtls.push(address);
                    continue;
                }
                binds.add(text, scheme, address, tls)?;
            }
        }
        if psk && binds.dtls.is_empty() {
            return Err(Failure::usage(
                "--psk-file or --raw-key: no --bind is an address for DTLS; add one, such as --bind \
                 coaps://127.0.0.1:5684, or omit --bind to serve ports 5683 and 5684 at all addresses",
            ));
        }
        Ok(binds)
    }

    fn add(
        &mut self,
        text: &str,
        scheme: Scheme,
        address: SocketAddr,
        tls: Option<&TlsServer>,
    ) -> Result<(), Failure> {
        let secure = || {
            tls.cloned().ok_or_else(|| {
                Failure::usage(format_args!("--bind {text}: TLS needs --cert FILE and --key FILE"))
            })
        };
        match scheme {
            Scheme::Coap => self.sockets.push(address),
            Scheme::Coaps => self.dtls.push(address),
            Scheme::CoapTcp => self.listeners.push(Listen::Tcp(address)),
            Scheme::CoapsTcp => self.listeners.push(Listen::Tls(address, secure()?)),
            Scheme::CoapWs => self.listeners.push(Listen::Ws(address)),
            Scheme::CoapsWs => self.listeners.push(Listen::Wss(address, secure()?)),
        }
        Ok(())
    }
}

/// Splits a bind argument into the scheme and host:port.
fn split(text: &str) -> Result<(Scheme, String), Failure> {
    let Some((name, rest)) = text.split_once("://") else {
        return Ok((Scheme::Coap, text.to_owned()));
    };
    let scheme = Scheme::parse(name).ok_or_else(|| {
        let known = Scheme::ALL.map(Scheme::name).join(", ");
        Failure::usage(format_args!("--bind {text}: the scheme '{name}' is not supported: {known}"))
    })?;
    let address = rest.trim_end_matches('/');
    // There is a colon after an IPv6 address's bracket, or a single colon.
    let has_port = address.rsplit(']').next().is_some_and(|behind| behind.contains(':'));
    let port = if has_port { String::new() } else { format!(":{}", scheme.default_port()) };
    Ok((scheme, format!("{address}{port}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_scheme_chooses_the_transport_and_its_port() {
        for (text, scheme, address) in [
            ("127.0.0.1:5683", Scheme::Coap, "127.0.0.1:5683"),
            ("coap://[::1]", Scheme::Coap, "[::1]:5683"),
            ("coaps://[::1]", Scheme::Coaps, "[::1]:5684"),
            ("coap+tcp://[::1]:7", Scheme::CoapTcp, "[::1]:7"),
            ("coap+tcp://localhost/", Scheme::CoapTcp, "localhost:5683"),
            ("coaps+tcp://127.0.0.1", Scheme::CoapsTcp, "127.0.0.1:5684"),
            ("coap+ws://127.0.0.1", Scheme::CoapWs, "127.0.0.1:80"),
            ("coaps+ws://127.0.0.1", Scheme::CoapsWs, "127.0.0.1:443"),
        ] {
            assert_eq!(split(text).ok(), Some((scheme, address.to_owned())), "{text}");
        }
    }

    #[tokio::test]
    async fn an_address_that_cannot_be_bound_is_reported_with_the_remedy() {
        for (text, expected) in [
            ("http://127.0.0.1", "the scheme 'http' is not supported: coap, "),
            ("127.0.0.1", "it takes HOST:PORT"),
            ("coaps://127.0.0.1", "DTLS needs --psk-file FILE"),
            ("coaps+tcp://127.0.0.1", "TLS needs --cert FILE and --key FILE"),
            ("coaps+ws://127.0.0.1", "TLS needs --cert FILE and --key FILE"),
        ] {
            let error = Binds::read(&[text.to_owned()], None, false).await.unwrap_err();
            let error = format!("{error:?}");
            assert!(error.contains(expected) && error.contains(text), "{error}");
        }
    }

    #[tokio::test]
    async fn keys_without_an_address_for_dtls_are_refused() {
        let addresses = ["127.0.0.1:5683".to_owned(), "coap+tcp://127.0.0.1".to_owned()];
        let error = Binds::read(&addresses, None, true).await.unwrap_err();
        assert!(format!("{error:?}").contains("add one, such as --bind coaps://"), "{error:?}");
        let addresses = ["127.0.0.1:5683".to_owned(), "coaps://127.0.0.1".to_owned()];
        let binds = Binds::read(&addresses, None, true).await.unwrap();
        assert_eq!((binds.sockets.len(), binds.dtls.len()), (1, 1));
        let binds = Binds::read(&[], None, true).await.unwrap();
        assert_eq!((binds.sockets.len(), binds.dtls.len()), (2, 2), "the default serves both");
    }
}
