//! The download of a body block by block, as a device fetches its firmware: a transfer of the session
//! layer, whose messages are the exchanges of the client.

use crate::random::CompactChaCha;
use crate::scenario::{Scenario, WorkloadKind};
use ebbtide_core::session::client::{
    Loss, Outgoing, Patience, RequestParts, Step, Transfer, TransferSettings,
};
use ebbtide_core::session::{BlockSizes, Options, Response};
use ebbtide_core::time::{Duration, Instant};
use ebbtide_core::wire::{Code, Message, OptionNumber};

/// How long a device goes on after it last heard from the server.
const SILENCE: Duration = Duration::from_secs(3600);

/// The download of one client.
pub(crate) struct Download {
    transfer: Transfer,
    rng: CompactChaCha,
    /// The exchanges under way: their numbers at the client, and in the transfer.
    open: Vec<(u32, u32)>,
    /// The message that leaves next.
    next: Option<Outgoing>,
    /// When the transfer continues by itself.
    wait: Option<Instant>,
    is_over: bool,
}

impl Download {
    /// The download of a scenario's client, if its workload is one. `rng` draws the pauses after losses.
    pub(crate) fn new(
        scenario: &Scenario,
        rng: impl FnOnce() -> CompactChaCha,
    ) -> Option<Box<Self>> {
        let workload = &scenario.workload;
        if workload.kind != WorkloadKind::Firmware {
            return None;
        }
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
        Some(Box::new(Self {
            transfer: Transfer::new(request, settings),
            rng: rng(),
            open: Vec::new(),
            next: None,
            wait: None,
            is_over: false,
        }))
    }

    /// Finds the next step. Whether the download is over.
    pub(crate) fn advance(&mut self, now: Instant) -> bool {
        while self.next.is_none() && !self.is_over {
            match self.transfer.poll(now, &mut self.rng) {
                Step::Send(outgoing) => self.next = Some(outgoing),
                Step::Cancel(_) => {}
                Step::Wait(at) => {
                    self.wait = at;
                    return false;
                }
                Step::Done(_) => self.is_over = true,
            }
        }
        self.wait = None;
        self.is_over
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
        if let Some(id) = self.close(number) {
            self.transfer.handle_response(now, id, Response::from_message(message));
        }
    }

    /// An exchange was not answered.
    pub(crate) fn lost(&mut self, now: Instant, number: u32) {
        if let Some(id) = self.close(number) {
            self.transfer.handle_loss(now, id, Loss::Unanswered);
        }
    }

    fn close(&mut self, number: u32) -> Option<u32> {
        let place = self.open.iter().position(|(own, _)| *own == number)?;
        Some(self.open.swap_remove(place).1)
    }
}
