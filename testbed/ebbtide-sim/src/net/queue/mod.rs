//! Queue disciplines: which packet leaves a link next, and which are dropped.
//!
//! A discipline knows packets by their length, their client and their age. It knows neither the rate of
//! the link nor what is in a packet, and it reads no clock. To add one, write a file here that implements
//! [`Discipline`], add its variant to [`QueueModel`], and test it against a closed form.

mod codel;
mod fq_codel;
mod pie;
mod red;
mod tail_drop;

pub use codel::{CoDel, CoDelParameters};
pub use fq_codel::{FqCoDel, FqCoDelParameters};
pub use pie::{Pie, PieParameters};
pub use red::{Red, RedParameters};
pub use tail_drop::TailDrop;

use ebbtide_core::time::{Duration, Instant};
use rand_chacha::ChaCha8Rng;
use std::collections::VecDeque;
use std::fmt::Debug;

/// A packet that waits for a link.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct QueuedPacket {
    /// The sender's name for it.
    pub id: u32,
    /// The sender or receiver on the clients' side: packets of one client are a flow.
    pub client: u32,
    /// Its length, headers included.
    pub bytes: u32,
    /// When it joined the queue.
    pub queued_at: Instant,
    /// Whether a queue has marked it: Congestion Experienced (RFC 3168 section 5).
    pub is_marked: bool,
}

/// A queue discipline. Packets that it drops go into `dropped`, each once. On a link with ECN it marks packets
/// in place of dropping them, where its document says so.
pub trait Discipline: Debug + Send {
    /// A packet joins the queue, or is dropped, or causes others to be dropped.
    fn enqueue(&mut self, now: Instant, packet: QueuedPacket, dropped: &mut Vec<QueuedPacket>);

    /// The packet that leaves next; `None` if nothing is left.
    fn dequeue(&mut self, now: Instant, dropped: &mut Vec<QueuedPacket>) -> Option<QueuedPacket>;

    /// Bytes that wait.
    fn bytes(&self) -> u64;
}

/// A queue discipline with its parameters.
#[derive(Copy, Clone, Debug, PartialEq)]
pub enum QueueModel {
    /// First in, first out; what finds the buffer full is dropped.
    TailDrop,
    /// RFC 8289.
    CoDel(CoDelParameters),
    /// RFC 8290.
    FqCoDel(FqCoDelParameters),
    /// RFC 8033.
    Pie(PieParameters),
    /// Floyd and Jacobson, "Random Early Detection Gateways for Congestion Avoidance", 1993.
    Red(RedParameters),
}

/// The properties of a link that its discipline depends on.
#[derive(Clone, Debug)]
pub struct LinkFacts {
    /// Bytes that may wait; `None` for no bound.
    pub buffer: Option<u64>,
    /// The longest packet, bytes.
    pub mtu: u32,
    /// How long the longest packet is in transmission.
    pub transmission: Duration,
    /// Whether packets are ECN-capable, so that they are marked in place of an early drop.
    pub ecn: bool,
}

impl QueueModel {
    /// An empty queue; `rng` draws what the discipline leaves to chance.
    pub fn build(self, link: &LinkFacts, rng: ChaCha8Rng) -> Box<dyn Discipline> {
        match self {
            Self::TailDrop => Box::new(TailDrop::new(link)),
            Self::CoDel(parameters) => Box::new(CoDel::new(parameters, link)),
            Self::FqCoDel(parameters) => Box::new(FqCoDel::new(parameters, link, rng)),
            Self::Pie(parameters) => Box::new(Pie::new(parameters, link, rng)),
            Self::Red(parameters) => Box::new(Red::new(parameters, link, rng)),
        }
    }
}

/// The packet with a mark.
const fn marked(packet: QueuedPacket) -> QueuedPacket {
    QueuedPacket { is_marked: true, ..packet }
}

/// Packets in the order of their arrival, and how long they are together.
#[derive(Clone, Debug, Default)]
struct Fifo {
    packets: VecDeque<QueuedPacket>,
    bytes: u64,
}

impl Fifo {
    fn push(&mut self, packet: QueuedPacket) {
        self.bytes += u64::from(packet.bytes);
        self.packets.push_back(packet);
    }

    fn pop(&mut self) -> Option<QueuedPacket> {
        let packet = self.packets.pop_front()?;
        self.bytes -= u64::from(packet.bytes);
        Some(packet)
    }

    /// Takes a packet if the buffer has room for it, or drops it.
    fn offer(
        &mut self,
        packet: QueuedPacket,
        buffer: Option<u64>,
        dropped: &mut Vec<QueuedPacket>,
    ) {
        if buffer.is_none_or(|buffer| self.bytes + u64::from(packet.bytes) <= buffer) {
            self.push(packet);
        } else {
            dropped.push(packet);
        }
    }
}
