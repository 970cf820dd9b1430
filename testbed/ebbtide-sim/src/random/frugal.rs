//! A stream of randomness for those of whom there are a million.

use rand_chacha::ChaCha8Rng;
use rand_core::{Rng, SeedableRng, TryRng};
use std::convert::Infallible;

/// Words that are kept: a block of ChaCha.
const WORDS: usize = 16;

/// The same numbers as [`ChaCha8Rng`] gives, in 104 bytes instead of 320: one block is kept and not
/// four. It takes longer, which matters little to a device that draws a few words per exchange.
#[derive(Clone)]
pub(crate) struct CompactChaCha {
    seed: [u8; 32],
    /// Blocks that were begun.
    blocks: u32,
    words: [u32; WORDS],
    /// How many of the words were drawn.
    used: u8,
}

impl CompactChaCha {
    fn word(&mut self) -> u32 {
        if usize::from(self.used) == WORDS {
            let mut whole = ChaCha8Rng::from_seed(self.seed);
            whole.set_word_pos(u128::from(self.blocks) * WORDS as u128);
            self.words.fill_with(|| whole.next_u32());
            self.blocks = self.blocks.wrapping_add(1);
            self.used = 0;
        }
        self.used += 1;
        self.words[usize::from(self.used) - 1]
    }
}

impl SeedableRng for CompactChaCha {
    type Seed = [u8; 32];

    fn from_seed(seed: [u8; 32]) -> Self {
        Self { seed, blocks: 0, words: [0; WORDS], used: WORDS as u8 }
    }
}

impl TryRng for CompactChaCha {
    type Error = Infallible;

    fn try_next_u32(&mut self) -> Result<u32, Infallible> {
        Ok(self.word())
    }

    fn try_next_u64(&mut self) -> Result<u64, Infallible> {
        let low = u64::from(self.word());
        Ok(low | u64::from(self.word()) << 32)
    }

    fn try_fill_bytes(&mut self, bytes: &mut [u8]) -> Result<(), Infallible> {
        for chunk in bytes.chunks_mut(4) {
            chunk.copy_from_slice(&self.word().to_le_bytes()[..chunk.len()]);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn it_gives_the_numbers_of_chacha8_however_they_are_drawn(
            seed: [u8; 32],
            draws in prop::collection::vec(0usize..40, 1..200),
        ) {
            let mut frugal = CompactChaCha::from_seed(seed);
            let mut whole = ChaCha8Rng::from_seed(seed);
            for draw in draws {
                match draw {
                    0..10 => prop_assert_eq!(frugal.next_u32(), whole.next_u32()),
                    10..20 => prop_assert_eq!(frugal.next_u64(), whole.next_u64()),
                    _ => {
                        let (mut mine, mut theirs) = ([0; 20], [0; 20]);
                        frugal.fill_bytes(&mut mine[..draw - 20]);
                        whole.fill_bytes(&mut theirs[..draw - 20]);
                        prop_assert_eq!(mine, theirs);
                    }
                }
            }
        }
    }
}
