//! Room for what is read. It belongs to the thread, not to the connection: a connection that waits
//! holds no more than the bytes of a message that is not whole yet.

use ebbtide_core::stream::Input;
use std::cell::Cell;

/// Bytes of a request's copy that are kept for the next one.
const KEEP: usize = 16 << 10;

/// What a task uses while it runs.
#[derive(Debug, Default)]
pub(crate) struct Room {
    pub(crate) input: Input,
    /// A request as it would be over UDP, which is what handlers are given.
    pub(crate) datagram: Vec<u8>,
}

thread_local! {
    static SPARE: Cell<Room> = Cell::default();
}

impl Room {
    /// The thread's room.
    pub(crate) fn take() -> Self {
        SPARE.take()
    }

    /// Leaves it to the next task.
    pub(crate) fn leave(mut self) {
        self.datagram.clear();
        self.datagram.shrink_to(KEEP);
        SPARE.set(self);
    }
}
