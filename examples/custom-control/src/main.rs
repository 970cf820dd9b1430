//! Compares the control with a built-in one on the simulator: `cargo run -p custom-control`.

use custom_control::Doublings;
use ebbtide::congestion::{Custom, Registry};
use ebbtide_sim::run::Campaign;
use ebbtide_sim::scenario::{load, parse_set};
use std::error::Error;

fn main() -> Result<(), Box<dyn Error>> {
    let registry = Registry::new([Custom::new(Doublings::default())])?;
    let source = load("nb-iot")?.with_controls(registry);
    let axes = vec![parse_set("clients=100")?];
    let cc = ["default", "doubling", "doubling:factor=6"].map(str::to_owned).to_vec();
    let campaign = Campaign::plan(source, axes, cc, Some(2), None)?;
    let results = campaign.run(None, None, &())?;
    for (_, result) in results.cells {
        let cell = result.cell;
        println!("{:20} median completion {:.1} s", cell.cc, cell.fct.median);
    }
    Ok(())
}
