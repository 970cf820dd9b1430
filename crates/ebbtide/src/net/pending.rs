//! Calls and exchanges that have not ended.

use crate::error::OscoreFailure;
use crate::message::Response;
use ebbtide_core::cc::Sample;
use ebbtide_core::endpoint::Failure;
use ebbtide_core::session::ObserverId;
use ebbtide_core::{ExchangeId, PeerId, Source};
use std::collections::{BTreeMap, VecDeque};
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::task::Waker;

/// The maximum number of answers that wait for an application to fetch them. Beyond it the oldest
/// is dropped, since the latest state of a resource counts (RFC 7641 section 3.4).
const MAX_WAITING: usize = 64;

/// The outcome of a call.
#[derive(Debug)]
pub(crate) enum Answer {
    /// The last response; the exchange has ended.
    Response {
        from: SocketAddr,
        response: Response,
    },
    /// A response after which more may follow: to an observation, or to a group.
    More {
        from: SocketAddr,
        response: Response,
    },
    Reset {
        sample: Option<Sample>,
    },
    Failed(Failure),
    Network(io::Error),
    /// The session with the peer has ended, and only the peer can begin another one.
    #[cfg(feature = "dtls")]
    Gone,
    /// The response was not accepted.
    Oscore(OscoreFailure),
    /// A request over a connection failed.
    Ended {
        reason: ebbtide_core::stream::Failure,
        /// The diagnostic payload of the peer's Abort.
        diagnostic: Option<std::sync::Arc<str>>,
    },
}

impl Answer {
    /// Whether it is the answer to a ping.
    pub(crate) const fn is_reset(&self) -> bool {
        matches!(self, Self::Reset { .. })
    }
}

/// A request of the application. It outlives its exchange until the application has fetched its
/// answers.
#[derive(Debug, Default)]
pub(crate) struct Call {
    pub(crate) exchange: Option<ExchangeId>,
    first: Option<Answer>,
    more: VecDeque<Answer>,
    waker: Option<Waker>,
}

impl Call {
    pub(crate) fn push(&mut self, answer: Answer) -> Option<Waker> {
        if self.first.is_none() && self.more.is_empty() {
            self.first = Some(answer);
        } else {
            if self.more.len() >= MAX_WAITING {
                self.more.pop_front();
            }
            self.more.push_back(answer);
        }
        self.waker.take()
    }

    pub(crate) fn pop(&mut self) -> Option<Answer> {
        match self.first.take() {
            None => self.more.pop_front(),
            first => first,
        }
    }

    pub(crate) fn wake_later(&mut self, waker: &Waker) {
        if !self.waker.as_ref().is_some_and(|old| old.will_wake(waker)) {
            self.waker = Some(waker.clone());
        }
    }
}

/// The owner of an exchange.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(crate) enum Owner {
    /// A call of the application, by its index.
    Call(u32),
    /// A separate response, whose end is not reported.
    Response,
    /// A notification to an observer.
    Notification(ObserverId),
}

/// An exchange that is open.
#[derive(Copy, Clone, Debug)]
pub(crate) struct Open {
    pub(crate) exchange: ExchangeId,
    pub(crate) owner: Owner,
    pub(crate) remote: PeerId,
    /// The local address from which it is sent, if that matters.
    pub(crate) local: Option<IpAddr>,
    /// The last error that the system or the network reported for it, as a number of the system.
    pub(crate) reported: Option<i32>,
    /// Whether it was sent more than once.
    pub(crate) is_repeated: bool,
}

impl Open {
    /// An exchange that has just begun.
    pub(crate) const fn new(
        exchange: ExchangeId,
        owner: Owner,
        remote: PeerId,
        local: Option<IpAddr>,
    ) -> Self {
        Self { exchange, owner, remote, local, reported: None, is_repeated: false }
    }
}

/// The separate responses under way, which end when they are acknowledged or given up.
#[derive(Debug, Default)]
struct Responses {
    all: usize,
    own: BTreeMap<Source, usize>,
}

impl Responses {
    fn began(&mut self, open: &Open) {
        if open.owner == Owner::Response {
            self.all += 1;
            *self.own.entry(open.remote.source().sharing()).or_default() += 1;
        }
    }

    fn ended(&mut self, open: &Open) {
        if open.owner != Owner::Response {
            return;
        }
        self.all -= 1;
        let source = open.remote.source().sharing();
        if let Some(own) = self.own.get_mut(&source) {
            *own -= 1;
            if *own == 0 {
                self.own.remove(&source);
            }
        }
    }
}

/// All open exchanges, by their place in the endpoint's table, and all calls.
#[derive(Debug, Default)]
pub(crate) struct Pending {
    open: Vec<Option<Open>>,
    responses: Responses,
    calls: Vec<Option<Call>>,
    free: Vec<u32>,
}

impl Pending {
    pub(crate) fn opened(&mut self, open: Open) {
        let index = open.exchange.index();
        if index >= self.open.len() {
            self.open.resize(index + 1, None);
        }
        self.responses.began(&open);
        if let Some(place) = self.open.get_mut(index)
            && let Some(before) = place.replace(open)
        {
            self.responses.ended(&before);
        }
    }

    /// Whether one more separate response to a source may begin, where `max` may be under way. A source that
    /// acknowledges none has at most as many as are free to others.
    pub(crate) fn admits_response(&self, source: Source, max: usize) -> bool {
        let own = self.responses.own.get(&source.sharing()).copied().unwrap_or(0);
        let free = max.saturating_sub(self.responses.all);
        free > 0 && (own == 0 || own < free)
    }

    pub(crate) fn get(&self, exchange: ExchangeId) -> Option<&Open> {
        let open = self.open.get(exchange.index())?.as_ref()?;
        (open.exchange == exchange).then_some(open)
    }

    fn get_mut(&mut self, exchange: ExchangeId) -> Option<&mut Open> {
        let open = self.open.get_mut(exchange.index())?.as_mut()?;
        (open.exchange == exchange).then_some(open)
    }

    /// The system or the network has reported an error for an exchange, which goes on.
    pub(crate) fn report(&mut self, exchange: ExchangeId, errno: Option<i32>) {
        if let Some(open) = self.get_mut(exchange) {
            open.reported = errno;
        }
    }

    /// It is sent once more, which an earlier error does not concern.
    pub(crate) fn repeat(&mut self, exchange: ExchangeId) {
        if let Some(open) = self.get_mut(exchange) {
            (open.reported, open.is_repeated) = (None, true);
        }
    }

    pub(crate) fn ended(&mut self, exchange: ExchangeId) -> Option<Open> {
        let open = *self.get(exchange)?;
        self.responses.ended(&open);
        if let Some(place) = self.open.get_mut(exchange.index()) {
            *place = None;
        }
        Some(open)
    }

    /// The open exchanges to which a network error applies. The system names only the reporter:
    /// the remote's host, or a router on the way. If that leaves a choice of remotes, the result
    /// is empty, and the timeouts decide.
    pub(crate) fn reported_by(&self, reporter: IpAddr) -> Vec<ExchangeId> {
        let of_host = self.of_one_remote(|open| {
            open.remote.address().is_some_and(|address| address.ip() == reporter)
        });
        if of_host.is_empty() { self.of_one_remote(|_| true) } else { of_host }
    }

    /// The open exchanges with a remote.
    #[cfg(feature = "dtls")]
    pub(crate) fn with_remote(&self, remote: PeerId) -> Vec<ExchangeId> {
        let open = self.open.iter().flatten().filter(|open| open.remote == remote);
        open.map(|open| open.exchange).collect()
    }

    /// The open exchanges for which `is` holds, if all are with the same remote.
    fn of_one_remote(&self, is: impl Fn(&Open) -> bool) -> Vec<ExchangeId> {
        let mut open = self.open.iter().flatten().filter(|open| is(open)).peekable();
        let Some(remote) = open.peek().map(|open| open.remote) else { return Vec::new() };
        let mut exchanges = Vec::new();
        for open in open {
            if open.remote != remote {
                return Vec::new();
            }
            exchanges.push(open.exchange);
        }
        exchanges
    }

    pub(crate) fn add_call(&mut self) -> u32 {
        if let Some(index) = self.free.pop() {
            if let Some(place) = self.calls.get_mut(index as usize) {
                *place = Some(Call::default());
            }
            return index;
        }
        self.calls.push(Some(Call::default()));
        // The number is bounded by the exchanges of an endpoint and the applications' futures.
        (self.calls.len() - 1) as u32
    }

    /// The number of calls.
    pub(crate) fn calls(&self) -> usize {
        self.calls.len() - self.free.len()
    }

    pub(crate) fn call(&mut self, index: u32) -> Option<&mut Call> {
        self.calls.get_mut(index as usize)?.as_mut()
    }

    /// Removes a call. Returns its exchange if that is open.
    pub(crate) fn remove_call(&mut self, index: u32) -> Option<ExchangeId> {
        let place = self.calls.get_mut(index as usize)?;
        let exchange = place.as_ref()?.exchange;
        *place = None;
        self.free.push(index);
        exchange
    }

    /// Wakes all calls because the endpoint is closed.
    pub(crate) fn wake_all(&mut self) -> Vec<Waker> {
        self.calls.iter_mut().flatten().filter_map(|call| call.waker.take()).collect()
    }
}
