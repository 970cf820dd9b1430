//! Captures at both ends of the emulated path, written by a separate thread, so that a slow disk
//! does not delay packets.

use super::clock::Clock;
use ebbtide_core::time::Instant;
use ebbtide_sim::emulation::Direction;
use ebbtide_sim::record::{Capture, PLACES};
use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::net::SocketAddr;
use std::path::Path;
use std::sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel};
use std::thread::JoinHandle;
use std::time::Duration;

/// Packets that may wait for the disk.
const WAITING: usize = 1 << 16;

/// A captured packet.
#[derive(Clone, Debug)]
pub(crate) enum Frame {
    /// An IP packet.
    Packet(Vec<u8>),
    /// A UDP datagram with its source and destination.
    Datagram(SocketAddr, SocketAddr, Vec<u8>),
}

/// Writes packets to a file.
pub(crate) struct Recorder {
    clock: Clock,
    queue: SyncSender<(u32, Duration, Frame)>,
    writer: JoinHandle<io::Result<()>>,
    missed: u64,
}

impl Recorder {
    /// Starts a capture.
    ///
    /// # Errors
    ///
    /// Returns an error if the file cannot be written.
    pub(crate) fn create(path: &Path, clock: Clock) -> io::Result<Self> {
        let mut capture = Capture::new(BufWriter::new(File::create(path)?), &PLACES)?;
        let (queue, packets): (_, Receiver<(u32, Duration, Frame)>) = sync_channel(WAITING);
        let writer = std::thread::Builder::new().name("capture".into()).spawn(move || {
            for (place, at, frame) in packets {
                match frame {
                    Frame::Packet(packet) => capture.packet(place, at, &packet)?,
                    Frame::Datagram(from, to, message) => {
                        // Nanoseconds since 1970 fit until 2554.
                        let ns = at.as_nanos() as u64;
                        capture.datagram(place, ns, from, to, &message)?;
                    }
                }
            }
            capture.into_inner().flush()
        })?;
        Ok(Self { clock, queue, writer, missed: 0 })
    }

    /// Records a packet that is handed to the path.
    pub(crate) fn entered(&mut self, at: Instant, direction: Direction, frame: Frame) {
        self.add(direction as u32, at, frame);
    }

    /// Records a packet that leaves the path.
    pub(crate) fn left(&mut self, at: Instant, direction: Direction, frame: Frame) {
        self.add(1 - direction as u32, at, frame);
    }

    /// Place 0 is the clients' end, where packets upwards enter.
    fn add(&mut self, place: u32, at: Instant, frame: Frame) {
        match self.queue.try_send((place, self.clock.of_day(at), frame)) {
            Ok(()) => {}
            Err(TrySendError::Full(_) | TrySendError::Disconnected(_)) => self.missed += 1,
        }
    }

    /// Ends the capture. Returns the number of packets that were not captured because the disk was
    /// slow.
    ///
    /// # Errors
    ///
    /// Returns the first error of the file.
    pub(crate) fn finish(self) -> io::Result<u64> {
        drop(self.queue);
        let written = self.writer.join().map_err(|_| io::Error::other("the writer panicked"))?;
        written.map(|()| self.missed)
    }
}
