//! A peer is not called silent, or slow, for what this side did not read.

use crate::common::wired::{Wired, content, get};
use ebbtide_core::stream::{Closed, Config, Event, Fault};
use ebbtide_core::time::Duration;

fn seconds(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

/// Takes one request at a time, and pings after ten seconds.
fn narrow() -> Config {
    let keep_alive = Some(seconds(10));
    Config { max_unanswered: 1, keep_alive, pong_timeout: seconds(20), ..Config::default() }
}

/// Lets time pass second by second, and carries what waits.
fn pass(wired: &mut Wired, span: u64) {
    for _ in 0..span {
        wired.wait(seconds(1));
        wired.exchange();
    }
}

#[test]
fn a_handler_of_half_a_minute_does_not_make_the_peer_silent() {
    let mut wired = Wired::new(Config::default(), narrow());
    wired.exchange();
    wired.a.request(wired.now, &get()).unwrap();
    wired.exchange();
    let incoming = wired.b_requests()[0].clone();
    assert!(!wired.b.wants_input());
    pass(&mut wired, 200);
    assert!(wired.b.is_open(), "its Pong may have come, but was not taken");
    wired.b.respond(wired.now, &incoming, &content(b"at last")).unwrap();
    wired.exchange();
    assert_eq!(wired.a_said().len(), 1);
    pass(&mut wired, 300);
    assert!(wired.b.is_open(), "and it answers pings");
}

#[test]
fn a_ping_that_is_out_when_reading_stops_has_all_its_time_afterwards() {
    let mut wired = Wired::new(Config::default(), narrow());
    wired.exchange();
    wired.a.request(wired.now, &get()).unwrap();
    // The Ping leaves while the request is on its way.
    wired.b.ping(wired.now, false).unwrap();
    wired.exchange();
    let incoming = wired.b_requests()[0].clone();
    wired.now = wired.now + seconds(300);
    wired.b.handle_timeout(wired.now);
    assert!(wired.b.is_open());
    // Nothing more comes of the peer: only now it is silent.
    wired.b.respond(wired.now, &incoming, &content(b"")).unwrap();
    let end = wired.now + seconds(40);
    while let Some(at) = wired.b.poll_timeout().filter(|&at| at <= end) {
        assert!(at >= wired.now, "a timer in the past");
        wired.now = at;
        wired.b.handle_transmitted(at, wired.b.poll_transmit().len());
        wired.b.handle_timeout(at);
        if !wired.b.is_open() {
            break;
        }
    }
    wired.b.handle_transmitted(wired.now, wired.b.poll_transmit().len());
    let mut events = core::iter::from_fn(|| wired.b.poll_event());
    assert!(events.any(|event| event == Event::Closed(Closed::Aborted(Fault::Silent))));
}

#[test]
fn no_timer_about_the_peer_runs_while_it_is_not_read() {
    let config = Config { keep_alive: Some(seconds(10)), idle_timeout: None, ..narrow() };
    let mut wired = Wired::new(Config::default(), config);
    wired.exchange();
    wired.a.request(wired.now, &get()).unwrap();
    wired.exchange();
    assert!(!wired.b.wants_input());
    assert_eq!(wired.b.poll_timeout(), None);
}

#[test]
fn a_message_whose_rest_is_not_read_is_not_slow() {
    let mut wired = Wired::new(Config::default(), narrow());
    wired.exchange();
    // A whole request, and the beginning of another one, which shows at once that it begins.
    let whole: &[u8] = &[0x00, 0x01];
    let begun: &[u8] = &[0xd0, 0x57, 0x01];
    assert!(wired.b.handle_input(wired.now, begun).is_none(), "the clock runs");
    let taken = wired.b.handle_input(wired.now, whole).expect("a request");
    let ebbtide_core::stream::Received::Request(incoming, _) = taken.received else {
        panic!("no request")
    };
    let late = wired.now + Config::default().message_timeout + seconds(60);
    assert!(wired.b.handle_input(wired.now, begun).is_none(), "not wanted");
    wired.b.handle_timeout(late);
    assert!(wired.b.is_open());
    wired.b.respond(late, &incoming, &content(b"")).unwrap();
    assert!(wired.b.handle_input(late, begun).is_none());
    wired.b.handle_timeout(late + Config::default().message_timeout);
    assert!(!wired.b.is_open(), "from now on it has its time, and no more");
}
