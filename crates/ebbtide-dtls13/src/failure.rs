//! The meaning of `dimpl`'s errors.

use dimpl::{CertificateError as Refused, CryptoError, Error, SecurityError};
use ebbtide_dtls::{AlertDescription, CertificateError, Failure};

/// The reason for the end of a session, of which `dimpl` says this.
pub(crate) fn failure(error: &Error) -> Failure {
    match error {
        Error::Timeout(_) => Failure::NoAnswer,
        Error::ConnectionClosed => Failure::ClosedByPeer,
        Error::SecurityError(error) => of_security(error),
        Error::CertificateError(
            Refused::NoClientCertificateReceived
            | Refused::NoClientCertificateForVerification
            | Refused::NoServerCertificateReceived,
        ) => Failure::Certificate(CertificateError::Missing),
        Error::CertificateError(Refused::UnsupportedEcCurve) => {
            Failure::Certificate(CertificateError::UnsupportedKey)
        }
        Error::CertificateError(_) => Failure::Certificate(CertificateError::Malformed),
        Error::CryptoError(error) => of_cryptography(error),
        _ => Failure::IllegalParameter,
    }
}

const fn of_security(error: &SecurityError) -> Failure {
    match error {
        SecurityError::FatalAlert { description } => {
            Failure::Refused(AlertDescription::new(*description))
        }
        SecurityError::NoCommonCipherSuite
        | SecurityError::NoCommonKeyExchangeGroup
        | SecurityError::NoMutuallyAcceptableCipherSuite => Failure::NoCommonSuite,
        SecurityError::ServerDidNotNegotiateDtls13
        | SecurityError::ClientHelloMissingDtls13SupportedVersions
        | SecurityError::UnsupportedServerVersion(_)
        | SecurityError::UnsupportedHelloVerifyRequestVersion(_)
        | SecurityError::HrrDidNotSelectDtls13 => Failure::NoCommonVersion,
        SecurityError::ServerFinishedVerificationFailed
        | SecurityError::ClientFinishedVerificationFailed => Failure::WrongKey,
        SecurityError::UnsupportedSignatureScheme(_)
        | SecurityError::SignatureSchemeNotOffered(_)
        | SecurityError::SignatureAlgorithmMismatch { .. } => {
            Failure::Certificate(CertificateError::UnsupportedKey)
        }
        _ => Failure::IllegalParameter,
    }
}

const fn of_cryptography(error: &CryptoError) -> Failure {
    match error {
        CryptoError::SignatureVerificationFailed { .. } => Failure::WrongKey,
        CryptoError::SendSequenceNumberExhausted { .. }
        | CryptoError::Epoch0SequenceNumberExhausted => Failure::SequenceNumbersUsedUp,
        CryptoError::UnsupportedEcCurve
        | CryptoError::UnsupportedPublicKeyAlgorithm
        | CryptoError::UnsupportedSignatureVerification { .. } => {
            Failure::Certificate(CertificateError::UnsupportedKey)
        }
        CryptoError::CertificateParseFailed => Failure::Certificate(CertificateError::Malformed),
        _ => Failure::IllegalParameter,
    }
}
