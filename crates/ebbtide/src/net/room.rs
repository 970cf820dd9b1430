//! Tasks that wait until an endpoint has room for what they send.

use ebbtide_core::{PeerId, Source};
use std::collections::{BTreeMap, VecDeque};
use tokio::sync::oneshot;

/// The room for which a task waits.
#[derive(Copy, Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum RoomFor {
    /// A message to a scope.
    Scope(PeerId),
    /// A separate response to a [sharing](Source::sharing) source.
    Response(Source),
}

/// The waiting tasks, served in the order of arrival.
#[derive(Debug, Default)]
pub(crate) struct Waiting {
    by_room: BTreeMap<RoomFor, VecDeque<oneshot::Sender<()>>>,
}

impl Waiting {
    /// Waits for the end of an exchange that takes such room.
    pub(crate) fn wait(&mut self, room: RoomFor) -> oneshot::Receiver<()> {
        let (sender, receiver) = oneshot::channel();
        let waiting = self.by_room.entry(room).or_default();
        // A task that tries again from time to time would leave very many.
        while waiting.front().is_some_and(oneshot::Sender::is_closed) {
            waiting.pop_front();
        }
        waiting.push_back(sender);
        receiver
    }

    /// An exchange has ended, so one task that waits for this tries again.
    #[inline]
    pub(crate) fn room(&mut self, room: RoomFor) {
        if self.by_room.is_empty() {
            return;
        }
        let Some(waiting) = self.by_room.get_mut(&room) else { return };
        while let Some(next) = waiting.pop_front() {
            // The task may no longer be waiting.
            if next.send(()).is_ok() {
                break;
            }
        }
        if waiting.is_empty() {
            self.by_room.remove(&room);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tasks_that_wait_no_more_are_forgotten_and_the_next_one_has_the_room() {
        let scope = |port| RoomFor::Scope(PeerId::Address(([192, 0, 2, 1], port).into()));
        let source = RoomFor::Response(Source::Address([192, 0, 2, 1].into()));
        let mut waiting = Waiting::default();
        for _ in 0..1000 {
            drop(waiting.wait(source));
        }
        let (mut first, mut second) = (waiting.wait(source), waiting.wait(source));
        assert_eq!(waiting.by_room[&source].len(), 2);
        let mut other = waiting.wait(scope(1));
        waiting.room(scope(2));
        assert!(first.try_recv().is_err() && other.try_recv().is_err());
        waiting.room(source);
        assert!(first.try_recv().is_ok() && second.try_recv().is_err());
        waiting.room(source);
        waiting.room(scope(1));
        assert!(second.try_recv().is_ok() && other.try_recv().is_ok());
        assert!(waiting.by_room.is_empty());
    }
}
