//! From a request over a connection to its response: the same handlers, bodies in blocks and rates
//! as over UDP. There is nothing to acknowledge, no group, and no forged address to beware of.

use super::observe::Due;
use super::respond::Asker;
use super::router::{Later, Reply};
use super::service::{Service, Working};
use crate::message::{Response, Sizes};
use crate::stream::Link;
use bytes::Bytes;
use ebbtide_core::stream::{Incoming, SendError};
use ebbtide_core::time::Instant;
use ebbtide_core::wire::{Message, Opt, OptionNumber, encode_uint};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::task::Poll;

impl Service {
    /// Answers a request, or starts to.
    pub(crate) fn serve_stream(
        &self,
        link: &Arc<Link>,
        now: Instant,
        (incoming, message): (Incoming, Message<'_>),
        sizes: Sizes,
    ) {
        let asker = Asker::new(link.remote, &message);
        let response = match self.reply(link, now, (&asker, sizes), &message) {
            Reply::Now(response) => response,
            Reply::Later(mut later) => match self.poll_once(&mut later) {
                Poll::Ready(response) => response,
                Poll::Pending => {
                    self.inner.working.fetch_add(1, Ordering::Relaxed);
                    let request = Bytes::copy_from_slice(message.as_bytes());
                    let answering = Answering { link: link.clone(), incoming, asker, sizes };
                    tokio::spawn(answering.finish(request, later, Working(self.clone())));
                    return;
                }
            },
        };
        let response = self.in_blocks(now, link.remote, &message, response, sizes);
        respond(&mut link.lock(), now, (&incoming, &asker), &response);
    }

    /// Makes and sends a notification.
    pub(crate) fn notify_stream(&self, link: &Arc<Link>, due: Due) {
        match self.state_for(&due) {
            Reply::Now(response) => self.send_over(link, &due, response),
            Reply::Later(later) => {
                let (service, link) = (self.clone(), link.clone());
                tokio::spawn(async move {
                    let response = later.await;
                    service.send_over(&link, &due, response);
                });
            }
        }
    }

    fn send_over(&self, link: &Link, due: &Due, mut response: Response) {
        // It was a message when it came.
        let Ok(message) = Message::parse(&due.request) else { return };
        link.with(|state, now| {
            let sizes = Sizes::of_connection(&state.connection, 0);
            response = self.in_blocks(now, due.remote, &message, response.clone(), sizes);
            let mut value = [0; 4];
            // RFC 7641 section 4.2: an error ends the observation and has no sequence number.
            // RFC 8323 section 7.1: nobody looks at the number, but the option must be there.
            let sequence = response.is_success().then(|| Opt {
                number: OptionNumber::OBSERVE,
                value: encode_uint(due.sequence, &mut value),
            });
            let sent = response
                .with_content(sequence, |content| state.connection.notify(now, due.token, content));
            match sent {
                Ok(()) if response.is_success() => state.observers.arrived(due.observer),
                Ok(()) | Err(SendError::Closed) => state.observers.lost(due.observer, due.remote),
                Err(error) => {
                    // No room: the next change tries again.
                    tracing::warn!(peer = %due.remote, %error, "notification not sent");
                    state.observers.arrived(due.observer);
                }
            }
        });
    }
}

/// A request that a slow handler is at work on.
struct Answering {
    link: Arc<Link>,
    incoming: Incoming,
    asker: Asker,
    sizes: Sizes,
}

impl Answering {
    async fn finish(self, request: Bytes, later: Later, working: Working) {
        let response = later.await;
        let Ok(message) = Message::parse(&request) else { return };
        let now = self.link.clock.now();
        let response = working.0.in_blocks(now, self.link.remote, &message, response, self.sizes);
        self.link.with(|state, now| respond(state, now, (&self.incoming, &self.asker), &response));
    }
}

/// Sends a response, if it is wanted.
fn respond(
    state: &mut crate::stream::State,
    now: Instant,
    (incoming, asker): (&Incoming, &Asker),
    response: &Response,
) {
    if asker.wants(response.code) {
        state.respond(now, incoming, response);
    } else {
        state.connection.dismiss(now, incoming);
    }
}
