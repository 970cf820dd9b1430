//! URI schemes and their transports.

use core::fmt;

/// A URI scheme, which selects the transport.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Scheme {
    /// `coap`: UDP (RFC 7252 section 6.1).
    #[default]
    Coap,
    /// `coaps`: DTLS over UDP (RFC 7252 section 6.2).
    Coaps,
    /// `coap+tcp`: TCP (RFC 8323 section 8.1).
    CoapTcp,
    /// `coaps+tcp`: TLS over TCP (section 8.2).
    CoapsTcp,
    /// `coap+ws`: WebSockets (section 8.3).
    CoapWs,
    /// `coaps+ws`: WebSockets over TLS (section 8.4).
    CoapsWs,
}

impl Scheme {
    /// All schemes.
    pub const ALL: [Self; 6] =
        [Self::Coap, Self::Coaps, Self::CoapTcp, Self::CoapsTcp, Self::CoapWs, Self::CoapsWs];

    /// The scheme's name, without `://`.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Coap => "coap",
            Self::Coaps => "coaps",
            Self::CoapTcp => "coap+tcp",
            Self::CoapsTcp => "coaps+tcp",
            Self::CoapWs => "coap+ws",
            Self::CoapsWs => "coaps+ws",
        }
    }

    /// The scheme with this name, in upper or lower case (RFC 3986 section 3.1).
    #[must_use]
    pub fn parse(name: &str) -> Option<Self> {
        if name.eq_ignore_ascii_case("coap+udp") {
            return Some(Self::Coap);
        }
        Self::ALL.into_iter().find(|scheme| scheme.name().eq_ignore_ascii_case(name))
    }

    /// The feature of this crate that it needs and that is not enabled.
    #[must_use]
    pub const fn missing_feature(self) -> Option<&'static str> {
        match self {
            Self::Coap if !cfg!(feature = "udp") => Some("udp"),
            Self::CoapTcp if !cfg!(feature = "tcp") => Some("tcp"),
            Self::Coaps if !cfg!(feature = "dtls") => Some("dtls"),
            Self::CoapsTcp | Self::CoapsWs if !cfg!(feature = "tls") => Some("tls"),
            Self::CoapWs | Self::CoapsWs if !cfg!(feature = "ws") => Some("ws"),
            _ => None,
        }
    }

    /// The default port.
    #[must_use]
    pub const fn default_port(self) -> u16 {
        match self {
            Self::Coap | Self::CoapTcp => 5683,
            Self::Coaps | Self::CoapsTcp => 5684,
            Self::CoapWs => 80,
            Self::CoapsWs => 443,
        }
    }

    /// Whether the transport is TLS or DTLS.
    #[must_use]
    pub const fn is_secure(self) -> bool {
        matches!(self, Self::Coaps | Self::CoapsTcp | Self::CoapsWs)
    }

    /// Whether messages are WebSocket frames.
    #[must_use]
    pub const fn is_websocket(self) -> bool {
        matches!(self, Self::CoapWs | Self::CoapsWs)
    }
}

impl fmt::Display for Scheme {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}
