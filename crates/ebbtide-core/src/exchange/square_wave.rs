//! The square bit of draft-ietf-core-coap-pm (RFC 9506 section 3.2). The sender flips it after a
//! fixed number of messages, a block; the receiver counts what arrives between two flips.

/// The place of the next message in the wave of a sender.
#[derive(Copy, Clone, Debug, Default)]
pub(crate) struct SquareWave {
    value: bool,
    /// Messages sent with this value.
    sent: u16,
}

impl SquareWave {
    /// The bit of the message that leaves now.
    pub(crate) fn next(&mut self, block: u16) -> bool {
        if self.sent == block {
            self.value = !self.value;
            self.sent = 0;
        }
        self.sent += 1;
        self.value
    }
}

/// The counts of a receiver.
#[derive(Copy, Clone, Debug, Default)]
pub(crate) struct WaveReader {
    /// The value of the block under way; `None` until a message has arrived.
    value: Option<bool>,
    /// Messages with this value in the block under way.
    arrived: u32,
    /// Messages with the other value since the block began.
    beyond: u16,
    /// Whether the beginning of this block was seen. The first block may have begun before the
    /// receiver did.
    whole: bool,
}

/// A block whose end was seen.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(crate) struct Block {
    pub(crate) sent: u32,
    pub(crate) arrived: u32,
}

impl WaveReader {
    /// Whether a message has arrived.
    pub(crate) const fn has_begun(&self) -> bool {
        self.value.is_some()
    }

    /// A message with this bit has arrived. Returns the block that it ends, if it ends one.
    pub(crate) fn read(&mut self, value: bool, block: u16) -> Option<Block> {
        if *self.value.get_or_insert(value) == value {
            self.arrived += 1;
            return None;
        }
        self.beyond += 1;
        // RFC 9506 section 3.2.3: a flip counts once several messages have shown it, fewer than
        // half a block, since messages near it may have overtaken each other.
        if self.beyond < (block / 4).max(1) {
            return None;
        }
        let ended = self.whole.then(|| {
            // A block with too many messages is at least two of this value, and all between them
            // was lost (section 3.2.3.1). A few too many are duplicates.
            let length = u32::from(block);
            let hidden = self.arrived.saturating_sub(length + length / 2).div_ceil(2 * length);
            let sent = length * (1 + 2 * hidden);
            Block { sent, arrived: self.arrived.min(sent) }
        });
        *self = Self { value: Some(value), arrived: self.beyond.into(), beyond: 0, whole: true };
        ended
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec::Vec;

    const BLOCK: u16 = 8;

    /// The blocks that end while messages with these bits arrive.
    fn ended(bits: impl IntoIterator<Item = bool>) -> Vec<(u32, u32)> {
        let mut reader = WaveReader::default();
        let blocks = bits.into_iter().filter_map(|bit| reader.read(bit, BLOCK));
        blocks.map(|block| (block.sent, block.arrived)).collect()
    }

    fn wave(blocks: usize) -> Vec<bool> {
        let mut wave = SquareWave::default();
        (0..blocks * usize::from(BLOCK)).map(|_| wave.next(BLOCK)).collect()
    }

    #[test]
    fn the_bit_flips_after_each_block() {
        assert_eq!(wave(3), [[false; 8], [true; 8], [false; 8]].concat());
    }

    #[test]
    fn a_receiver_counts_every_block_but_the_first_and_the_one_under_way() {
        assert_eq!(ended(wave(4)), [(8, 8), (8, 8)]);
    }

    #[test]
    fn messages_that_do_not_arrive_are_missing_in_their_block() {
        let lossy =
            (0..).zip(wave(4)).filter(|(i, _)| ![9, 12, 17].contains(i)).map(|(_, bit)| bit);
        assert_eq!(ended(lossy), [(8, 6), (8, 7)]);
    }

    #[test]
    fn a_flip_counts_once_a_quarter_of_a_block_has_shown_it() {
        // The first block may have begun before; the second ends with the second bit of the third.
        assert_eq!(ended(wave(3).into_iter().take(17)), []);
        assert_eq!(ended(wave(3).into_iter().take(18)), [(8, 8)]);
    }

    #[test]
    fn messages_that_overtake_each_other_at_a_flip_stay_in_their_blocks() {
        let mut bits = wave(4);
        bits.swap(15, 16);
        assert_eq!(ended(bits), [(8, 8), (8, 8)]);
    }

    #[test]
    fn a_block_that_was_lost_whole_shows_as_one_that_is_too_long() {
        let mut bits = wave(5);
        bits.drain(16..24);
        assert_eq!(ended(bits), [(24, 16)]);
    }

    #[test]
    fn duplicates_are_no_block_that_was_lost() {
        let mut bits = wave(4);
        bits.insert(12, true);
        bits.insert(20, false);
        assert_eq!(ended(bits), [(8, 8), (8, 8)]);
    }

    #[test]
    fn a_receiver_that_comes_late_leaves_the_rest_of_that_block_out() {
        assert_eq!(ended(wave(4).split_off(13)), [(8, 8)]);
    }
}
