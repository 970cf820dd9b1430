//! Bodies in Non-confirmable blocks, from the server's side (RFC 9177).

mod download;
mod pace;
mod part;
mod store;
mod upload;

pub(super) use part::concerns;
pub(crate) use store::Store;

use super::ServerConfig;
use super::block::{Key, key, with_etag};
use super::respond::{Asked, respond};
use super::router::{Later, Reply};
use super::service::{Service, Working};
use crate::message::Response;
use crate::net::clock::seeded;
use crate::net::shared::{Shared, State};
use bytes::Bytes;
use download::{Download, slice};
use ebbtide_core::time::Instant;
use ebbtide_core::wire::{Block, Code, Message, OptionNumber, Type};
use part::{Part, Wanted, Wish};
use std::sync::atomic::Ordering;
use std::sync::{Arc, MutexGuard};
use std::task::Poll;
use store::{Peer, Saying, Taken};
use upload::Upload;

/// A request whose body, if it has one, is whole.
struct Whole {
    peer: Peer,
    key: Key,
    /// Which blocks of the response are wanted, if the request says so.
    wish: Option<Wish>,
    /// Whether its body came in blocks.
    uploaded: bool,
}

impl Service {
    /// Takes a request with options of RFC 9177, and answers what there is to answer.
    pub(super) fn serve_quick<'s>(
        &self,
        shared: &'s Arc<Shared>,
        now: Instant,
        asked: Asked,
        message: &Message<'_>,
    ) -> MutexGuard<'s, State> {
        // RFC 9177 section 4.8: a group's members ignore it.
        if asked.asker.group {
            return shared.lock();
        }
        let saying = self.take_part(shared, now, asked, message);
        self.pace();
        let mut state = shared.lock();
        for (peer, response) in saying {
            respond(&mut state, now, &peer.asked, &response);
        }
        state
    }

    fn take_part(
        &self,
        shared: &Arc<Shared>,
        now: Instant,
        asked: Asked,
        message: &Message<'_>,
    ) -> Saying {
        let from = asked.incoming.remote;
        let peer = Peer::new(shared, asked);
        if let Some(answer) = self.refuse(now, from.ip()) {
            return vec![(peer, answer)];
        }
        let key = key(from, message);
        match Part::read(message, &self.config().net.quick) {
            Err(answer) => vec![(peer, answer)],
            Ok(Part::Block { block, size }) => {
                self.take_block(shared, now, (key, peer), (block, size), message)
            }
            Ok(Part::Wish(wish)) => self.take_wish(shared, now, (key, peer), wish, message),
        }
    }

    /// A block of a request's body.
    fn take_block(
        &self,
        shared: &Arc<Shared>,
        now: Instant,
        (key, mut peer): (Key, Peer),
        (block, size): (Block, usize),
        message: &Message<'_>,
    ) -> Saying {
        let max = Upload::longest(block.size(), self.config());
        if size > max {
            // RFC 7959 section 2.9.3.
            let mut answer = Response::new(Code::REQUEST_ENTITY_TOO_LARGE);
            answer.options.push_uint(OptionNumber::SIZE1, u32::try_from(max).unwrap_or(u32::MAX));
            return vec![(peer, answer)];
        }
        // One block makes us keep a body and ask several times for the others: not for an address
        // that may be another's (RFC 9177 sections 3.2 and 11). Of a body that is one block the answer
        // may be long, and a challenge after the handler ran would have it run twice.
        let ip = peer.asked.incoming.remote.ip();
        if let Some(challenge) = self.challenge(now, ip, message) {
            return vec![(peer, challenge)];
        }
        let mut saying = Saying::new();
        let at = self.clock().now();
        let sender = (key, peer.clone());
        let taken = self.quick().take(at, sender, (block, size), message.payload(), &mut saying);
        match taken {
            Taken::Kept if saying.is_empty() => acknowledge(&mut peer),
            Taken::Kept => {}
            Taken::Known(response) => saying.push((peer, response)),
            Taken::Whole(body) => {
                let whole = Whole { peer, key, wish: None, uploaded: true };
                saying.extend(self.ask_handler(shared, now, whole, message, &body));
            }
        }
        saying
    }

    /// A request for blocks of a response, and maybe for the response in the first place.
    fn take_wish(
        &self,
        shared: &Arc<Shared>,
        now: Instant,
        (key, mut peer): (Key, Peer),
        wish: Wish,
        message: &Message<'_>,
    ) -> Saying {
        let mut saying = Saying::new();
        if wish.blocks != Wanted::Whole {
            if !matches!(&wish.blocks, Wanted::These(blocks) if blocks.len() == 1) {
                acknowledge(&mut peer);
            }
            let at = self.clock().now();
            if self.quick().wish(at, (key, peer.clone()), &wish, &mut saying) {
                if saying.is_empty() {
                    acknowledge(&mut peer);
                }
                return saying;
            }
            // What changes nothing may be asked for again.
            if !matches!(message.code(), Code::GET | Code::FETCH) {
                saying.push((peer, Response::new(Code::REQUEST_ENTITY_INCOMPLETE)));
                return saying;
            }
        }
        let whole = Whole { peer, key, wish: Some(wish), uploaded: false };
        self.ask_handler(shared, now, whole, message, message.payload())
    }

    fn ask_handler(
        &self,
        shared: &Arc<Shared>,
        now: Instant,
        whole: Whole,
        message: &Message<'_>,
        body: &[u8],
    ) -> Saying {
        let asker = &whole.peer.asked.asker;
        match self.handle(shared, now, (asker, message), body) {
            Reply::Now(response) => self.give(now, whole, message, response),
            Reply::Later(mut later) => match self.poll_once(&mut later) {
                Poll::Ready(response) => self.give(now, whole, message, response),
                Poll::Pending => {
                    self.inner.working.fetch_add(1, Ordering::Relaxed);
                    let working = Working(self.clone());
                    let request = Bytes::copy_from_slice(message.as_bytes());
                    tokio::spawn(finish(shared.clone(), whole, request, later, working));
                    Saying::new()
                }
            },
        }
    }

    /// Makes of a handler's response what is sent of it now, and keeps it for what follows.
    fn give(
        &self,
        now: Instant,
        whole: Whole,
        message: &Message<'_>,
        mut response: Response,
    ) -> Saying {
        let Whole { mut peer, key, wish, uploaded } = whole;
        let ours = self.config().net.block_szx.min(Block::MAX_SZX);
        let szx = wish.as_ref().map_or(ours, |wish| wish.szx.min(ours));
        // The handler serves blocks itself, the usual ones, which every client understands.
        let is_block = response.options.get(OptionNumber::BLOCK2).is_some();
        if !is_block && !response.is_success() {
            response.payload.truncate(16 << szx);
        }
        if is_block || response.payload.len() <= 16 << szx {
            if wish.is_some() && !is_block {
                // In an error as well: libcoap's client takes it for the sign that it is understood.
                response = slice(&response, 0, szx);
            }
            if uploaded {
                self.quick().answered(&key, response.clone());
            } else {
                response = self.guarded(now, &mut peer.asked, message, response);
            }
            return vec![(peer, response)];
        }
        // Who uploads has shown that it is there, before the handler ran.
        if !uploaded
            && let Some(challenge) = self.challenge(now, peer.asked.incoming.remote.ip(), message)
        {
            return vec![(peer, challenge)];
        }
        // RFC 9177 section 4.4: the same in every block of a body, and another for another body.
        let response = with_etag(response);
        if uploaded {
            self.quick().answered(&key, slice(&response, 0, szx));
        }
        let ServerConfig { max_block_bytes, net, .. } = self.config();
        let params = net.quick;
        let set = |from| (from..params.end_of_set(from)).collect();
        let count = response.payload.len().div_ceil(16 << szx) as u32;
        let these = match wish.map(|wish| wish.blocks) {
            Some(Wanted::These(blocks)) => blocks,
            Some(Wanted::From(from)) => set(from),
            // It cannot be kept: the handler is asked again for every set.
            _ if response.payload.len() > *max_block_bytes => set(0),
            // The system gives randomness, or there would be no socket.
            Some(Wanted::Whole) | None => match seeded() {
                Ok(mut rng) => {
                    let mut saying = Saying::new();
                    acknowledge(&mut peer);
                    let download = Download::begin(response, szx, peer, params, &mut *rng);
                    self.quick().give(self.clock().now(), key, download, &mut saying);
                    return saying;
                }
                Err(_) => vec![0],
            },
        };
        let these: Vec<u32> = these.into_iter().filter(|&num| num < count).collect();
        match *these.as_slice() {
            [] => return vec![(peer, Response::error(Code::BAD_REQUEST, "no such block"))],
            [_] => {}
            _ => acknowledge(&mut peer),
        }
        these.into_iter().map(|num| (peer.clone(), slice(&response, num, szx))).collect()
    }
}

/// Acknowledges a Confirmable request that has no answer yet, or that several responses follow: all
/// of a body's blocks are Confirmable then, or none (RFC 9177 section 7).
fn acknowledge(peer: &mut Peer) {
    let asked = &mut peer.asked;
    if asked.incoming.kind == Type::Confirmable
        && let Some(shared) = peer.shared.upgrade()
    {
        shared.with(|state, now| {
            state.endpoint.acknowledge(now, &mut asked.incoming);
            state.drain(asked.asker.local);
        });
    }
}

/// Waits for a slow handler.
async fn finish(
    shared: Arc<Shared>,
    mut whole: Whole,
    request: Bytes,
    later: Later,
    working: Working,
) {
    acknowledge(&mut whole.peer);
    let response = later.await;
    let Ok(message) = Message::parse(&request) else { return };
    let service = &working.0;
    let saying = service.give(shared.clock.now(), whole, &message, response);
    service.pace();
    pace::say(saying);
}
