//! When Non-confirmable messages may leave: PROBING_RATE (RFC 7252 section 4.7), 1/RTO with every
//! eighth as CON (SOCNE14, cocoa-03).

use crate::common::at;
use crate::common::path::Path;
use ebbtide_core::cc::{Admission, Algorithm, Load};
use ebbtide_core::time::{Duration, Instant};

/// One message of 20 bytes left at `last`, and nothing was heard since.
fn unanswered(last: Instant) -> Load {
    let mut load = answered(last);
    load.unanswered_bytes = 20;
    load
}

/// One message left at `last`, and the peer was heard from since.
fn answered(last: Instant) -> Load {
    let mut load = Load::default();
    (load.last_non, load.nons_since_con) = (Some(last), 1);
    load.unanswered_since = last;
    load
}

fn learns_nothing(algorithm: Algorithm) -> bool {
    use Algorithm::{CocoRed, EcoapRpl, EncocoRed, Gcoap, GoCoap, Nyoci, Wakaama};
    algorithm.name().starts_with("default")
        || matches!(algorithm, EcoapRpl | GoCoap | Wakaama | Gcoap | Nyoci | CocoRed | EncocoRed)
}

#[test]
fn the_first_message_leaves_at_once_under_every_control() {
    for algorithm in Algorithm::ALL {
        let mut path = Path::new(algorithm.name());
        assert_eq!(path.admit(false, Load::default()), Admission::Send, "{algorithm}");
    }
}

#[test]
fn default_sends_a_byte_a_second_to_a_peer_that_does_not_answer() {
    for algorithm in Algorithm::ALL.iter().filter(|&&a| learns_nothing(a)) {
        let mut path = Path::new(algorithm.name());
        let now = path.now;
        let answer = path.admit(false, unanswered(now));
        assert_eq!(answer, Admission::NotBefore(now + Duration::from_secs(20)), "{algorithm}");
        path.idle(20.0);
        assert_eq!(path.admit(false, unanswered(now)), Admission::Send, "{algorithm}");
        // A peer that answers is not probed.
        let now = path.now;
        assert_eq!(path.admit(false, answered(now)), Admission::Send, "{algorithm}");
    }
}

#[test]
fn adaptive_controls_send_one_message_per_rto_answered_or_not() {
    for algorithm in Algorithm::ALL.iter().filter(|&&a| !learns_nothing(a)) {
        let mut path = Path::new(algorithm.name());
        let now = path.now;
        // Before any sample: 2 s, and 1 s in RFC 6298 section 2.1.
        let initial = if *algorithm == Algorithm::Rfc6298 { 1 } else { 2 };
        let after_rto = Admission::NotBefore(now + Duration::from_secs(initial));
        assert_eq!(path.admit(false, unanswered(now)), after_rto, "{algorithm}");
        assert_eq!(path.admit(false, answered(now)), after_rto, "{algorithm}");
        path.idle(2.0);
        assert_eq!(path.admit(false, unanswered(now)), Admission::Send, "{algorithm}");
    }
}

#[test]
fn a_byte_a_second_is_always_allowed() {
    let mut path = Path::new("cocoa:ageing=off");
    path.sample(26.0, 0);
    // RTO 40 s, but the 20 bytes are due after 20 s.
    let now = path.now;
    let after_20 = Admission::NotBefore(now + Duration::from_secs(20));
    assert_eq!(path.admit(false, unanswered(now)), after_20);
}

#[test]
fn the_interval_follows_the_rto() {
    let mut path = Path::new("cocoa");
    path.sample(0.5, 0);
    let now = path.now;
    let answer = path.admit(false, unanswered(now));
    assert_eq!(answer, Admission::NotBefore(now + Duration::from_millis(1750)));
    for name in ["fasor", "fasor-token", "fasor-option"] {
        let mut path = Path::new(name);
        path.sample(0.5, 0);
        let now = path.now;
        // The fast RTO, not dithered.
        let answer = path.admit(false, unanswered(now));
        assert_eq!(answer, Admission::NotBefore(now + Duration::from_millis(750)), "{name}");
    }
}

#[test]
fn the_interval_follows_the_aged_rto() {
    let mut path = Path::new("cocoa");
    path.sample(2.0, 0);
    path.idle(16.0);
    let now = path.now;
    let answer = path.admit(false, unanswered(now));
    assert_eq!(answer, Admission::NotBefore(now + Duration::from_secs(3)));
}

#[test]
fn every_eighth_message_is_made_confirmable_if_an_exchange_may_open() {
    for algorithm in Algorithm::ALL {
        let mut path = Path::new(&format!("{algorithm}:nstart=1"));
        let long_ago = at(0.0);
        for nons_since_con in 0..=255 {
            let mut load = answered(long_ago);
            load.nons_since_con = nons_since_con;
            let due = nons_since_con >= 7 && !learns_nothing(*algorithm);
            let expected = if due { Admission::SendAsConfirmable } else { Admission::Send };
            assert_eq!(path.admit(false, load), expected, "{algorithm} after {nons_since_con}");
        }
        path.open_and_leave();
        for nons_since_con in [7, 8, 254, 255] {
            let mut load = answered(long_ago);
            load.nons_since_con = nons_since_con;
            assert_eq!(path.admit(false, load), Admission::Send, "{algorithm}");
        }
    }
}
