//! More requests than an endpoint queues, a runtime that ends, a group that is completed.

use ebbtide::server::{Call, Router, Server, get};
use ebbtide::{Client, ErrorKind, Request, Response};
use ebbtide_core::wire::{Block, Code, Message, OptionNumber, Type};
use futures_util::future::join_all;
use std::net::Ipv4Addr;
use std::sync::Arc;
use std::time::Duration;
use tokio::net::UdpSocket;

#[tokio::test]
async fn a_thousand_requests_at_once_to_one_server_are_all_answered() {
    let router = Router::new().route("/x", get(|_: &Call<'_>| Response::content("x")));
    let server = Server::bind(router, ["127.0.0.1:0"]).unwrap();
    let client = Client::new();
    let uri = format!("coap://{}/x", server.local_addrs()[0]);
    let answers = join_all((0..1000).map(|_| client.get(uri.as_str()))).await;
    assert!(answers.into_iter().all(|answer| answer.unwrap().text() == "x"));
    assert_eq!(client.snapshot().open_exchanges(), 0);
}

#[tokio::test]
async fn a_request_waits_for_room_no_longer_than_its_time() {
    let silent = UdpSocket::bind("127.0.0.1:0").await.unwrap();
    let uri = format!("coap://{}/x", silent.local_addr().unwrap());
    let client = Client::new();
    let asked = (0..100).map(|_| {
        let request = Request::get(uri.as_str()).unwrap().timeout(Duration::from_millis(500));
        client.request(request)
    });
    let ended = tokio::time::timeout(Duration::from_secs(20), join_all(asked)).await.unwrap();
    assert!(
        ended
            .iter()
            .all(|ended| matches!(&ended, Err(error) if error.kind() == ErrorKind::TimedOut)),
        "{ended:?}"
    );
    assert_eq!(client.snapshot().open_exchanges(), 0);
}

#[test]
fn a_client_says_that_its_runtime_has_ended_and_works_in_another() {
    let runtime = || tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
    let (serving, first, second) = (runtime(), runtime(), runtime());
    let router = Router::new().route("/x", get(|_: &Call<'_>| Response::content("x")));
    let server = serving.block_on(async { Server::bind(router, ["127.0.0.1:0"]).unwrap() });
    let client = Client::new();
    let uri = format!("coap://{}/x", server.local_addrs()[0]);
    assert_eq!(first.block_on(client.get(uri.as_str())).unwrap().text(), "x");
    // A request under way when the runtime of the socket ends.
    let silent = serving.block_on(UdpSocket::bind("127.0.0.1:0")).unwrap();
    let other = format!("coap://{}/x", silent.local_addr().unwrap());
    let waiting = second.spawn({
        let client = client.clone();
        async move { client.get(other).await }
    });
    let heard = async {
        let mut buf = [0; 64];
        let heard = silent.recv_from(&mut buf);
        tokio::time::timeout(Duration::from_secs(10), heard).await.unwrap()
    };
    serving.block_on(heard).unwrap();
    first.shutdown_background();
    let ended = second.block_on(async {
        tokio::time::timeout(Duration::from_secs(10), waiting).await.unwrap().unwrap()
    });
    assert!(matches!(&ended, Err(error) if error.kind() == ErrorKind::Closed), "{ended:?}");
    let answered = second.block_on(async {
        tokio::time::timeout(Duration::from_secs(10), client.get(uri.as_str())).await.unwrap()
    });
    assert_eq!(answered.unwrap().text(), "x");
}

/// How long a member takes for its second block.
const SLOW: Duration = Duration::from_millis(700);
const GROUP: Ipv4Addr = Ipv4Addr::new(239, 255, 86, 84);

/// A block of a member's answer.
fn part(message: &Message<'_>, kind: u8, num: u32) -> Vec<u8> {
    let id = message.message_id().0.to_be_bytes();
    let token = message.token_bytes();
    let mut answer = vec![kind | token.len() as u8, Code::CONTENT.0, id[0], id[1]];
    answer.extend_from_slice(token);
    let block = Block::new(num, num == 0, 0).unwrap().to_uint();
    answer.extend_from_slice(&[0xd1, (OptionNumber::BLOCK2.0 - 13) as u8, block as u8, 0xff]);
    answer.extend_from_slice(&[b'a' + num as u8; 16]);
    answer
}

/// A socket that is a member of the group, and its port, if this machine has a route for groups.
async fn group_socket() -> Option<(UdpSocket, u16)> {
    let group = UdpSocket::bind("0.0.0.0:0").await.unwrap();
    let port = group.local_addr().unwrap().port();
    let joined = group.join_multicast_v4(GROUP, Ipv4Addr::UNSPECIFIED);
    let probe = UdpSocket::bind("0.0.0.0:0").await.unwrap();
    let sent = probe.send_to(b"?", (GROUP, port)).await;
    let heard = tokio::time::timeout(Duration::from_secs(1), group.recv_from(&mut [0; 8])).await;
    if joined.is_err() || sent.is_err() || heard.is_err() {
        println!("skipped: this machine has no route for groups");
        return None;
    }
    Some((group, port))
}

#[tokio::test]
async fn a_get_to_a_group_is_non_confirmable_and_has_no_etag() {
    let Some((group, port)) = group_socket().await else { return };
    let request = Request::get(format!("coap://{GROUP}:{port}/x")).unwrap();
    let request = request.option(OptionNumber::ETAG, b"tag").option(OptionNumber::ACCEPT, &[50]);
    let client = Client::new();
    let asking =
        tokio::spawn(async move { client.request_group(request, Duration::from_millis(10)).await });
    let mut buf = [0; 256];
    let (len, _) = group.recv_from(&mut buf).await.unwrap();
    let message = Message::parse(&buf[..len]).unwrap();
    // RFC 7252 sections 8.1 and 8.2.1.
    assert_eq!(message.kind(), Type::NonConfirmable);
    let options: Vec<_> = message.options().map(|opt| opt.number).collect();
    assert_eq!(options, [OptionNumber::URI_PATH, OptionNumber::ACCEPT]);
    assert!(asking.await.unwrap().unwrap().is_empty());
}

#[tokio::test]
async fn the_members_of_a_group_are_completed_at_once() {
    let Some((group, port)) = group_socket().await else { return };
    let mut members = Vec::new();
    for _ in 0..4 {
        members.push(Arc::new(UdpSocket::bind("0.0.0.0:0").await.unwrap()));
    }
    for member in members.clone() {
        tokio::spawn(async move {
            let mut buf = [0; 256];
            loop {
                let (len, from) = member.recv_from(&mut buf).await.unwrap();
                let Ok(message) = Message::parse(&buf[..len]) else { continue };
                if message.option(OptionNumber::BLOCK2).is_some() {
                    let (answer, member) = (part(&message, 0x60, 1), member.clone());
                    tokio::time::sleep(SLOW).await;
                    member.send_to(&answer, from).await.unwrap();
                }
            }
        });
    }
    tokio::spawn(async move {
        let mut buf = [0; 256];
        let (len, from) = group.recv_from(&mut buf).await.unwrap();
        let message = Message::parse(&buf[..len]).unwrap();
        for (number, member) in members.iter().enumerate() {
            let mut answer = part(&message, 0x50, 0);
            answer[3] = number as u8;
            member.send_to(&answer, from).await.unwrap();
        }
    });
    let request = Request::get(format!("coap://{GROUP}:{port}/x")).unwrap();
    let asked = Client::new();
    // One after the other they would take 1 s and four times as long as one.
    let asking = asked.request_group(request, Duration::from_secs(1));
    let answers = tokio::time::timeout(3 * SLOW, asking).await.expect("one after another");
    let answers = answers.unwrap();
    assert_eq!(answers.len(), 4);
    assert!(answers.iter().all(|(_, answer)| answer.text() == "aaaaaaaaaaaaaaaabbbbbbbbbbbbbbbb"));
}
