//! Observers whose notifications found no room: they wait for the end of an exchange.

use super::in_flight::push_swept;
use super::{Awaited, ObserverId, Observers};
use crate::peer::PeerId;
use crate::session::message::Response;
use alloc::collections::{BTreeMap, VecDeque};

/// The event for which a notification without room waits.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum Room {
    /// The end of an exchange with this scope
    /// ([`Endpoint::scope_of`](crate::endpoint::Endpoint::scope_of)).
    Scope(PeerId),
    /// The end of any exchange.
    Any,
}

/// The observers that wait for room, and those that have it and wait for their turns.
#[derive(Debug, Default)]
pub(super) struct Parked {
    by_scope: BTreeMap<PeerId, VecDeque<ObserverId>>,
    for_any: VecDeque<ObserverId>,
    /// The room that an observer would take, by its slot.
    with_room: BTreeMap<u32, Room>,
}

impl Parked {
    fn pop(&mut self, room: Room) -> Option<ObserverId> {
        let Room::Scope(scope) = room else { return self.for_any.pop_front() };
        // Usually no observer waits.
        if self.by_scope.is_empty() {
            return None;
        }
        let waiting = self.by_scope.get_mut(&scope)?;
        let next = waiting.pop_front();
        if waiting.is_empty() {
            self.by_scope.remove(&scope);
        }
        next
    }

    fn len(&self) -> usize {
        self.by_scope.values().map(VecDeque::len).sum::<usize>() + self.for_any.len()
    }

    /// The observer in this slot has its turn, or is gone.
    pub(super) fn take_room(&mut self, index: u32) -> Option<Room> {
        self.with_room.remove(&index)
    }
}

impl Observers {
    /// The notification found no room. It is created again when there may be some.
    pub fn postponed(&mut self, id: ObserverId, event: Option<Response>, room: Room) {
        let Some(index) = self.places.find(id) else { return };
        let Some(observer) = self.places.at_mut(index) else { return };
        match event {
            None => observer.dirty = true,
            Some(event) => observer.events.get_or_insert_default().push_front(event),
        }
        self.due.released(observer);
        if observer.awaits != Awaited::Nothing {
            return;
        }
        observer.awaits = Awaited::Room;
        let parked = &mut self.due.parked;
        let waiting = match room {
            Room::Scope(scope) => parked.by_scope.entry(scope).or_default(),
            Room::Any => &mut parked.for_any,
        };
        push_swept(waiting, id, |id| self.places.find(id).is_some());
    }

    /// An exchange with this scope has ended: one of the observers that wait for that may be
    /// notified.
    pub fn room(&mut self, scope: PeerId) {
        self.unpark(Room::Scope(scope));
        self.unpark(Room::Any);
    }

    /// The number of observers that wait for room, or until their source has its share.
    #[must_use]
    pub fn parked(&self) -> usize {
        self.due.parked.len() + self.due.shares.waiting()
    }

    /// The next observer that waits for this room, and still has news, waits for its turn.
    pub(super) fn unpark(&mut self, room: Room) {
        while let Some(id) = self.due.parked.pop(room) {
            let Some(index) = self.places.find(id) else { continue };
            let Some(observer) = self.places.at_mut(index) else { continue };
            if observer.has_news() {
                self.due.parked.with_room.insert(index, room);
                self.due.await_turn(observer, id, Awaited::TurnWithRoom);
                return;
            }
            observer.awaits = Awaited::Nothing;
        }
    }
}
