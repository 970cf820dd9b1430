//! The peers, and what is unique for each: message IDs and tokens.

use super::endpoint::{DeviceEndpoint, DeviceSendError, Io};
use super::tables::FixedPeer;
use crate::cc::{CongestionControl, Marking, Shell};
use crate::exchange::message_id::MessageIds;
use crate::exchange::token::random_token;
use crate::time::{Duration, Instant};
use crate::wire::{MAX_TOKEN_LEN, MessageId, Token};

/// How long the state of a peer is kept after its last use (cocoa-03 section 4.3).
const RETENTION: Duration = Duration::from_secs(255);

impl<A: Copy + Eq, C: CongestionControl + Clone> DeviceEndpoint<'_, A, C> {
    /// The message ID of a Non-confirmable response. If message IDs are used faster than they
    /// become free, the response takes the request's ID, which is unique among those of its sender.
    pub(super) fn id_of_response(&mut self, io: &mut Io<'_, A>, to: A, id: MessageId) -> MessageId {
        let Ok(index) = self.peer(io, to) else { return id };
        let Some(Some(peer)) = self.memory.peers.get_mut(usize::from(index)) else { return id };
        peer.ids.allocate(self.now, Some(self.lifetime)).unwrap_or(id)
    }

    /// Finds or creates the peer with this address.
    pub(super) fn peer(&mut self, io: &mut Io<'_, A>, address: A) -> Result<u8, DeviceSendError> {
        if let Some(index) = self.memory.find_peer(address) {
            self.touch(index);
            return Ok(index as u8);
        }
        let first_id = io.rng.next_u32() as u16;
        let retention = RETENTION.max(self.lifetime);
        let mut oldest: Option<(usize, Option<Instant>)> = None;
        for index in 0..self.memory.peers.len() {
            let is_idle = self.memory.is_idle(index);
            let Some(place) = self.memory.peers.get_mut(index).filter(|_| is_idle) else {
                continue;
            };
            place.take_if(|peer| self.now >= peer.last_used + retention);
            // A free place is as if it had never been used.
            let used = place.as_ref().map(|peer| peer.last_used);
            if oldest.is_none_or(|(_, other)| used < other) {
                oldest = Some((index, used));
            }
        }
        let (index, _) = oldest.ok_or(DeviceSendError::TooManyPeers)?;
        if let Some(place) = self.memory.peers.get_mut(index) {
            *place = Some(FixedPeer {
                address,
                shell: Shell::new(self.config.control.clone()),
                ids: MessageIds::new(first_id),
                last_used: self.now,
                faithful: false,
            });
        }
        // There are at most 255 places.
        Ok(index as u8)
    }

    pub(super) fn touch(&mut self, peer: usize) {
        if let Some(Some(peer)) = self.memory.peers.get_mut(peer) {
            peer.last_used = self.now;
        }
    }

    /// A token that no open request to `to` uses.
    pub(super) fn fresh_token(&self, io: &mut Io<'_, A>, to: A, marking: Marking) -> Token {
        let mut length = self.config.token_length.min(MAX_TOKEN_LEN as u8);
        for attempt in 1..=u8::MAX {
            let token = random_token(length, marking, io.rng);
            if self.memory.find(to, &|it| it.has_token(token)).is_none() {
                return token;
            }
            // Short tokens run out.
            if attempt % 4 == 0 {
                length = (length + 1).min(MAX_TOKEN_LEN as u8);
            }
        }
        Token::EMPTY
    }
}
