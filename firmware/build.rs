//! Selects the board's linker script.

use std::path::PathBuf;
use std::{env, fs};

const BOARDS: [&str; 4] = ["lm3s6965", "microbit", "mps2-an386", "virt"];

fn main() {
    println!("cargo:rerun-if-changed=memory");
    let chosen = |board: &&str| {
        let feature = board.to_uppercase().replace('-', "_");
        env::var_os(format!("CARGO_FEATURE_{feature}")).is_some()
    };
    let mut boards = BOARDS.into_iter().filter(chosen);
    let (Some(board), None) = (boards.next(), boards.next()) else {
        panic!("choose one board: --features {}", BOARDS.join(", or --features "));
    };
    let out = PathBuf::from(env::var_os("OUT_DIR").expect("cargo sets it"));
    // The name that cortex-m-rt includes.
    fs::copy(format!("memory/{board}.x"), out.join("memory.x"))
        .expect("the board has a file in memory/");
    // A board with interrupts of its own names their handlers here, of which ours has none.
    fs::write(out.join("device.x"), "").expect("cargo makes the folder");
    println!("cargo:rustc-link-search={}", out.display());
    let script = if board == "virt" { "memory.x" } else { "link.x" };
    println!("cargo:rustc-link-arg-bins=-T{script}");
    println!("cargo:rustc-link-arg-bins=--nmagic");
}
