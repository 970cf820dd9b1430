//! Running scenarios: one replication, cells of replications, campaigns of cells.

mod campaign;
mod cell;
mod mesh_cell;
mod network;
mod recorder;
mod reporting;
mod simulation;

pub use campaign::{
    Campaign, CampaignError, CellResult, CellSpec, PerRun, Progress, Results, Shard, VERSION,
};
pub use cell::{physical_limit_s, summarise};
pub(crate) use recorder::new_histogram;
pub use recorder::{Details, Discard, Recorder, SeriesRecorder, Tagged};
pub use reporting::report;
pub use simulation::{Controls, RunError, simulate, simulate_with};
pub(crate) use simulation::{endpoint_config, sparse};
