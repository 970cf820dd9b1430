//! The messages of a sensor, one at a time: one that is due while the last is in transfer is lost.

use super::digits;
use crate::medium::low_power::Cause;
use crate::record::Messages;
use crate::scenario::{Reporting, ReportsDue};
use ebbtide_core::session::client::{RequestParts, RequestTag, Transfer, TransferSettings};
use ebbtide_core::session::{BlockSizes, Options};
use ebbtide_core::wire::{Code, OptionNumber};

/// Why a message is due.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
enum Trigger {
    /// Its period is over.
    Period,
    /// Something happened that every sensor reports.
    Event,
}

/// The messages of one sensor.
pub(super) struct Reports {
    path: Box<str>,
    settings: TransferSettings,
    /// Bytes of a message each period.
    bytes: u32,
    /// Bytes of a message about an event.
    event_bytes: u32,
    /// Why the message in transfer was due.
    trigger: Trigger,
    /// Why its last datagram that was lost was.
    lost_by: Option<Cause>,
    pub(super) messages: Messages,
}

impl Reports {
    pub(super) fn new(path: &str, reporting: &Reporting) -> Self {
        // Checked to be a power of two from 16 to 1024.
        let sizes = BlockSizes::of_datagrams(reporting.fragment as usize);
        Self {
            path: path.into(),
            settings: TransferSettings {
                // One message at a time, of a length that the sink knows.
                request_tag: RequestTag::Never,
                size1: false,
                ..TransferSettings::new(sizes, usize::MAX)
            },
            bytes: reporting.message,
            event_bytes: match &reporting.due {
                ReportsDue::Events { events, .. } => events.message,
                ReportsDue::Load(_) => 0,
            },
            trigger: Trigger::Period,
            lost_by: None,
            messages: Messages::default(),
        }
    }

    /// A period is over. The transfer that is under way then, given the one that is now.
    pub(super) fn due(&mut self, now: Option<Transfer>) -> Option<Transfer> {
        self.begin(now, Trigger::Period)
    }

    /// Something has happened that every sensor reports. Returns the transfer that is under way then.
    pub(super) fn report_event(&mut self, now: Option<Transfer>) -> Option<Transfer> {
        self.begin(now, Trigger::Event)
    }

    fn begin(&mut self, now: Option<Transfer>, trigger: Trigger) -> Option<Transfer> {
        let is_event = u64::from(trigger == Trigger::Event);
        self.messages.offered += 1;
        self.messages.events += is_event;
        if now.is_some() {
            self.messages.busy += 1;
            self.messages.events_lost += is_event;
            return now;
        }
        (self.trigger, self.lost_by) = (trigger, None);
        let bytes = if trigger == Trigger::Event { self.event_bytes } else { self.bytes };
        Some(Transfer::new(self.message(bytes), self.settings.clone()))
    }

    /// A message of `bytes`, which differs from the one before: the sink would otherwise take its first
    /// block for a late copy.
    fn message(&self, bytes: u32) -> RequestParts {
        let mut options = Options::new();
        options.push(OptionNumber::URI_PATH, self.path.as_bytes());
        options.push(OptionNumber::CONTENT_FORMAT, &[]);
        let mut payload = digits(bytes);
        for (place, byte) in payload.iter_mut().zip(self.messages.offered.to_be_bytes()) {
            *place = byte;
        }
        RequestParts { code: Code::PUT, options, payload: payload.into(), block_size: None }
    }

    pub(super) const fn note_loss(&mut self, cause: Cause) {
        self.lost_by = Some(cause);
    }

    /// The message in transfer was delivered, or given up.
    pub(super) fn ended(&mut self, is_delivered: bool) {
        if is_delivered {
            self.messages.delivered += 1;
            return;
        }
        self.messages.given_up += 1;
        self.messages.events_lost += u64::from(self.trigger == Trigger::Event);
        match self.lost_by {
            Some(Cause::Queue) => self.messages.given_up_queue += 1,
            Some(_) => self.messages.given_up_retries += 1,
            None => {}
        }
    }
}
