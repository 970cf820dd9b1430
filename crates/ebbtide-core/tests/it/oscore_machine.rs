//! Two peers that both ask and answer in one security context: see the machine.

use crate::common::oscore_machine::play;
use crate::common::split_mix::SplitMix;
use rand_core::Rng;

#[test]
fn peers_with_both_roles_accept_what_was_said_once_however_often_they_restart() {
    let mut total = [0; 5];
    for seed in 0..300 {
        let mut script = [0; 1000];
        SplitMix(seed).fill_bytes(&mut script);
        let found = play(&script);
        let counts =
            [found.accepted, found.answered, found.notified, found.challenged, found.refused];
        for (sum, count) in total.iter_mut().zip(counts) {
            *sum += count;
        }
    }
    // Or the machine tests nothing.
    assert!(total.iter().all(|count| *count > 1000), "{total:?}");
}
