//! Read buffers. They belong to the thread and not to the connection, so a waiting connection
//! holds no more than the bytes of an incomplete message.

use ebbtide_core::stream::Input;
use std::cell::Cell;

/// The capacity kept for the copy of the next request, in bytes.
const KEEP: usize = 16 << 10;

/// The buffers that a task uses while it runs.
#[derive(Debug, Default)]
pub(crate) struct TaskBuffers {
    pub(crate) input: Input,
    /// A request in its form over UDP, which handlers receive.
    pub(crate) datagram: Vec<u8>,
}

thread_local! {
    static SPARE: Cell<TaskBuffers> = Cell::default();
}

impl TaskBuffers {
    /// Takes the thread's buffers.
    pub(crate) fn take() -> Self {
        SPARE.take()
    }

    /// Leaves the buffers to the next task.
    pub(crate) fn leave(mut self) {
        self.datagram.clear();
        self.datagram.shrink_to(KEEP);
        SPARE.set(self);
    }
}
