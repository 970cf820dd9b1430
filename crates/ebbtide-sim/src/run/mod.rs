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
mod document;
mod flow_cell;
mod flow_series;
mod happenings;
mod lora_cell;
mod low_power;
mod mesh_cell;
mod motes;
mod network;
mod placement;
mod pool;
mod radio;
mod reporting;
mod roster;
mod series;
mod simulation;
mod topology;
mod trace;
mod wifi;
mod wifi_cell;

pub use crate::host::endpoint_config;
pub use crate::record::{Details, Discard, LostAt, Recorder, RunError, Tagged};
pub use crate::scenario::Transport;
pub(crate) use campaign::run_command;
pub use campaign::{
    Campaign, CampaignError, CellResult, PerRun, Progress, Results, Shard, VERSION,
};
pub use cell::{physical_limit_s, summarise};
pub use cell_spec::CellSpec;
pub use chunk::{ChunkDone, ChunkSize, FailedRun};
pub use document::document;
pub use reporting::{left_out, report};
pub use series::SeriesRecorder;
pub use simulation::{Controls, simulate, simulate_with};
pub use trace::{Spans, Tap, Trace, TraceFilter};
