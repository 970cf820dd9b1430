//! The reasons why handshakes and sessions end.

use crate::alert::AlertDescription;
use crate::certificate::CertificateError;
use core::fmt;

/// The reason why a handshake failed or a session ended early.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Failure {
    /// The peer did not answer any transmission of the flight.
    NoAnswer,
    /// The peer ended it with this alert. Before there are keys an alert is not authenticated: a
    /// sender who knows both addresses can forge it.
    Refused(AlertDescription),
    /// The peer offers no acceptable cipher suite.
    NoCommonSuite,
    /// The peer does not speak the version of DTLS that was offered.
    NoCommonVersion,
    /// The peer's key does not match its identity or its certificate.
    WrongKey,
    /// The look-up has no key for the peer's identity. The peer receives the same alert as with
    /// [`Failure::WrongKey`], at the same moment.
    UnknownIdentity,
    /// This server does not serve the peer any more.
    NotServed,
    /// The peer's certificate is not accepted.
    Certificate(CertificateError),
    /// The peer violated the protocol.
    IllegalParameter,
    /// A new handshake of the same peer replaced it.
    Replaced,
    /// A limit of handshakes or sessions was reached, and this one was the least recently used.
    Evicted,
    /// The sequence numbers are used up; a new handshake is needed.
    SequenceNumbersUsedUp,
    /// The peer closed the session with a close_notify.
    ClosedByPeer,
}

impl Failure {
    /// The alert that the peer receives, if any.
    pub(crate) const fn alert(self) -> Option<AlertDescription> {
        Some(match self {
            Self::NoCommonSuite => AlertDescription::HANDSHAKE_FAILURE,
            Self::NoCommonVersion => AlertDescription::PROTOCOL_VERSION,
            // RFC 4279 section 2 allows a server to answer an unknown identity with decrypt_error,
            // so that an attacker does not learn which identities exist.
            Self::WrongKey | Self::UnknownIdentity => AlertDescription::DECRYPT_ERROR,
            Self::NotServed => AlertDescription::ACCESS_DENIED,
            Self::Certificate(error) => error.alert(),
            Self::IllegalParameter => AlertDescription::ILLEGAL_PARAMETER,
            Self::SequenceNumbersUsedUp => AlertDescription::CLOSE_NOTIFY,
            Self::NoAnswer
            | Self::Refused(_)
            | Self::Replaced
            | Self::Evicted
            | Self::ClosedByPeer => return None,
        })
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoAnswer => f.write_str("no answer to the DTLS handshake"),
            Self::Refused(alert) if *alert == AlertDescription::DECRYPT_ERROR => {
                f.write_str("the peer refused the DTLS handshake (decrypt_error): the identity is unknown to it or the key is wrong")
            }
            Self::Refused(alert) if *alert == AlertDescription::HANDSHAKE_FAILURE => {
                f.write_str("the peer refused the DTLS handshake (handshake_failure): it accepts none of the cipher suites that were offered, or requires a certificate; set the pre-shared key or the certificate that it expects")
            }
            Self::Refused(alert) => write!(f, "the peer refused the DTLS session: {alert}"),
            Self::NoCommonSuite => f.write_str("no common cipher suite: only PSK and ECDHE_ECDSA on P-256, with AES-128 in CCM_8, CCM and GCM, are supported, as far as keys and certificates are configured"),
            Self::NoCommonVersion => f.write_str("no common version: the peer does not speak the version of DTLS that was offered"),
            Self::WrongKey => f.write_str("the peer's key does not match its identity or its certificate"),
            Self::UnknownIdentity => f.write_str("the peer's identity is unknown"),
            Self::NotServed => f.write_str("the peer is not served any more"),
            Self::Certificate(error) => error.fmt(f),
            Self::IllegalParameter => f.write_str("the peer violated the DTLS protocol"),
            Self::Replaced => f.write_str("the peer began a new handshake"),
            Self::Evicted => f.write_str("the limit of DTLS sessions was reached"),
            Self::SequenceNumbersUsedUp => f.write_str("the DTLS sequence numbers are used up"),
            Self::ClosedByPeer => f.write_str("the peer closed the DTLS session"),
        }
    }
}

impl core::error::Error for Failure {}
