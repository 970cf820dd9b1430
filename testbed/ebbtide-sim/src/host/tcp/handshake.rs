//! The timeouts of SYN and SYN-ACK.
//!
//! smoltcp's start with 1 s and never end, neither can be set, and the backed-off value stays
//! in force for the data that follows, against RFC 6298 section 5.7. So a SYN or SYN-ACK is
//! repeated from here, and smoltcp never hears of it.

use super::wheel::TimerWheel;
use crate::scenario::Tcp;
use ebbtide_core::time::{Duration, Instant};

/// When a SYN or SYN-ACK is sent and sent again.
#[derive(Clone, Debug)]
pub(super) struct Handshake {
    /// The SYN or SYN-ACK, once it was sent.
    packet: Vec<u8>,
    /// Transmissions so far.
    sent: u16,
    most: u16,
    /// The timeout after the next transmission.
    rto: Duration,
    longest: Duration,
    due: Option<Instant>,
    wheel: TimerWheel,
}

/// The action that a handshake is due for.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(super) enum SynDue {
    /// To wait for the other end.
    Nothing,
    /// The first transmission.
    Original,
    /// Another one.
    Again,
    /// To be given up: all retransmissions were in vain.
    GiveUp,
}

impl Handshake {
    pub(super) fn new(settings: &Tcp, wheel: TimerWheel) -> Self {
        Self {
            packet: Vec::new(),
            sent: 0,
            most: 1 + u16::from(settings.syn_retries),
            rto: Duration::from_nanos(settings.initial_rto.0),
            longest: Duration::from_nanos(settings.syn_rto_max.0.max(settings.initial_rto.0)),
            due: None,
            wheel,
        }
    }

    /// The action that is due at `now`.
    pub(super) fn serve(&mut self, now: Instant) -> SynDue {
        if self.due.is_some_and(|due| now < due) {
            return SynDue::Nothing;
        }
        if self.sent == self.most {
            return SynDue::GiveUp;
        }
        self.sent += 1;
        self.due = Some(self.wheel.expiry(now, now + self.rto));
        // RFC 6298 section 5.5.
        self.rto = (self.rto * 2).min(self.longest);
        if self.sent == 1 { SynDue::Original } else { SynDue::Again }
    }

    /// When it is due next.
    pub(super) const fn due(&self) -> Option<Instant> {
        self.due
    }

    /// Keeps what is to be repeated.
    pub(super) fn keep_packet(&mut self, packet: &[u8]) {
        self.packet = packet.to_vec();
    }

    /// The packet to repeat.
    pub(super) fn packet(&self) -> &[u8] {
        &self.packet
    }

    /// Whether a packet was repeated. Then it is unknown which copy the other end answers, and its
    /// answer gives no round trip (RFC 6298 section 3).
    pub(super) const fn is_ambiguous(&self) -> bool {
        self.sent > 1
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_syn_is_repeated_after_doubled_timeouts_up_to_the_longest_and_then_given_up() {
        let mut tcp = Tcp::default();
        for (key, value) in [("initial-rto", "20s"), ("syn-rto-max", "60s"), ("syn-retries", "3")] {
            tcp.set(key, value).unwrap();
        }
        let mut handshake = Handshake::new(&tcp, TimerWheel::new(0));
        let at = |seconds| Instant::ZERO + Duration::from_secs(seconds);
        assert_eq!(handshake.serve(at(0)), SynDue::Original);
        assert!(!handshake.is_ambiguous());
        for seconds in [20, 60, 120] {
            assert_eq!(handshake.serve(at(seconds - 1)), SynDue::Nothing);
            assert_eq!(handshake.serve(at(seconds)), SynDue::Again);
        }
        assert!(handshake.is_ambiguous());
        assert_eq!(handshake.due(), Some(at(180)));
        assert_eq!(handshake.serve(at(180)), SynDue::GiveUp);
    }
}
