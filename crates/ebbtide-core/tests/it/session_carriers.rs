//! What one carrier brings is kept apart from what another brings, though both name the same address.

use crate::common::server_session::{Bench, Does, ask, code};
use crate::common::wired::{Wired, get};
use ebbtide_core::PeerId;
use ebbtide_core::session::server::{Next, Outgoing, RequestSlot};
use ebbtide_core::session::{Response, Verify};
use ebbtide_core::stream::{Config, Incoming};
use ebbtide_core::wire::{Block, Code, Message, encode_uint};
use std::net::SocketAddr;

/// A block of 16 bytes, all of them `byte`.
fn block(number: u32, more: bool, byte: u8) -> Vec<u8> {
    let option = Block::new(number, more, 0).unwrap().to_uint();
    let put = ask(Code::PUT, 7 + number as u16, "up");
    put.option(27, encode_uint(option, &mut [0; 4])).payload(&[byte; 16]).bytes()
}

/// The answer to a block that a connection brings, or the whole body.
fn bring(
    bench: &Bench,
    incoming: Incoming,
    from: SocketAddr,
    block: &[u8],
) -> Result<Vec<u8>, Code> {
    let (mut slot, message) = (RequestSlot::new(), Message::parse(block).unwrap());
    let received = slot.stream(incoming, from, message, bench.session.datagram_sizes());
    let Next::Proceed(verified) = bench.session.receive(bench.now, received) else { panic!() };
    match bench.session.assemble(bench.now, verified.permit(usize::MAX)) {
        Next::Proceed(assembled) => Ok(assembled.body().to_vec()),
        Next::Send(Outgoing::One(finished)) => {
            Err(finished.as_borrowed().get().expect("a response").code())
        }
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_datagram_from_the_address_of_a_connection_adds_nothing_to_its_upload() {
    let mut bench = Bench::new(
        |config| config.verify = Verify::None,
        |_, body| Does::Answers(Response::content(body.to_vec())),
    );
    let mut wired = Wired::new(Config::default(), Config::default());
    wired.a.request(wired.now, &get()).unwrap();
    wired.exchange();
    let incoming = wired.b_requests()[0].clone();
    let client = SocketAddr::from(([192, 0, 2, 1], 40_000));

    assert_eq!(bring(&bench, incoming.clone(), client, &block(0, true, b'a')), Err(Code::CONTINUE));
    for peer in [PeerId::Address(client), PeerId::Session(ebbtide_core::SessionKey::new(0, 0))] {
        let answers = bench.take(peer, &block(1, true, b'x'));
        assert_eq!(code(&answers[0]), Code::REQUEST_ENTITY_INCOMPLETE, "{peer:?}");
    }
    let body = bring(&bench, incoming, client, &block(1, false, b'b'));
    assert_eq!(body, Ok([[b'a'; 16], [b'b'; 16]].concat()));
}
