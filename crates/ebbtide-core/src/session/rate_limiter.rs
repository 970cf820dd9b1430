//! Protects a server from a client that sends too many requests (RFC 8516).

use super::message::Response;
use super::recency::RecencyMap;
use crate::peer::Source;
use crate::time::{Duration, Instant};
use crate::wire::Code;

const WINDOW: Duration = Duration::from_secs(1);

/// Limits the requests per second of each address.
#[derive(Debug)]
pub struct RateLimiter {
    /// Requests in one second.
    rate: u32,
    max_addresses: usize,
    /// The remaining requests of the second that began with the first one.
    left: RecencyMap<Source, u32>,
    refused: u64,
}

impl RateLimiter {
    /// Allows at most `rate` requests per second from one address. At most `max_addresses` are
    /// counted; beyond that, the one whose second began first is forgotten, which is to its
    /// advantage.
    #[must_use]
    pub const fn new(rate: u32, max_addresses: usize) -> Self {
        Self { rate, max_addresses, left: RecencyMap::new(), refused: 0 }
    }

    /// Counts a request.
    ///
    /// # Errors
    ///
    /// Returns the answer if there were too many: 4.29, with the time until the next attempt in
    /// Max-Age (RFC 8516 section 4).
    pub fn admit(&mut self, now: Instant, from: Source) -> Result<(), Response> {
        while self.left.pop_oldest(now, WINDOW).is_some() {}
        if self.left.get(&from).is_none() {
            if self.left.len() >= self.max_addresses {
                self.left.pop_oldest(now, Duration::ZERO);
            }
            self.left.insert(now, from, self.rate, 0);
        }
        match self.left.get_mut(&from) {
            Some(left) if *left > 0 => {
                *left -= 1;
                Ok(())
            }
            _ => {
                self.refused += 1;
                Err(Response::new(Code::TOO_MANY_REQUESTS).max_age(1))
            }
        }
    }

    /// The number of refused requests.
    #[must_use]
    pub const fn refused(&self) -> u64 {
        self.refused
    }
}
