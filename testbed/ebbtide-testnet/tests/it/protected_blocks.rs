//! Bodies in Non-confirmable blocks (RFC 9177) within OSCORE (RFC 8613).

use super::protected_hour::contexts;
use ebbtide::server::{Call, Router, Server, get, put};
use ebbtide::{Client, Code, Request, Response};
use ebbtide_core::wire::{Message, OptionNumber, Type};
use ebbtide_testnet::{Conditions, play};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

const BODY: usize = 100_000;
const BLOCKS: usize = BODY.div_ceil(1024);

#[test]
fn bodies_pass_in_protected_blocks_and_are_handled_once_though_many_are_lost_and_repeated() {
    let delay = Duration::from_millis(20)..=Duration::from_millis(100);
    let conditions = Conditions::new().delay(delay).loss(0.1).duplicates(0.1);
    let trace = play(3, conditions, async |network| {
        let taken = Arc::<AtomicU32>::default();
        let counter = taken.clone();
        let take = move |call: &Call<'_>| {
            counter.fetch_add(1, Ordering::SeqCst);
            Response::new(Code::CHANGED).payload(call.payload().len().to_string())
        };
        let long = |_: &Call<'_>| Response::content(vec![b'x'; BODY]);
        let router = Router::new().route("/long", get(long)).route("/take", put(take));
        let config = network.server_config().oscore(contexts(b"s", b"c", None));
        let server = Server::with_config(router, config, ["10.0.0.1:5683"]).unwrap();
        tokio::spawn(server.run());
        let client =
            Client::with_config(network.client_config().oscore(contexts(b"c", b"s", None)));
        let got = Request::get("coap://10.0.0.1/long").unwrap().q_block();
        assert_eq!(client.request(got).await.unwrap().body().len(), BODY);
        let body = Request::put("coap://10.0.0.1/take").unwrap().payload(vec![7; BODY]);
        assert_eq!(client.request(body.q_block()).await.unwrap().text(), BODY.to_string());
        assert_eq!(taken.load(Ordering::SeqCst), 1);
        assert_eq!(client.snapshot().open_exchanges(), 0);
    });
    let (mut up, mut down) = (0, 0);
    for packet in trace.packets() {
        let message = Message::parse(&packet.datagram).unwrap();
        for (number, what) in
            [(OptionNumber::Q_BLOCK1, "Q-Block1"), (OptionNumber::Q_BLOCK2, "Q-Block2")]
        {
            assert!(message.option(number).is_none(), "a proxy sees {what}");
        }
        if message.payload().len() > 1024 {
            assert_eq!(message.kind(), Type::NonConfirmable);
            assert!(message.option(OptionNumber::OSCORE).is_some());
            *(if packet.to.port() == 5683 { &mut up } else { &mut down }) += 1;
        }
    }
    // Each full block at least once; only what was lost is repeated.
    assert!((BLOCKS - 1..2 * BLOCKS).contains(&up), "{up} of {BLOCKS} blocks up");
    assert!((BLOCKS - 1..2 * BLOCKS).contains(&down), "{down} of {BLOCKS} blocks down");
}
