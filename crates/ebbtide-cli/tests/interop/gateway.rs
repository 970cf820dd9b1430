//! `ebbtide proxy` between clients and servers of others, also where a tenth of all datagrams is lost on both sides of it.

use super::libcoap;
use super::our_server::{DIGITS, serve};
use super::peers::{
    EBBTIDE, LOSING, Running, answers_pings, ebbtide, free_address, output, present,
};
use super::relay::relay;
use ebbtide::{Client, OptionNumber, Request};
use std::net::SocketAddr;

/// Starts a gateway for loopback that stores nothing. Returns its addresses for CoAP and for HTTP.
fn gateway() -> (Running, SocketAddr, SocketAddr) {
    let (coap, http) = (free_address("127.0.0.1"), free_address("127.0.0.1"));
    let (at, http_at) = (coap.to_string(), http.to_string());
    let proxy = ["proxy", "--allow", "127.0.0.0/8", "--cache", "0", "--bind", &at];
    let (running, _) = Running::ready(EBBTIDE, &[&proxy[..], &["--http", &http_at]].concat());
    (running, coap, http)
}

#[tokio::test]
async fn requests_of_libcoap_and_curl_reach_libcoap_through_it_although_datagrams_are_lost() {
    if !libcoap::found() {
        return;
    }
    let (_server, server) = libcoap::served("127.0.0.1", &Client::new()).await;
    let (_gateway, coap, http) = gateway();
    let far = relay(server, LOSING, 1).await;
    let near = format!("coap://{}", relay(coap, LOSING, 2).await);
    let uri = format!("coap://{far}/.well-known/core");
    for _ in 0..12 {
        let args = ["-B", "60", "-P", &near, &uri];
        let asked = output("coap-client-notls", &args).await;
        let said = String::from_utf8_lossy(&asked.stdout).into_owned();
        assert!(said.contains("</time>"), "{said} {}", String::from_utf8_lossy(&asked.stderr));
    }
    if !present("curl", output("curl", &["--version"]).await.status.success()) {
        return;
    }
    let asked = output("curl", &["-sS", &format!("http://{http}/hc/{uri}")]).await;
    let said = String::from_utf8_lossy(&asked.stdout).into_owned();
    assert!(said.contains("</time>"), "{said} {}", String::from_utf8_lossy(&asked.stderr));
}

#[tokio::test]
async fn it_and_the_proxy_of_libcoap_forward_to_each_other() {
    if !libcoap::found() {
        return;
    }
    let ours = serve("127.0.0.1");
    let (_gateway, gateway, _) = gateway();
    // libcoap's proxy hands everything on to the gateway.
    let theirs = free_address("127.0.0.1");
    let (port, next) = (theirs.port().to_string(), format!("coap://{gateway},libcoap"));
    let args = ["-A", "127.0.0.1", "-p", &port, "-P", &next];
    let _theirs = Running::silent("coap-server-notls", &args);
    let client = Client::new();
    answers_pings(&client, &format!("coap://{theirs}")).await;
    let asked = |proxy: SocketAddr| {
        let request = Request::get(format!("coap://{proxy}/")).unwrap();
        request.option(OptionNumber::PROXY_URI, format!("coap://{}/test", ours.address).as_bytes())
    };
    assert_eq!(client.request(asked(theirs)).await.unwrap().text(), DIGITS);
    // A path of the gateway stands for libcoap's proxy, whose own resource is requested.
    let own = free_address("127.0.0.1");
    let (at, backend) = (own.to_string(), format!("/theirs=coap://{theirs}/"));
    let (_other, _) = Running::ready(EBBTIDE, &["proxy", "--bind", &at, "--backend", &backend]);
    let uri = format!("coap://{own}/theirs/.well-known/core");
    assert!(ebbtide(&["get", &uri]).await.contains("</time>"));
}
