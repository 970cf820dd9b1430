//! What a connection does when both sides keep the rules (RFC 8323).

use crate::common::wired::{Said, Wired, content, get, put};
use ebbtide_core::stream::{Closed, Config, Event, Failure, SendError};
use ebbtide_core::time::Duration;
use ebbtide_core::wire::{Code, Content, Framing, Opt, OptionNumber};

const OBSERVE: [Opt<'static>; 2] = [
    Opt { number: OptionNumber::OBSERVE, value: &[] },
    Opt { number: OptionNumber::URI_PATH, value: b"time" },
];

#[test]
fn each_side_begins_with_a_csm_and_learns_what_the_other_takes() {
    let mut wired =
        Wired::new(Config::default(), Config { max_message_size: 3000, ..Config::default() });
    assert_eq!(wired.a.message_limit(), 1152, "as long as nothing is known");
    wired.exchange();
    assert_eq!(wired.a.message_limit(), 3000);
    assert_eq!(wired.b.message_limit(), 3000, "our own limit holds as well");
    assert!(wired.a.peer().bert() && wired.b.peer().bert());
}

#[test]
fn requests_follow_the_csm_at_once_and_are_answered_in_any_order() {
    for framing in [Framing::Stream, Framing::WebSocket] {
        let mut wired = Wired::framed(framing, Config::default(), Config::default());
        let asked: Vec<_> = (0..3).map(|_| wired.a.request(wired.now, &get()).unwrap()).collect();
        wired.exchange();
        let requests = wired.b_requests();
        assert_eq!(requests.len(), 3);
        for incoming in requests.iter().rev() {
            wired.b.respond(wired.now, incoming, &content(b"hi")).unwrap();
        }
        wired.exchange();
        let answered: Vec<_> =
            asked.iter().rev().map(|&request| Said::Response(request, b"hi".to_vec())).collect();
        assert_eq!(wired.a_said(), answered);
        assert_eq!((wired.a.open_requests(), wired.b.unanswered()), (0, 0));
    }
}

#[test]
fn shorter_tokens_bound_how_many_requests_are_open() {
    for (token_length, most) in [(0, 1), (1, 256), (2, 300), (4, 300)] {
        let config = Config { token_length, max_requests: 300, ..Config::default() };
        let mut wired = Wired::new(config, Config::default());
        for round in 0..2 {
            let mut asked = Vec::new();
            while let Ok(request) = wired.a.request(wired.now, &get()) {
                asked.push(request);
            }
            assert_eq!(asked.len(), most, "{token_length} bytes, round {round}");
            wired.exchange();
            for incoming in wired.b_requests() {
                assert_eq!(incoming.token.as_slice().len(), usize::from(token_length));
                wired.b.respond(wired.now, &incoming, &content(b"hi")).unwrap();
            }
            wired.exchange();
            let answered: Vec<_> =
                asked.iter().map(|&request| Said::Response(request, b"hi".to_vec())).collect();
            assert_eq!(wired.a_said(), answered);
        }
    }
}

#[test]
fn many_messages_are_one_write() {
    let mut wired = Wired::new(Config::default(), Config::default());
    wired.exchange();
    for _ in 0..64 {
        wired.a.request(wired.now, &get()).unwrap();
    }
    let one = get().framed_len(Framing::Stream, ebbtide_core::wire::Token::new(&[0; 4]).unwrap());
    assert_eq!(wired.a.poll_transmit().len(), 64 * one);
}

#[test]
fn either_side_asks_and_answers() {
    let mut wired = Wired::new(Config::default(), Config::default());
    wired.a.request(wired.now, &get()).unwrap();
    let asked = wired.b.request(wired.now, &put(b"x")).unwrap();
    wired.exchange();
    let from_a = wired.b_requests();
    let from_b = wired.a_requests();
    wired.b.respond(wired.now, &from_a[0], &content(b"b")).unwrap();
    wired.a.respond(wired.now, &from_b[0], &content(b"a")).unwrap();
    wired.exchange();
    assert_eq!(wired.b_said(), [Said::Response(asked, b"a".to_vec())]);
}

#[test]
fn notifications_come_until_the_observation_is_deregistered() {
    let mut wired = Wired::new(Config::default(), Config::default());
    let observe = Content { code: Code::GET, options: &OBSERVE, payload: &[] };
    let asked = wired.a.request(wired.now, &observe).unwrap();
    wired.exchange();
    let incoming = wired.b_requests()[0].clone();
    let state = Content { code: Code::CONTENT, options: &OBSERVE[..1], payload: b"1" };
    wired.b.respond(wired.now, &incoming, &state).unwrap();
    wired.b.notify(wired.now, &incoming.token, &state).unwrap();
    wired.exchange();
    let notification = Said::Notification(asked, b"1".to_vec());
    assert_eq!(wired.a_said(), [notification.clone(), notification]);

    wired.wait(Duration::from_secs(1000));
    assert_eq!(wired.a.open_requests(), 1, "an observation has no deadline");
    let end = [Opt { number: OptionNumber::OBSERVE, value: &[1] }, OBSERVE[1]];
    let end = Content { code: Code::GET, options: &end, payload: &[] };
    wired.a.deregister(wired.now, asked, &end).unwrap();
    wired.b.notify(wired.now, &incoming.token, &state).unwrap();
    wired.exchange();
    let again = wired.b_requests()[0].clone();
    assert_eq!(again.token, incoming.token, "RFC 7641 section 3.6: with the same token");
    wired.b.respond(wired.now, &again, &content(b"2")).unwrap();
    wired.exchange();
    assert_eq!(wired.a_said(), []);
    assert_eq!(wired.a.open_requests(), 0);
    assert_eq!(wired.a.deregister(wired.now, asked, &end), Err(SendError::NoSuchRequest));
}

#[test]
fn a_ping_is_answered_and_with_custody_after_what_came_before() {
    let mut wired = Wired::new(Config::default(), Config::default());
    wired.a.ping(wired.now, false).unwrap();
    wired.exchange();
    assert_eq!(wired.a_said(), [Said::Pong { custody: false }]);
    wired.a.ping(wired.now, true).unwrap();
    wired.exchange();
    assert_eq!(wired.a_said(), [Said::Pong { custody: true }], "nothing came before");

    wired.a.request(wired.now, &get()).unwrap();
    wired.a.ping(wired.now, true).unwrap();
    wired.a.request(wired.now, &get()).unwrap();
    wired.exchange();
    let [first, second] = &wired.b_requests()[..] else { panic!("two requests") };
    wired.b.respond(wired.now, second, &content(b"2")).unwrap();
    wired.exchange();
    assert_eq!(wired.a_said().len(), 1, "a response, no Pong yet");
    wired.b.respond(wired.now, first, &content(b"1")).unwrap();
    wired.exchange();
    assert_eq!(wired.a_said().last(), Some(&Said::Pong { custody: true }));
}

#[test]
fn a_release_lets_what_is_open_be_answered_and_then_both_close() {
    let mut wired = Wired::new(Config::default(), Config::default());
    let asked = wired.a.request(wired.now, &get()).unwrap();
    wired.exchange();
    let incoming = wired.b_requests()[0].clone();
    wired.a.release(wired.now);
    assert_eq!(wired.a.request(wired.now, &get()), Err(SendError::Releasing));
    wired.exchange();
    assert_eq!(wired.b_said(), [Said::Release]);
    assert_eq!(wired.b.request(wired.now, &get()), Err(SendError::Releasing));
    assert_eq!(wired.b.poll_event(), None);
    wired.b.respond(wired.now, &incoming, &content(b"last")).unwrap();
    wired.exchange();
    assert_eq!(wired.a_said(), [Said::Response(asked, b"last".to_vec())]);
    assert_eq!(wired.b.poll_event(), Some(Event::Closed(Closed::Released)));
    wired.a.handle_eof(wired.now);
    assert_eq!(wired.a.poll_event(), Some(Event::Closed(Closed::Released)));
    assert_eq!(wired.a.poll_event(), None, "once");
}

#[test]
fn a_release_ends_observations_which_no_answer_would_end() {
    let mut wired = Wired::new(Config::default(), Config::default());
    let observe = Content { code: Code::GET, options: &OBSERVE, payload: &[] };
    let observed = wired.a.request(wired.now, &observe).unwrap();
    wired.exchange();
    let incoming = wired.b_requests()[0].clone();
    let state = Content { code: Code::CONTENT, options: &OBSERVE[..1], payload: b"1" };
    wired.b.respond(wired.now, &incoming, &state).unwrap();
    wired.b.release(wired.now);
    wired.exchange();
    let reason = Failure::Closed(Closed::Released);
    assert_eq!(wired.a.poll_event(), Some(Event::Failed { request: observed, reason }));
    assert_eq!(wired.a.poll_event(), Some(Event::Closed(Closed::Released)));
}

#[test]
fn a_peer_that_does_not_close_after_our_release_is_left() {
    let mut wired = Wired::new(Config::default(), Config::default());
    wired.exchange();
    let asked = wired.a.request(wired.now, &get()).unwrap();
    wired.a.release(wired.now);
    wired.exchange();
    wired.wait(Config::default().release_timeout);
    let reason = Failure::Closed(Closed::Released);
    assert_eq!(wired.a.poll_event(), Some(Event::Failed { request: asked, reason }));
    assert_eq!(wired.a.poll_event(), Some(Event::Closed(Closed::Released)));
}

#[test]
fn a_request_without_a_response_fails_in_time_and_a_late_one_finds_nothing() {
    let mut wired = Wired::new(Config::default(), Config::default());
    let asked = wired.a.request(wired.now, &get()).unwrap();
    wired.exchange();
    let incoming = wired.b_requests()[0].clone();
    wired.wait(Config::default().response_timeout);
    assert_eq!(
        wired.a.poll_event(),
        Some(Event::Failed { request: asked, reason: Failure::NoResponse })
    );
    let other = wired.a.request(wired.now, &get()).unwrap();
    assert_eq!(other.index(), asked.index());
    wired.b.respond(wired.now, &incoming, &content(b"late")).unwrap();
    wired.exchange();
    assert_eq!(wired.a_said(), []);
    assert_eq!(wired.a.counters().unknown_tokens, 1);
    assert_eq!(wired.a.open_requests(), 1);
}

#[test]
fn a_cancelled_request_counts_until_the_peer_has_answered_it() {
    let config = Config { max_requests: 1, ..Config::default() };
    let mut wired = Wired::new(config, Config::default());
    let asked = wired.a.request(wired.now, &get()).unwrap();
    wired.a.cancel(wired.now, asked);
    assert_eq!(wired.a.request(wired.now, &get()), Err(SendError::TooManyRequests));
    wired.exchange();
    let incoming = wired.b_requests()[0].clone();
    wired.b.respond(wired.now, &incoming, &content(b"unwanted")).unwrap();
    wired.exchange();
    assert_eq!(wired.a_said(), []);
    assert!(wired.a.request(wired.now, &get()).is_ok());
}

#[test]
fn an_unused_connection_is_released_unless_it_is_kept() {
    let config = Config { idle_timeout: Some(Duration::from_secs(60)), ..Config::default() };
    let mut wired = Wired::new(config, Config::default());
    wired.exchange();
    wired.a.keep(true);
    wired.wait(Duration::from_secs(100));
    assert!(wired.a.is_open());
    wired.a.keep(false);
    wired.wait(Duration::ZERO);
    assert!(!wired.a.is_open());
    wired.exchange();
    assert_eq!(wired.b_said(), [Said::Release]);
}
