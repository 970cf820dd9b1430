//! `ebbtide put --burst`: to a server that knows nothing of it, and to ours behind a bad wire.

use super::libcoap;
use super::our_server::serve;
use super::peers::{EBBTIDE, LOSING, output};
use super::relay::{Trouble, relay};
use ebbtide::Client;
use std::net::SocketAddr;
use std::path::PathBuf;

/// A file in a folder of its own whose every kilobyte is another.
fn file(bytes: u32) -> (tempfile::TempDir, PathBuf, Vec<u8>) {
    let body: Vec<u8> = (0..bytes).map(|n| (n * 7 + n / 251 + n / 65_521) as u8).collect();
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("body");
    std::fs::write(&path, &body).unwrap();
    (folder, path, body)
}

/// Puts a file, and what the command says about it.
async fn put(
    at: SocketAddr,
    path: &str,
    file: &std::path::Path,
    more: &[&str],
) -> (String, Vec<u8>) {
    let uri = format!("coap://{at}{path}");
    let args = ["put", "--burst", file.to_str().unwrap(), &uri];
    let output = output(EBBTIDE, &[&args, more].concat()).await;
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(output.status.success(), "{said}");
    (said, output.stdout)
}

#[tokio::test]
async fn a_megabyte_arrives_at_libcoaps_server_as_it_was_under_any_control() {
    if !libcoap::found() {
        return;
    }
    let client = Client::new();
    let (_server, at) = libcoap::served("127.0.0.1", &client).await;
    let (_folder, path, body) = file(1 << 20);
    for control in ["rcoap", "fasor-token:nstart=8", "ebb:nstart=4"] {
        let resource = format!("/{}", &control[..3]);
        let (said, _) = put(at, &resource, &path, &["--cc", control]).await;
        assert!(said.starts_with("1048576 bytes in "), "{said}");
        assert!(!said.contains("one block at a time"), "it takes any order: {said}");
        let got = client.get(format!("coap://{at}{resource}")).await.unwrap();
        assert!(*got.body() == body, "{control}: {} bytes", got.body().len());
    }
}

#[tokio::test]
async fn a_file_arrives_at_libcoaps_server_though_much_is_lost() {
    if !libcoap::found() {
        return;
    }
    let client = Client::new();
    let (_server, at) = libcoap::served("127.0.0.1", &client).await;
    let (_folder, path, body) = file(60_000);
    // It makes another body of copies that come late (`studies/peers.md`): here they are lost only.
    let lossy = Trouble { lost: 5, ..Trouble::default() };
    put(relay(at, lossy, 4).await, "/lossy", &path, &["--cc", "fasor-token:nstart=8"]).await;
    let got = client.get(format!("coap://{at}/lossy")).await.unwrap();
    assert!(*got.body() == body, "{} bytes", got.body().len());
}

#[tokio::test]
async fn a_file_comes_back_from_our_server_though_much_is_lost() {
    let ours = serve("127.0.0.1");
    let through = relay(ours.address, LOSING, 4).await;
    let (_folder, path, body) = file(60_000);
    let (said, echoed) = put(through, "/echo", &path, &["--cc", "fasor-token:nstart=8"]).await;
    assert!(said.contains("60000 bytes in ") && said.contains("messages repeated"), "{said}");
    assert!(echoed == body, "{} bytes", echoed.len());
}
