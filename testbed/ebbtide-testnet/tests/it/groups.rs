//! Requests to a group: each member has a link of its own.

use ebbtide::server::{ALL_COAP_NODES, Remote, Router, Server, get};
use ebbtide::{Client, Request};
use ebbtide_testnet::{Conditions, PacketFate, TestNetwork, play};
use std::net::{Ipv4Addr, SocketAddr};
use std::time::Duration;

const MEMBERS: u8 = 5;

const fn member(number: u8) -> Ipv4Addr {
    Ipv4Addr::new(10, 0, 0, number)
}

/// Asks all members, and returns those that have answered.
async fn ask_all(network: &TestNetwork) -> Vec<SocketAddr> {
    for number in 1..=MEMBERS {
        let router = Router::new().route("/who", get(|Remote(from): Remote| from.to_string()));
        let config = network.server_config();
        let at = SocketAddr::from((member(number), 5683));
        let server = Server::with_config(router, config, [at]).unwrap();
        assert_eq!(server.join_all_coap_nodes(0).unwrap(), ALL_COAP_NODES[..1]);
        tokio::spawn(server.run());
    }
    // It is no member, and another port of the group is another one.
    let other = Server::with_config(Router::new(), network.server_config(), ["10.0.0.9:5683"]);
    tokio::spawn(other.unwrap().run());
    let elsewhere =
        Server::with_config(Router::new(), network.server_config(), ["10.0.0.1:5693"]).unwrap();
    elsewhere.join(ALL_COAP_NODES[0], 0).unwrap();
    tokio::spawn(elsewhere.run());
    let client = Client::with_config(network.client_config());
    let request = Request::get("coap://224.0.1.187/who").unwrap();
    let answers = client.request_group(request, Duration::from_secs(10)).await.unwrap();
    answers.into_iter().map(|(from, _)| from).collect()
}

#[test]
fn each_member_that_is_reached_answers_within_the_leisure() {
    let trace = play(1, Conditions::new(), async |network| {
        network.cut(member(2), Ipv4Addr::new(10, 1, 0, 1));
        let mut answered = ask_all(&network).await;
        answered.sort();
        let expected = [1, 3, 4, 5].map(|number| SocketAddr::from((member(number), 5683)));
        assert_eq!(answered, expected);
    });
    let asked = trace.packets().iter().filter(|packet| packet.datagram[0] >> 4 == 5);
    let asked: Vec<_> = asked.filter(|packet| packet.datagram[1] == 1).collect();
    assert_eq!(asked.len(), usize::from(MEMBERS), "{trace}");
    assert_eq!(asked.iter().filter(|packet| packet.fate == PacketFate::Cut).count(), 1);
}

#[test]
fn the_same_seed_gives_the_same_answers() {
    let played = || {
        play(2, Conditions::new().loss(0.3), async |network| drop(ask_all(&network).await))
            .to_string()
    };
    assert_eq!(played(), played());
}
