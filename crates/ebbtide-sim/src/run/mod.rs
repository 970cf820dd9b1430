//! Running scenarios: one replication, cells of replications, campaigns of cells.

mod background;
mod background_cell;
mod campaign;
mod cell;
mod cell_spec;
mod chunk;
mod class_cell;
mod client_timer;
mod cross;
mod discard;
mod document;
mod flow_cell;
mod flow_series;
mod mesh_cell;
mod network;
mod recorder;
mod reporting;
mod roster;
mod simulation;
mod topology;
mod wifi;
mod wifi_cell;

pub use crate::host::endpoint_config;
pub(crate) use campaign::run_command;
pub use campaign::{
    Campaign, CampaignError, CellResult, PerRun, Progress, Results, Shard, VERSION,
};
pub use cell::{physical_limit_s, summarise};
pub use cell_spec::CellSpec;
pub use chunk::{ChunkDone, FailedRun, Most};
pub use discard::Discard;
pub use document::document;
pub(crate) use network::tagged;
pub(crate) use recorder::new_histogram;
pub use recorder::{Details, LostAt, Recorder, SeriesRecorder, Tagged, Transport};
pub use reporting::{left_out, report};
pub(crate) use simulation::sparse;
pub use simulation::{Controls, RunError, simulate, simulate_with};
