//! How far the request's body is.

use crate::session::BlockSizes;
use alloc::collections::VecDeque;
use alloc::vec::Vec;
use core::ops::Range;

/// How a body that several blocks are in flight of has come along.
#[derive(Clone, Debug)]
pub struct UploadProgress {
    pub(super) sizes: BlockSizes,
    pub(super) length: usize,
    /// Bytes that are acknowledged without a gap, and the blocks beyond that are under way.
    pub(super) acknowledged: usize,
    pub(super) ahead: VecDeque<bool>,
    pub(super) in_order: bool,
    pub(super) doubtful: bool,
    pub(super) resent: usize,
}

impl UploadProgress {
    /// Of a body that is not on its way yet.
    pub(super) fn new(sizes: BlockSizes, length: usize, in_order: bool) -> Self {
        let (ahead, acknowledged, doubtful, resent) = (VecDeque::new(), 0, false, 0);
        Self { sizes, length, acknowledged, ahead, in_order, doubtful, resent }
    }

    /// Bytes that the server has acknowledged.
    #[must_use]
    pub fn acknowledged(&self) -> usize {
        let ahead = self.ahead.iter().filter(|done| **done).count();
        (self.acknowledged + ahead * self.sizes.block).min(self.length)
    }

    /// Which bytes of the body it has not, in their order.
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

    /// Whether the server takes blocks only one after the other, or is sent no others.
    #[must_use]
    pub fn is_in_order(&self) -> bool {
        self.in_order
    }

    /// Whether the last block had to be repeated, to a server that may have taken its copy for a body of
    /// its own.
    #[must_use]
    pub fn is_doubtful(&self) -> bool {
        self.doubtful
    }

    /// How many blocks were sent once more, with a message of their own, because the server may have
    /// got them, or others before them, out of order.
    #[must_use]
    pub fn resent(&self) -> usize {
        self.resent
    }
}
