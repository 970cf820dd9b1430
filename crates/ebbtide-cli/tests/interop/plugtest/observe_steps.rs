//! TD_COAP_OBS.

use super::{PERIOD, Seen, Tester};
use ebbtide::client::Observation;
use ebbtide::{Code, ContentFormat, OptionNumber, Response};
use ebbtide_core::wire::Type;
use std::time::Duration;

/// States that may arrive between a request that ends an observation and the end.
const STATES_BEFORE_END: usize = 5;

pub(super) async fn all(tester: &Tester) {
    confirmable(tester).await;
    non_confirmable(tester).await;
    ends(tester).await;
    updates(tester).await;
    large(tester).await;
    if !tester.lossy {
        lost_state(tester).await;
    }
}

async fn observe(tester: &Tester, path: &str) -> Observation {
    tester.seen();
    tester.client.observe(tester.uri(path)).await.unwrap()
}

async fn next(observation: &mut Observation) -> Response {
    let next = tokio::time::timeout(Duration::from_secs(40), observation.next()).await;
    next.expect("a notification in time").expect("a notification").unwrap()
}

fn number(seen: &Seen) -> Option<u32> {
    seen.message().option(OptionNumber::OBSERVE)?.as_uint()
}

/// The notifications that were received, each once, the response to the registration among them.
fn notifications(seen: &[Seen]) -> Vec<&Seen> {
    let mut found: Vec<&Seen> = Vec::new();
    for seen in seen.iter().filter(|seen| !seen.sent && number(seen).is_some()) {
        if !found.iter().any(|before| before.id == seen.id) {
            found.push(seen);
        }
    }
    found
}

/// No notification but those that were on their way comes any more.
async fn is_quiet(tester: &Tester) {
    tokio::time::sleep(2 * PERIOD).await;
    tester.seen();
    tokio::time::sleep(2 * PERIOD).await;
    let seen = tester.seen();
    assert!(seen.iter().all(|seen| seen.sent || number(seen).is_none()), "{seen:?}");
}

/// TD_COAP_OBS_01, 11 and 12.
async fn confirmable(tester: &Tester) {
    let mut observation = observe(tester, "/obs").await;
    for _ in 0..4 {
        let state = next(&mut observation).await;
        assert_eq!(
            (state.code(), state.content_format()),
            (Code::CONTENT, Some(ContentFormat::TEXT))
        );
    }
    let seen = tester.seen();
    assert_eq!(number(&seen[0]), Some(0), "the registration");
    let found = notifications(&seen);
    assert!(found.iter().all(|seen| seen.token == found[0].token), "{seen:?}");
    let later: Vec<_> = found.iter().filter(|seen| seen.kind == Type::Confirmable).collect();
    assert!(later.len() >= 2, "{seen:?}");
    for pair in later.windows(2) {
        assert!(number(pair[0]) < number(pair[1]), "{seen:?}");
        let acknowledged =
            |seen: &Seen| seen.sent && (seen.kind, seen.id) == (Type::Acknowledgement, pair[0].id);
        assert!(seen.iter().any(acknowledged), "{seen:?}");
    }
    observation.cancel().await.unwrap();
    let seen = tester.seen();
    let cancelled = |seen: &&Seen| seen.sent && number(seen) == Some(1);
    let cancelled = seen.iter().find(cancelled).expect("GET with Observe 1");
    let confirmed = |seen: &Seen| !seen.sent && seen.id == cancelled.id;
    let confirmed = seen.iter().find(|seen| confirmed(seen)).expect("its response");
    assert_eq!((confirmed.code, number(confirmed)), (Code::CONTENT, None));
    is_quiet(tester).await;
}

/// TD_COAP_OBS_02 and 06: what a client does not want any more, it resets.
async fn non_confirmable(tester: &Tester) {
    let mut observation = observe(tester, "/obs-non").await;
    for _ in 0..3 {
        assert_eq!(next(&mut observation).await.code(), Code::CONTENT);
    }
    let seen = tester.seen();
    let found = notifications(&seen);
    assert!(found.iter().any(|seen| seen.kind == Type::NonConfirmable), "{seen:?}");
    drop(observation);
    if tester.lossy {
        // Losses may take the notification, or its Reset: until one arrives.
        tokio::time::sleep(6 * PERIOD).await;
        return;
    }
    let reset = async {
        while !tester.seen().iter().any(|seen| seen.sent && seen.kind == Type::Reset) {
            tokio::time::sleep(PERIOD / 4).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(20), reset).await.expect("a Reset");
    is_quiet(tester).await;
}

/// TD_COAP_OBS_07 and 08: the server ends observations with an error.
async fn ends(tester: &Tester) {
    let put = |format| {
        tester
            .request(Code::PUT, "/obs")
            .payload("{}")
            .format(format)
            .timeout(Duration::from_secs(40))
    };
    let delete = tester.request(Code::DELETE, "/obs").timeout(Duration::from_secs(40));
    let reasons = [
        (delete, Code::DELETED, Code::NOT_FOUND),
        (put(ContentFormat::JSON), Code::CHANGED, Code::NOT_ACCEPTABLE),
    ];
    for (request, response, error) in reasons {
        let mut observation = observe(tester, "/obs").await.end_at_error();
        next(&mut observation).await;
        next(&mut observation).await;
        let last = 'ended: loop {
            let answered = tester.client.request(request.clone()).await.unwrap();
            assert_eq!(answered.code(), response);
            for _ in 0..STATES_BEFORE_END {
                let state = next(&mut observation).await;
                if !state.is_success() {
                    break 'ended state;
                }
            }
            // If the notification before it is lost, Californium's server replaces the error that waits
            // behind it by the next state, and the observation goes on.
            assert!(tester.lossy, "the observation does not end");
        };
        assert_eq!(last.code(), error);
        assert!(last.options().iter().all(|option| option.number != OptionNumber::OBSERVE));
        assert!(observation.next().await.is_none());
    }
}

/// TD_COAP_OBS_09 and 10.
async fn updates(tester: &Tester) {
    // Until the server's next state it has the format that TD_COAP_OBS_08 has put there.
    while tester.get("/obs").await.0.content_format() != Some(ContentFormat::TEXT) {
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    let mut observation = observe(tester, "/obs").await;
    next(&mut observation).await;
    let (plain, seen) = tester.get("/obs").await;
    assert_eq!(plain.code(), Code::CONTENT);
    let asked = seen.iter().find(|seen| seen.sent && seen.code == Code::GET).unwrap();
    assert_eq!(number(asked), None);
    let answer = seen.iter().find(|seen| !seen.sent && seen.id == asked.id).unwrap();
    assert_eq!(number(answer), None);
    next(&mut observation).await;
    // What is lost on the way may be overtaken by the next state, which is as good.
    for _ in 0..20 {
        let put =
            tester.request(Code::PUT, "/obs").payload("a new state").format(ContentFormat::TEXT);
        assert_eq!(tester.ask(put).await.0.code(), Code::CHANGED);
        if next(&mut observation).await.text() == "a new state" {
            observation.cancel().await.unwrap();
            return;
        }
    }
    panic!("the new state was never seen");
}

/// TD_COAP_OBS_13 and 14.
async fn large(tester: &Tester) {
    let mut observation = observe(tester, "/obs-large").await;
    for _ in 0..3 {
        let state = next(&mut observation).await;
        let text = state.text().into_owned();
        assert!(text.len() > 64, "{text}");
    }
    observation.cancel().await.unwrap();
    let request = tester.request(Code::GET, "/obs-pumping").block_size(64);
    let mut observation = tester.client.observe_with(request).await.unwrap();
    let (mut short, mut long) = (0, 0);
    for _ in 0..40 {
        let length = next(&mut observation).await.body().len();
        if length > 64 {
            long += 1
        } else {
            short += 1
        }
        if short > 0 && long > 0 {
            break;
        }
    }
    assert!(short > 0 && long > 0, "{short} short states, {long} long ones");
    observation.cancel().await.unwrap();
}

/// TD_COAP_OBS_04: a server that has lost its observers says nothing, and is asked again.
async fn lost_state(tester: &Tester) {
    let mut observation = observe(tester, "/obs").await;
    next(&mut observation).await;
    next(&mut observation).await;
    let seen = tester.seen();
    let token = seen.iter().find(|seen| seen.sent).unwrap().token;
    let reset = tester.request(Code::POST, "/obs-reset").payload("sesame");
    assert_eq!(tester.ask(reset).await.0.code(), Code::CHANGED);
    tokio::time::sleep(2 * PERIOD).await;
    tester.seen();
    let again = async {
        loop {
            next(&mut observation).await;
            let seen = tester.seen();
            if let Some(again) = seen.iter().find(|seen| seen.sent && number(seen) == Some(0)) {
                return again.token;
            }
        }
    };
    let again = tokio::time::timeout(Duration::from_secs(30), again).await;
    assert_eq!(again.expect("it registers again"), token);
    next(&mut observation).await;
    observation.cancel().await.unwrap();
}
