//! Alerts (RFC 5246 section 7.2).

use core::fmt;

/// The description of an alert.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct AlertDescription(u8);

impl AlertDescription {
    /// The sender will not send more.
    pub const CLOSE_NOTIFY: Self = Self(0);
    /// A message arrived out of order.
    pub const UNEXPECTED_MESSAGE: Self = Self(10);
    /// A record that cannot be verified, such as one of a session that is not known.
    pub const BAD_RECORD_MAC: Self = Self(20);
    /// The two sides have no acceptable parameters in common, for example no common cipher suite.
    pub const HANDSHAKE_FAILURE: Self = Self(40);
    /// The certificate is malformed, or its signature is wrong.
    pub const BAD_CERTIFICATE: Self = Self(42);
    /// The certificate is of a type that is not supported.
    pub const UNSUPPORTED_CERTIFICATE: Self = Self(43);
    /// The certificate was revoked.
    pub const CERTIFICATE_REVOKED: Self = Self(44);
    /// The certificate has expired or is not valid yet.
    pub const CERTIFICATE_EXPIRED: Self = Self(45);
    /// The certificate is not accepted for another reason.
    pub const CERTIFICATE_UNKNOWN: Self = Self(46);
    /// The certificate was issued by an authority that is not trusted.
    pub const UNKNOWN_CA: Self = Self(48);
    /// A field contradicts another one.
    pub const ILLEGAL_PARAMETER: Self = Self(47);
    /// The sender does not serve this peer.
    pub const ACCESS_DENIED: Self = Self(49);
    /// A Finished message that does not verify: the keys differ.
    pub const DECRYPT_ERROR: Self = Self(51);
    /// The other side speaks no version in common.
    pub const PROTOCOL_VERSION: Self = Self(70);
    /// An internal error of the sender.
    pub const INTERNAL_ERROR: Self = Self(80);
    /// The sender does not renegotiate.
    pub const NO_RENEGOTIATION: Self = Self(100);
    /// An extension that was not requested.
    pub const UNSUPPORTED_EXTENSION: Self = Self(110);
    /// The PSK identity is not known (RFC 4279 section 2).
    pub const UNKNOWN_PSK_IDENTITY: Self = Self(115);
    /// The client has no certificate, and one is required (RFC 8446 section 6.2).
    pub const CERTIFICATE_REQUIRED: Self = Self(116);

    /// The description with this number.
    #[must_use]
    pub const fn new(number: u8) -> Self {
        Self(number)
    }

    /// Its number.
    #[must_use]
    pub const fn number(self) -> u8 {
        self.0
    }

    /// Its name in the registry, if this implementation knows it.
    #[must_use]
    pub const fn name(self) -> Option<&'static str> {
        Some(match self.0 {
            0 => "close_notify",
            10 => "unexpected_message",
            20 => "bad_record_mac",
            22 => "record_overflow",
            40 => "handshake_failure",
            42 => "bad_certificate",
            43 => "unsupported_certificate",
            44 => "certificate_revoked",
            45 => "certificate_expired",
            46 => "certificate_unknown",
            47 => "illegal_parameter",
            48 => "unknown_ca",
            49 => "access_denied",
            50 => "decode_error",
            51 => "decrypt_error",
            70 => "protocol_version",
            71 => "insufficient_security",
            80 => "internal_error",
            90 => "user_canceled",
            100 => "no_renegotiation",
            110 => "unsupported_extension",
            115 => "unknown_psk_identity",
            116 => "certificate_required",
            _ => return None,
        })
    }
}

impl fmt::Display for AlertDescription {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.name() {
            Some(name) => f.write_str(name),
            None => write!(f, "alert {}", self.0),
        }
    }
}

impl fmt::Debug for AlertDescription {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// How serious an alert is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum AlertLevel {
    Warning,
    Fatal,
}

/// Parses the two bytes of an alert.
pub(crate) fn parse(body: &[u8]) -> Option<(AlertLevel, AlertDescription)> {
    match *body {
        [1, number] => Some((AlertLevel::Warning, AlertDescription(number))),
        [2, number] => Some((AlertLevel::Fatal, AlertDescription(number))),
        _ => None,
    }
}

/// The two bytes of an alert.
pub(crate) const fn encode(level: AlertLevel, description: AlertDescription) -> [u8; 2] {
    let level = match level {
        AlertLevel::Warning => 1,
        AlertLevel::Fatal => 2,
    };
    [level, description.0]
}
