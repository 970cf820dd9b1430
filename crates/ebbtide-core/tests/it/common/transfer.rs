//! A driver for transfers: what they send is looked at, answers are said by hand.

use bytes::Bytes;
use ebbtide_core::session::client::{
    Loss, Outgoing, RequestParts, Step, Transfer, TransferError, TransferSettings,
};
use ebbtide_core::session::{BlockSizes, Options, Response};
use ebbtide_core::time::{Duration, Instant};
use ebbtide_core::wire::{Block, Code, OptionNumber};
use rand_chacha::ChaCha8Rng;
use rand_core::SeedableRng;

/// A body in which every byte tells its place, about.
pub(crate) fn body(length: usize) -> Bytes {
    (0..length).map(|n| (n * 7 + n / 251) as u8).collect()
}

/// A PUT of so many bytes.
pub(crate) fn put(length: usize) -> RequestParts {
    RequestParts {
        code: Code::PUT,
        options: Options::new(),
        payload: body(length),
        block_size: None,
    }
}

/// A GET.
pub(crate) fn get() -> RequestParts {
    RequestParts { code: Code::GET, ..put(0) }
}

/// The value of a block option.
pub(crate) fn block(num: u32, more: bool, size: usize) -> u32 {
    Block::new(num, more, (size.ilog2() - 4) as u8).unwrap().to_uint()
}

/// What a message says.
#[derive(Debug)]
pub(crate) struct Sent(Outgoing);

impl std::ops::Deref for Sent {
    type Target = Outgoing;
    fn deref(&self) -> &Outgoing {
        &self.0
    }
}

impl Sent {
    pub(crate) fn uint(&self, number: OptionNumber) -> Option<u32> {
        assert!(self.options.iter().filter(|opt| opt.number == number).count() <= 1);
        self.options.get_uint(number)
    }

    fn block(&self, number: OptionNumber) -> Option<(u32, bool, usize)> {
        let block = Block::from_uint(self.uint(number)?).unwrap();
        Some((block.num(), block.more(), block.size()))
    }

    pub(crate) fn block1(&self) -> Option<(u32, bool, usize)> {
        self.block(OptionNumber::BLOCK1)
    }

    pub(crate) fn block2(&self) -> Option<(u32, bool, usize)> {
        self.block(OptionNumber::BLOCK2)
    }

    pub(crate) fn echo(&self) -> Option<&[u8]> {
        self.options.get(OptionNumber::ECHO).map(|opt| opt.value)
    }
}

/// Drives one transfer.
pub(crate) struct Driver {
    pub(crate) transfer: Transfer,
    pub(crate) body: Bytes,
    pub(crate) now: Instant,
    rng: ChaCha8Rng,
    done: Option<Result<Response, TransferError>>,
}

impl Driver {
    /// When it begins.
    pub(crate) fn start() -> Instant {
        Instant::from_nanos(1_000_000_000)
    }

    /// Of a request in blocks of this exponent.
    pub(crate) fn new(request: RequestParts, szx: u8) -> Self {
        Self::with(request, szx, |_| ())
    }

    /// With other settings.
    pub(crate) fn with(
        request: RequestParts,
        szx: u8,
        change: impl FnOnce(&mut TransferSettings),
    ) -> Self {
        let mut settings = TransferSettings::new(BlockSizes::of_datagrams(16 << szx), 1 << 20);
        change(&mut settings);
        Self {
            body: request.payload.clone(),
            transfer: Transfer::new(request, settings),
            now: Self::start(),
            rng: ChaCha8Rng::seed_from_u64(7),
            done: None,
        }
    }

    /// What it does now; `Err` says until when it waits.
    fn step(&mut self) -> Result<Sent, Option<Instant>> {
        if self.done.is_some() {
            return Err(None);
        }
        loop {
            match self.transfer.poll(self.now, &mut self.rng) {
                Step::Send(outgoing) => return Ok(Sent(outgoing)),
                Step::Cancel(_) => {}
                Step::Wait(at) => return Err(at),
                Step::Done(result) => {
                    self.done = Some(result);
                    return Err(None);
                }
            }
        }
    }

    /// The next message, if one leaves now.
    pub(crate) fn next(&mut self) -> Option<Sent> {
        self.step().ok()
    }

    /// The message that leaves now.
    pub(crate) fn sent(&mut self) -> Sent {
        self.next().unwrap_or_else(|| panic!("nothing is sent; done: {:?}", self.done))
    }

    /// The next message, when the pauses before it are over.
    pub(crate) fn next_after_pauses(&mut self) -> Option<Sent> {
        loop {
            match self.step() {
                Ok(sent) => return Some(sent),
                Err(Some(at)) => self.now = at,
                Err(None) => return None,
            }
        }
    }

    pub(crate) fn answer(&mut self, id: u32, response: Response) {
        self.now = self.now + Duration::from_millis(10);
        self.transfer.handle_response(self.now, id, response);
    }

    pub(crate) fn lose(&mut self, id: u32, loss: Loss) {
        self.transfer.handle_loss(self.now, id, loss);
    }

    /// How it ended.
    pub(crate) fn done(&mut self) -> Result<Response, TransferError> {
        if self.done.is_none() {
            let step = self.step();
            assert!(step.is_err(), "{step:?}");
        }
        self.done.take().expect("it is not over")
    }
}
