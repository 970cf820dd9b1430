//! A whole server by seeds: handlers, blocks, observers, DTLS sessions, OSCORE and connections,
//! while it is killed and starts again with its state, disks fail and tear what they write, clocks
//! jump, links lose, double, reorder and break, connections die in mid-transfer, and strangers
//! forge and replay. What must hold for every seed:
//!
//! - what was acknowledged was done, and stays;
//! - no request is done twice in one life of the server;
//! - memory and the stored state stay within their bounds;
//! - strangers of two addresses keep no device from its share;
//! - no stranger gets more than three times the bytes that came from its address and port, but for
//!   what a killed server had not stored.

mod application;
mod devices;
mod misfortunes;
mod strangers;
mod world;

use ebbtide_testnet::{PacketTrace, SEED_VARIABLE, play};
use std::ops::Range;
use std::panic::catch_unwind;
use std::sync::Mutex;
use std::thread::{Builder, available_parallelism, scope};
use world::{conditions, story};

const SEEDS: u64 = 100;
/// Further ones that have found a fault: an observation under OSCORE was renewed, only
/// notifications of an earlier registration answered, which a restarted server had restored, and
/// the client waited for ever; a server was restarted during a handshake over DTLS, whose last
/// flight the client repeated for minutes although the server said that it knew nothing of it.
const FOUND: [u64; 4] = [496, 716, 878, 75_324];
/// The environment variable with the seeds of the long test: `FROM..TO`.
const SEEDS_VARIABLE: &str = "EBBTIDE_TEST_SEEDS";
const MANY: Range<u64> = SEEDS..SEEDS + 100_000;
/// Failures after which the long test ends.
const ENOUGH: usize = 10;

#[test]
fn a_server_keeps_its_promises_whatever_happens_to_it() {
    // The links of a seed are its own as well.
    let only = std::env::var(SEED_VARIABLE).ok().map(|seed| seed.parse().unwrap());
    for seed in (0..SEEDS).chain(FOUND).filter(|_| only.is_none()).chain(only) {
        told(seed);
    }
}

#[test]
#[ignore = "a hundred thousand seeds: ./ci.sh statistics"]
fn a_server_keeps_its_promises_for_a_hundred_thousand_seeds() {
    let seeds = match std::env::var(SEEDS_VARIABLE) {
        Ok(range) => {
            let (from, to) = range.split_once("..").expect("the variable is FROM..TO");
            from.parse().unwrap()..to.parse().unwrap()
        }
        Err(_) => MANY,
    };
    let (left, failed) = (Mutex::new(seeds), Mutex::new(Vec::new()));
    let work = || {
        while failed.lock().unwrap().len() < ENOUGH {
            let Some(seed) = left.lock().unwrap().next() else { break };
            if catch_unwind(|| told(seed)).is_err() {
                failed.lock().unwrap().push(seed);
            }
            if seed % 1000 == 999 {
                println!("seed {seed}");
            }
        }
    };
    scope(|scope| {
        for _ in 0..available_parallelism().unwrap().get() {
            // A failure names its thread as the test that repeats it.
            let name = "whole_server::a_server_keeps_its_promises_whatever_happens_to_it";
            Builder::new().name(name.into()).spawn_scoped(scope, work).unwrap();
        }
    });
    let (left, failed) = (left.into_inner().unwrap(), failed.into_inner().unwrap());
    assert!(failed.is_empty(), "seeds that failed, before {}: {failed:?}", left.start);
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
