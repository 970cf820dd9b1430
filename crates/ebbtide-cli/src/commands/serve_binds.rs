//! Where `ebbtide serve` listens: `--bind ADDR` or `--bind SCHEME://ADDR`.

use crate::failure::Failure;
use ebbtide::stream::{Identity, Listen};
use ebbtide::{DEFAULT_PORT, Scheme};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

/// Sockets for datagrams, and listeners for connections.
#[derive(Debug, Default)]
pub(crate) struct Binds {
    pub(crate) sockets: Vec<SocketAddr>,
    pub(crate) listeners: Vec<Listen>,
}

impl Binds {
    /// What the arguments name; without any UDP at all of this machine's addresses.
    ///
    /// # Errors
    ///
    /// If one is no address, or TLS is wanted without a certificate.
    pub(crate) async fn read(
        texts: &[String],
        identity: Option<Identity>,
    ) -> Result<Self, Failure> {
        if texts.is_empty() {
            let any: [IpAddr; 2] = [Ipv4Addr::UNSPECIFIED.into(), Ipv6Addr::UNSPECIFIED.into()];
            let sockets = any.map(|ip| SocketAddr::new(ip, DEFAULT_PORT)).to_vec();
            return Ok(Self { sockets, listeners: Vec::new() });
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
                binds.add(text, scheme, address, identity.as_ref())?;
            }
        }
        Ok(binds)
    }

    fn add(
        &mut self,
        text: &str,
        scheme: Scheme,
        address: SocketAddr,
        identity: Option<&Identity>,
    ) -> Result<(), Failure> {
        let secure = || {
            identity.cloned().ok_or_else(|| {
                Failure::usage(format_args!("--bind {text}: TLS needs --cert FILE and --key FILE"))
            })
        };
        match scheme {
            Scheme::Coap => self.sockets.push(address),
            Scheme::CoapTcp => self.listeners.push(Listen::Tcp(address)),
            Scheme::CoapsTcp => self.listeners.push(Listen::Tls(address, secure()?)),
            Scheme::CoapWs => self.listeners.push(Listen::Ws(address)),
            Scheme::CoapsWs => self.listeners.push(Listen::Wss(address, secure()?)),
        }
        Ok(())
    }
}

/// The scheme, and host and port.
fn split(text: &str) -> Result<(Scheme, String), Failure> {
    let Some((name, rest)) = text.split_once("://") else {
        return Ok((Scheme::Coap, text.to_owned()));
    };
    let scheme = Scheme::parse(name).ok_or_else(|| {
        let known = Scheme::ALL.map(Scheme::name).join(", ");
        Failure::usage(format_args!("--bind {text}: no scheme '{name}': {known}"))
    })?;
    let address = rest.trim_end_matches('/');
    // A colon behind an IPv6 address's bracket, or the only one there is.
    let has_port = address.rsplit(']').next().is_some_and(|behind| behind.contains(':'));
    let port = if has_port { String::new() } else { format!(":{}", scheme.default_port()) };
    Ok((scheme, format!("{address}{port}")))
}
