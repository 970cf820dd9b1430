//! What a replication leaves behind, and where it is kept.

mod clients;
mod files;
mod run_record;

pub use files::{Manifest, ManifestCell, Store, StoreError};
pub use run_record::{ClientRecord, Direction, RunRecord, SparseHistogram, Totals};
