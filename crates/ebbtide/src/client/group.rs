//! Requests to a group (RFC 7252 section 8).

use super::drive::Drive;
use super::session::Session;
use super::{Client, ClientInner};
use crate::error::{Cause, Error, OscoreFailure};
use crate::message::{Request, Response};
use crate::net::pending::Answer;
use ebbtide_core::endpoint::Reliability;
use ebbtide_core::session::client::{Outgoing, Transfer};
use ebbtide_core::wire::{Code, OptionNumber};
use futures_util::StreamExt;
use futures_util::stream::FuturesUnordered;
use std::collections::BTreeSet;
use std::future::{Future, poll_fn};
use std::net::SocketAddr;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

/// Members whose answers are collected. A stranger on the link can answer from very many addresses.
const MAX_MEMBERS: usize = 4096;

/// The next event of a request to a group.
enum GroupEvent<M> {
    /// A member's first answer, or no more of them.
    Answer(Option<Answer>),
    /// All that a member answers, or why not.
    Member(M),
    Over,
}

impl Client {
    /// Sends a request to a group and collects what its members answer within `wait`, which should
    /// be longer than DEFAULT_LEISURE, 5 s (RFC 7252 section 8). A unicast address is a group of
    /// one. Each member whose answer is longer than a block, or that wants an Echo first, is at once
    /// asked for the rest by itself (RFC 7959 section 2.8, RFC 9175 section 2.3); one that does not
    /// give it within `wait` after its answer is left out, as are those after the first 4096. The answers come in the
    /// order in which the members answered first.
    ///
    /// # Errors
    ///
    /// Returns an error if the request cannot be sent. A group in which no member answers gives an
    /// empty list, but a unicast address without an answer is an error.
    pub async fn request_group(
        &self,
        request: Request,
        wait: Duration,
    ) -> Result<Vec<(SocketAddr, Response)>, Error> {
        let group = self.resolve(&request.uri).await?;
        if !group.ip().is_multicast() {
            return Ok(vec![(group, self.request(request.timeout(wait)).await?)]);
        }
        if self.inner.requests.config.oscore.is_some() {
            // Group OSCORE is another protocol.
            let reason = OscoreFailure::Group;
            return Err(Error::for_peer(group, Cause::Oscore(reason)));
        }
        let session = Session::of_datagrams(&self.inner, group)?;
        let parts = request.parts();
        let (code, mut options, payload) = (parts.code, parts.options, parts.payload);
        if code == Code::GET {
            // RFC 7252 section 8.2.1.
            options.remove(OptionNumber::ETAG);
        }
        let asked = Outgoing { id: 0, code, options, payload, q_block: false };
        let pending = session.start_when_room(&asked, request.reliability).await?;
        let (mut known, mut members) = (BTreeSet::new(), FuturesUnordered::new());
        let mut answers: Vec<(usize, SocketAddr, Response)> = Vec::new();
        let mut over = Box::pin(tokio::time::sleep(wait));
        let mut is_open = true;
        loop {
            let next = poll_fn(|cx| {
                if is_open {
                    if let Poll::Ready(answer) = pending.poll_answer(cx) {
                        return Poll::Ready(GroupEvent::Answer(answer));
                    }
                    if over.as_mut().poll(cx).is_ready() {
                        return Poll::Ready(GroupEvent::Answer(None));
                    }
                }
                match members.poll_next_unpin(cx) {
                    Poll::Ready(Some(member)) => Poll::Ready(GroupEvent::Member(member)),
                    Poll::Ready(None) if !is_open => Poll::Ready(GroupEvent::Over),
                    Poll::Ready(None) | Poll::Pending => Poll::Pending,
                }
            });
            match next.await {
                GroupEvent::Answer(Some(
                    Answer::Response { from, response } | Answer::More { from, response },
                )) => {
                    let number = known.len();
                    if number < MAX_MEMBERS && known.insert(from) {
                        let rest = rest_of(&self.inner, from, &request, response);
                        let rest = tokio::time::timeout(wait, rest);
                        members.push(async move { (number, from, rest.await) });
                    }
                }
                GroupEvent::Answer(None | Some(Answer::Failed(_) | Answer::Reset { .. })) => {
                    is_open = false;
                }
                GroupEvent::Answer(Some(other)) => return Err(pending.error(other)),
                GroupEvent::Member((number, from, Ok(Ok(response)))) => {
                    answers.push((number, from, response));
                }
                GroupEvent::Member((_, from, Ok(Err(error)))) => {
                    tracing::warn!(%from, %error, "a member gave half an answer");
                }
                GroupEvent::Member((_, from, Err(_))) => {
                    tracing::warn!(%from, "a member gave half an answer");
                }
                GroupEvent::Over => break,
            }
        }
        answers.sort_by_key(|(number, ..)| *number);
        Ok(answers.into_iter().map(|(_, from, response)| (from, response)).collect())
    }
}

/// The whole answer of a group's member, whose first message is `first`.
async fn rest_of(
    inner: &Arc<ClientInner>,
    remote: SocketAddr,
    request: &Request,
    first: Response,
) -> Result<Response, Error> {
    // Only the group has to be asked Non-confirmable (RFC 7252 section 8.1).
    let reliability = Reliability::Confirmable;
    let session = Session::of_datagrams(inner, remote)?;
    let parts = request.parts();
    let settings = session.settings(request, &parts);
    let transfer = Transfer::of_answer(session.now(), parts, settings, first);
    Drive::new(session, reliability, transfer).run().await
}
