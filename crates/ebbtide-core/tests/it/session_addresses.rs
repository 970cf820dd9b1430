//! Which addresses are believed, and which ask too often.

use ebbtide_core::session::{AddressValidation, RateLimiter, Response, Verify};
use ebbtide_core::time::{Duration, Instant};
use ebbtide_core::wire::{Code, OptionNumber};
use ebbtide_core::{PeerId, Source};
use rand_chacha::ChaCha8Rng;
use rand_core::SeedableRng;
use std::net::{IpAddr, SocketAddr};

fn at(seconds: u64) -> Instant {
    Instant::from_nanos(seconds * 1_000_000_000)
}

fn ip(last: u8) -> Source {
    IpAddr::from([192, 0, 2, last]).into()
}

fn endpoint(last: u8) -> PeerId {
    SocketAddr::from(([192, 0, 2, last], 5683)).into()
}

fn validation(verify: Verify, max: usize) -> AddressValidation {
    AddressValidation::new(verify, max, Duration::from_secs(61), &mut ChaCha8Rng::seed_from_u64(1))
}

fn value(challenge: &Response) -> Vec<u8> {
    challenge.options().get(OptionNumber::ECHO).unwrap().value.to_vec()
}

#[test]
fn an_address_that_echoes_is_verified_and_no_other() {
    let mut validation = validation(Verify::All, 100);
    let (a, b) = (endpoint(1), endpoint(2));
    let other_port = SocketAddr::from(([192, 0, 2, 1], 5684)).into();
    let echo = value(&validation.challenge(at(100), a));
    assert!(!validation.learn(at(100), b, &echo), "the value is another address's");
    assert!(!validation.learn(at(100), other_port, &echo), "it is another port's");
    assert!(!validation.learn(at(161), a, &echo), "it is too old");
    assert!(!validation.learn(at(99), a, &echo), "it is of the future");
    assert!(![a, b].iter().any(|from| validation.trusts(at(99), from.source())));
    assert!(validation.learn(at(160), a, &echo));
    assert!(validation.trusts(at(160), a.source()));
    assert_eq!(validation.challenged(), 1);
}

#[test]
fn an_address_is_verified_for_an_hour_however_few_there_are() {
    let mut validation = validation(Verify::All, 65_536);
    let echo = value(&validation.challenge(at(0), endpoint(1)));
    validation.learn(at(1), endpoint(1), &echo);
    assert!(validation.trusts(at(3600), ip(1)));
    assert!(!validation.trusts(at(3601), ip(1)));
    assert_eq!(validation.verified(at(3601)), 0);
}

#[test]
fn of_too_many_verified_addresses_the_first_has_to_echo_again() {
    let mut validation = validation(Verify::All, 2);
    for n in 1..=3 {
        let echo = value(&validation.challenge(at(n.into()), endpoint(n)));
        validation.learn(at(n.into()), endpoint(n), &echo);
    }
    let trusted = [1, 2, 3].map(|n| validation.trusts(at(4), ip(n)));
    assert_eq!(trusted, [false, true, true]);
}

#[test]
fn this_machine_is_believed_unless_all_must_echo() {
    let here = IpAddr::from([127, 0, 0, 1]).into();
    assert!(validation(Verify::Remote, 1).trusts(at(0), here));
    assert!(!validation(Verify::Remote, 1).trusts(at(0), ip(1)));
    assert!(!validation(Verify::All, 1).trusts(at(0), here));
    assert!(validation(Verify::None, 1).trusts(at(0), ip(1)));
}

#[test]
fn an_address_that_asks_too_often_is_told_when_to_come_again() {
    let mut limiter = RateLimiter::new(2, 2);
    assert!(limiter.admit(at(0), ip(1)).is_ok());
    assert!(limiter.admit(at(0), ip(1)).is_ok());
    let answer = limiter.admit(at(0), ip(1)).unwrap_err();
    assert_eq!(answer.code(), Code::TOO_MANY_REQUESTS);
    assert_eq!(answer.options().get_uint(OptionNumber::MAX_AGE), Some(1));
    assert!(limiter.admit(at(0), ip(2)).is_ok(), "another one is not concerned");
    assert!(limiter.admit(at(1), ip(1)).is_ok());
    assert_eq!(limiter.refused(), 1);
}

#[test]
fn the_address_whose_second_began_first_is_forgotten_when_no_more_are_counted() {
    let mut limiter = RateLimiter::new(1, 2);
    assert!(limiter.admit(at(0), ip(1)).is_ok());
    assert!(limiter.admit(at(0), ip(2)).is_ok());
    // Both are known.
    assert!(limiter.admit(at(0), ip(1)).is_err());
    assert!(limiter.admit(at(0), ip(2)).is_err());
    assert!(limiter.admit(at(0), ip(3)).is_ok());
    assert!(limiter.admit(at(0), ip(2)).is_err(), "one alone is forgotten");
    assert!(limiter.admit(at(0), ip(1)).is_ok());
}
