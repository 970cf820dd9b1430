//! Observers of a replication. They see everything and change nothing.

use super::ExchangeRecord;
use crate::net::{Direction, Fate};
use crate::scenario::Transport;
use ebbtide_core::cc::{Metrics, Sample};
use ebbtide_core::endpoint::Failure;
use ebbtide_core::time::{Duration, Instant, Micros};

/// The exchange and transmission to which a message belongs.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq)]
pub struct Tagged {
    /// The client.
    pub client: u32,
    /// The number of the exchange at its client, from 0.
    pub exchange: u32,
    /// Which transmission of it, or which one is answered; 0 is the original.
    pub ordinal: u8,
    /// It is a probe that congestion control sent after that transmission, or the answer to one.
    pub probe: bool,
}

/// A packet at a link, as an observer sees it.
#[derive(Copy, Clone, Debug)]
pub struct Details<'p> {
    /// Its direction.
    pub direction: Direction,
    /// The transport of the message.
    pub transport: Transport,
    /// The exchange and transmission to which it belongs.
    pub tagged: Tagged,
    /// Over UDP the CoAP message; over TCP the IPv4 packet.
    pub datagram: &'p [u8],
    /// Bytes in the queue before it.
    pub queued: u64,
    /// The fate of the packet at the link.
    pub fate: Fate,
    /// When its last bit leaves the link's serialiser; only at a link that does not drop it, and only for an
    /// observer that [wants departures](Recorder::wants_departures).
    pub left: Option<Instant>,
}

/// Where a datagram was lost in a low-power network.
#[derive(Copy, Clone, Debug)]
pub struct LostAt<'c> {
    /// The node that lost it.
    pub node: u32,
    /// The direction of the packet.
    pub direction: Direction,
    /// Why, in words.
    pub cause: &'c str,
}

/// No sample is wanted.
const NEVER: Instant = Instant::from_nanos(u64::MAX);

/// Declares [`Recorder`], whose methods do nothing unless an observer has its own, and the observers that consist of
/// others.
macro_rules! recorder {
    ($($(#[$doc:meta])* fn $name:ident($($argument:ident: $kind:ty),*);)*) => {
        /// Sees what happens in a replication. Two observers together are one, and so is one that may be missing.
        pub trait Recorder {
            /// Whether `answered` and `joins_queue` are worth computing for this observer.
            fn wants_details(&self) -> bool {
                false
            }
            /// Whether [`Details::left`] is worth computing for this observer.
            fn wants_departures(&self) -> bool {
                self.wants_details()
            }
            /// Whether the bytes of frames are worth putting together for this observer.
            fn wants_frames(&self) -> bool {
                false
            }
            /// The next instant at which it wants to know the queues; far away if it does not.
            fn next_sample(&self) -> Instant {
                NEVER
            }
            $(
                $(#[$doc])*
                fn $name(&mut self, $($argument: $kind),*) {
                    let _ = ($($argument,)*);
                }
            )*
        }

        impl<A: Recorder, B: Recorder> Recorder for (A, B) {
            fn wants_details(&self) -> bool {
                self.0.wants_details() || self.1.wants_details()
            }
            fn wants_departures(&self) -> bool {
                self.0.wants_departures() || self.1.wants_departures()
            }
            fn wants_frames(&self) -> bool {
                self.0.wants_frames() || self.1.wants_frames()
            }
            fn next_sample(&self) -> Instant {
                self.0.next_sample().min(self.1.next_sample())
            }
            $(
                #[inline]
                fn $name(&mut self, $($argument: $kind),*) {
                    self.0.$name($($argument),*);
                    self.1.$name($($argument),*);
                }
            )*
        }

        impl<R: Recorder> Recorder for Option<R> {
            fn wants_details(&self) -> bool {
                self.as_ref().is_some_and(R::wants_details)
            }
            fn wants_departures(&self) -> bool {
                self.as_ref().is_some_and(R::wants_departures)
            }
            fn wants_frames(&self) -> bool {
                self.as_ref().is_some_and(R::wants_frames)
            }
            fn next_sample(&self) -> Instant {
                self.as_ref().map_or(NEVER, R::next_sample)
            }
            $(
                #[inline]
                fn $name(&mut self, $($argument: $kind),*) {
                    if let Some(recorder) = self {
                        recorder.$name($($argument),*);
                    }
                }
            )*
        }
    };
}

recorder! {
    /// The measurements from now on belong to clients of this class. Called only in
    /// scenarios with classes.
    fn whose(class: usize);
    /// The bytes that wait before the bottleneck at an instant, towards the server and towards the devices.
    fn sample_queues(at: Instant, up: u64, down: u64);
    /// The round trip of an answered transmission.
    fn round_trip(rtt: Micros);
    /// How long an exchange took, from the application's request to its first response.
    fn duration(duration: Micros);
    /// An exchange was answered so long after it was due.
    fn answered_after(time: Duration);
    /// A client transmits and arms a timeout.
    fn armed(now: Instant, tagged: Tagged, timeout: Micros);
    /// A client sends a packet: on the air or, without a radio, onto the link.
    fn client_sent(now: Instant, packet: &Details<'_>);
    /// A packet leaves a cell or the low-power network (`"wifi"`, `"lora"`, `"nb-iot"`, `"mesh"`): it has
    /// crossed it, was dropped before or lost in it. [`Details::queued`] are packets, not bytes. Losses in a
    /// low-power network are reported by [`Self::lost_at`] instead.
    fn crossed(now: Instant, medium: &str, packet: &Details<'_>);
    /// A packet joins the queue of a link whose discipline decides its fate later: then the link reports it. Only
    /// for an observer that [wants details](Self::wants_details).
    fn joins_queue(now: Instant, packet: &Details<'_>);
    /// A packet is handed to the link.
    fn at_link(now: Instant, packet: &Details<'_>);
    /// A packet is handed to the link of this name, which is not the bottleneck.
    fn at_other_link(now: Instant, link: &str, packet: &Details<'_>);
    /// The server sends a packet towards the link. Its fate says when it leaves: the server may need time first.
    fn server_sent(now: Instant, packet: &Details<'_>);
    /// A packet arrives at a host: the server or a client.
    fn arrived(now: Instant, packet: &Details<'_>);
    /// The node `from` begins to transmit a frame or an acknowledgement to the node `to`.
    fn on_air(now: Instant, from: u32, to: u32, frame: &[u8]);
    /// A datagram was lost in a low-power network.
    fn lost_at(now: Instant, tagged: Tagged, at: &LostAt<'_>);
    /// An exchange got its response; what the control made of it.
    fn answered(now: Instant, tagged: Tagged, sample: Option<Sample>, metrics: &Metrics);
    /// An exchange failed.
    fn failed(now: Instant, tagged: Tagged, reason: Failure);
    /// An exchange has ended, with its response or without.
    fn ended(exchange: &ExchangeRecord);
    /// So many exchanges that the application asked for were refused by a full queue. Called only where requests go
    /// by the clock.
    fn refused(now: Instant, count: u32);
    /// The first message of a flow left.
    fn begins(now: Instant, client: u32);
    /// A message of a flow arrived at the server, for the first time.
    fn delivered(now: Instant, client: u32);
    /// The rate at which a control lets a client's messages leave, messages/s.
    fn rate(now: Instant, client: u32, rate: f64);
    /// Payload reached an application, in bytes.
    fn goodput(now: Instant, bytes: u64);
}
