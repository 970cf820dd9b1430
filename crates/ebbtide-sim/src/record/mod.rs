//! What a replication leaves behind, and where it is kept.

mod background;
mod capture;
mod chunk;
mod clients;
mod files;
mod flow;
mod run_record;
mod trace;
mod wifi;

pub use background::BackgroundFlow;
pub use capture::Capture;
pub use files::{Manifest, ManifestCell, Store, StoreError};
pub use flow::FlowRecord;
pub use run_record::{ClientRecord, Direction, RunRecord, SparseHistogram, Totals};
pub use trace::{AIR, PLACES, Trace};
pub use wifi::{StationRecord, WifiRecord};
