//! What a replication costs: time, packets and events a second, allocations, peak memory.
//!
//! `cargo bench -p ebbtide-sim`. A plain table: each figure is the best of several replications,
//! since whatever else the machine does only ever adds. To compare two builds, run them in turns and
//! with the same LTO, which alone is worth a sixth.
#![allow(clippy::unwrap_used, reason = "a benchmark stops by panicking")]
#![expect(unsafe_code, reason = "a global allocator that counts cannot be written without")]

use ebbtide_sim::run::simulate;
use ebbtide_sim::scenario::{Override, load};
use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

/// Counts allocations and the most bytes that were in use.
struct Counting;

static ALLOCATIONS: AtomicUsize = AtomicUsize::new(0);
static IN_USE: AtomicUsize = AtomicUsize::new(0);
static PEAK: AtomicUsize = AtomicUsize::new(0);

fn grown(bytes: usize) {
    ALLOCATIONS.fetch_add(1, Relaxed);
    PEAK.fetch_max(IN_USE.fetch_add(bytes, Relaxed) + bytes, Relaxed);
}

// SAFETY: every call goes to the system's allocator unchanged.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        grown(layout.size());
        // SAFETY: the caller's promises are passed on.
        unsafe { System.alloc(layout) }
    }
    unsafe fn dealloc(&self, place: *mut u8, layout: Layout) {
        IN_USE.fetch_sub(layout.size(), Relaxed);
        // SAFETY: the caller's promises are passed on.
        unsafe { System.dealloc(place, layout) }
    }
    unsafe fn realloc(&self, place: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        IN_USE.fetch_sub(layout.size(), Relaxed);
        grown(size);
        // SAFETY: the caller's promises are passed on.
        unsafe { System.realloc(place, layout, size) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// Replications of each cell; the fastest counts.
const TRIES: u32 = 15;

struct Cost {
    seconds: f64,
    packets: u64,
    events: u64,
    allocations: usize,
    peak: usize,
}

#[expect(clippy::disallowed_methods, reason = "a benchmark measures time")]
fn cost(cc: &str, settings: &[(&str, &str)]) -> Cost {
    let overrides: Vec<Override> = settings
        .iter()
        .map(|(key, value)| Override { key: (*key).into(), value: (*value).into() })
        .collect();
    let scenario = load("nb-iot").unwrap().scenario(&overrides).unwrap();
    let controls = [scenario.control_config(cc).unwrap()];
    let mut best: Option<Cost> = None;
    for _ in 0..TRIES {
        let (before, in_use) = (ALLOCATIONS.load(Relaxed), IN_USE.load(Relaxed));
        PEAK.store(in_use, Relaxed);
        let began = std::time::Instant::now();
        let record = simulate(&scenario, &controls, 1, 1, false).unwrap();
        let seconds = began.elapsed().as_secs_f64();
        if best.as_ref().is_none_or(|best| seconds < best.seconds) {
            best = Some(Cost {
                seconds,
                packets: record.totals.up.sent + record.totals.down.sent,
                events: record.totals.events,
                allocations: ALLOCATIONS.load(Relaxed) - before,
                peak: PEAK.load(Relaxed) - in_use,
            });
        }
    }
    best.unwrap()
}

fn main() {
    let cells: [(&str, &[(&str, &str)]); 6] = [
        ("default", &[]),
        ("cocoa", &[]),
        ("fasor", &[]),
        ("fasor-token", &[]),
        ("default", &[("buffer", "2500")]),
        // Ten times the exchanges: what does not grow with them is not steady state.
        ("default", &[("exchanges", "500")]),
    ];
    println!("one replication of nb-iot, 400 clients, best of {TRIES}\n");
    println!(
        "{:<12} {:<15} {:>7} {:>9} {:>10} {:>10} {:>8} {:>8} {:>8}",
        "control",
        "settings",
        "ms",
        "packets",
        "packets/s",
        "events/s",
        "allocs",
        "/packet",
        "peak MB"
    );
    let mut before: Option<Cost> = None;
    for (cc, settings) in cells {
        let cost = cost(cc, settings);
        let text: Vec<String> =
            settings.iter().map(|(key, value)| format!("{key}={value}")).collect();
        println!(
            "{cc:<12} {:<15} {:>7.1} {:>9} {:>10.0} {:>10.0} {:>8} {:>8.4} {:>8.2}",
            text.join(" "),
            cost.seconds * 1e3,
            cost.packets,
            cost.packets as f64 / cost.seconds,
            cost.events as f64 / cost.seconds,
            cost.allocations,
            cost.allocations as f64 / cost.packets as f64,
            cost.peak as f64 / 1e6
        );
        if settings == [("exchanges", "500")]
            && let Some(before) = &before
        {
            let more = cost.allocations as f64 - before.allocations as f64;
            let packets = cost.packets as f64 - before.packets as f64;
            println!("\nallocations per packet in steady state: {:.6}", more / packets);
        }
        if settings.is_empty() && cc == "default" {
            before = Some(cost);
        }
    }
}
