//! A test that fails says how it is repeated.

use ebbtide_testnet::{Conditions, SEED_VARIABLE, run};
use std::process::Command;

const FAILS: &str = "EBBTIDE_TEST_FAILS";

#[test]
fn one_that_fails_with_the_third_seed() {
    if std::env::var_os(FAILS).is_none() {
        return;
    }
    run(5..10, Conditions::new(), async |network| {
        println!("plays");
        let first = network.client_config();
        drop(first);
        let seed = std::env::var(SEED_VARIABLE).unwrap_or_default();
        assert!(seed.is_empty(), "repeated with {seed}");
        tokio::task::yield_now().await;
        assert!(PLAYED.fetch_add(1, std::sync::atomic::Ordering::SeqCst) < 2, "the third");
    });
}

static PLAYED: std::sync::atomic::AtomicU32 = std::sync::atomic::AtomicU32::new(0);

fn output(seed: Option<&str>) -> String {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", "--nocapture", "repetition::one_that_fails_with_the_third_seed"]);
    command.env(FAILS, "yes").env_remove(SEED_VARIABLE);
    command.envs(seed.map(|seed| (SEED_VARIABLE, seed)));
    let output = command.output().unwrap();
    assert!(!output.status.success());
    String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned()
}

#[test]
fn a_failure_prints_the_line_that_repeats_it_and_the_line_plays_that_seed_alone() {
    let said = output(None);
    let line = "EBBTIDE_TEST_SEED=7 cargo test repetition::one_that_fails_with_the_third_seed";
    assert!(said.contains(line), "{said}");
    assert_eq!(said.matches("plays").count(), 3, "{said}");
    let said = output(Some("7"));
    assert!(said.contains("repeated with 7") && said.matches("plays").count() == 1, "{said}");
    let said = output(Some("seven"));
    assert!(said.contains("EBBTIDE_TEST_SEED=seven: it has to be a number"), "{said}");
}
