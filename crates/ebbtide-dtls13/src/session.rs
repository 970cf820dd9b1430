//! One session of DTLS 1.3: an engine of `dimpl`, and what the driver knows about the peer.

use crate::failure::failure;
use dimpl::{Dtls, Output};
use ebbtide_core::time::Instant;
use ebbtide_dtls::{AlertDescription, CertificateError, CertificateVerifier, Failure, RoundTrip};
use std::net::SocketAddr;
use std::sync::Arc;

/// The verifier of the peer's certificate, with the name for which it must be valid.
pub(crate) type Expected = (Arc<dyn CertificateVerifier>, Option<Arc<str>>);

pub(crate) struct Dtls13Session {
    pub(crate) engine: Box<Dtls>,
    pub(crate) remote: SocketAddr,
    pub(crate) established: bool,
    pub(crate) identity: Arc<[u8]>,
    pub(crate) certificate: Option<Arc<[u8]>>,
    /// `None` at a server that requests no certificates.
    pub(crate) expected: Option<Expected>,
    /// The cookie of a client's handshake at a server.
    pub(crate) cookie: Option<[u8; 32]>,
    /// When to call the engine.
    pub(crate) due: Option<Instant>,
    /// The position in the order of use.
    pub(crate) used: u64,
    /// Why a server does not accept the client's certificate. The handshake goes on until there are keys
    /// for the only alert that `dimpl` sends, close_notify.
    refused: Option<CertificateError>,
    /// Whether data of the peer has arrived.
    heard: bool,
    flight: FlightInProgress,
}

/// The results of a step.
pub(crate) enum Happened<'a> {
    /// Send this datagram.
    Datagram(&'a [u8]),
    /// The application's data arrived.
    Data(&'a [u8]),
    /// A flight was answered.
    Answered(RoundTrip),
    Established,
    /// It is over.
    Ended(Failure),
}

/// A flight that waits for its answer. `dimpl` does not report round trips, but repeats a flight only when
/// its timer has expired.
#[derive(Default)]
struct FlightInProgress {
    first: Instant,
    last: Instant,
    transmissions: u8,
}

impl Dtls13Session {
    pub(crate) fn new(engine: Dtls, remote: SocketAddr, expected: Option<Expected>) -> Self {
        Self {
            engine: Box::new(engine),
            remote,
            established: false,
            identity: Arc::from([].as_slice()),
            certificate: None,
            expected,
            cookie: None,
            due: None,
            used: 0,
            refused: None,
            heard: false,
            flight: FlightInProgress::default(),
        }
    }

    /// Lets the engine process what `step` gives it, and reports what follows. `answers` says whether a
    /// datagram of the peer is processed.
    pub(crate) fn step(
        &mut self,
        clock: (Instant, std::time::Instant),
        answers: bool,
        buffer: &mut Vec<u8>,
        step: impl FnOnce(&mut Dtls) -> Result<(), dimpl::Error>,
        report: &mut dyn FnMut(&Self, Happened<'_>),
    ) -> Option<std::time::Instant> {
        let (now, std_now) = clock;
        let handled = self.engine.handle_timeout(std_now).and_then(|()| step(&mut self.engine));
        if let Err(error) = handled {
            tracing::debug!(remote = %self.remote, ?error, "DTLS 1.3");
            let reason = self.refused.map_or_else(|| failure(&error), Failure::Certificate);
            report(self, Happened::Ended(reason));
            return None;
        }
        let mut answered = answers;
        loop {
            match self.engine.poll_output(buffer) {
                Output::Packet(datagram) => {
                    if !self.established {
                        if core::mem::take(&mut answered)
                            && let Some(round_trip) = self.flight.answered(now)
                        {
                            report(self, Happened::Answered(round_trip));
                        }
                        self.flight.sent(now);
                    }
                    report(self, Happened::Datagram(datagram));
                }
                // More than a record can have.
                Output::BufferTooSmall { needed } => buffer.resize(needed, 0),
                Output::PeerCert(der) => {
                    if let Some((verifier, name)) = &self.expected {
                        match verifier.verify(&[der], name.as_deref()) {
                            Ok(verified) => {
                                self.identity = verified.identity.into();
                                self.certificate = Some(der.into());
                            }
                            // The handshake of a server has a cookie.
                            Err(error) if self.cookie.is_some() => self.refused = Some(error),
                            Err(error) => {
                                report(self, Happened::Ended(Failure::Certificate(error)));
                                return None;
                            }
                        }
                    }
                }
                // Whatever `dimpl` does, nobody is taken for someone whose certificate was not verified.
                Output::Connected
                    if self.expected.is_some()
                        && self.certificate.is_none()
                        && self.refused.is_none() =>
                {
                    let missing = Failure::Certificate(CertificateError::Missing);
                    report(self, Happened::Ended(missing));
                    return None;
                }
                Output::Connected if self.refused.is_some() => {
                    // An error would end the session as well.
                    let _ = self.engine.close();
                }
                Output::Connected => {
                    if let Some(round_trip) = self.flight.answered(now) {
                        report(self, Happened::Answered(round_trip));
                    }
                    self.established = true;
                    report(self, Happened::Established);
                }
                Output::ApplicationData(data) if self.refused.is_none() => {
                    self.heard = true;
                    report(self, Happened::Data(data));
                }
                Output::CloseNotify => {
                    let mut reason = Failure::ClosedByPeer;
                    if !self.heard {
                        // It has not accepted our certificate.
                        self.established = false;
                        reason = Failure::Refused(AlertDescription::CLOSE_NOTIFY);
                    }
                    report(self, Happened::Ended(reason));
                    return None;
                }
                Output::Timeout(at) => {
                    if let Some(error) =
                        self.refused.filter(|_| self.engine.is_closing() || self.engine.is_closed())
                    {
                        report(self, Happened::Ended(Failure::Certificate(error)));
                        return None;
                    }
                    return Some(at);
                }
                _ => {}
            }
        }
    }
}

impl FlightInProgress {
    fn sent(&mut self, now: Instant) {
        if self.transmissions == 0 {
            self.first = now;
        }
        // The datagrams of one flight leave at the same instant.
        if self.transmissions == 0 || self.last != now {
            self.transmissions = self.transmissions.saturating_add(1);
        }
        self.last = now;
    }

    fn answered(&mut self, now: Instant) -> Option<RoundTrip> {
        let Self { first, last, transmissions } = core::mem::take(self);
        (transmissions > 0).then(|| RoundTrip {
            since_first: now - first,
            since_last: now - last,
            transmissions,
        })
    }
}
