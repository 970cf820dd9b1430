//! First in, first out.

use super::{Discipline, Fifo, LinkFacts, QueuedPacket};
use ebbtide_core::time::Instant;

/// A queue that drops what finds it full.
#[derive(Clone, Debug)]
pub struct TailDrop {
    queue: Fifo,
    buffer: Option<u64>,
}

impl TailDrop {
    /// An empty queue of the link's buffer.
    pub fn new(link: &LinkFacts) -> Self {
        Self { queue: Fifo::default(), buffer: link.buffer }
    }
}

impl Discipline for TailDrop {
    fn enqueue(&mut self, _: Instant, packet: QueuedPacket, dropped: &mut Vec<QueuedPacket>) {
        self.queue.offer(packet, self.buffer, dropped);
    }

    fn dequeue(&mut self, _: Instant, _: &mut Vec<QueuedPacket>) -> Option<QueuedPacket> {
        self.queue.pop()
    }

    fn bytes(&self) -> u64 {
        self.queue.bytes
    }
}
