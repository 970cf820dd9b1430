//! The machine that fuzzing drives, by random scripts and by those that once found something.

use crate::common::script;
use proptest::prelude::*;
use std::fs;

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn any_script_ends_without_forged_data(bytes in proptest::collection::vec(any::<u8>(), 0..400)) {
        script::play(&bytes);
    }

    #[test]
    fn any_script_of_small_steps_ends_without_forged_data(
        bytes in proptest::collection::vec(0_u8..8, 0..200),
    ) {
        script::play(&bytes);
    }
}

#[test]
fn the_seeds_of_fuzzing_play() {
    let seeds = fs::read_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/../../fuzz/seeds/dtls"));
    let mut count = 0;
    for seed in seeds.into_iter().flatten().flatten() {
        script::play(&fs::read(seed.path()).unwrap_or_default());
        count += 1;
    }
    assert!(count > 0, "there are seeds");
}
