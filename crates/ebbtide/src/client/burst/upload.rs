//! A long body in blocks, several of them in flight (RFC 7959 section 2.5).

use super::{Exchange, IN_FLIGHT, Outcome};
use crate::client::{Client, Route, transfer};
use crate::error::Error;
use crate::message::{BurstMark, Options, Request, Response, Sizes};
use bytes::Bytes;
use ebbtide_core::endpoint::SendError;
use ebbtide_core::wire::{Block, Code, OptionNumber};
use futures_util::StreamExt;
use futures_util::future::BoxFuture;
use futures_util::stream::FuturesUnordered;
use std::collections::VecDeque;
use std::ops::Range;
use std::sync::Arc;

/// A long body on its way to a resource; see [`Client::upload`].
///
/// The blocks are those of RFC 7959, which any server puts together. The first one leaves alone: its
/// answer says which size the server wants, and, from a server of ours, that it takes blocks in any order
/// (it echoes a [`BurstMark`]). Then several are in flight, and the last one leaves when all others are
/// acknowledged, since the server acts on it.
///
/// Other servers get the blocks after one that was late or lost once more, and fewer at a time. One that
/// answers 4.08 (Request Entity Incomplete) even then gets all of them again, one at a time; a PUT whose
/// last block had to be repeated is done again, up to three times in all, since some take the copy for a
/// body of its own.
pub struct Upload {
    client: Client,
    route: Route,
    request: Arc<Request>,
    body: Bytes,
    sizes: Sizes,
    in_flight: u8,
    /// Bytes that are acknowledged without a gap, and the blocks beyond that are under way.
    acknowledged: usize,
    ahead: VecDeque<bool>,
    /// The server has said that it takes blocks in any order, or has shown that it does not.
    any_order: bool,
    in_order: bool,
    doubtful: bool,
    /// Blocks that were sent once more because of their order.
    resent: usize,
    progress: Option<Box<dyn FnMut(usize) + Send>>,
}

impl core::fmt::Debug for Upload {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("Upload")
            .field("route", &self.route)
            .field("bytes", &self.body.len())
            .field("acknowledged", &self.acknowledged)
            .finish_non_exhaustive()
    }
}

/// How often a PUT is done whose outcome is doubtful.
const ATTEMPTS: usize = 3;

/// How many blocks wait in the endpoint, for a server that wants them in order.
const WAITING: usize = 2;

/// In which round a block was sent, and where it begins.
type Place = (usize, usize);
type Block1 = BoxFuture<'static, (Place, Outcome)>;
type Blocks = FuturesUnordered<Block1>;

/// What is known of the order in which blocks came to a server that does not say that it takes any.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
enum Order {
    /// It is the one in which they were sent.
    Kept,
    /// A later one was answered before an earlier one, which is still to be answered.
    Overtaken,
    /// One was repeated, or is missing: copies may be on their way until all are answered.
    Lost,
}

/// How many blocks may be under way: as many as come in order, on average. More would be sent in vain.
#[derive(Debug)]
struct Window {
    most: usize,
    blocks: usize,
    in_a_row: usize,
}

impl Window {
    fn new(most: usize) -> Self {
        Self { most, blocks: most, in_a_row: 0 }
    }

    /// A block was answered in its turn.
    fn grow(&mut self) {
        self.in_a_row += 1;
        self.blocks = self.blocks.max(self.in_a_row).min(self.most);
    }

    /// One was not.
    fn shrink(&mut self) {
        (self.blocks, self.in_a_row) = ((self.blocks + self.in_a_row).div_ceil(2), 0);
        self.blocks = self.blocks.min(self.most);
    }
}

impl Client {
    /// An upload of the payload of `request`, a PUT, POST or the like, with several blocks in flight.
    /// [`Request::timeout`] does not hold for it.
    ///
    /// # Errors
    ///
    /// If the URI does not resolve, or no connection can be made.
    pub async fn upload(&self, request: Request) -> Result<Upload, Error> {
        let remote = self.resolve(&request.uri).await?;
        let route = self.route(&request.uri, remote).await?;
        let sizes = match &route.link {
            Some(link) => link.sizes(&transfer::base_options(&request)),
            None => Sizes::of_datagrams(request.block_szx.unwrap_or(self.inner.config.block_szx)),
        };
        Ok(Upload {
            client: self.clone(),
            route,
            body: request.payload.clone(),
            request: Arc::new(request),
            sizes,
            in_flight: IN_FLIGHT,
            acknowledged: 0,
            ahead: VecDeque::new(),
            any_order: false,
            in_order: false,
            doubtful: false,
            resent: 0,
            progress: None,
        })
    }
}

impl Upload {
    /// How many blocks may be under way, from the first unacknowledged one on: 1 to 255, default 64.
    #[must_use]
    pub fn in_flight(mut self, blocks: u8) -> Self {
        self.in_flight = blocks.max(1);
        self
    }

    /// Has `progress` told how many bytes are acknowledged, whenever that changes.
    #[must_use]
    pub fn on_progress(mut self, progress: impl FnMut(usize) + Send + 'static) -> Self {
        self.progress = Some(Box::new(progress));
        self
    }

    /// Bytes that the server has acknowledged.
    #[must_use]
    pub fn acknowledged(&self) -> usize {
        let ahead = self.ahead.iter().filter(|done| **done).count();
        (self.acknowledged + ahead * self.sizes.block).min(self.body.len())
    }

    /// Which bytes of the body it has not, in their order.
    #[must_use]
    pub fn unacknowledged(&self) -> Vec<Range<usize>> {
        let mut missing: Vec<Range<usize>> = Vec::new();
        let mut at = self.acknowledged;
        for done in &self.ahead {
            let end = (at + self.sizes.block).min(self.body.len());
            match missing.last_mut() {
                _ if *done => {}
                Some(last) if last.end == at => last.end = end,
                _ => missing.push(at..end),
            }
            at = end;
        }
        match missing.last_mut() {
            Some(last) if last.end == at => last.end = self.body.len(),
            _ if at < self.body.len() => missing.push(at..self.body.len()),
            _ => {}
        }
        missing
    }

    /// Whether the server takes blocks only one after the other.
    #[must_use]
    pub fn is_in_order(&self) -> bool {
        self.in_order
    }

    /// Whether the last block had to be repeated, to a server that may have taken its copy for a body of
    /// its own (`docs/interop.md`): then what it holds is worth a look.
    #[must_use]
    pub fn is_doubtful(&self) -> bool {
        self.doubtful
    }

    /// How many blocks were sent once more, with a message of their own, because the server may have got
    /// them, or others before them, out of order.
    #[must_use]
    pub fn resent(&self) -> usize {
        self.resent
    }

    /// Sends the body; the answer is that to the last block, or the error response that ended it.
    /// Dropping the future, or an error, stops the upload; [`Self::unacknowledged`] says what is
    /// missing then.
    ///
    /// # Errors
    ///
    /// See [`Error`].
    pub async fn run(&mut self) -> Result<Response, Error> {
        let mut attempts = 0;
        loop {
            attempts += 1;
            let answer = self.attempt().await?;
            if answer.code == Code::REQUEST_ENTITY_INCOMPLETE && !self.in_order {
                self.in_order = true;
            } else if !self.doubtful || self.request.code != Code::PUT || attempts >= ATTEMPTS {
                return Ok(answer);
            }
        }
    }

    async fn attempt(&mut self) -> Result<Response, Error> {
        (self.acknowledged, self.any_order, self.doubtful) = (0, false, false);
        self.ahead.clear();
        let mut options = transfer::base_options(&self.request);
        if self.body.len() > self.sizes.block {
            // Tells concurrent uploads to one resource apart, and a second attempt from the first
            // (RFC 9175 section 3.3).
            options.push(OptionNumber::REQUEST_TAG, &transfer::request_tag());
        }
        let first = self.first(&options).await?;
        if first.code != Code::CONTINUE || self.acknowledged >= self.body.len() {
            return self.complete(options, first).await;
        }
        if let Some(refusal) = self.middle(&options).await? {
            return Ok(refusal);
        }
        let (_, answer) = self.start(&options, (0, self.acknowledged))?.await;
        let answer = answer?;
        if answer.is_success() {
            self.advance(self.body.len());
            self.doubtful = answer.repeated && !self.any_order;
        }
        self.complete(options, answer).await
    }

    /// The whole answer: it may be longer than a block.
    async fn complete(&self, options: Options, answer: Response) -> Result<Response, Error> {
        let request = (self.request.as_ref(), options);
        transfer::complete_upload(&self.client, &self.route, request, answer).await
    }

    /// The first block, in the size that the path carries and the server wants.
    async fn first(&mut self, options: &Options) -> Result<Response, Error> {
        loop {
            let (_, answer) = self.start(options, (0, 0))?.await;
            let answer = match answer {
                // No fragments are sent (RFC 7252 section 4.6). Later blocks have fewer options.
                Err(Error::Network { source, .. })
                    if self.sizes.szx > 0 && is_too_long(&source) =>
                {
                    self.sizes = self.sizes.at_most(self.sizes.szx - 1);
                    continue;
                }
                answer => answer?,
            };
            self.any_order = answer.options.get(BurstMark::OPTION).is_some();
            let echoed = answer.options.get(OptionNumber::BLOCK1);
            let echoed = echoed.and_then(|option| self.sizes.read(&option).ok());
            let smaller = echoed.filter(|block| block.szx() < self.sizes.szx);
            match (answer.code, smaller) {
                // A hint to begin again with smaller blocks (section 2.9.3).
                (Code::REQUEST_ENTITY_TOO_LARGE, Some(smaller)) => {
                    self.sizes = self.sizes.at_most(smaller.szx());
                }
                // Section 2.5: of the first block it has taken one of its own size.
                (Code::CONTINUE, Some(smaller)) => {
                    self.sizes = self.sizes.at_most(smaller.szx());
                    self.advance(self.sizes.block);
                    return Ok(answer);
                }
                _ => {
                    if answer.is_success() || answer.code == Code::CONTINUE {
                        self.advance(self.sizes.block.min(self.body.len()));
                    }
                    return Ok(answer);
                }
            }
        }
    }

    /// All blocks between the first and the last; the answer that refuses one, if one does.
    ///
    /// Only a server that said so is trusted to put blocks together that come in another order. For
    /// others, what was sent after a block that may have been late is sent once more, in order: whichever
    /// way they write them, the last one that they wrote is right.
    async fn middle(&mut self, options: &Options) -> Result<Option<Response>, Error> {
        let mut window = Window::new(if self.in_order { 1 } else { usize::from(self.in_flight) });
        let (mut order, mut round) = (Order::Kept, 0);
        // Before which byte the server may have ended the body once more.
        let mut cut = usize::MAX;
        let mut running = Blocks::new();
        loop {
            if order == Order::Kept && self.has_room(&window, running.is_empty()) {
                match self.start(options, (round, self.next())) {
                    Ok(block) => {
                        running.push(block);
                        self.ahead.push_back(false);
                        continue;
                    }
                    // The endpoint has enough for this peer: something of it has to end first.
                    Err(Error::Send(SendError::QueueFull)) if !running.is_empty() => {}
                    Err(error) => return Err(error),
                }
            }
            let Some(((sent, at), answer)) = running.next().await else {
                if order == Order::Kept {
                    return Ok(None);
                }
                (order, round) = (Order::Kept, round + 1);
                self.go_back(&mut window);
                self.acknowledged = self.acknowledged.min(cut);
                cut = usize::MAX;
                continue;
            };
            let answer = answer?;
            // Of an earlier round: it has been sent again.
            let stale = sent != round;
            let place = at.saturating_sub(self.acknowledged) / self.sizes.block;
            let overtook = !stale && place > 0;
            let in_doubt = stale || overtook || order == Order::Lost;
            let alone = self.any_order || !in_doubt && self.ahead.len() <= 1;
            match answer.code {
                // Others are missing that came before it (RFC 7959 section 2.9.2): they follow.
                Code::REQUEST_ENTITY_INCOMPLETE if !alone && in_doubt => {
                    order = Order::Lost;
                    continue;
                }
                code if code != Code::CONTINUE && !answer.is_success() => return Ok(Some(answer)),
                _ if alone => {}
                _ if answer.repeated => order = Order::Lost,
                _ if overtook && order == Order::Kept => order = Order::Overtaken,
                _ => {}
            }
            if stale {
                let end = at + self.sizes.block;
                if end < self.acknowledged {
                    // It came after blocks that replaced it and those behind it.
                    (order, cut) = (Order::Lost, cut.min(end));
                }
                continue;
            }
            if let Some(done) = self.ahead.get_mut(place) {
                *done = true;
            }
            let whole = self.ahead.iter().take_while(|done| **done).count();
            match order {
                Order::Kept => {
                    self.ahead.drain(..whole);
                    self.advance(self.acknowledged + whole * self.sizes.block);
                    window.grow();
                }
                // The late ones have come, and no copy of them: what followed them is sent again at once.
                Order::Overtaken if !self.ahead.range(whole..).any(|done| *done) => {
                    (order, round) = (Order::Kept, round + 1);
                    self.go_back(&mut window);
                    self.advance(self.acknowledged + self.sizes.block);
                }
                Order::Overtaken | Order::Lost => {}
            }
        }
    }

    /// Where the next block begins.
    fn next(&self) -> usize {
        self.acknowledged + self.ahead.len() * self.sizes.block
    }

    /// Whether another block may be handed over. A server that wants them in order gets some of them
    /// again, so that few wait in the endpoint, where they could not be called back.
    fn has_room(&self, window: &Window, idle: bool) -> bool {
        let last = (self.body.len() - 1) / self.sizes.block * self.sizes.block;
        let hurry = self.any_order || idle || self.client.waiting(self.route.remote) < WAITING;
        hurry && self.next() < last && self.ahead.len() < window.blocks
    }

    /// What is not acknowledged without a gap is sent again.
    fn go_back(&mut self, window: &mut Window) {
        self.resent += self.ahead.len();
        window.shrink();
        self.ahead.clear();
    }

    /// So many bytes are acknowledged without a gap.
    fn advance(&mut self, bytes: usize) {
        self.acknowledged = bytes;
        let acknowledged = self.acknowledged();
        if let Some(progress) = &mut self.progress {
            progress(acknowledged);
        }
    }

    /// Starts the exchange of the block that begins at this byte.
    fn start(&self, options: &Options, place: Place) -> Result<Block1, Error> {
        let (_, at) = place;
        let end = (at + self.sizes.block).min(self.body.len());
        let mut options = options.clone();
        if self.body.len() > self.sizes.block {
            let block = self.sizes.at(at, end < self.body.len(), self.sizes.szx).map_err(|_| {
                let limit = (Block::MAX_NUM as usize + 1) << (self.sizes.szx.min(6) + 4);
                Error::TooLarge { limit }
            })?;
            options.push_uint(OptionNumber::BLOCK1, block.to_uint());
            if !block.more()
                && let Some((number, value)) = transfer::wanted_in_return(&self.request)
            {
                options.push_uint(number, value);
            }
            if at == 0 {
                let size = u32::try_from(self.body.len()).unwrap_or(u32::MAX);
                options.push_uint(OptionNumber::SIZE1, size);
                BurstMark { burst: 0, behind: 0, sequence: 0 }.push(&mut options);
            }
        }
        let exchange = Exchange {
            client: self.client.clone(),
            route: self.route.clone(),
            request: self.request.clone(),
            options,
            payload: self.body.slice(at..end),
        };
        let pending = exchange.start()?;
        Ok(Box::pin(async move { (place, exchange.finish(pending).await) }))
    }
}

/// Whether a datagram was longer than the path's MTU: EMSGSIZE of Linux, of BSD and macOS, of Windows.
fn is_too_long(error: &std::io::Error) -> bool {
    matches!(error.raw_os_error(), Some(90 | 40 | 10040))
}
