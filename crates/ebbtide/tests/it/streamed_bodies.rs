//! Long bodies that are fetched and sent block by block, without being held.

use crate::common::relay::{Trouble, relay};
use ebbtide::server::{Call, Router, Server, file, get, put};
use ebbtide::{Client, Code, ErrorKind, Request};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

fn bytes(length: usize) -> Vec<u8> {
    (0..length).map(|n| (n / 3) as u8).collect()
}

/// Answers with the length and the sum of what it was sent.
fn sum(call: &Call<'_>) -> (Code, String) {
    let sum: u64 = call.payload().iter().map(|byte| u64::from(*byte)).sum();
    (Code::CHANGED, format!("{} {sum}", call.payload().len()))
}

fn sum_of(body: &[u8]) -> String {
    format!("{} {}", body.len(), body.iter().map(|byte| u64::from(*byte)).sum::<u64>())
}

fn serve(router: Router) -> (String, Server) {
    let server = Server::bind(router, ["127.0.0.1:0"]).unwrap();
    (format!("coap://{}", server.local_addrs()[0]), server)
}

#[tokio::test]
async fn a_body_is_fetched_in_chunks_from_any_byte_on() {
    let body = bytes(10_000);
    let served = body.clone();
    let (base, _server) = serve(Router::new().route("/x", get(move || served.clone())));
    let client = Client::new();
    let request = || Request::get(format!("{base}/x")).unwrap();
    let mut download = client.download(request()).await.unwrap();
    let mut got = Vec::new();
    while let Some(chunk) = download.chunk().await.unwrap() {
        assert!(chunk.len() <= 1024);
        got.extend_from_slice(&chunk);
        assert_eq!(download.offset(), got.len() as u64);
    }
    assert_eq!((got, download.size()), (body.clone(), Some(10_000)));
    assert_eq!(download.chunk().await.unwrap(), None);

    let mut rest = client.download_from(request(), 5000).await.unwrap();
    assert_eq!(rest.offset(), 4096, "where a block begins");
    assert_eq!(rest.chunk().await.unwrap().unwrap(), body[4096..5120]);
}

#[tokio::test]
async fn a_file_that_is_replaced_meanwhile_is_noticed() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("image");
    std::fs::write(&path, bytes(5000)).unwrap();
    let (base, _server) = serve(Router::new().route("/x", get(file(&path))));
    let client = Client::new();
    let request = Request::get(format!("{base}/x")).unwrap();
    let mut download = client.download(request).await.unwrap();
    assert_eq!(download.size(), Some(5000));
    assert_eq!(download.chunk().await.unwrap().unwrap().len(), 1024);
    std::fs::write(&path, bytes(6000)).unwrap();
    let changed = download.chunk().await.unwrap_err();
    assert!(changed.kind() == ErrorKind::Changed && changed.may_retry(), "{changed}");
    std::fs::remove_file(&path).unwrap();
    let gone = client.download(Request::get(format!("{base}/x")).unwrap()).await.unwrap_err();
    assert_eq!(gone.response().map(|response| response.code()), Some(Code::NOT_FOUND), "{gone}");
}

#[tokio::test]
async fn a_reader_s_bytes_arrive_and_progress_is_told() {
    let (base, _server) = serve(Router::new().route("/x", put(sum)));
    let client = Client::new();
    for length in [0, 1, 1023, 1024, 1025, 4096, 50_001] {
        let body = bytes(length);
        let mut told = Vec::new();
        let request = Request::put(format!("{base}/x")).unwrap();
        let sent = client.send_from(request, &*body, |bytes| told.push(bytes)).await.unwrap();
        assert_eq!((sent.code(), &*sent.text()), (Code::CHANGED, &*sum_of(&body)));
        assert_eq!(told.last(), Some(&(length as u64)));
        assert_eq!(told.len(), length.div_ceil(1024).max(1));
    }
}

#[tokio::test]
async fn a_body_that_the_server_refuses_is_not_sent_to_its_end() {
    let route = put(sum).max_body(3000);
    let (base, _server) = serve(Router::new().route("/x", route));
    let client = Client::new();
    let mut blocks = 0;
    let request = Request::put(format!("{base}/x")).unwrap();
    let answer = client.send_from(request, &*bytes(100_000), |_| blocks += 1).await.unwrap();
    assert_eq!(answer.code(), Code::REQUEST_ENTITY_TOO_LARGE);
    assert!(blocks <= 3, "{blocks}");
}

#[tokio::test]
async fn bodies_survive_loss_and_copies_block_by_block() {
    let body = bytes(20_000);
    let served = body.clone();
    let route = get(move || served.clone()).put(sum);
    let server = Server::bind(Router::new().route("/x", route), ["127.0.0.1:0"]).unwrap();
    let trouble = Trouble { lost: 5, repeated: 10, ..Trouble::default() };
    let uri = format!("coap://{}/x", relay(server.local_addrs()[0], trouble, 7).await);
    let client = Client::new();
    let mut download = client.download(Request::get(&*uri).unwrap()).await.unwrap();
    let mut got = Vec::new();
    while let Some(chunk) = download.chunk().await.unwrap() {
        got.extend_from_slice(&chunk);
    }
    assert!(got == body);
    let request = Request::put(&*uri).unwrap();
    let sent = client.send_from(request, &*body, |_| ()).await.unwrap();
    assert_eq!(sent.text(), sum_of(&body));
}

/// The code and the token of the next message on a connection (RFC 8323 section 3.2).
async fn next_message(stream: &mut TcpStream) -> (u8, Vec<u8>) {
    let first = stream.read_u8().await.unwrap();
    let length = match first >> 4 {
        13 => 13 + usize::from(stream.read_u8().await.unwrap()),
        length => length.into(),
    };
    let code = stream.read_u8().await.unwrap();
    let mut rest = vec![0; usize::from(first & 15) + length];
    stream.read_exact(&mut rest).await.unwrap();
    rest.truncate((first & 15).into());
    (code, rest)
}

#[tokio::test]
async fn a_block_is_requested_again_if_its_connection_ends_before_the_answer() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let uri = format!("coap+tcp://{}/x", listener.local_addr().unwrap());
    let served = async {
        for is_last in [false, true] {
            let (mut stream, _) = listener.accept().await.unwrap();
            // A CSM without options.
            stream.write_all(&[0, 0xe1]).await.unwrap();
            let token = loop {
                match next_message(&mut stream).await {
                    (1, token) => break token,
                    (code, _) => assert_eq!(code, 0xe1, "its CSM"),
                }
            };
            if is_last {
                let answer = [&[0x30 | token.len() as u8, 0x45], &*token, b"\xffhi"].concat();
                stream.write_all(&answer).await.unwrap();
                return stream;
            }
        }
        unreachable!()
    };
    let client = Client::new();
    let asked = client.begin_download(Request::get(&*uri).unwrap());
    let (answer, _stream) = tokio::join!(asked, served);
    let (response, rest) = answer.unwrap();
    assert_eq!((&*response.text(), rest.is_none()), ("hi", true));
    assert_eq!(response.remote(), Some(uri[11..uri.len() - 2].parse().unwrap()));
}
