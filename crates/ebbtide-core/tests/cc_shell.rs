//! The shell: what no control can do, however wrong it is.

#![allow(clippy::expect_used, reason = "a test that cannot go on has failed")]

mod common;

use common::{Constant, at, secs};
use ebbtide_core::cc::{
    Admission, Config, CongestionControl, Context, Controller, Departure, Load, Metrics, Outcome,
    Sample, Shell, Slot, Transmission,
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
    fn admit(&mut self, _: &Departure, _: &Load, _: &mut Context<'_>) -> Admission {
        self.admission
    }
    fn on_transmit(&mut self, _: &Transmission, slot: &mut Slot, _: &mut Context<'_>) -> Micros {
        slot.armed = Micros::ZERO;
        self.timeout
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
    let config = Config::parse("default").expect("a control");
    let params = Parameters::DEFAULT;
    let mut rng = Constant::lowest();
    let settings = &config.settings;
    f(&mut Context { now: at(100.0), params: &params, settings, rng: &mut *rng })
}

const CON: Departure = Departure { confirmable: true, bytes: 20 };
const NON: Departure = Departure { confirmable: false, bytes: 20 };

#[test]
fn timeouts_are_held_between_floor_and_ceiling() {
    with(|cx| {
        let mut slot = Slot::default();
        let mut shell = shell(Micros::ZERO, Admission::Send);
        assert_eq!(shell.on_transmit(0, &mut slot, cx), Shell::FLOOR);
        assert_eq!(slot.armed, Shell::FLOOR);
    });
    with(|cx| {
        let mut slot = Slot::default();
        let mut shell = shell(Micros::MAX, Admission::Send);
        assert_eq!(shell.on_transmit(0, &mut slot, cx), Shell::CEILING);
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
            (1..=6).map(|transmissions| shell.on_expire(transmissions, &slot, cx)).collect();
        assert_eq!(again, [true, true, true, true, false, false]);
    });
    let config = Config::parse("default").expect("a control");
    let params = Parameters { max_retransmit: 255, ..Parameters::DEFAULT };
    let mut rng = Constant::lowest();
    let settings = &config.settings;
    let cx = &mut Context { now: at(0.0), params: &params, settings, rng: &mut *rng };
    let mut shell = shell(secs(1.0), Admission::Send);
    assert!(shell.on_expire(254, &Slot::default(), cx));
    assert!(!shell.on_expire(255, &Slot::default(), cx));
}

#[test]
fn a_control_that_takes_over_an_open_exchange_does_not_flood() {
    // The exchange was begun by a control that keeps nothing but the armed timeout.
    for algorithm in ebbtide_core::cc::Algorithm::ALL {
        let mut shell = Shell::new(Config::parse("default").expect("a control").build());
        let mut slot = Slot::default();
        shell.open_exchange();
        with(|cx| assert_eq!(shell.on_transmit(0, &mut slot, cx), secs(2.0)));
        let config = Config::new(*algorithm);
        let params = Parameters::DEFAULT;
        let mut rng = Constant::lowest();
        let settings = &config.settings;
        let cx = &mut Context { now: at(102.0), params: &params, settings, rng: &mut *rng };
        shell.replace(config.build());
        assert_eq!(shell.open(), 1);
        for ordinal in 1..=4 {
            let timeout = shell.on_transmit(ordinal, &mut slot, cx);
            assert!(timeout >= secs(2.0), "{algorithm}: {timeout:?} for {ordinal}");
        }
        shell.close_exchange(&slot, Outcome::GaveUp, 4, cx);
        assert_eq!(shell.open(), 0);
    }
}
