//! Responses to requests that have arrived.

use super::Endpoint;
use super::send::NewMessage;
use super::types::{Incoming, Reliability, SendError, Sent};
use crate::exchange::ExchangeId;
use crate::exchange::dedup::{MessageKey, Reply, Stored};
use crate::exchange::mark::{OptionsEnd, with_count_option};
use crate::exchange::table::Purpose;
use crate::peer::PeerId;
use crate::time::Instant;
use crate::wire::{Code, Content, Encoded, HEADER_LEN, MessageId, Token, Type};
use alloc::boxed::Box;
use alloc::vec::Vec;

impl Endpoint {
    /// Responds to a request. The response to a Confirmable request is piggybacked on its
    /// acknowledgement (RFC 7252 section 5.2.1). If the request was acknowledged before, the
    /// response is Confirmable and has an exchange of its own (section 5.2.2). The response to a
    /// Non-confirmable request is Non-confirmable (section 5.2.3).
    ///
    /// # Errors
    ///
    /// See [`SendError`]; nothing was sent then, and the request can still be answered.
    pub fn respond(
        &mut self,
        now: Instant,
        incoming: &Incoming,
        content: &Content<'_>,
    ) -> Result<Option<ExchangeId>, SendError> {
        if !content.code.is_response() {
            return Err(SendError::WrongCode(content.code));
        }
        let now = self.advance(now);
        if incoming.acknowledged {
            let message = NewMessage {
                to: incoming.remote,
                content,
                reliability: Reliability::Confirmable,
                purpose: Purpose::Response,
                token: incoming.token.as_slice(),
            };
            let started = self.start(now, &message)?;
            self.conclude(incoming);
            return Ok(Some(started));
        }
        let (kind, id) = self.form_of_response(now, incoming)?;
        self.emit_response(incoming, content, kind, id)?;
        if !incoming.idempotent {
            self.store_response(incoming, content);
        }
        self.conclude(incoming);
        Ok(None)
    }

    /// Like [`Self::respond`] to a request that was acknowledged before, but with a Non-confirmable
    /// response, which is sent once and has no exchange.
    ///
    /// # Errors
    ///
    /// As [`Self::respond`].
    pub fn respond_once(
        &mut self,
        now: Instant,
        incoming: &Incoming,
        content: &Content<'_>,
    ) -> Result<(), SendError> {
        if !content.code.is_response() {
            return Err(SendError::WrongCode(content.code));
        }
        let now = self.advance(now);
        let id = self.id_of_response(now, incoming)?;
        self.emit_response(incoming, content, Type::NonConfirmable, id)?;
        self.conclude(incoming);
        Ok(())
    }

    /// The type and the message ID of a response that is sent once.
    pub(super) fn form_of_response(
        &mut self,
        now: Instant,
        incoming: &Incoming,
    ) -> Result<(Type, MessageId), SendError> {
        Ok(match incoming.kind {
            Type::Confirmable => (Type::Acknowledgement, incoming.id),
            _ => (Type::NonConfirmable, self.id_of_response(now, incoming)?),
        })
    }

    /// The message ID of a Non-confirmable response. If message IDs are used faster than they become
    /// free, the response takes the request's ID, which is unique among those of its sender. At worst
    /// the response is taken for a duplicate, and the client sends the request again.
    fn id_of_response(
        &mut self,
        now: Instant,
        incoming: &Incoming,
    ) -> Result<MessageId, SendError> {
        let peer = self.peer(now, incoming.remote)?;
        Ok(self.fresh_id(now, peer).unwrap_or(incoming.id))
    }

    /// Reports that the application answers a request later. Until it has answered, copies of the request
    /// are duplicates even if it is idempotent (RFC 7252 section 4.5), for at most EXCHANGE_LIFETIME. If
    /// [`Limits::deferred_requests`](super::Limits::deferred_requests) is reached, copies of an idempotent
    /// request arrive as requests; this is counted in [`Counters::unstored`](super::Counters).
    pub fn defer(&mut self, now: Instant, incoming: &mut Incoming) {
        let now = self.advance(now);
        let (remote, id) = (incoming.remote, incoming.id);
        if incoming.deferred || self.dedup.lookup(now, remote, id).is_some() {
            return;
        }
        incoming.deferred = self.under_way.insert(now, self.exchange_lifetime, remote, id);
        if !incoming.deferred {
            self.counters.rare().unstored += 1;
        }
    }

    /// Ends a request without a response. A Confirmable request is acknowledged all the same (RFC 7967
    /// section 2.1).
    pub fn dismiss(&mut self, now: Instant, incoming: &Incoming) {
        self.acknowledge(now, &mut incoming.clone());
        self.conclude(incoming);
    }

    /// A request is no longer under way.
    fn conclude(&mut self, incoming: &Incoming) {
        if incoming.deferred {
            self.under_way.remove(incoming.remote, incoming.id);
        }
    }

    /// Acknowledges a Confirmable request whose response will take a while, so that the client
    /// stops repeating it (RFC 7252 section 5.2.2). The response is then a separate one. Does
    /// nothing for a Non-confirmable request, or if the request was acknowledged before.
    pub fn acknowledge(&mut self, now: Instant, incoming: &mut Incoming) {
        let now = self.advance(now);
        if incoming.kind != Type::Confirmable || incoming.acknowledged {
            return;
        }
        incoming.acknowledged = true;
        let (remote, id) = (incoming.remote, incoming.id);
        // From now on a duplicate is acknowledged again, whatever its method.
        if !self.dedup.set_reply(now, remote, id, Reply::Acknowledgement) {
            let lifetime = self.exchange_lifetime;
            let key = MessageKey { remote, id };
            // What is not remembered yet is idempotent, and a copy of it may be processed again (section 4.5). It
            // leaves half of the memory to what may not, since anyone can ask for very much of it.
            let is_kept = !self.dedup.is_half_full()
                && self.dedup.insert(now, lifetime, key, Reply::Acknowledgement);
            if !is_kept {
                self.counters.rare().unstored += 1;
            }
        }
        self.emit_empty(remote, Type::Acknowledgement, id);
    }

    /// Rejects a message with a Reset (RFC 7252 section 4.2), because the context needed to
    /// process it is missing.
    pub fn reset(&mut self, incoming: &Incoming) {
        self.conclude(incoming);
        self.emit_empty(incoming.remote, Type::Reset, incoming.id);
    }

    /// Queues an empty message.
    pub(super) fn emit_empty(&mut self, to: PeerId, kind: Type, id: MessageId) {
        let empty = Content { code: Code::EMPTY, options: &[], payload: &[] };
        let sent = self.output.push(self.config.limits.outbox_bytes, to, Sent::Reply, |out| {
            let mut bytes = [0; HEADER_LEN];
            let encoded = empty.encode(&mut bytes, kind, id, Token::EMPTY);
            out.extend_from_slice(&bytes);
            encoded.is_ok()
        });
        self.count_sent(sent);
    }

    /// Queues a response with the token, and the mark, of the copy of the request that it answers.
    pub(super) fn emit_response(
        &mut self,
        incoming: &Incoming,
        content: &Content<'_>,
        kind: Type,
        id: MessageId,
    ) -> Result<(), SendError> {
        let limit = self.config.limits.message_bytes;
        let bytes = Self::response_len(incoming, content);
        if bytes + self.measurement_bytes() > limit {
            return Err(SendError::TooLong { bytes, limit });
        }
        self.push_response(incoming, content, kind, id, bytes)
    }

    /// The bytes of a response.
    pub(super) fn response_len(incoming: &Incoming, content: &Content<'_>) -> usize {
        HEADER_LEN + incoming.token.encoded_len() + content.encoded_len()
    }

    /// Queues a response of so many `bytes`, whatever the limit.
    pub(super) fn push_response(
        &mut self,
        incoming: &Incoming,
        content: &Content<'_>,
        kind: Type,
        id: MessageId,
        bytes: usize,
    ) -> Result<(), SendError> {
        let option = self.config.rexmit_count_option;
        let mut result = Ok(());
        let sent = self.output.push(
            self.config.limits.outbox_bytes,
            incoming.remote,
            Sent::Reply,
            |out| {
                let start = out.len();
                out.resize(start + bytes, 0);
                match content.encode(&mut out[start..], kind, id, &incoming.token) {
                    Err(error) => result = Err(SendError::Encode(error)),
                    Ok(encoded) => {
                        // Rexmit-Cnt is echoed in piggybacked responses only (fasor-02).
                        if let (Some(count), Type::Acknowledgement) = (incoming.rexmit_count, kind)
                        {
                            let plain: Vec<u8> = out.drain(start..).collect();
                            let Encoded { options_end: offset, last_option, .. } = encoded;
                            let end = OptionsEnd { offset, last_option };
                            with_count_option(&plain, end, option, count, out);
                        }
                    }
                }
                result.is_ok()
            },
        );
        result?;
        self.count_sent(sent);
        if sent { Ok(()) } else { Err(SendError::OutboxFull) }
    }

    pub(super) fn count_sent(&mut self, sent: bool) {
        if sent {
            self.counters.sent += 1;
        } else {
            self.counters.rare().outbox_full += 1;
        }
    }

    /// Keeps the response that was queued last, for duplicates of its request if that is remembered.
    fn store_response(&mut self, incoming: &Incoming, content: &Content<'_>) {
        let Some(place) = self.dedup.place(self.now, incoming.remote, incoming.id) else { return };
        let rest = match incoming.rexmit_count {
            None => {
                let head = HEADER_LEN + incoming.token.encoded_len();
                self.output.newest().and_then(|queued| queued.get(head..)).map(Box::from)
            }
            // A duplicate has another count.
            Some(_) => {
                let mut bytes = alloc::vec![0; HEADER_LEN + content.encoded_len()];
                let encoded = content.encode(&mut bytes, incoming.kind, incoming.id, Token::EMPTY);
                encoded.is_ok().then(|| bytes.split_off(HEADER_LEN).into_boxed_slice())
            }
        };
        let kept = rest.is_some_and(|rest| {
            let reply = Reply::Response(Stored { code: content.code, rest });
            self.dedup.set_reply_at(place, reply)
        });
        if !kept {
            self.counters.rare().unstored += 1;
        }
    }

    /// Answers a duplicate like the first copy, with the duplicate's own token and mark.
    pub(super) fn repeat_response(&mut self, duplicate: &Incoming) {
        let (remote, id) = (duplicate.remote, duplicate.id);
        let Some(Reply::Response(stored)) = self.dedup.lookup(self.now, remote, id) else { return };
        let (kind, count) = match duplicate.kind {
            Type::Confirmable => (Type::Acknowledgement, duplicate.rexmit_count),
            _ => (Type::NonConfirmable, None),
        };
        let option = self.config.rexmit_count_option;
        let sent = self.output.push(self.config.limits.outbox_bytes, remote, Sent::Reply, |out| {
            let empty = Content { code: stored.code, options: &[], payload: &[] };
            let start = out.len();
            out.resize(start + HEADER_LEN + duplicate.token.encoded_len(), 0);
            if empty.encode(&mut out[start..], kind, id, &duplicate.token).is_err() {
                return false;
            }
            let counted = count.and_then(|count| Some((count, OptionsEnd::of(&stored.rest)?)));
            match counted {
                Some((count, end)) => {
                    with_count_option(&stored.rest, end, option, count, out);
                }
                None => out.extend_from_slice(&stored.rest),
            }
            true
        });
        self.count_sent(sent);
    }
}
