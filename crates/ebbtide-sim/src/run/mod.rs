//! Running scenarios: one replication, cells of replications, campaigns of cells.

mod campaign;
mod cell;
mod recorder;
mod simulation;

pub use campaign::{Campaign, CampaignError, CellResult, CellSpec, Progress, Results, Shard};
pub use cell::{physical_limit_s, summarise};
pub use recorder::{Details, Discard, Recorder, SeriesRecorder};
pub use simulation::{Controls, RunError, simulate};
