//! Running scenarios: one replication, cells of replications, campaigns of cells.

mod background;
mod campaign;
mod chunk;
mod client_timer;
mod cross;
mod curve;
mod event;
mod flow_series;
mod happenings;
mod in_mesh;
mod low_power;
mod motes;
mod network;
mod on_air;
mod placement;
mod pool;
mod radio;
mod rate;
mod reporting;
mod roster;
mod series;
mod simulation;
mod topology;
mod trace;
mod until;

pub use crate::host::endpoint_config;
pub use crate::record::{Details, Discard, LostAt, Recorder, RunError, Tagged};
pub use crate::result::{CellResult, CellSpec, PerRun, Results, VERSION};
pub use crate::scenario::Transport;
pub use campaign::{Campaign, CampaignError, Progress, Shard, run_command};
pub use chunk::{ChunkDone, ChunkSize, FailedRun};
pub use reporting::{document, left_out, report};
pub use series::SeriesRecorder;
pub use simulation::{Controls, simulate, simulate_with};
pub use trace::{Spans, Tap, Trace, TraceFilter};
pub use until::{Until, UntilError, UntilResults};
