//! Bodies that a client transfers block by block, each a transfer of the session layer, whose messages are the
//! exchanges of the client: a download of firmware, or the messages of a sensor.

use super::reports::Reports;
use crate::medium::low_power::Cause;
use crate::random::{CompactChaCha, Streams};
use crate::record::Messages;
use crate::scenario::{Activity, Scenario};
use ebbtide_core::session::client::{
    Loss, Outgoing, Patience, RequestParts, Step, Transfer, TransferSettings,
};
use ebbtide_core::session::{BlockSizes, Options, Response};
use ebbtide_core::time::{Duration, Instant};
use ebbtide_core::wire::{Code, Message, OptionNumber};

/// How long a device goes on with a download after it last heard from the server.
const SILENCE: Duration = Duration::from_secs(3600);

/// The bodies of one client, one after another.
pub(crate) struct Bodies {
    /// The one under way.
    transfer: Option<Transfer>,
    rng: CompactChaCha,
    /// The exchanges under way: their numbers at the client, and in the transfer.
    open: Vec<(u32, u32)>,
    /// The message that leaves next.
    next: Option<Outgoing>,
    /// When the transfer continues by itself.
    wait: Option<Instant>,
    /// Where there is a message from time to time; `None`: one download.
    reports: Option<Reports>,
}

impl Bodies {
    /// The bodies of a scenario's client, if its workload has such.
    pub(crate) fn new(number: u32, scenario: &Scenario, streams: &Streams) -> Option<Box<Self>> {
        let (transfer, reports) = match scenario.workload.activity() {
            Activity::Firmware => (Some(download(scenario)), None),
            Activity::Reporting(reporting) => {
                (None, Some(Reports::new(&scenario.workload.path, reporting)))
            }
            _ => return None,
        };
        Some(Box::new(Self {
            transfer,
            // It draws the pauses after losses.
            rng: streams.frugal(&format!("client/{number}/pauses")),
            open: Vec::new(),
            next: None,
            wait: None,
            reports,
        }))
    }

    /// The clock says that a body is due; a download is from the beginning.
    pub(crate) fn due(&mut self) {
        if let Some(reports) = &mut self.reports {
            self.transfer = reports.due(self.transfer.take());
        }
    }

    /// Something has happened that every client reports.
    pub(crate) fn report_event(&mut self) {
        if let Some(reports) = &mut self.reports {
            self.transfer = reports.report_event(self.transfer.take());
        }
    }

    /// A datagram of the body under way was lost, to a full queue or otherwise.
    pub(crate) const fn note_loss(&mut self, cause: Cause) {
        if let Some(reports) = &mut self.reports {
            reports.note_loss(cause);
        }
    }

    /// So many retransmissions left although the original was answered.
    pub(crate) fn note_early(&mut self, early: u32) {
        if let Some(reports) = &mut self.reports {
            reports.messages.early += u64::from(early);
        }
    }

    /// The messages of a sensor so far.
    pub(crate) fn messages(&self) -> Option<Messages> {
        self.reports.as_ref().map(|reports| reports.messages)
    }

    /// Finds the next step. Whether there will not be one.
    pub(crate) fn advance(&mut self, now: Instant) -> bool {
        self.wait = None;
        while self.next.is_none()
            && let Some(transfer) = &mut self.transfer
        {
            match transfer.poll(now, &mut self.rng) {
                Step::Send(outgoing) => self.next = Some(outgoing),
                Step::Cancel(_) => {}
                Step::Wait(at) => {
                    self.wait = at;
                    return false;
                }
                Step::Done(result) => {
                    self.transfer = None;
                    if let Some(reports) = &mut self.reports {
                        reports.ended(result.is_ok_and(|response| response.is_success()));
                    }
                }
            }
        }
        self.transfer.is_none() && self.reports.is_none()
    }

    /// The message that leaves next.
    pub(crate) const fn take(&mut self) -> Option<Outgoing> {
        self.next.take()
    }

    /// When the transfer continues by itself.
    pub(crate) const fn wait(&self) -> Option<Instant> {
        self.wait
    }

    /// A message of the transfer is exchange `number` of the client.
    pub(crate) fn sent(&mut self, number: u32, id: u32) {
        self.open.push((number, id));
    }

    /// An exchange was answered.
    pub(crate) fn answered(&mut self, now: Instant, number: u32, message: &Message<'_>) {
        if let (Some(id), Some(transfer)) = (self.close(number), &mut self.transfer) {
            transfer.handle_response(now, id, Response::from_message(message));
        }
    }

    /// An exchange was not answered.
    pub(crate) fn lost(&mut self, now: Instant, number: u32) {
        if let (Some(id), Some(transfer)) = (self.close(number), &mut self.transfer) {
            transfer.handle_loss(now, id, Loss::Unanswered);
        }
    }

    fn close(&mut self, number: u32) -> Option<u32> {
        let place = self.open.iter().position(|(own, _)| *own == number)?;
        Some(self.open.swap_remove(place).1)
    }
}

/// A download of `exchanges` blocks of `response_payload` bytes.
fn download(scenario: &Scenario) -> Transfer {
    let workload = &scenario.workload;
    let mut options = Options::new();
    options.push(OptionNumber::URI_PATH, workload.path.as_bytes());
    // Checked to be a power of two from 2^4 to 2^10.
    let block_size = workload.response_payload.max(16) as usize;
    let request = RequestParts {
        code: Code::GET,
        options,
        payload: Vec::new().into(),
        block_size: Some(block_size),
    };
    let body = workload.exchanges as usize * workload.response_payload as usize;
    let mut settings = TransferSettings::new(BlockSizes::of_datagrams(block_size), body);
    settings.patience = Patience { until: None, silence: SILENCE };
    Transfer::new(request, settings)
}
