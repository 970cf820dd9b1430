//! Observers by hand: who is due, who waits, and what late news about a former observer does.

use ebbtide_core::session::{Due, Observers, Registration, Response, Room, Subject};
use ebbtide_core::time::Instant;
use ebbtide_core::{PeerId, PeerToken};
use std::net::SocketAddr;

const LIGHT: Subject = Subject { id: 1, confirmable: true };
const NOISE: Subject = Subject { id: 2, confirmable: false };

fn peer(last: u8) -> PeerId {
    PeerId::Address(SocketAddr::from(([192, 0, 2, last], 5683)))
}

fn at(seconds: u64) -> Instant {
    Instant::from_nanos(seconds * 1_000_000_000)
}

fn register(observers: &mut Observers, remote: PeerId, token: u8, subject: Subject) -> Option<u32> {
    let registration = Registration {
        remote,
        token: PeerToken::new(&[token]),
        local: None,
        unverified: true,
        subject,
        request: &[0x41, 1, 0, token, token],
        sent: 40,
        format: None,
    };
    observers.register(at(0), &registration, 1000)
}

fn due(observers: &mut Observers) -> Vec<Due> {
    std::iter::from_fn(|| observers.pop_due(at(1))).collect()
}

#[test]
fn news_about_a_former_observer_does_not_prove_the_one_in_its_place() {
    let mut observers = Observers::new(1);
    let (a, victim) = (peer(1), peer(2));
    register(&mut observers, a, 7, NOISE);
    observers.changed(NOISE.id);
    let of_a = due(&mut observers).remove(0);
    assert!(of_a.confirmable && !of_a.proven);
    observers.deregister(a, &of_a.token);
    register(&mut observers, victim, 7, NOISE);
    // The exchange of the notification outlives its observer.
    observers.acknowledged(of_a.observer);
    observers.arrived(of_a.observer);
    observers.postponed(of_a.observer, Some(Response::content("late")), Room::Any);
    observers.lost(of_a.observer);
    observers.remove(of_a.observer);
    assert_eq!((observers.len(), observers.vanished(), observers.parked()), (1, 0, 0));
    observers.changed(NOISE.id);
    let of_victim = due(&mut observers).remove(0);
    assert_eq!(of_victim.remote, victim);
    assert!(!of_victim.proven && of_victim.event.is_none());
    assert!(of_victim.confirmable, "until it has acknowledged one");
}

#[test]
fn registering_under_a_token_for_another_resource_leaves_nothing_of_the_former_one() {
    let mut observers = Observers::new(1);
    let first = register(&mut observers, peer(1), 7, LIGHT).unwrap();
    observers.event(LIGHT.id, &Response::content("of the light"));
    observers.changed(LIGHT.id);
    let second = register(&mut observers, peer(1), 7, NOISE).unwrap();
    assert!(second > first, "a client takes the larger number for the newer");
    assert!(due(&mut observers).is_empty(), "neither an event nor a change of the light");
    assert_eq!((observers.of(LIGHT.id), observers.of(NOISE.id)), (0, 1));
    observers.changed(NOISE.id);
    let first = due(&mut observers).remove(0);
    observers.acknowledged(first.observer);
    observers.changed(NOISE.id);
    assert!(!due(&mut observers).remove(0).confirmable, "the subject's kind, not the former one's");
}

#[test]
fn registering_again_for_the_same_resource_is_the_same_observer() {
    let mut observers = Observers::new(1);
    let first = register(&mut observers, peer(1), 7, LIGHT).unwrap();
    observers.changed(LIGHT.id);
    let second = register(&mut observers, peer(1), 7, LIGHT).unwrap();
    assert_eq!((observers.len(), second), (1, first + 1));
    assert_eq!(due(&mut observers).len(), 1, "the change is not forgotten");
}

#[test]
fn a_change_concerns_the_observers_of_its_subject_in_the_order_of_their_registration() {
    let mut observers = Observers::new(1);
    for n in 1..=9 {
        register(&mut observers, peer(n), 1, if n % 3 == 0 { NOISE } else { LIGHT });
    }
    for gone in [1, 4, 8] {
        observers.deregister(peer(gone), &PeerToken::new(&[1]));
    }
    register(&mut observers, peer(10), 1, LIGHT);
    assert_eq!((observers.of(LIGHT.id), observers.of(NOISE.id)), (4, 3));
    observers.changed(LIGHT.id);
    let remotes: Vec<_> = due(&mut observers).iter().map(|due| due.remote).collect();
    assert_eq!(remotes, [2, 5, 7, 10].map(peer));
}

#[test]
fn a_notification_without_room_waits_for_the_end_of_an_exchange_with_its_scope() {
    let mut observers = Observers::new(1);
    for token in 0..5 {
        register(&mut observers, peer(1), token, LIGHT);
    }
    observers.changed(LIGHT.id);
    let all = due(&mut observers);
    let (sent, waiting) = all.split_at(2);
    for due in waiting {
        observers.postponed(due.observer, None, Room::Scope(peer(1)));
    }
    assert!(!observers.any_due(), "nothing is tried again by itself");
    observers.changed(LIGHT.id);
    observers.room(peer(2));
    assert!(!observers.any_due(), "another peer's exchange makes no room");
    assert_eq!(observers.parked(), 3);
    for (n, due) in waiting.iter().enumerate() {
        observers.room(peer(1));
        let next = observers.pop_due(at(1)).unwrap();
        assert_eq!(next.observer, due.observer, "first come, first served");
        assert!(observers.pop_due(at(1)).is_none(), "one place, one notification");
        assert_eq!(observers.parked(), 2 - n);
    }
    observers.acknowledged(sent[0].observer);
    assert_eq!(due(&mut observers).len(), 1, "what changed meanwhile");
}

#[test]
fn observers_that_are_gone_do_not_fill_the_queue_of_those_that_wait() {
    let mut observers = Observers::new(1);
    for _ in 0..10_000 {
        register(&mut observers, peer(1), 1, LIGHT);
        observers.changed(LIGHT.id);
        let due = observers.pop_due(at(1)).unwrap();
        observers.postponed(due.observer, None, Room::Scope(peer(1)));
        observers.deregister(peer(1), &due.token);
    }
    assert!(observers.parked() < 200, "{}", observers.parked());
    register(&mut observers, peer(1), 1, LIGHT);
    observers.changed(LIGHT.id);
    assert_eq!(due(&mut observers).len(), 1);
}

#[test]
fn of_observers_whose_addresses_may_be_forged_512_are_told_at_a_time() {
    let mut observers = Observers::new(1);
    for number in 0..600_u16 {
        let [high, low] = number.to_be_bytes();
        let remote = PeerId::Address(SocketAddr::from(([10, 0, high, low], 5683)));
        register(&mut observers, remote, 7, NOISE).unwrap();
    }
    observers.changed(NOISE.id);
    let first = due(&mut observers);
    assert_eq!(first.len(), 512);
    observers.arrived(first[0].observer);
    assert_eq!(due(&mut observers).len(), 1);
}

#[test]
fn events_reach_an_observer_one_after_the_other_and_the_oldest_is_dropped() {
    let mut observers = Observers::new(1);
    register(&mut observers, peer(1), 1, LIGHT);
    for n in 0..20 {
        observers.event(LIGHT.id, &Response::content(n.to_string()));
    }
    assert_eq!(observers.dropped_events(), 4);
    for n in 4..20 {
        let next = observers.pop_due(at(1)).unwrap();
        assert_eq!(next.event.unwrap().text(), n.to_string());
        assert!(observers.pop_due(at(1)).is_none());
        observers.acknowledged(next.observer);
    }
    assert!(observers.pop_due(at(1)).is_none());
}

#[test]
fn a_notification_is_confirmable_at_least_once_in_24_hours() {
    let mut observers = Observers::new(1);
    let registration = Registration {
        remote: peer(1),
        token: PeerToken::new(b"t"),
        local: None,
        unverified: false,
        subject: NOISE,
        request: &[0x41, 1, 0, 1, b't'],
        sent: 40,
        format: None,
    };
    let hours = |hours: u64| at(3600 * hours);
    observers.register(hours(0), &registration, 10).unwrap();
    let mut is_confirmable = |now| {
        observers.changed(NOISE.id);
        let due = observers.pop_due(now).unwrap();
        observers.arrived(due.observer);
        due.confirmable
    };
    let each: Vec<_> = (1..=50).map(|hour| is_confirmable(hours(hour))).collect();
    let longest = each.split(|confirmable| *confirmable).map(<[bool]>::len).max();
    assert!(longest < Some(24), "{each:?}");
    assert_eq!(each.iter().filter(|confirmable| **confirmable).count(), 2, "{each:?}");
}

#[test]
fn an_observer_whose_address_may_be_forged_is_not_stored_until_it_has_acknowledged_a_notification_that_has_left()
 {
    let mut observers = Observers::new(1);
    register(&mut observers, peer(1), 7, NOISE);
    let is_stored = |observers: &Observers| observers.saved().count() == 1;
    assert!(is_stored(&observers), "nothing has left yet");
    let stored = observers.version();
    observers.changed(NOISE.id);
    let challenge = due(&mut observers).remove(0);
    assert!(!is_stored(&observers) && observers.version() != stored, "each start would send it");
    let stored = observers.version();
    observers.acknowledged(challenge.observer);
    assert!(is_stored(&observers) && observers.version() != stored);
    observers.changed(NOISE.id);
    assert!(!due(&mut observers).is_empty() && is_stored(&observers), "it is proven");
}
