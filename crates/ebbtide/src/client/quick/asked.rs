//! The requests of one body that may still be answered.

use super::super::Pending;
use crate::net::pending::Answer;
use std::collections::VecDeque;
use std::future::poll_fn;
use std::task::Poll;

/// How many of them are waited for. A server answers the last one that it got, or goes on answering
/// one that it has answered before.
const MAX: usize = 64;

/// Requests under way, those last that were sent or answered last, each with the block that it
/// carried. What is dropped for want of room is cancelled.
#[derive(Debug, Default)]
pub(super) struct Asked {
    pending: VecDeque<(u32, Pending)>,
    has_begun: bool,
}

impl Asked {
    pub(super) fn push(&mut self, block: u32, pending: Pending) {
        if self.pending.len() >= MAX {
            self.pending.pop_front();
        }
        self.pending.push_back((block, pending));
        self.has_begun = true;
    }

    /// Whether any has left since [`clear`](Self::clear).
    pub(super) fn has_begun(&self) -> bool {
        self.has_begun
    }

    /// Nobody waits for any of them any more: the request begins anew.
    pub(super) fn clear(&mut self) {
        self.pending.clear();
        self.has_begun = false;
    }

    /// The next answer to any of them, and the block that the request carried. Waits for ever if
    /// there is none.
    pub(super) async fn next(&mut self) -> (u32, Answer) {
        poll_fn(|cx| {
            let mut index = 0;
            while let Some((block, pending)) = self.pending.get(index) {
                match pending.poll_answer(cx) {
                    Poll::Ready(Some(answer)) => {
                        let block = *block;
                        let entry = self.pending.remove(index);
                        self.pending.extend(entry);
                        return Poll::Ready((block, answer));
                    }
                    Poll::Ready(None) => {
                        self.pending.remove(index);
                    }
                    Poll::Pending => index += 1,
                }
            }
            Poll::Pending
        })
        .await
    }
}
