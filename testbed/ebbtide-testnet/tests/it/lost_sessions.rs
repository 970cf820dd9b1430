//! What becomes of open requests when another DTLS session takes the place of the one over which
//! they were sent. Message IDs belong to a session (RFC 7252 section 9.1.1), so the server takes a
//! copy in the other session for another request.

use ebbtide::dtls::{Credentials, DtlsBind, Psk};
use ebbtide::server::{Call, Router, post};
use ebbtide::{Client, Code, Error, ErrorKind, Request, Response, Server, UriError};
use ebbtide_testnet::{Conditions, TestNetwork, play};
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::task::JoinHandle;
use tokio::time::sleep;

const SERVER: [u8; 4] = [10, 0, 0, 1];
const DEVICE: [u8; 4] = [10, 2, 0, 1];
const SECOND: Duration = Duration::from_secs(1);
/// Longer than any copy is under way.
const AFTERWARDS: Duration = Duration::from_secs(300);
/// The alert of a server that does not know a session, as anybody can send it: bad_record_mac.
const UNKNOWN: [u8; 15] = [21, 254, 253, 0, 0, 0, 0, 0, 0, 0, 0, 0, 2, 2, 20];

type Method = fn(&'static str) -> Result<Request, UriError>;
type Done = Arc<Mutex<Vec<String>>>;

struct Story {
    network: TestNetwork,
    client: Client,
    done: Done,
    conditions: Conditions,
}

impl Story {
    /// A device that has a session.
    async fn begin(network: TestNetwork, conditions: Conditions) -> Self {
        let done = Done::default();
        let record = done.clone();
        let keys = |_: &[u8]| Psk::new(b"key").ok();
        let config = network.server_config().bind_dtls(DtlsBind::new((SERVER, 5684), keys));
        let store = move |call: &Call<'_>| {
            record.lock().unwrap().push(String::from_utf8_lossy(call.payload()).into_owned());
            Response::new(Code::CHANGED)
        };
        let router = Router::new().route("/x", post(store.clone()).put(store));
        let none: [&str; 0] = [];
        tokio::spawn(Server::with_config(router, config, none).unwrap().run());
        let credentials = Credentials::new("device", Psk::new(b"key").unwrap());
        let config = network.client_config().credentials(credentials);
        let client = Client::with_config(config.local_address(SocketAddr::from((DEVICE, 40_000))));
        let story = Self { network, client, done, conditions };
        story.ask(Request::post, "first").await.unwrap().unwrap();
        story
    }

    fn ask(&self, method: Method, name: &'static str) -> JoinHandle<Result<Response, Error>> {
        let request = method("coaps://10.0.0.1/x").unwrap().payload(name);
        let client = self.client.clone();
        tokio::spawn(async move { client.request(request).await })
    }

    /// The server's answers are lost for three seconds, then it seems to have forgotten the session.
    async fn lose_session(&self) {
        self.network.set_direction(SERVER, DEVICE, self.conditions.clone().loss(1.0));
        sleep(3 * SECOND).await;
        self.network.set_direction(SERVER, DEVICE, self.conditions.clone());
        self.network.forge((SERVER, 5684).into(), (DEVICE, 40_000).into(), &UNKNOWN);
    }

    fn times_done(&self, name: &str) -> usize {
        self.done.lock().unwrap().iter().filter(|done| *done == name).count()
    }
}

/// With the longer delay a retransmission waits for the handshake.
fn with_delays(test: impl AsyncFn(Story)) {
    for millis in [10, 1200] {
        let delay = Duration::from_millis(millis);
        let conditions = Conditions::new().delay(delay..=delay);
        let begin = conditions.clone();
        play(1, conditions, async |network| test(Story::begin(network, begin.clone()).await).await);
    }
}

#[test]
fn a_request_that_is_not_idempotent_fails_with_its_session_and_is_not_done_twice() {
    with_delays(async |story| {
        let sent = story.ask(Request::post, "sent");
        story.lose_session().await;
        let error = sent.await.unwrap().unwrap_err();
        assert_eq!((error.kind(), error.may_retry()), (ErrorKind::Connection, true), "{error}");
        sleep(AFTERWARDS).await;
        assert_eq!(story.times_done("sent"), 1);
    });
}

#[test]
fn a_request_that_has_not_left_yet_goes_on_in_the_next_session() {
    with_delays(async |story| {
        // NSTART is 1 (RFC 7252 section 4.7): it waits for the end of the other.
        let sent = story.ask(Request::post, "sent");
        let queued = story.ask(Request::post, "queued");
        story.lose_session().await;
        assert_eq!(sent.await.unwrap().unwrap_err().kind(), ErrorKind::Connection);
        assert_eq!(queued.await.unwrap().unwrap().code(), Code::CHANGED);
        sleep(AFTERWARDS).await;
        assert_eq!((story.times_done("sent"), story.times_done("queued")), (1, 1));
    });
}

#[test]
fn an_idempotent_request_is_repeated_in_the_next_session() {
    with_delays(async |story| {
        let sent = story.ask(Request::put, "sent");
        story.lose_session().await;
        assert_eq!(sent.await.unwrap().unwrap().code(), Code::CHANGED);
        assert!(story.times_done("sent") > 1);
    });
}
