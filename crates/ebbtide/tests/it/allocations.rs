//! The receive loop allocates nothing.

use crate::common::many_clients::{GET, ManyClients, Outgoing};
use ebbtide::server::{Call, Router, Server, get};
use ebbtide::{ContentFormat, Response};

const TEXT: &str = "012345678901234567890123456789012345678901234567890123456789";

#[tokio::test]
async fn a_request_is_received_answered_and_sent_without_an_allocation() {
    let resource = get(|_: &Call<'_>| Response::content(TEXT).format(ContentFormat::TEXT));
    let server = Server::bind(Router::new().route("/test", resource), ["127.0.0.1:0"]).unwrap();
    let mut many = ManyClients::new(server.local_addrs()[0]);
    let options = [(11, &b"test"[..])];
    let mut allocated = 0;
    let mut answered = 0;
    for round in 0..200 {
        for n in 0..16 {
            many.say(n, &Outgoing { options: &options, id: round, ..GET });
        }
        many.flush();
        // What buffers have to grow, they have in the first rounds.
        let before = crate::common::counting::allocations();
        for _ in 0..10 {
            tokio::task::yield_now().await;
        }
        if round >= 100 {
            allocated += crate::common::counting::allocations() - before;
        }
        while many.hear(|_| false, |_, message| assert_eq!(message.payload(), TEXT.as_bytes())) > 0
        {
            answered += 1;
        }
    }
    assert!(answered > 0);
    assert_eq!(server.snapshot().counters.received, 200 * 16);
    assert_eq!(allocated, 0);
}
