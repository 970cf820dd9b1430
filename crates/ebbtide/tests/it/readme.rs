//! The examples run, and the README shows one as it is.

#![allow(
    dead_code,
    unreachable_pub,
    missing_docs,
    reason = "an example is a program, and its main is not called"
)]

#[path = "../../examples/client.rs"]
pub mod client;
#[path = "../../examples/observe.rs"]
pub mod observe;
#[path = "../../examples/server.rs"]
pub mod server;

use ebbtide::Server;
use ebbtide::server::Subject;
use std::time::Duration;

#[tokio::test]
async fn the_examples_understand_each_other() {
    let changed = Subject::new();
    let server = Server::bind(server::router(&changed), ["127.0.0.1:0"]).unwrap();
    let base = format!("coap://{}", server.local_addrs()[0]);
    assert_eq!(client::ask(&base).await.unwrap(), "22.3 C");
    let changes = tokio::spawn(async move {
        loop {
            changed.changed();
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    });
    assert_eq!(observe::watch(&format!("{base}/temperature"), 3).await.unwrap(), 3);
    changes.abort();
}

#[test]
fn the_readme_shows_a_program_as_it_is() {
    let readme = include_str!("../../../../README.md");
    let (_about, program) = include_str!("../../examples/first.rs").split_once("\n\n").unwrap();
    let mut blocks =
        readme.split("```rust\n").skip(1).map(|rest| rest.split("```").next().unwrap());
    assert_eq!(blocks.next(), Some(program));
    assert_eq!(blocks.next(), None, "which program is it?");
}
