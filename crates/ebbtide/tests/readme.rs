//! The examples run, and the README shows them as they are.

#![allow(
    dead_code,
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "in a test a panic is how it fails; an example's main is not called"
)]

#[path = "../examples/client.rs"]
pub mod client;
#[path = "../examples/observe.rs"]
pub mod observe;
#[path = "../examples/server.rs"]
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
fn the_readme_shows_the_examples_as_they_are() {
    let readme = include_str!("../../../README.md");
    let examples = [
        include_str!("../examples/client.rs"),
        include_str!("../examples/server.rs"),
        include_str!("../examples/observe.rs"),
    ];
    let blocks: Vec<&str> =
        readme.split("```rust\n").skip(1).map(|rest| rest.split("```").next().unwrap()).collect();
    assert!(blocks.len() >= 2, "the README shows how the library is used");
    for block in blocks {
        // Parts of an example may be left out between others.
        for part in block.split("\n\n") {
            let part = part.trim_end();
            assert!(
                examples.iter().any(|example| example.contains(part)),
                "in the README, but in no example:\n{part}"
            );
        }
    }
}
