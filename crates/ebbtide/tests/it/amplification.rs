//! What an address that has not echoed gets: three times its bytes at most, with the headers of IP and
//! UDP counted on both sides, whatever is asked, and however long token and answer are.

use crate::common::many_clients::{GET, ManyClients, Outgoing};
use ebbtide::server::{Call, Router, Server, Verify, get};
use ebbtide::{Response, ServerConfig};
use ebbtide_core::wire::{Code, Message, Type};
use std::collections::BTreeMap;

/// Of IPv4 and UDP.
const HEADERS: usize = 28;
const LONGEST: usize = 200;

/// The answer is as long as the query says.
fn sized(call: &Call<'_>) -> Response {
    let asked = call.query().find_map(|query| query.strip_prefix("n=")?.parse().ok());
    let length = asked.unwrap_or(0);
    Response::content(vec![b'x'; length])
}

#[tokio::test]
async fn no_length_of_token_and_answer_gives_more_than_three_times_the_bytes_of_the_request() {
    let config = ServerConfig::new().verify(Verify::All);
    let router = Router::new().route("/n", get(sized));
    let server = Server::with_config(router, config, ["127.0.0.1:0"]).unwrap();
    let mut many = ManyClients::new(server.local_addrs()[0]);
    let (mut worst, mut whole, mut challenges) = (0.0_f64, 0, 0);
    for kind in [Type::Confirmable, Type::NonConfirmable] {
        for tkl in 0..=8 {
            let token = &[7; 8][..tkl];
            let mut got = BTreeMap::new();
            for length in 0..=LONGEST as u32 {
                let query = format!("n={length}");
                let options = [(11, &b"n"[..]), (15, query.as_bytes())];
                many.say(length, &Outgoing { kind, token, options: &options, ..GET });
                if length % 20 == 0 {
                    hear(&mut many, &mut got).await;
                }
            }
            hear(&mut many, &mut got).await;
            for length in 0..=LONGEST {
                let request = HEADERS + 4 + tkl + 2 + 1 + format!("n={length}").len();
                let (bytes, code) = got[&(length as u32)];
                let ratio = bytes as f64 / request as f64;
                assert!(ratio <= 3.0, "{bytes} for {request}: {length}, token of {tkl}");
                worst = worst.max(ratio);
                match code {
                    Code::CONTENT => whole += 1,
                    Code::UNAUTHORIZED => challenges += 1,
                    other => panic!("{other}"),
                }
            }
        }
    }
    // Close to the bound, so that it is the bound that was tested.
    assert!(worst > 2.8, "{worst}");
    assert!(whole > 100 && challenges > 100, "{whole} answers, {challenges} challenges");
}

/// Bytes that each has got, headers included, and the last code.
async fn hear(many: &mut ManyClients, got: &mut BTreeMap<u32, (usize, Code)>) {
    many.flush();
    let mut silent = 0;
    while silent < 20 {
        tokio::task::yield_now().await;
        let heard = |n, message: &Message<'_>| {
            let (bytes, code) = got.entry(n).or_insert((0, Code::EMPTY));
            *bytes += message.as_bytes().len() + HEADERS;
            *code = message.code();
        };
        let count = many.hear(|_| false, heard);
        silent = if count == 0 { silent + 1 } else { 0 };
    }
}
