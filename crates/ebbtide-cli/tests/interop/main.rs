//! Other implementations, each as a client of our server and as a server for our client.
//! `interop/build.sh` brings them, `docs/interop.md` says what they do; where one is missing its
//! tests say so and are skipped, but fail in continuous integration.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "in a test a panic is how it fails"
)]

mod aiocoap_tests;
mod both_ways;
mod burst;
mod californium_tcp;
mod dtls;
mod dtls_certificates;
mod dtls_peers;
mod gateway;
mod libcoap;
mod mbedtls;
mod multicast;
mod our_client;
mod our_server;
mod over_streams;
mod peers;
mod plugtest;
#[path = "../it/common/private.rs"]
mod private;
mod quick;
#[path = "../../../ebbtide/tests/it/common/relay.rs"]
mod relay;
mod tap;

#[tokio::test]
async fn our_client_gets_everything_from_our_server() {
    let ours = our_server::serve("127.0.0.1");
    our_client::ask_everything(ours.address, &our_client::Manners::default()).await;
}
