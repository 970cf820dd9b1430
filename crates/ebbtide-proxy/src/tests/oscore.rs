//! Messages that are protected end to end pass through untouched (RFC 8613).

use super::config;
use ebbtide::oscore::{OscoreContext, OscoreContexts};
use ebbtide::server::{Call, Router, get};
use ebbtide::{Client, ClientConfig, Code, OptionNumber, Request, Server, ServerConfig};

const SECRET: &[u8; 16] = b"sixteen bytes 16";

fn contexts(own: &[u8], peer: &[u8]) -> OscoreContexts {
    OscoreContexts::new([OscoreContext::new(SECRET, own, peer)]).unwrap()
}

#[tokio::test]
async fn a_protected_request_reaches_the_server_and_its_answer_the_client() {
    let router =
        Router::new().route("/secret", get(|call: &Call<'_>| format!("for you: {}", call.path())));
    let protected = ServerConfig::new().oscore(contexts(b"s", b"c")).oscore_required(true);
    let server = Server::with_config(router, protected, ["127.0.0.1:0"]).unwrap();
    let address = server.local_addrs()[0];
    tokio::spawn(server.run());
    let proxy = super::serve(crate::Gateway::new(config()).router());
    let through = |client: Client| {
        let request = Request::get(format!("coap://{proxy}/secret")).unwrap();
        let request = request
            .option(OptionNumber::URI_HOST, b"127.0.0.1")
            .option(OptionNumber::URI_PORT, &address.port().to_be_bytes())
            .option(OptionNumber::PROXY_SCHEME, b"coap");
        async move { client.request(request).await.unwrap() }
    };
    let client = Client::with_config(ClientConfig::new().oscore(contexts(b"c", b"s")));
    for _ in 0..3 {
        let answer = through(client.clone()).await;
        assert_eq!((answer.code(), answer.text().as_ref()), (Code::CONTENT, "for you: /secret"));
    }
    assert_eq!(through(Client::new()).await.code(), Code::UNAUTHORIZED);
}

#[tokio::test]
async fn an_option_that_no_endpoint_knows_passes_if_it_is_critical_and_safe() {
    let seen = |call: &Call<'_>| call.message().option(OptionNumber(65001)).is_some().to_string();
    let server = super::serve(Router::new().route("/r", get(seen)));
    let through = super::Through::gateway(config());
    let request = through.get(&format!("coap://{server}/r")).option(OptionNumber(65001), b"x");
    // The server does not understand it, and says so; the proxy has not.
    let answer = through.send(request.clone()).await;
    assert_eq!((answer.code(), answer.text().as_ref()), (Code::BAD_OPTION, "option 65001"));
    let direct = Request::get(format!("coap://{}/", through.proxy))
        .unwrap()
        .option(OptionNumber(65001), b"x");
    assert_eq!(
        through.send(direct).await.code(),
        Code::BAD_OPTION,
        "a request to the proxy itself"
    );
}
