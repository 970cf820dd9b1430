//! What a client does about paths that fail for a while, and for how long it waits.

use ebbtide::server::{Call, Router, Server, put};
use ebbtide::{Client, Code, Request, Response};
use ebbtide_testnet::{Conditions, play};
use std::net::Ipv4Addr;
use std::time::Duration;
use tokio::time::sleep;

const SERVER: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 1);
const DEVICE: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 2);

#[test]
fn an_upload_goes_on_after_a_silence_that_outlasts_the_retransmissions() {
    play(1, Conditions::new(), async |network| {
        let echo = |call: &Call<'_>| Response::new(Code::CHANGED).payload(call.payload().to_vec());
        let router = Router::new().route("/file", put(echo));
        let server =
            Server::with_config(router, network.server_config(), ["10.0.0.1:5683"]).unwrap();
        tokio::spawn(server.run());
        let body: Vec<u8> = (0..40_000u32).map(|n| (n / 7) as u8).collect();
        let request = Request::put("coap://10.0.0.1/file").unwrap().payload(body.clone());
        let request = request.timeout(Duration::from_secs(600));
        let client = Client::with_config(network.client_config().local_address((DEVICE, 0).into()));
        let uploading = tokio::spawn(async move { client.request(request).await });
        while network.trace().packets().len() < 20 {
            sleep(Duration::from_millis(1)).await;
        }
        network.cut(SERVER, DEVICE);
        // Five transmissions are given up after at most 93 s (MAX_TRANSMIT_WAIT).
        sleep(Duration::from_secs(120)).await;
        assert!(!uploading.is_finished());
        network.restore();
        let answer = uploading.await.unwrap().unwrap();
        assert_eq!(answer.code(), Code::CHANGED);
        assert!(*answer.body() == body);
    });
}

#[test]
fn an_unanswered_request_fails_when_the_message_layer_gives_up() {
    play(2, Conditions::new(), async |network| {
        let client = Client::with_config(network.client_config());
        let error = client.put("coap://10.0.0.9/", "").await.unwrap_err();
        assert!(error.is_timeout() && error.may_retry() && !error.is_connect(), "{error}");
        // Neither before MAX_TRANSMIT_SPAN nor after EXCHANGE_LIFETIME (RFC 7252 section 4.8.2).
        let waited = network.elapsed().as_secs();
        assert!((45..=247).contains(&waited), "{waited}");
    });
}

#[test]
fn a_non_confirmable_request_is_waited_for_as_long_as_a_confirmable_one_is_repeated() {
    play(3, Conditions::new(), async |network| {
        let request = Request::get("coap://10.0.0.9/").unwrap().non_confirmable();
        let ended = Client::with_config(network.client_config()).request(request).await;
        assert!(ended.is_err_and(|error| error.is_timeout()));
        assert_eq!(network.elapsed().as_secs(), 45);
    });
}
