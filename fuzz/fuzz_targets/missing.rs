//! The list of missing blocks that a server sends (RFC 9177 section 5), and the sender that obeys
//! it. The numbers ascend and are written again as they were read, except for their encoding; no
//! list makes a sender repeat more than a set, or a block that never left.
#![no_main]

use core::convert::Infallible;
use ebbtide_core::q_block::{QBlockParameters, Sender, Sending};
use ebbtide_core::time::Instant;
use ebbtide_core::wire::MissingBlocks;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|payload: &[u8]| {
    let missing = match MissingBlocks::parse(payload) {
        Ok(missing) => missing,
        Err(error) => {
            assert!(!error.to_string().is_empty());
            return;
        }
    };
    let numbers: Vec<u32> = missing.iter().collect();
    assert!(!numbers.is_empty() && numbers.len() <= payload.len());
    assert!(numbers.is_sorted_by(|a, b| a < b));

    let mut buf = vec![0; payload.len()];
    let len = MissingBlocks::encode(numbers.iter().copied(), &mut buf);
    let again = MissingBlocks::parse(&buf[..len]).expect("it was just written");
    assert!(again.iter().eq(numbers.iter().copied()));

    let params = QBlockParameters::DEFAULT;
    let mut sender = Sender::download(25, params, &mut Lowest);
    while let Sending::Block(num) = sender.poll(Instant::ZERO) {
        assert!(num < 10);
    }
    sender.on_missing(missing.iter());
    let expected = numbers.iter().copied().filter(|&num| num < 10);
    for num in expected {
        assert_eq!(sender.poll(Instant::ZERO), Sending::Block(num));
    }
    assert!(matches!(sender.poll(Instant::ZERO), Sending::Wait(Some(_))));
});

/// No randomness.
struct Lowest;

impl rand_core::TryRng for Lowest {
    type Error = Infallible;

    fn try_next_u32(&mut self) -> Result<u32, Infallible> {
        Ok(0)
    }

    fn try_next_u64(&mut self) -> Result<u64, Infallible> {
        Ok(0)
    }

    fn try_fill_bytes(&mut self, bytes: &mut [u8]) -> Result<(), Infallible> {
        bytes.fill(0);
        Ok(())
    }
}
