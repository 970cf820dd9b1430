//! The records of a replication, and the files that keep them.

mod background;
mod capture;
mod chunk;
mod class;
mod clients;
mod delivery;
mod discard;
mod error;
mod exchanges;
mod files;
mod fine_times;
mod flow;
mod handshakes;
mod mesh;
mod recorder;
mod run_record;
mod seal;
mod series;
mod wifi;

pub use background::{BackgroundFlow, BackgroundPackets};
pub use capture::{AIR, Capture, PLACES};
pub use class::{ClassRecord, CrossRecord, LinkRecord};
pub use delivery::Delivery;
pub use discard::Discard;
pub use error::RunError;
pub use exchanges::ExchangeRecord;
pub use files::{Claim, Manifest, ManifestCell, Store, StoreError};
pub use flow::FlowRecord;
pub use handshakes::Handshakes;
pub use mesh::{Causes, MeshRecord, Messages, NodeRecord};
pub(crate) use recorder::new_histogram;
pub use recorder::{Details, LostAt, Recorder, Tagged};
pub use run_record::{ClientRecord, Direction, RunRecord, SparseHistogram, Totals};
pub(crate) use run_record::{is_zero, sparse};
pub use series::{FlowSeries, Series};
pub use wifi::{StationRecord, WifiRecord};
