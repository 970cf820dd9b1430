//! A whole server by seeds: handlers, blocks, observers and DTLS sessions, while it is killed and starts again with its state, disks
//! fail, clocks jump, links lose, double, reorder and break, and strangers forge and replay. What must hold for every seed:
//!
//! - what was acknowledged was done, and stays;
//! - no request is done twice in one life of the server;
//! - memory and the stored state stay within their bounds;
//! - strangers of two addresses keep no device from its share;
//! - no stranger gets more than three times the bytes that came from its address and port, but for what a killed server had not stored.

mod application;
mod devices;
mod misfortunes;
mod strangers;
mod world;

use ebbtide_testnet::{PacketTrace, SEED_VARIABLE, play};
use world::{conditions, story};

const SEEDS: u64 = 100;

#[test]
fn a_server_keeps_its_promises_whatever_happens_to_it() {
    // The links of a seed are its own as well.
    let only = std::env::var(SEED_VARIABLE).ok().map(|seed| seed.parse().unwrap());
    for seed in (0..SEEDS).filter(|_| only.is_none()).chain(only) {
        told(seed);
    }
}

fn told(seed: u64) -> PacketTrace {
    play(seed, conditions(seed), async |network| story(seed, network).await)
}

#[test]
fn a_seed_tells_the_same_story_twice() {
    let (first, second) = (told(3), told(3));
    assert!(first.packets().len() > 100, "{}", first.packets().len());
    assert!(first == second, "{first}\n{second}");
}
