//! Uploads to servers that put blocks together in the order in which they come, or take no other order,
//! over a wire that loses and reorders.

use crate::common::relay::{Trouble, relay};
use ebbtide::congestion::ControlConfig;
use ebbtide::{Client, ClientConfig, Code, Request};
use ebbtide_core::wire::{Block, Message, OptionNumber};
use std::collections::HashMap;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use tokio::net::UdpSocket;

/// What a server does with a block that does not follow the one before.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
enum Gap {
    /// As libcoap's example server: the body ends where the block ends, and what lies between is lost.
    Damages,
    /// It answers 4.08 and keeps what it has.
    Refuses,
}

type Body = Arc<Mutex<Vec<u8>>>;

/// A path on which block 3 is lost once, after block 2 has overtaken block 1.
#[derive(Debug, Default)]
struct Detour {
    held: Vec<Vec<u8>>,
    is_over: bool,
}

impl Detour {
    /// What arrives now that this was sent.
    fn pass(&mut self, datagram: &[u8]) -> Vec<Vec<u8>> {
        let block = Message::parse(datagram)
            .ok()
            .and_then(|message| Block::from_option(&message.option(OptionNumber::BLOCK1)?).ok());
        match block.map(Block::num) {
            Some(1 | 2) if !self.is_over => {
                self.held.insert(0, datagram.to_vec());
                Vec::new()
            }
            Some(3) if !self.is_over => {
                self.is_over = true;
                core::mem::take(&mut self.held)
            }
            _ => vec![datagram.to_vec()],
        }
    }
}

/// Puts the body of one upload together.
async fn serve(gap: Gap, mut detour: Detour) -> (SocketAddr, Body) {
    let socket = UdpSocket::bind("127.0.0.1:0").await.unwrap();
    let address = socket.local_addr().unwrap();
    let body = Body::default();
    let written = body.clone();
    tokio::spawn(async move {
        let mut answers: HashMap<u16, Vec<u8>> = HashMap::new();
        let mut buf = [0; 2048];
        loop {
            let (len, from) = socket.recv_from(&mut buf).await.unwrap();
            for datagram in detour.pass(&buf[..len]) {
                let id = [datagram[2], datagram[3]];
                let Ok(message) = Message::parse(&datagram) else { continue };
                if message.code() == Code::EMPTY {
                    socket.send_to(&[0x70, 0, id[0], id[1]], from).await.unwrap();
                    continue;
                }
                let answer = answers.entry(u16::from_be_bytes(id)).or_insert_with(|| {
                    let option = message.options().find(|opt| opt.number == OptionNumber::BLOCK1);
                    let option = option.expect("every message is a block");
                    let block = Block::from_option(&option).unwrap();
                    let code = take(&mut written.lock().unwrap(), block, message.payload(), gap);
                    let token = message.token_bytes();
                    let head = [0x60 | token.len() as u8, code.0, id[0], id[1]];
                    let echo = [0xd0 | option.value.len() as u8, 27 - 13];
                    [&head, token, &echo, option.value].concat()
                });
                socket.send_to(answer, from).await.unwrap();
            }
        }
    });
    (address, body)
}

fn take(body: &mut Vec<u8>, block: Block, payload: &[u8], gap: Gap) -> Code {
    let start = block.num() as usize * block.size();
    if gap == Gap::Refuses && start > body.len() {
        return Code::REQUEST_ENTITY_INCOMPLETE;
    }
    body.resize(start, 0xee);
    body.extend_from_slice(payload);
    if block.more() { Code::CONTINUE } else { Code::CHANGED }
}

/// Paced, with few in flight on a short path.
fn paced() -> Client {
    Client::with_config(ClientConfig::new().control(ControlConfig::parse("rcoap").unwrap()))
}

/// Always has eight in flight, and timeouts of seconds: nothing is repeated because a busy machine was
/// late.
fn steady() -> Client {
    let config = ClientConfig::new().control(ControlConfig::parse("default").unwrap()).nstart(8);
    Client::with_config(config)
}

async fn upload(client: Client, gap: Gap, trouble: Trouble) -> usize {
    let (server, written) = serve(gap, Detour { is_over: true, ..Detour::default() }).await;
    let way = relay(server, trouble, 7).await;
    arrives(&client, way, (gap, &written)).await
}

/// Uploads a body, which arrives whole: how many blocks were sent once more.
async fn arrives(client: &Client, way: SocketAddr, (gap, written): (Gap, &Body)) -> usize {
    let body: Vec<u8> = (0..20_000u32).map(|n| ((n * 31) >> 3) as u8).collect();
    let request = Request::put(format!("coap://{way}/file")).unwrap().block_size(64);
    let mut upload = client.upload(request.payload(body.clone())).await.unwrap();
    let answer = upload.run().await.unwrap();
    assert_eq!(answer.code(), Code::CHANGED, "{gap:?}");
    assert!(*written.lock().unwrap() == body, "{gap:?}: another body");
    assert!(!upload.is_in_order(), "{gap:?}: begun again, one block at a time");
    upload.resent()
}

#[tokio::test]
async fn a_body_arrives_whole_although_blocks_overtake_each_other() {
    for gap in [Gap::Damages, Gap::Refuses] {
        assert!(
            upload(steady(), gap, Trouble { late: 3, ..Trouble::default() }).await > 0,
            "{gap:?}"
        );
    }
}

#[tokio::test]
async fn a_body_arrives_whole_although_blocks_are_lost() {
    for gap in [Gap::Damages, Gap::Refuses] {
        assert!(
            upload(paced(), gap, Trouble { lost: 1, ..Trouble::default() }).await > 0,
            "{gap:?}"
        );
    }
}

#[tokio::test]
async fn a_block_of_before_that_comes_after_those_that_replace_it_spoils_nothing() {
    for gap in [Gap::Damages, Gap::Refuses] {
        let (server, written) = serve(gap, Detour::default()).await;
        assert!(arrives(&steady(), server, (gap, &written)).await > 0, "{gap:?}");
    }
}

#[tokio::test]
async fn nothing_is_sent_twice_while_order_is_kept() {
    assert_eq!(upload(steady(), Gap::Refuses, Trouble::default()).await, 0);
}
