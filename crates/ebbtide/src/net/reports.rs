//! Reports of the system and of the network about datagrams that did not get through.
//!
//! RFC 7252 section 4.2 lets an endpoint give a message up at such a report. Most of them pass: a
//! link that is down for a few seconds, a lease that is renewed, a neighbour that does not answer
//! yet. A report therefore costs one transmission, and the timer goes on to MAX_TRANSMIT_SPAN as it
//! does for a datagram that the network has lost; a transmission that this system itself could not
//! make is not even counted
//! ([`Endpoint::handle_unsent`](ebbtide_core::endpoint::Endpoint::handle_unsent)). Only requests of
//! this side end earlier, never notifications or separate responses:
//!
//! - A request whose datagram is too long for the path.
//! - A request to a peer that has answered nothing so far, if there is no route for its first
//!   transmission, if the system does not take its address, or if its port is reported as closed: a wrong address, or a
//!   program that is not running, is then noticed at once.
//!
//! Over DTLS only errors of this system's own calls count. Reports from the network are ignored, because an attacker
//! can forge them.

use super::pending::{Answer, Owner};
use super::shared::Shared;
use super::socket_state::SocketState;
use super::trace;
use ebbtide_core::endpoint::Sent;
use ebbtide_core::time::{Instant, Micros};
use quinn_udp::{TransportError, TransportErrorPayload};
use std::io;
use std::sync::atomic::Ordering;

/// The headers of IPv4 and UDP without options: a datagram that is shorter than a reported MTU without them was
/// not too long.
const HEADERS: usize = 28;

/// Reports that are read before other tasks have their turns.
const REPORTS: usize = 32;

impl Shared {
    /// Reads errors that the network reported for undeliverable datagrams (ICMP), at most some, since they can be
    /// forged. Returns true if there may be more.
    pub(crate) fn take_errors(&self) -> bool {
        for _ in 0..REPORTS {
            let Some(error) = self.device.take_error() else { return false };
            if !self.speaks_dtls.load(Ordering::Relaxed) {
                self.with(|state, now| state.reported(now, &error));
            }
        }
        true
    }
}

impl SocketState {
    /// A datagram could not be sent.
    pub(crate) fn unsendable(&mut self, now: Instant, what: Sent, error: io::Error) {
        let (exchange, is_first, is_confirmable) = match what {
            Sent::Reply => return,
            Sent::Exchange { exchange, timeout, ordinal } => {
                (exchange, ordinal == 0, timeout != Micros::ZERO)
            }
            Sent::Probe { exchange, .. } => (exchange, false, true),
        };
        let Some(&open) = self.pending.get(exchange) else { return };
        trace::unsent(exchange, &error);
        let ends = match open.owner {
            Owner::Notification(observer) => {
                if !is_confirmable {
                    self.observers.unsent(observer);
                    // The driver has made the notifications of its turn already.
                    self.wake.extend(self.driver.take());
                }
                false
            }
            Owner::Response => false,
            Owner::Call(_) => {
                let in_vain = is_first && is_no_route(&error);
                is_too_long(&error)
                    || !is_confirmable
                    || (in_vain || is_unfit(&error)) && !self.endpoint.has_answered(open.remote)
            }
        };
        if ends {
            self.end(exchange, Answer::Network(error));
            self.endpoint.handle_send_error(now, exchange);
        } else {
            self.pending.report(exchange, error.raw_os_error());
            self.endpoint.handle_unsent(now, exchange);
        }
        self.drain(None);
    }

    /// The network reports that a datagram did not arrive.
    fn reported(&mut self, now: Instant, error: &TransportError) {
        let Some(reporter) = error.addr.map(|reporter| reporter.ip()) else { return };
        let refused = is_refused(error);
        // RFC 7252 section 4.2: others, such as Time Exceeded, are ignored. Only calls end early, so a server spares
        // itself a look at all that is under way.
        if matches!(error.payload, TransportErrorPayload::Other) || self.pending.calls() == 0 {
            return;
        }
        for exchange in self.pending.reported_by(reporter) {
            let Some(&open) = self.pending.get(exchange) else { continue };
            let length = self.endpoint.unanswered_len(exchange);
            let ends = match error.payload {
                _ if !matches!(open.owner, Owner::Call(_)) => false,
                TransportErrorPayload::TooBig { mtu } => {
                    length.is_some_and(|length| length + HEADERS > mtu as usize)
                }
                _ => refused && length.is_some() && !self.endpoint.has_answered(open.remote),
            };
            if ends {
                let error = io::Error::from_raw_os_error(error.raw_errno);
                self.end(exchange, Answer::Network(error));
                self.endpoint.handle_send_error(now, exchange);
            } else {
                self.pending.report(exchange, Some(error.raw_errno));
            }
        }
        self.drain(None);
    }
}

/// Whether a report says that no program has the port (ICMP Port Unreachable).
fn is_refused(report: &TransportError) -> bool {
    let kind = io::Error::from_raw_os_error(report.raw_errno).kind();
    let is_unreachable = matches!(report.payload, TransportErrorPayload::Unreachable);
    is_unreachable && kind == io::ErrorKind::ConnectionRefused
}

/// Whether the datagram could not be sent later either (EMSGSIZE of Linux, of BSD and macOS).
fn is_too_long(error: &io::Error) -> bool {
    matches!(error.raw_os_error(), Some(90 | 40))
}

/// Whether the system does not take the addresses of the datagram. Linux says so as well while the
/// socket's own address is gone.
fn is_unfit(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::InvalidInput | io::ErrorKind::Unsupported)
}

/// Whether there is no way to the peer at present.
fn is_no_route(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::NetworkUnreachable
            | io::ErrorKind::HostUnreachable
            | io::ErrorKind::NetworkDown
            | io::ErrorKind::AddrNotAvailable
            | io::ErrorKind::PermissionDenied
    )
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::super::shared::SocketConfig;
    use super::super::socket::SocketOptions;
    use super::*;
    use ebbtide_core::endpoint::EndpointConfig;

    #[tokio::test]
    async fn reports_that_come_thick_and_fast_leave_turns_to_others() {
        let config = SocketConfig {
            endpoint: EndpointConfig::default(),
            busy_poll: std::time::Duration::ZERO,
            options: SocketOptions::default(),
            oscore: None,
            network: None,
        };
        let shared = Shared::new(([127, 0, 0, 1], 0).into(), config, None).unwrap();
        let socket = shared.device.socket().unwrap().as_udp();
        let mut sent = 0;
        while sent < 2 * REPORTS {
            // A report of an earlier datagram is an error of the next call.
            sent += usize::from(socket.send_to(&[0], ("127.0.0.1", 1)).is_ok());
        }
        assert!(shared.take_errors());
        assert!(shared.device.take_error().is_some(), "the others wait for the next turn");
    }
}
