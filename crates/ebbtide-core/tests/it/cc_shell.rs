//! The shell: what no control can do, however wrong it is.

use crate::common::{Constant, at, secs};
use ebbtide_core::cc::{
    Admission, Attempts, CongestionControl, Context, ControlConfig, Controller, Expiry, Kind, Load,
    Metrics, Outcome, OutgoingMessage, ProbeReply, Sample, Shell, Slot, Transmission,
};
use ebbtide_core::params::Parameters;
use ebbtide_core::time::{Instant, Micros};

/// Says whatever it was told to say.
#[derive(Debug)]
struct Wrong {
    timeout: Micros,
    admission: Admission,
}

impl CongestionControl for Wrong {
    fn admit(&mut self, _: &OutgoingMessage, _: &Load, _: &mut Context<'_>) -> Admission {
        self.admission
    }
    fn on_transmit(&mut self, _: &Transmission, slot: &mut Slot, _: &mut Context<'_>) -> Micros {
        slot.armed = Micros::ZERO;
        self.timeout
    }
    fn on_expire(&mut self, _: &Slot, _: &mut Context<'_>) -> Expiry {
        Expiry::Probe
    }
    fn on_probe(&mut self, _: &mut Slot, _: &ProbeReply, _: &mut Context<'_>) -> Option<Micros> {
        Some(self.timeout)
    }
    fn on_feedback(&mut self, _: &Slot, _: &Sample, _: &mut Context<'_>) {}
    fn metrics(&self) -> Metrics {
        Metrics::default()
    }
}

fn shell(timeout: Micros, admission: Admission) -> Shell {
    Shell::new(Controller::Other(Box::new(Wrong { timeout, admission })))
}

/// Calls `f` with a context of the default parameters at 100 s.
fn with<T>(f: impl FnOnce(&mut Context<'_>) -> T) -> T {
    let config = ControlConfig::parse("default").expect("a control");
    let params = Parameters::DEFAULT;
    let mut rng = Constant::lowest();
    let settings = &config.settings;
    f(&mut Context { now: at(100.0), params: &params, settings, rng: &mut *rng })
}

/// So many transmissions and no probes.
fn sent(transmissions: u8) -> Attempts {
    Attempts { transmissions, ..Attempts::default() }
}

fn with_probes(probes: u16) -> Load {
    let mut load = Load::default();
    load.probes = probes;
    load
}

const CON: OutgoingMessage = OutgoingMessage { confirmable: true, bytes: 20 };
const NON: OutgoingMessage = OutgoingMessage { confirmable: false, bytes: 20 };

#[test]
fn timeouts_are_held_between_floor_and_ceiling() {
    with(|cx| {
        let mut slot = Slot::default();
        let mut shell = shell(Micros::ZERO, Admission::Send);
        assert_eq!(
            shell.on_transmit(Transmission::new(Kind::Message, 0), &mut slot, cx),
            Shell::FLOOR
        );
        assert_eq!(slot.armed, Shell::FLOOR);
    });
    with(|cx| {
        let mut slot = Slot::default();
        let mut shell = shell(Micros::MAX, Admission::Send);
        assert_eq!(
            shell.on_transmit(Transmission::new(Kind::Message, 0), &mut slot, cx),
            Shell::CEILING
        );
        assert_eq!(slot.armed, Shell::CEILING);
    });
}

#[test]
fn nstart_holds_whatever_the_control_says() {
    for admission in [Admission::Send, Admission::SendAsConfirmable] {
        with(|cx| {
            let mut shell = shell(secs(1.0), admission);
            assert_ne!(shell.admit(&CON, Load::default(), cx), Admission::Blocked);
            shell.open_exchange();
            assert_eq!(shell.admit(&CON, Load::default(), cx), Admission::Blocked);
            // Nor through a Non-confirmable message that the control wants Confirmable.
            assert_eq!(shell.admit(&NON, Load::default(), cx), Admission::Send);
        });
    }
}

#[test]
fn a_control_cannot_block_what_nothing_would_release() {
    with(|cx| {
        let mut shell = shell(secs(1.0), Admission::Blocked);
        assert_eq!(shell.admit(&CON, Load::default(), cx), Admission::Send);
        assert_eq!(shell.admit(&NON, Load::default(), cx), Admission::Send);
        shell.open_exchange();
        assert_eq!(shell.admit(&NON, Load::default(), cx), Admission::Blocked);
    });
}

#[test]
fn an_instant_that_has_come_is_a_consent() {
    for (instant, answer) in [
        (Instant::ZERO, Admission::Send),
        (at(100.0), Admission::Send),
        (at(100.5), Admission::NotBefore(at(100.5))),
    ] {
        with(|cx| {
            let mut shell = shell(secs(1.0), Admission::NotBefore(instant));
            assert_eq!(shell.admit(&NON, Load::default(), cx), answer);
        });
    }
}

#[test]
fn max_retransmit_holds_and_a_transmission_count_never_overflows() {
    with(|cx| {
        let mut shell = shell(secs(1.0), Admission::Send);
        let slot = Slot::default();
        let again: Vec<bool> =
            (1..=6).map(|n| shell.on_expire(sent(n), &slot, cx).is_some()).collect();
        assert_eq!(again, [true, true, true, true, false, false]);
    });
    let config = ControlConfig::parse("default").expect("a control");
    let params = Parameters { max_retransmit: 255, ..Parameters::DEFAULT };
    let mut rng = Constant::lowest();
    let settings = &config.settings;
    let cx = &mut Context { now: at(0.0), params: &params, settings, rng: &mut *rng };
    let mut shell = shell(secs(1.0), Admission::Send);
    assert!(shell.on_expire(sent(254), &Slot::default(), cx).is_some());
    assert!(shell.on_expire(sent(255), &Slot::default(), cx).is_none());
}

#[test]
fn probes_but_one_share_the_budget_of_retransmissions_until_they_are_answered() {
    with(|cx| {
        let mut shell = shell(secs(1.0), Admission::Send);
        let slot = Slot::default();
        let mut next = |transmissions, probes, answered_probes| {
            shell.on_expire(Attempts { transmissions, probes, answered_probes }, &slot, cx)
        };
        // MAX_RETRANSMIT is 4: six datagrams, one of them a probe at least, then the exchange is
        // given up.
        assert_eq!(next(1, 0, 0), Some(Expiry::Probe));
        assert_eq!(next(1, 3, 0), Some(Expiry::Probe));
        assert_eq!(next(1, 4, 0), Some(Expiry::Repeat));
        assert_eq!(next(2, 4, 0), None);
        assert_eq!(next(4, 1, 0), Some(Expiry::Probe));
        assert_eq!(next(5, 0, 0), None);
        assert_eq!(next(5, 1, 0), None);
        // An answered one is given back, but no fifth one leaves.
        assert_eq!(next(3, 3, 1), Some(Expiry::Probe));
        assert_eq!(next(2, 4, 4), Some(Expiry::Repeat));
        assert_eq!(next(5, 4, 4), None);
    });
}

#[test]
fn a_probe_in_the_place_of_a_message_leaves_a_bounded_number_of_times() {
    let asks = |probes, at| {
        with(|cx| {
            let mut shell = shell(secs(1.0), Admission::Probe(at));
            shell.admit(&CON, with_probes(probes), cx)
        })
    };
    assert_eq!(asks(0, at(101.0)), Admission::Probe(at(101.0)));
    // They may leave in pairs; one instant for more would spin.
    assert_eq!(asks(0, at(99.0)), Admission::Probe(at(100.0)));
    assert_eq!(asks(1, at(100.0)), Admission::Probe(at(100.0) + Shell::PROBE_GAP));
    assert_eq!(asks(Load::MAX_PROBES - 1, at(101.0)), Admission::Probe(at(101.0)));
    assert_eq!(asks(Load::MAX_PROBES, at(101.0)), Admission::Send);
}

#[test]
fn a_verdict_waits_no_longer_than_the_ceiling() {
    with(|cx| {
        let reply = ProbeReply { since: secs(1.0), since_last: secs(1.0), transmissions: 1 };
        let mut shell = shell(Micros::MAX, Admission::Send);
        assert_eq!(shell.on_probe(&mut Slot::default(), &reply, cx), Some(Shell::CEILING));
    });
}

#[test]
fn a_verdict_buys_no_copy_beyond_max_retransmit() {
    with(|cx| {
        let mut shell = shell(secs(1.0), Admission::Send);
        let mut verdict = |transmissions| {
            let reply = ProbeReply { since: secs(1.0), since_last: secs(1.0), transmissions };
            shell.on_probe(&mut Slot::default(), &reply, cx)
        };
        // MAX_RETRANSMIT is 4, and the original does not count.
        assert_eq!(verdict(4), Some(secs(1.0)));
        assert_eq!(verdict(5), None);
    });
}

#[test]
fn a_control_that_takes_over_an_open_exchange_does_not_flood() {
    // The exchange was begun by a control that keeps nothing but the armed timeout. Bursts are what `nyoci` is.
    let nyoci = ebbtide_core::cc::Algorithm::Nyoci;
    for algorithm in ebbtide_core::cc::Algorithm::ALL.iter().filter(|a| **a != nyoci) {
        let mut shell = Shell::new(ControlConfig::parse("default").expect("a control").build());
        let mut slot = Slot::default();
        shell.open_exchange();
        with(|cx| {
            assert_eq!(
                shell.on_transmit(Transmission::new(Kind::Message, 0), &mut slot, cx),
                secs(2.0)
            )
        });
        let config = ControlConfig::new(*algorithm);
        let params = Parameters::DEFAULT;
        let mut rng = Constant::lowest();
        let settings = &config.settings;
        let cx = &mut Context { now: at(102.0), params: &params, settings, rng: &mut *rng };
        shell.replace(config.build());
        assert_eq!(shell.open(), 1);
        for ordinal in 1..=4 {
            let timeout =
                shell.on_transmit(Transmission::new(Kind::Message, ordinal), &mut slot, cx);
            assert!(timeout >= secs(2.0), "{algorithm}: {timeout:?} for {ordinal}");
        }
        shell.close_exchange(&slot, Outcome::GaveUp, 4, cx);
        assert_eq!(shell.open(), 0);
    }
}
