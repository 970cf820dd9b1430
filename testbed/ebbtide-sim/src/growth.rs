//! Growth of long queues.
//!
//! A vector that is full doubles, so up to half of its memory is empty. With a million clients these
//! are hundreds of megabytes.

use std::collections::VecDeque;

/// From this length on a queue grows by a quarter.
const LONG: usize = 4096;

/// The number of places to be reserved before the next one is used; 0 while there is one.
#[inline]
pub(crate) const fn room(len: usize, capacity: usize) -> usize {
    if len < capacity || len < LONG { 0 } else { len / 4 }
}

/// Adds to the end of a queue.
#[inline]
pub(crate) fn push_back<T>(queue: &mut VecDeque<T>, value: T) {
    let more = room(queue.len(), queue.capacity());
    if more > 0 {
        queue.reserve_exact(more);
    }
    queue.push_back(value);
}

#[cfg(test)]
mod tests {
    use super::room;

    #[test]
    fn a_long_queue_grows_by_a_quarter_when_it_is_full_and_a_short_one_as_vectors_do() {
        assert_eq!(room(4000, 4000), 0);
        assert_eq!(room(8000, 8001), 0);
        assert_eq!(room(8000, 8000), 2000);
    }
}
