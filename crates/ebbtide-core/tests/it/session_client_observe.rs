//! Observations from the client's side, against a server that answers by a script.

use crate::common::transfer::{block, get, put};
use ebbtide_core::session::client::{
    Loss, Observation, ObservationSettings, ObservationStep, Outgoing, TransferError,
    TransferSettings,
};
use ebbtide_core::session::{BlockSizes, Response};
use ebbtide_core::time::{Duration, Instant};
use ebbtide_core::wire::{Code, OptionNumber};
use rand_chacha::ChaCha8Rng;
use rand_core::SeedableRng;

const SECOND: Duration = Duration::from_secs(1);

fn transfer() -> TransferSettings {
    TransferSettings::new(BlockSizes::of_datagrams(64), 1 << 20)
}

/// Drives one observation.
struct Driver {
    observation: Observation,
    now: Instant,
    rng: ChaCha8Rng,
}

impl Driver {
    fn new(change: impl FnOnce(&mut ObservationSettings)) -> Self {
        let mut settings = ObservationSettings {
            transfer: transfer(),
            timeout: None,
            ordered: false,
            end_at_error: false,
        };
        change(&mut settings);
        let rng = ChaCha8Rng::seed_from_u64(3);
        Self { observation: Observation::new(get(), settings), now: Instant::ZERO, rng }
    }

    fn poll(&mut self) -> ObservationStep {
        self.observation.poll(self.now, &mut self.rng)
    }

    fn sent(&mut self) -> (Outgoing, Option<u32>) {
        match self.poll() {
            ObservationStep::Send { outgoing, again } => (outgoing, again),
            other => panic!("{other:?}"),
        }
    }

    fn answer(&mut self, id: u32, response: Response, more: bool) {
        self.observation.handle_response(self.now, id, response, more);
    }

    fn state(&mut self) -> String {
        match self.poll() {
            ObservationStep::State(response) => response.text().into_owned(),
            other => panic!("{other:?}"),
        }
    }

    /// Lets time pass until something else than waiting is to be done.
    fn wait(&mut self) -> ObservationStep {
        loop {
            match self.poll() {
                ObservationStep::Wait(Some(at)) => self.now = at,
                other => return other,
            }
        }
    }

    /// Registers, with this first state.
    fn registered(&mut self, state: &str) -> u32 {
        let (sent, again) = self.sent();
        assert_eq!((sent.options.get_uint(OptionNumber::OBSERVE), again), (Some(0), None));
        self.answer(sent.id, notification(state, 1), true);
        assert_eq!(self.state(), state);
        sent.id
    }
}

fn notification(state: &str, sequence: u32) -> Response {
    let mut response = Response::content(state.to_owned()).max_age(60);
    response.options_mut().push_uint(OptionNumber::OBSERVE, sequence);
    response
}

/// The first of two blocks of a state.
fn first_block(sequence: u32) -> Response {
    let mut response = notification(&"a".repeat(64), sequence).etag(&[sequence as u8]);
    response.options_mut().push_uint(OptionNumber::BLOCK2, block(0, true, 64));
    response
}

fn second_block(sequence: u32) -> Response {
    let mut response = Response::content(format!("b{sequence}")).etag(&[sequence as u8]);
    response.options_mut().push_uint(OptionNumber::BLOCK2, block(1, false, 64));
    response
}

#[test]
fn states_come_out_unless_others_overtook_them() {
    let mut driver = Driver::new(|_| ());
    let id = driver.registered("1");
    for (sequence, fresh) in [(2, true), (5, true), (3, false), (6, true)] {
        driver.answer(id, notification(&sequence.to_string(), sequence), true);
        if fresh {
            assert_eq!(driver.state(), sequence.to_string());
        }
        assert!(matches!(driver.poll(), ObservationStep::Wait(Some(_))));
    }
}

/// Whether a state with the default Max-Age that arrived at the beginning is renewed at this time.
fn is_renewal(now: Instant) -> bool {
    (Instant::ZERO + 65 * SECOND..=Instant::ZERO + 75 * SECOND).contains(&now)
}

#[test]
fn clients_that_received_the_same_state_do_not_all_renew_at_once() {
    let renewed: Vec<_> = (0..100)
        .map(|seed| {
            let mut driver = Driver::new(|_| ());
            driver.rng = ChaCha8Rng::seed_from_u64(seed);
            driver.registered("1");
            let ObservationStep::Send { .. } = driver.wait() else { panic!("it is renewed") };
            assert!(is_renewal(driver.now), "{:?}", driver.now);
            driver.now
        })
        .collect();
    let within = |second: u32| {
        let from = Instant::ZERO + second * SECOND;
        renewed.iter().filter(|at| (from..from + SECOND).contains(at)).count()
    };
    assert!((65..75).all(|second| (1..=25).contains(&within(second))), "{renewed:?}");
}

#[test]
fn a_registration_is_renewed_under_its_token_when_the_last_state_is_old() {
    let mut driver = Driver::new(|_| ());
    let id = driver.registered("1");
    let ObservationStep::Send { outgoing, again } = driver.wait() else { panic!("it is renewed") };
    assert!(is_renewal(driver.now));
    assert_eq!((outgoing.options.get_uint(OptionNumber::OBSERVE), again), (Some(0), Some(id)));
    driver.answer(outgoing.id, notification("2", 1), true);
    assert_eq!(driver.state(), "2");
    driver.answer(outgoing.id, notification("3", 2), true);
    assert_eq!(driver.state(), "3");
}

#[test]
fn a_long_state_comes_whole_and_the_latest_that_came_meanwhile_follows() {
    let mut driver = Driver::new(|_| ());
    let id = driver.registered("1");
    driver.answer(id, first_block(2), true);
    let (sent, again) = driver.sent();
    assert_eq!(
        (sent.options.get_uint(OptionNumber::BLOCK2), again),
        (Some(block(1, false, 64)), None)
    );
    assert_eq!(sent.options.get_uint(OptionNumber::OBSERVE), None);
    driver.answer(id, notification("3", 3), true);
    driver.answer(id, notification("4", 4), true);
    driver.answer(sent.id, second_block(2), false);
    assert_eq!(driver.state(), format!("{}b2", "a".repeat(64)));
    assert_eq!(driver.state(), "4");
    assert!(matches!(driver.poll(), ObservationStep::Wait(Some(_))));
}

#[test]
fn a_lost_registration_is_made_again_when_the_server_has_been_found_again() {
    let mut driver = Driver::new(|_| ());
    let id = driver.registered("1");
    driver.observation.handle_loss(driver.now, id, Loss::Final);
    let mut pauses = Vec::new();
    for _ in 0..8 {
        let before = driver.now;
        assert!(matches!(driver.wait(), ObservationStep::Renew));
        pauses.push(driver.now.saturating_since(before).as_secs());
        driver.observation.not_renewed();
    }
    // Twice as long each time, up to half as long again drawn at random.
    for (pause, least) in pauses.iter().zip([1u64, 2, 4, 8, 16, 32, 32, 32]) {
        assert!((least..least + least.div_ceil(2)).contains(pause), "{pauses:?}");
    }
    assert!(matches!(driver.wait(), ObservationStep::Renew));
    driver.observation.renewed(transfer());
    let again = driver.registered("2");
    assert_ne!(again, id);
}

#[test]
fn an_error_ends_it_for_those_who_want_that_and_at_the_first_registration_for_all() {
    let mut driver = Driver::new(|settings| settings.end_at_error = true);
    let id = driver.registered("1");
    driver.observation.handle_loss(driver.now, id, Loss::Unanswered);
    assert!(matches!(driver.poll(), ObservationStep::Failed(TransferError::Lost)));
    assert!(matches!(driver.poll(), ObservationStep::Over));

    let mut driver = Driver::new(|_| ());
    let (sent, _) = driver.sent();
    driver.observation.handle_loss(driver.now, sent.id, Loss::Unanswered);
    assert!(matches!(driver.poll(), ObservationStep::Failed(TransferError::Lost)));
}

#[test]
fn the_time_that_the_caller_gave_holds_for_the_first_answer() {
    let mut driver = Driver::new(|settings| settings.timeout = Some(3 * SECOND));
    let (sent, _) = driver.sent();
    assert!(matches!(driver.wait(), ObservationStep::Cancel(id) if id == sent.id));
    assert!(matches!(driver.wait(), ObservationStep::Failed(TransferError::TimedOut)));
    assert_eq!(driver.now, Instant::ZERO + 3 * SECOND);
    // Once it is registered there may be no change for longer.
    let mut driver = Driver::new(|settings| settings.timeout = Some(3 * SECOND));
    driver.registered("1");
    let ObservationStep::Send { .. } = driver.wait() else { panic!("it is renewed") };
    assert!(is_renewal(driver.now));
}

#[test]
fn an_observation_without_registration_gives_one_state() {
    let mut driver = Driver::new(|_| ());
    let (sent, _) = driver.sent();
    driver.answer(sent.id, Response::content("once"), false);
    assert_eq!(driver.state(), "once");
    assert!(matches!(driver.poll(), ObservationStep::Over));
}

#[test]
fn an_error_of_the_server_is_the_last_state() {
    let mut driver = Driver::new(|_| ());
    let id = driver.registered("1");
    driver.answer(id, Response::new(Code::NOT_FOUND), false);
    let ObservationStep::State(last) = driver.poll() else { panic!("it is told") };
    assert_eq!(last.code(), Code::NOT_FOUND);
    assert!(matches!(driver.poll(), ObservationStep::Over));
}

#[test]
fn a_server_that_is_not_ready_is_asked_again_after_its_max_age() {
    for code in [Code::SERVICE_UNAVAILABLE, Code::TOO_MANY_REQUESTS] {
        let mut driver = Driver::new(|_| ());
        let id = driver.registered("1");
        driver.answer(id, Response::new(code).max_age(7), false);
        assert!(matches!(driver.wait(), ObservationStep::Renew));
        // And up to 1.5 s, so that those refused at one time do not come back at one time.
        let waited = driver.now.saturating_since(Instant::ZERO);
        assert!((8 * SECOND..=9 * SECOND).contains(&waited), "{code}: {waited:?}");
    }
}

#[test]
fn no_max_age_silences_an_observer_for_more_than_a_day() {
    let day = 86_400 * SECOND;
    for (response, longest) in [
        (Response::new(Code::SERVICE_UNAVAILABLE), day + 2 * SECOND),
        (Response::new(Code::TOO_MANY_REQUESTS), day + 2 * SECOND),
        (notification("2", 2), day + 15 * SECOND),
    ] {
        let mut driver = Driver::new(|_| ());
        let id = driver.registered("1");
        let is_state = response.is_success();
        driver.answer(id, response.max_age(u32::MAX), is_state);
        loop {
            match driver.wait() {
                ObservationStep::State(_) => {}
                // 136 years have passed otherwise.
                ObservationStep::Renew | ObservationStep::Send { .. } => break,
                step => panic!("{step:?}"),
            }
        }
        let waited = driver.now.saturating_since(Instant::ZERO);
        assert!((day..=longest).contains(&waited), "{waited:?}");
    }
}

#[test]
fn a_server_that_is_not_ready_and_names_no_time_is_asked_again_after_growing_pauses() {
    let mut driver = Driver::new(|_| ());
    let mut id = driver.registered("1");
    let mut pauses = Vec::new();
    for _ in 0..8 {
        let refused = driver.now;
        driver.answer(id, Response::new(Code::SERVICE_UNAVAILABLE).max_age(0), false);
        assert!(matches!(driver.wait(), ObservationStep::Renew));
        pauses.push(driver.now.saturating_since(refused));
        driver.observation.renewed(transfer());
        id = driver.sent().0.id;
    }
    // 1, 2, 4 and up to 32 s, lengthened by up to half.
    for (failures, pause) in pauses.iter().enumerate() {
        let least = SECOND * (1 << failures.min(5));
        assert!((least..=least * 3 / 2).contains(pause), "{pauses:?}");
    }
}

#[test]
fn a_cancelled_observation_is_over_when_the_server_knows() {
    let mut driver = Driver::new(|_| ());
    let id = driver.registered("1");
    driver.observation.cancel();
    let (sent, again) = driver.sent();
    assert_eq!((sent.options.get_uint(OptionNumber::OBSERVE), again), (Some(1), Some(id)));
    assert!(matches!(driver.poll(), ObservationStep::Wait(None)));
    driver.answer(sent.id, Response::content("1"), false);
    assert!(matches!(driver.wait(), ObservationStep::Cancel(_)));
    assert!(matches!(driver.wait(), ObservationStep::Over));
    // One that was never registered needs no message.
    let mut driver = Driver::new(|_| ());
    let (sent, _) = driver.sent();
    driver.observation.cancel();
    assert!(matches!(driver.poll(), ObservationStep::Cancel(id) if id == sent.id));
    assert!(matches!(driver.poll(), ObservationStep::Over));
}

#[test]
fn a_long_fetch_registers_with_its_last_block() {
    let mut request = put(150);
    request.code = Code::FETCH;
    let settings = ObservationSettings {
        transfer: transfer(),
        timeout: None,
        ordered: false,
        end_at_error: false,
    };
    let observation = Observation::new(request, settings);
    let mut driver = Driver { observation, ..Driver::new(|_| ()) };
    for num in 0..3 {
        let (sent, _) = driver.sent();
        let more = num < 2;
        assert_eq!(sent.options.get_uint(OptionNumber::BLOCK1), Some(block(num, more, 64)));
        let observe = sent.options.get_uint(OptionNumber::OBSERVE);
        assert_eq!(observe, (!more).then_some(0));
        let mut answer = if more { Response::new(Code::CONTINUE) } else { notification("1", 1) };
        answer.options_mut().push_uint(OptionNumber::BLOCK1, block(num, more, 64));
        driver.answer(sent.id, answer, !more);
    }
    assert_eq!(driver.state(), "1");
    assert!(matches!(driver.poll(), ObservationStep::Wait(Some(_))));
}

#[test]
fn a_notification_that_asks_for_an_echo_is_followed_by_a_registration_with_it() {
    let mut driver = Driver::new(|_| ());
    let (first, _) = driver.sent();
    let mut answer = Response::content("1");
    answer.options_mut().push_uint(OptionNumber::OBSERVE, 1);
    driver.answer(first.id, answer, true);
    assert_eq!(driver.state(), "1");
    // It is an error: nothing follows it.
    let challenge = Response::new(Code::UNAUTHORIZED).option(OptionNumber::ECHO, b"echo");
    driver.answer(first.id, challenge, false);
    let (again, _) = driver.sent();
    assert_eq!(again.options.get(OptionNumber::ECHO).map(|echo| echo.value), Some(&b"echo"[..]));
    assert_eq!(again.options.get_uint(OptionNumber::OBSERVE), Some(0));
    let mut answer = Response::content("2");
    answer.options_mut().push_uint(OptionNumber::OBSERVE, 2);
    driver.answer(again.id, answer, true);
    assert_eq!(driver.state(), "2");
    assert!(matches!(driver.poll(), ObservationStep::Wait(Some(_))), "it is registered");
}

#[test]
fn a_registration_that_is_renewed_while_a_state_is_fetched_mixes_no_answers() {
    let mut driver = Driver::new(|_| ());
    let (first, _) = driver.sent();
    let observed = |response: Response, number| {
        let mut response = response.max_age(0);
        response.options_mut().push_uint(OptionNumber::OBSERVE, number);
        response
    };
    driver.answer(first.id, observed(Response::content("1"), 1), true);
    assert_eq!(driver.state(), "1");
    let part = |num, more| {
        let mut response = Response::content(vec![b'2'; 64]);
        response.options_mut().push_uint(OptionNumber::BLOCK2, block(num, more, 64));
        response
    };
    driver.answer(first.id, observed(part(0, true), 2), true);
    let (second_block, _) = driver.sent();
    // The state is stale before all of it is here.
    driver.now = driver.now + SECOND.saturating_mul(20);
    let (renewal, again) = driver.sent();
    assert_eq!(again, Some(first.id));
    driver.answer(second_block.id, part(1, true), false);
    let (third_block, again) = driver.sent();
    assert_eq!(again, None);
    assert_ne!(third_block.id, renewal.id, "two exchanges of one name");
    driver.answer(third_block.id, part(2, false), false);
    assert_eq!(driver.state(), "2".repeat(192));
    driver.answer(renewal.id, observed(Response::content("3"), 3), true);
    assert_eq!(driver.state(), "3");
}
