//! The progress of a request's body.

use crate::session::BlockSizes;
use alloc::collections::VecDeque;
use alloc::vec::Vec;
use core::ops::Range;

/// The progress of a body with several blocks in flight.
#[derive(Clone, Debug)]
pub struct UploadProgress {
    pub(super) sizes: BlockSizes,
    pub(super) length: usize,
    /// The acknowledged bytes without a gap, and the blocks in flight beyond them.
    pub(super) acknowledged: usize,
    pub(super) ahead: VecDeque<bool>,
    pub(super) in_order: bool,
    pub(super) doubtful: bool,
    pub(super) resent: usize,
}

impl UploadProgress {
    /// The progress of a body of which nothing was sent.
    pub(super) fn new(sizes: BlockSizes, length: usize, in_order: bool) -> Self {
        let (ahead, acknowledged, doubtful, resent) = (VecDeque::new(), 0, false, 0);
        Self { sizes, length, acknowledged, ahead, in_order, doubtful, resent }
    }

    /// The number of acknowledged bytes.
    #[must_use]
    pub fn acknowledged(&self) -> usize {
        let ahead = self.ahead.iter().filter(|done| **done).count();
        (self.acknowledged + ahead * self.sizes.block).min(self.length)
    }

    /// The unacknowledged ranges of the body, in order.
    #[must_use]
    pub fn unacknowledged(&self) -> Vec<Range<usize>> {
        let mut missing: Vec<Range<usize>> = Vec::new();
        let mut at = self.acknowledged;
        for done in &self.ahead {
            let end = (at + self.sizes.block).min(self.length);
            match missing.last_mut() {
                _ if *done => {}
                Some(last) if last.end == at => last.end = end,
                _ => missing.push(at..end),
            }
            at = end;
        }
        match missing.last_mut() {
            Some(last) if last.end == at => last.end = self.length,
            _ if at < self.length => missing.push(at..self.length),
            _ => {}
        }
        missing
    }

    /// Whether the blocks are sent one after the other.
    #[must_use]
    pub fn is_in_order(&self) -> bool {
        self.in_order
    }

    /// Whether the last block had to be repeated, to a server that may have taken the copy for a
    /// body of its own.
    #[must_use]
    pub fn is_doubtful(&self) -> bool {
        self.doubtful
    }

    /// The number of blocks that were sent again in messages of their own, because the server may
    /// have received them, or earlier ones, out of order.
    #[must_use]
    pub fn resent(&self) -> usize {
        self.resent
    }
}
