//! The interface of hosts to the runner, the same for every transport.

use super::agenda::Agenda;
use super::flow::MessageFlow;
use super::{ConstantServer, ExchangeLedger, SecureServer, Tag};
use crate::medium::low_power::Cause;
use crate::random::CompactChaCha;
use crate::record::{Handshakes, Messages, Recorder};
use ebbtide_core::endpoint::Measured;
use ebbtide_core::testbed::{MemoryPart, OutputBuffers};
use ebbtide_core::time::Instant;
use std::ops::Range;

/// A packet that arrives at a host.
#[derive(Copy, Clone, Debug)]
pub(crate) struct ArrivingPacket<'p> {
    pub(crate) bytes: &'p [u8],
    pub(crate) tag: Tag,
    /// Whether a queue has marked it. The mark reaches CoAP's own congestion control only.
    pub(crate) is_marked: bool,
}

/// The host of a client.
pub(crate) trait Host {
    /// The behaviour of its application.
    fn agenda(&self) -> &Agenda;

    /// The ledger of its exchanges.
    fn ledger(&self) -> &ExchangeLedger;

    /// The ledger of its exchanges, to be completed.
    fn ledger_mut(&mut self) -> &mut ExchangeLedger;

    /// Its flow of messages, if it sends such.
    fn flow(&mut self) -> Option<&mut MessageFlow>;

    /// Makes as many requests as the workload has ready.
    fn act(&mut self, now: Instant);

    /// A timer may be due.
    fn handle_timeout(&mut self, now: Instant);

    /// Completes the measurements in its ledger.
    fn finish(&mut self);

    /// Whether nothing is left to do.
    fn is_done(&self) -> bool {
        self.agenda().is_done()
    }

    /// Sends more of a body that is under way, where requests go by the clock.
    fn continue_transfer(&mut self, _now: Instant) {}

    /// Whether a call before the instant that [`ObservedHost::drain`] returned has no effect.
    fn is_punctual(&self) -> bool {
        false
    }

    /// Swaps the buffers of its CoAP messages with others, so that all hosts take turns with one set.
    fn swap_buffers(&mut self, _other: &mut OutputBuffers) {}

    /// Reads a part of what the next event needs. See
    /// [`read_ahead`](ebbtide_core::testbed::read_ahead).
    fn read_ahead(&self, _part: MemoryPart) -> u64 {
        0
    }

    /// The losses of the server's messages, by the option PM.
    fn measured(&self) -> Option<Measured> {
        None
    }

    /// The server's state for this client alone, if there is any.
    fn server_end(&mut self) -> Option<&mut dyn ServerEnd> {
        None
    }

    /// Registers the device that it notifies, before the run. `devices` is the endpoint of all devices.
    fn observe_before(&mut self, _devices: &mut ConstantServer) {}

    /// Makes the session with the server from before the run.
    fn meet_before(&mut self, _server: &mut SecureServer) {}

    /// Has power again: makes so many requests in addition to those of the workload, and goes on with that.
    fn regain_power(&mut self, _now: Instant, _requests: u32) {}

    /// Does not make the requests that are due.
    fn skip_requests(&mut self) {}

    /// Something has happened that every client reports.
    fn report_event(&mut self, _now: Instant) {}

    /// A datagram of its was lost on the way.
    fn note_loss(&mut self, _cause: Cause) {}

    /// The messages of a sensor so far.
    fn messages(&self) -> Messages {
        Messages::default()
    }

    /// Its handshakes, and what it sent in them.
    fn handshakes(&self) -> Handshakes {
        Handshakes::default()
    }

    /// Notes how many exchanges were asked for: `asked` if the workload says so, else all that there
    /// were. The requests of so many of them `arrived`.
    fn note_asked(&mut self, asked: Option<u32>, arrived: u32) {
        let open = self.agenda().open();
        let record = &mut self.ledger_mut().record;
        record.arrived = arrived;
        record.asked = asked.unwrap_or(record.completed + record.failed + open);
    }

    /// When its flow began and ended, in a run that ended at `end`.
    fn flow_span(&mut self, end: Instant) -> Option<Range<Instant>> {
        let (is_done, time) = (self.is_done(), self.ledger().record.fct);
        let start = self.flow()?.starts();
        Some(start..if is_done { start + time } else { end })
    }
}

/// A host whose exchanges an observer sees.
pub(crate) trait ObservedHost<R: Recorder>: Host {
    /// Takes a packet from the network. Returns whether the application wants to act.
    fn receive(&mut self, now: Instant, packet: ArrivingPacket<'_>, recorder: &mut R) -> bool;

    /// Loses power, and with it its endpoint and the exchanges under way. The next endpoint draws from `rng`.
    fn lose_power(&mut self, _now: Instant, _rng: CompactChaCha, _recorder: &mut R) {}

    /// Hands what is to be sent to `send`. Returns when it wants to be called again, and whether
    /// the application wants to act.
    fn drain(
        &mut self,
        now: Instant,
        recorder: &mut R,
        send: &mut dyn FnMut(&mut R, &[u8], Tag),
    ) -> (Option<Instant>, bool);
}

/// The server's state for one client alone.
pub(crate) trait ServerEnd {
    /// Takes a packet from the network. Returns the exchanges whose requests it completes.
    fn receive(&mut self, now: Instant, bytes: &[u8], tag: Tag) -> Range<u32>;

    /// The earliest timer event that is scheduled for it.
    fn timer(&mut self) -> &mut Option<Instant>;

    /// A timer may be due.
    fn handle_timeout(&mut self);

    /// Hands what is to be sent to `send`. Returns when it wants to be called again.
    fn drain(&mut self, now: Instant, send: &mut dyn FnMut(&[u8], Tag)) -> Option<Instant>;
}
