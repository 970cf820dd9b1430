//! No message is given up before RFC 7252's MAX_TRANSMIT_SPAN, and no copy leaves after it could be
//! taken for a new message, whatever the congestion control.

use crate::common::node::{Datagram, Node, PEER, config, content};
use crate::common::{float, secs};
use ebbtide_core::cc::{
    Admission, Algorithm, CongestionControl, Context, Custom, Expiry, Load, Metrics,
    OutgoingMessage, ProbeReply, Sample, Shell, Slot, Transmission,
};
use ebbtide_core::endpoint::{EndpointConfig, Failure, Reliability};
use ebbtide_core::time::Micros;
use ebbtide_core::wire::{Code, Token};
use proptest::prelude::*;

/// Wants everything at once: timeouts of nothing, probes, copies at once, and gives up.
#[derive(Debug)]
struct Hasty {
    probes: bool,
    expired: u32,
}

impl CongestionControl for Hasty {
    fn admit(&mut self, _: &OutgoingMessage, _: &Load, _: &mut Context<'_>) -> Admission {
        Admission::Send
    }
    fn on_transmit(&mut self, _: &Transmission, _: &mut Slot, _: &mut Context<'_>) -> Micros {
        Micros::ZERO
    }
    fn on_expire(&mut self, _: &Slot, _: &mut Context<'_>) -> Expiry {
        self.expired += 1;
        match self.probes && self.expired.is_multiple_of(2) {
            true => Expiry::Probe,
            false => Expiry::Repeat,
        }
    }
    fn on_probe(&mut self, _: &mut Slot, _: &ProbeReply, _: &mut Context<'_>) -> Option<Micros> {
        Some(Micros::ZERO)
    }
    fn on_feedback(&mut self, _: &Slot, _: &Sample, _: &mut Context<'_>) {}
    fn metrics(&self) -> Metrics {
        Metrics::default()
    }
}

/// Answers whatever leaves, after a round trip, until nothing is under way.
fn answer_all(node: &mut Node, round_trip: f64) {
    for _ in 0..1000 {
        let sent = node.take();
        if sent.is_empty() && node.ep.open_exchanges() == 0 {
            return;
        }
        let next = node
            .timeout
            .map_or(round_trip, |due| due.saturating_since(node.now).as_secs_f64().max(1e-6));
        node.wait(if sent.is_empty() { next } else { round_trip });
        for datagram in sent {
            let answer = if datagram.is_probe() { datagram.rst() } else { datagram.answer() };
            node.arrive(&answer);
        }
    }
    panic!("it is still under way");
}

/// After so many quick answers a request to a peer that has fallen silent: what left for it, and
/// seconds from its first transmission until it was given up.
fn silence(config: EndpointConfig, answers: usize, round_trip: f64) -> (Vec<Datagram>, f64) {
    let mut node = Node::new(config);
    for _ in 0..answers {
        node.get();
        answer_all(&mut node, round_trip);
    }
    let exchange = node.get();
    // A control may ask first, and is answered: silence begins with the message itself.
    let mut sent = Vec::new();
    for _ in 0..100 {
        sent.extend(node.take());
        if sent.iter().any(|datagram: &Datagram| !datagram.is_probe()) {
            break;
        }
        let probes = std::mem::take(&mut sent);
        node.wait(round_trip);
        for probe in probes {
            node.arrive(&probe.rst());
        }
    }
    node.wait(10_000.0);
    sent.extend(node.take());
    let first = sent.iter().find(|datagram| !datagram.is_probe()).expect("it has left").at;
    assert_eq!(node.failed.len(), 1, "{:?}", node.failed);
    let (at, failed, reason) = node.failed[0];
    assert_eq!((failed, reason), (exchange, Failure::GaveUp));
    node.assert_free();
    (sent, at.saturating_since(first).as_secs_f64())
}

fn hasty(probes: bool) -> EndpointConfig {
    let name = if probes { "hasty-probes" } else { "hasty" };
    let hasty = Custom::from_fn(name, move || Box::new(Hasty { probes, expired: 0 }));
    EndpointConfig { control: hasty.into(), ..EndpointConfig::default() }
}

fn controls() -> Vec<EndpointConfig> {
    let built_in = Algorithm::ALL.iter().map(|algorithm| config(algorithm.name()));
    built_in.chain([hasty(false), hasty(true)]).collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn a_silent_peer_is_always_given_max_transmit_span_and_max_retransmit_copies(
        which in 0..controls().len(),
        answers in 0usize..30,
        round_trip in 0.0002f64..0.3,
        max_retransmit in 0u8..7,
        ack_timeout in 0.5f64..4.0,
    ) {
        let mut config = controls().swap_remove(which);
        config.params.max_retransmit = max_retransmit;
        config.params.ack_timeout = secs(ack_timeout);
        let floor = Shell::patience(&config.params, &config.control.settings);
        let (sent, span) = silence(config.clone(), answers, round_trip);
        let copies = sent.iter().filter(|datagram| !datagram.is_probe()).count();
        prop_assert!(copies <= usize::from(max_retransmit) + 1, "{} copies", copies);
        prop_assert!(
            span >= float(floor) - 1e-5,
            "{}: given up after {span} s, not {}", config.control, float(floor)
        );
    }
}

#[test]
fn every_control_is_patient_after_a_hundred_answers_on_a_path_of_eleven_milliseconds() {
    for config in controls() {
        let name = config.control.to_string();
        // RFC 7252 with half its ACK_TIMEOUT, and with three quarters: as much less patient.
        let least = match name.as_str() {
            "nyoci" => 33.75,
            name if name.starts_with("default-b") => 22.5,
            _ => 45.0,
        };
        let (sent, span) = silence(config, 100, 0.011);
        assert!(span >= least, "{name}: {span}");
        let copies: Vec<_> = sent.iter().filter(|datagram| !datagram.is_probe()).collect();
        assert!(copies.len() <= 5, "{name}: {} copies", copies.len());
        if let [.., last] = copies[..] {
            let spread = last.at.saturating_since(copies[0].at).as_secs_f64();
            assert!(spread > 5.0 || copies.len() < 5, "{name}: all copies within {spread} s");
        }
    }
}

#[test]
fn a_control_that_looks_for_a_dead_peer_first_looks_as_long() {
    // `rcoap` asks with pings before anything leaves, and has enough after 8 s by itself.
    let mut node = Node::new(config("rcoap"));
    let exchange = node.get();
    let begun = node.now;
    node.wait(1000.0);
    let sent = node.take();
    assert!(sent.iter().all(Datagram::is_probe));
    let at: Vec<f64> =
        sent.iter().map(|probe| probe.at.saturating_since(begun).as_secs_f64()).collect();
    let (given_up, failed, reason) = node.failed[0];
    assert_eq!((failed, reason), (exchange, Failure::GaveUp));
    let span = given_up.saturating_since(begun).as_secs_f64();
    assert!((45.0..60.0).contains(&span), "{span}");
    assert!(at.windows(2).all(|pair| pair[1] - pair[0] <= 10.0), "it does not stop asking: {at:?}");
    assert!(at.len() <= 40, "{} pings", at.len());
    node.assert_free();
}

#[test]
fn the_last_waits_are_stretched_and_the_first_ones_are_not() {
    let mut config = hasty(false);
    let at = |sent: &[Datagram]| -> Vec<f64> {
        let copies = sent.iter().filter(|datagram| !datagram.is_probe());
        copies.map(|copy| copy.at.saturating_since(sent[0].at).as_secs_f64()).collect()
    };
    config.params.ack_random_permille = 1000;
    // 2 s doubled four times from the first: 30 s.
    let (sent, span) = silence(config.clone(), 0, 0.1);
    let copies = at(&sent);
    // The floor of the shell twice, then a sixteenth and a quarter.
    assert_eq!(copies, [0.0, 0.01, 0.02, 0.02 + 30.0 / 16.0, 0.02 + 30.0 / 16.0 + 30.0 / 4.0]);
    assert!((span - 30.0).abs() < 1e-3, "{span}");
    // The key that switches it off leaves the control alone, but for PROCESSING_DELAY.
    config.study.patience = false;
    let (_, span) = silence(config, 0, 0.1);
    assert!(span < 2.1, "{span}");
}

/// What nobody asks for again when it is lost.
#[derive(Copy, Clone, Debug)]
enum Answer {
    Notification,
    SeparateResponse,
}

const ANSWERS: [Answer; 2] = [Answer::Notification, Answer::SeparateResponse];

/// Sends an answer after a hundred quick exchanges. Returns what left for it within so many seconds.
fn answered(config: EndpointConfig, answer: Answer, seconds: f64) -> (Node, Vec<Datagram>) {
    let mut node = Node::new(config);
    for _ in 0..100 {
        node.get();
        answer_all(&mut node, 0.011);
    }
    let state = content(Code::CONTENT, b"state");
    match answer {
        Answer::Notification => {
            let token = Token::new(b"t").unwrap();
            node.ep
                .notify(node.now, PEER, &token.into(), &state, Reliability::Confirmable)
                .unwrap();
        }
        Answer::SeparateResponse => {
            let mut asked = node.arrive(&[0x41, 1, 0, 1, b't']).request();
            node.ep.acknowledge(node.now, &mut asked);
            node.settle();
            node.take();
            node.ep.respond(node.now, &asked, &state).unwrap();
        }
    }
    node.settle();
    node.wait(seconds);
    let sent = node.take();
    (node, sent)
}

#[test]
fn under_every_control_a_notification_and_a_separate_response_outlast_a_minute_of_silence() {
    for (config, answer) in
        controls().into_iter().flat_map(|config| ANSWERS.map(|answer| (config.clone(), answer)))
    {
        let name = format!("{}, {answer:?}", config.control);
        // `default-b` is half as patient.
        let silence = if name.starts_with("default-b") { 30.0 } else { 60.0 };
        let (mut node, sent) = answered(config, answer, silence);
        let copies = sent.iter().filter(|datagram| !datagram.is_probe()).count();
        assert!(copies <= 5 && node.failed.is_empty(), "{name}: {copies}, {:?}", node.failed);
        for _ in 0..100 {
            node.wait(1.0);
            for sent in node.take() {
                node.arrive(&if sent.is_probe() { sent.rst() } else { sent.ack() });
            }
        }
        assert!(node.failed.is_empty(), "{name}");
        node.assert_free();
    }
}

#[test]
fn the_copies_of_an_answer_leave_at_a_sixteenth_a_quarter_and_the_end_of_max_transmit_wait() {
    for answer in ANSWERS {
        copies_leave_until_max_transmit_wait(answer);
    }
}

fn copies_leave_until_max_transmit_wait(answer: Answer) {
    let mut config = hasty(false);
    config.params.ack_random_permille = 1000;
    let (mut node, sent) = answered(config, answer, 200.0);
    let copies = sent.iter().map(|copy| copy.at.saturating_since(sent[0].at).as_secs_f64());
    // 2 s doubled five times from the first: 62 s.
    assert_eq!(copies.collect::<Vec<_>>(), [0.0, 0.01, 3.885, 19.385, 62.0]);
    // After the last copy the observer has PROCESSING_DELAY to answer.
    let span = node.failed[0].0.saturating_since(sent[0].at).as_secs_f64();
    assert!((span - 64.0).abs() < 1e-3, "{span}");
    node.assert_free();
}

#[test]
fn the_last_copy_of_an_answer_leaves_while_its_client_remembers_the_first() {
    for answer in ANSWERS {
        // MAX_TRANSMIT_WAIT is 1,860 s, EXCHANGE_LIFETIME 247 s and MAX_LATENCY 100 s.
        let (node, sent) = answered(config("default:ack-timeout=40s"), answer, 3000.0);
        let last = sent.last().unwrap().at.saturating_since(sent[0].at).as_secs_f64();
        assert!(last <= 147.0, "{answer:?}: {last}");
        assert_eq!(node.failed.len(), 1);
    }
}

#[test]
fn a_hundred_retransmissions_do_not_take_a_month() {
    let mut config = config("fasor-token");
    config.params.max_retransmit = 20;
    assert_eq!(Shell::patience(&config.params, &config.control.settings), secs(45.0));
}

#[test]
fn a_copy_leaves_only_as_long_as_the_peer_must_remember_the_first_however_late_timers_are() {
    // EXCHANGE_LIFETIME less MAX_LATENCY for what must not be done twice, else EXCHANGE_LIFETIME.
    for (code, last) in [(Code::POST, 147.0), (Code::PATCH, 147.0), (Code::GET, 247.0)] {
        for late in [0.0, 30.0, 100.0, 400.0] {
            let mut node = Node::new(config("default:ack-timeout=40s"));
            node.try_request(PEER, &content(code, b""), Reliability::Confirmable).unwrap();
            let begun = node.now;
            while let Some(due) = node.timeout {
                // The machine is busy: the timer is noticed only now.
                node.now = due + secs(late);
                node.ep.handle_timeout(node.now);
                node.settle();
            }
            let sent = node.take();
            let spans = sent.iter().map(|copy| copy.at.saturating_since(begun).as_secs_f64());
            let longest = spans.fold(0.0, f64::max);
            assert!(longest <= last, "{code}: a copy after {longest} s");
            assert_eq!(node.failures().len(), 1);
            node.assert_free();
        }
    }
}
