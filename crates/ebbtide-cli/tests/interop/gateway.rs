//! `ebbtide proxy` between clients and servers of others, also where a tenth of all datagrams is
//! lost on both sides of it.

use super::libcoap;
use super::our_client::{Manners, ask_lossy};
use super::our_server::{DIGITS, serve};
use super::peers::{
    EBBTIDE, LOSING, Peer, Running, answers_pings, ebbtide, free_address, output, present,
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

/// Starts a gateway that stands for a server, and stores nothing.
fn reverse(server: SocketAddr) -> (Running, SocketAddr) {
    let own = free_address("127.0.0.1");
    let (at, backend) = (own.to_string(), format!("/=coap://{server}/"));
    let proxy = ["proxy", "--cache", "0", "--bind", &at, "--backend", &backend];
    let (running, _) = Running::ready(EBBTIDE, &proxy);
    (running, own)
}

macro_rules! around_the_gateway {
    ($($module:ident $name:literal;)*) => {$(
        mod $module {
            use super::*;

            #[tokio::test]
            async fn its_client_gets_everything_from_our_server_through_the_gateway() {
                let Some(peer) = Peer::find($name) else { return };
                let ours = serve("127.0.0.1");
                let (_gateway, gateway) = reverse(ours.address);
                peer.ask(gateway, "all").await;
            }

            #[tokio::test]
            #[ignore = "waits for many timeouts: ci.sh statistics"]
            async fn its_client_gets_its_answers_though_much_is_lost_on_both_sides_of_the_gateway() {
                let Some(peer) = Peer::find($name) else { return };
                let ours = serve("127.0.0.1");
                let (_gateway, gateway) = reverse(relay(ours.address, LOSING, 3).await);
                peer.ask_through(LOSING, gateway, "lossy").await;
            }

            #[tokio::test]
            #[ignore = "waits for many timeouts: ci.sh statistics"]
            async fn our_client_gets_its_answers_from_its_server_through_the_gateway_though_much_is_lost() {
                let Some(peer) = Peer::find($name) else { return };
                let (_server, server) = peer.serve("127.0.0.1");
                let (_gateway, gateway) = reverse(relay(server, LOSING, 3).await);
                ask_lossy(gateway, &Manners::default()).await;
            }
        }
    )*};
}

around_the_gateway! {
    aiocoap "aiocoap";
    californium "californium";
}

#[tokio::test]
async fn it_has_the_proxy_and_the_client_of_aiocoap_as_neighbours() {
    let Some(python) = Peer::find("aiocoap").map(|peer| peer.python()) else { return };
    let ours = serve("127.0.0.1");
    let theirs = free_address("127.0.0.1");
    let (at, next) = (theirs.to_string(), ours.address.to_string());
    let proxy = ["-m", "aiocoap.cli.proxy", "--reverse", "--bind", &at, "--unconditional", &next];
    let _theirs = Running::silent(&python, &proxy);
    let client = Client::new();
    answers_pings(&client, &format!("coap://{theirs}")).await;
    let (_reverse, before) = reverse(theirs);
    assert_eq!(client.get(format!("coap://{before}/test")).await.unwrap().text(), DIGITS);
    // Its forward proxy refuses Proxy-Uri, and hands Proxy-Scheme on without Uri-Host (version 0.4.17), so that no
    // other proxy can follow it.
    let (_gateway, gateway, _) = gateway();
    let (near, uri) = (format!("coap://{gateway}"), format!("coap://{}/test", ours.address));
    let asked = output(&python, &["-m", "aiocoap.cli.client", "--proxy", &near, &uri]).await;
    let said = String::from_utf8_lossy(&asked.stdout).into_owned();
    assert!(said.contains(DIGITS), "{said} {}", String::from_utf8_lossy(&asked.stderr));
}
