//! Plays tests.

use crate::conditions::Conditions;
use crate::network::TestNetwork;
use crate::trace::PacketTrace;
use ebbtide::network::SeededRandomness;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::time::Duration;

/// The environment variable with the only seed that [`run`] plays, to repeat a test that has failed.
pub const SEED_VARIABLE: &str = "EBBTIDE_TEST_SEED";

/// The longest virtual time of a test: one that waits forever fails.
const LONGEST: Duration = Duration::from_secs(365 * 86_400);

/// Plays a test in virtual time, over a network of its own for each seed. If it fails, the line
/// that repeats it is printed.
///
/// # Panics
///
/// Panics as the test does, if a test takes more than a year of virtual time, within a tokio runtime, and if
/// [`SEED_VARIABLE`] is set to something else than a number.
#[expect(clippy::panic, reason = "a test with a wrong seed has to fail")]
pub fn run(
    seeds: impl IntoIterator<Item = u64>,
    conditions: Conditions,
    test: impl AsyncFn(TestNetwork),
) {
    let only = std::env::var(SEED_VARIABLE).ok().map(|seed| match seed.parse() {
        Ok(seed) => seed,
        Err(_) => panic!("{SEED_VARIABLE}={seed}: it has to be a number, without a sign"),
    });
    let seeds = seeds.into_iter().filter(|_| only.is_none()).chain(only);
    for seed in seeds {
        play(seed, conditions.clone(), &test);
    }
}

/// Plays a test with one seed, whatever [`SEED_VARIABLE`] says, and returns the packets that were sent.
///
/// # Panics
///
/// As [`run`].
pub fn play(seed: u64, conditions: Conditions, test: impl AsyncFn(TestNetwork)) -> PacketTrace {
    match catch_unwind(AssertUnwindSafe(|| played(seed, conditions, test))) {
        Ok(trace) => trace,
        Err(reason) => {
            let thread = std::thread::current();
            // The harness names the thread of a test by the test.
            let name = thread.name().filter(|name| *name != "main").unwrap_or_default();
            eprintln!("to repeat it: {SEED_VARIABLE}={seed} cargo test {name}");
            resume_unwind(reason);
        }
    }
}

#[expect(clippy::panic, reason = "a test without a runtime has to fail")]
fn played(seed: u64, conditions: Conditions, test: impl AsyncFn(TestNetwork)) -> PacketTrace {
    let _seeded = SeededRandomness::new(seed);
    let mut builder = tokio::runtime::Builder::new_current_thread();
    let runtime = builder.enable_time().start_paused(true).build();
    let runtime = runtime.unwrap_or_else(|error| panic!("no runtime: {error}"));
    runtime.block_on(async {
        let network = TestNetwork::start(seed, conditions);
        let ended = tokio::time::timeout(LONGEST, test(network.clone())).await;
        assert!(ended.is_ok(), "the test has not ended after a year of virtual time");
        network.trace()
    })
}
