//! The forecast of a campaign's time and memory.

use crate::failure::Failure;
use ebbtide_sim::run::Campaign;

/// The memory of a simulated client with its packets under way and its results, rounded up: measured with
/// `default`, MAX_RETRANSMIT 20 and an infinite buffer, which fills with copies.
const BYTES_PER_CLIENT: u64 = 3400;

/// The memory of an exchange that is kept as a row (`--exchanges`), until its replication is written.
const BYTES_PER_EXCHANGE: u64 = 150;

/// The processor time of a packet in a large run, measured at 100,000 clients; small runs take a
/// third.
const SECONDS_PER_PACKET: f64 = 1.8e-6;

/// The number of seconds from which on a forecast is printed.
const LONG: f64 = 60.0;

/// Prints the minimum duration of a long campaign, and refuses a campaign that does not fit in
/// memory.
pub(super) fn forecast(campaign: &Campaign, jobs: usize) -> Result<(), Failure> {
    let available = available_bytes();
    let at_once = jobs.min(campaign.runs()).max(1) as u64;
    let rows = if campaign.exchanges { BYTES_PER_EXCHANGE } else { 0 };
    let bytes = campaign.cells.iter().map(|cell| {
        let exchanges = u64::from(cell.scenario.workload.exchanges);
        u64::from(cell.scenario.client_count()) * (BYTES_PER_CLIENT + exchanges * rows)
            + cell.scenario.tcp_buffers(&cell.controls)
    });
    let each = bytes.max().unwrap_or(0);
    let needed = each.saturating_mul(at_once);
    if let Some(available) = available.filter(|available| needed > *available) {
        let clients = campaign.cells.iter().map(|cell| cell.scenario.client_count()).max();
        return Err(Failure::usage(too_much(each, available, at_once, clients.unwrap_or(0))));
    }
    let seconds = seconds(campaign) / at_once as f64;
    if seconds > LONG {
        eprintln!(
            "about {} of memory and {:.0} min or more: every exchange once, without repetitions",
            size(needed),
            (seconds / 60.0).ceil()
        );
    }
    Ok(())
}

/// Refuses a map whose largest networks do not fit in memory at once.
pub(super) fn fits(largest: u32, jobs: usize) -> Result<(), Failure> {
    let (each, jobs) = (u64::from(largest) * BYTES_PER_CLIENT, jobs.max(1) as u64);
    let available = available_bytes().filter(|available| each.saturating_mul(jobs) > *available);
    match available {
        Some(available) => Err(Failure::usage(too_large(each, available, largest, jobs))),
        None => Ok(()),
    }
}

/// The error for a fleet that does not fit in memory, with the remedy.
fn too_large(each: u64, available: u64, largest: u32, jobs: u64) -> String {
    let fitting = available / each.max(1);
    let way_out = match fitting {
        0 => format!("--range clients=1..{} fits with --jobs 1", available / BYTES_PER_CLIENT),
        jobs => format!("--jobs {jobs} fits"),
    };
    format!(
        "--range clients and --jobs: {jobs} networks of up to {largest} devices at once need about {} \
         of memory, and {} are available; {way_out}",
        size(each.saturating_mul(jobs)),
        size(available)
    )
}

/// The error for a campaign that does not fit in memory, with the remedy.
fn too_much(each: u64, available: u64, at_once: u64, clients: u32) -> String {
    let way_out = if at_once > 1 && each <= available {
        format!("--jobs {} fits", available / each.max(1))
    } else {
        let most = clients as f64 * available as f64 / each as f64;
        format!("at most {most:.0} clients fit: lower clients.count, or the count of a class")
    };
    format!(
        "clients.count and --jobs: {at_once} replications of {clients} clients at once need about {} of memory, and \
         {} are available; {way_out}",
        size(each.saturating_mul(at_once)),
        size(available)
    )
}

/// The processor time if each exchange takes place once.
fn seconds(campaign: &Campaign) -> f64 {
    let cells = campaign.cells.iter().filter(|cell| cell.scenario.network.mesh().is_none());
    let packets = cells.map(|cell| {
        let exchanges = f64::from(cell.scenario.workload.exchanges);
        2.0 * f64::from(cell.scenario.client_count()) * exchanges * f64::from(cell.reps)
    });
    packets.sum::<f64>() * SECONDS_PER_PACKET
}

/// The memory available without swapping; `None` if the system does not report it.
fn available_bytes() -> Option<u64> {
    let text = std::fs::read_to_string("/proc/meminfo").ok()?;
    let line = text.lines().find_map(|line| line.strip_prefix("MemAvailable:"))?;
    let kib: u64 = line.trim().trim_end_matches(" kB").parse().ok()?;
    Some(kib * 1024)
}

fn size(bytes: u64) -> String {
    match bytes {
        0..1_000_000_000 => format!("{:.0} MB", bytes as f64 / 1e6),
        _ => format!("{:.1} GB", bytes as f64 / 1e9),
    }
}

#[cfg(test)]
mod tests {
    use super::{too_large, too_much};

    #[test]
    fn a_fleet_that_does_not_fit_is_refused_with_both_keys_and_the_way_out() {
        let text = too_large(2_200_000_000, 5_000_000_000, 1_000_000, 4);
        assert_eq!(
            text,
            "--range clients and --jobs: 4 networks of up to 1000000 devices at once need about 8.8 GB \
             of memory, and 5.0 GB are available; --jobs 2 fits"
        );
        let text = too_large(3_400_000_000, 1_700_000_000, 1_000_000, 1);
        assert!(text.ends_with("--range clients=1..500000 fits with --jobs 1"), "{text}");
    }

    #[test]
    fn a_run_that_does_not_fit_is_refused_with_the_way_out() {
        let text = too_much(8_000_000_000, 17_000_000_000, 4, 1_000_000);
        assert_eq!(
            text,
            "clients.count and --jobs: 4 replications of 1000000 clients at once need about 32.0 GB of memory, and \
             17.0 GB are available; --jobs 2 fits"
        );
        let text = too_much(8_000_000_000, 4_000_000_000, 1, 1_000_000);
        assert!(
            text.ends_with(
                "at most 500000 clients fit: lower clients.count, or the count of a class"
            ),
            "{text}"
        );
    }
}
