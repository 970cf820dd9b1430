//! The records of a replication, and the files that keep them.

mod background;
mod capture;
mod chunk;
mod class;
mod clients;
mod delivery;
mod exchanges;
mod files;
mod flow;
mod only;
mod perfetto;
mod run_record;
mod seal;
mod spans;
mod trace;
mod wifi;

pub use crate::report::Handshakes;
pub use background::BackgroundFlow;
pub use capture::Capture;
pub use class::{ClassRecord, CrossRecord, LinkRecord};
pub use delivery::Delivery;
pub use exchanges::ExchangeRecord;
pub use files::{Claim, Manifest, ManifestCell, Store, StoreError};
pub use flow::FlowRecord;
pub use only::Only;
pub use run_record::{ClientRecord, Direction, RunRecord, SparseHistogram, Totals};
pub use spans::Spans;
pub use trace::{AIR, PLACES, Tap, Trace};
pub use wifi::{StationRecord, WifiRecord};
