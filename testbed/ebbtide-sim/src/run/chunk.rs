//! Replications of any cells as one piece of work, for those who spread a campaign themselves: it
//! writes one file, and what fails in it does not stop the rest.

use super::campaign::{Campaign, Progress};
use super::simulation::Kept;
use crate::record::{Store, StoreError};
use crate::result::CellSpec;
use bytes::Bytes;
use serde_json::json;
use std::collections::BTreeSet;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::path::Path;

/// How large a file of several replications becomes, about.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum ChunkSize {
    /// So many rows, one per client.
    Rows(u64),
    /// So many bytes.
    Bytes(u64),
}

impl ChunkSize {
    const fn size(self) -> u64 {
        match self {
            Self::Rows(size) | Self::Bytes(size) => size,
        }
    }
}

/// The outcome of a piece of work.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ChunkDone {
    /// The keys of the replications that are now on disk.
    pub keys: Vec<String>,
    /// Those that failed.
    pub failed: Vec<FailedRun>,
    /// Wall-clock seconds that the simulations took.
    pub wall_s: f64,
}

/// A replication that failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FailedRun {
    /// Its key.
    pub key: String,
    /// The cell, in words.
    pub cell: String,
    /// The replication.
    pub replication: u32,
    /// Why.
    pub error: String,
    /// The command that runs it again, alone.
    pub replay: String,
}

impl Campaign {
    /// Runs these replications, each an index into [`Campaign::cells`] and a number, one after the
    /// other on this thread, and keeps them as one file. A failure is written to `failed/` and
    /// counted, a panic included, and the rest goes on. Those that have not begun when `progress`
    /// cancels are left out. A control from outside ends the whole piece if it unwinds with a value
    /// that is not text (`std::panic::resume_unwind`).
    ///
    /// # Errors
    ///
    /// Returns an error if results cannot be kept; what was finished is then lost, and nothing is half there.
    pub fn run_chunk(
        &self,
        tasks: &[(usize, u32)],
        store: &Store,
        progress: &impl Progress,
    ) -> Result<ChunkDone, StoreError> {
        let mut done = ChunkDone::default();
        let mut parts: Vec<(String, Bytes)> = Vec::with_capacity(tasks.len());
        for (index, replication) in tasks {
            if progress.is_cancelled() {
                break;
            }
            let Some(spec) = self.cells.get(*index) else { continue };
            let key = self.keys(spec)(*replication);
            match catch_unwind(AssertUnwindSafe(|| self.compute(spec, *replication))) {
                Ok(Ok(Kept { record, .. })) => {
                    done.wall_s += record.wall_s;
                    progress.finished(record.totals.sim_ns as f64 / 1e9);
                    let file = self.encode(spec, &key, &record)?.into();
                    parts.push((key, file));
                }
                Ok(Err(error)) => {
                    let error = error.to_string();
                    done.failed.push(self.failed(store, spec, key, *replication, error)?);
                }
                Err(panic) => {
                    let text = panic.downcast_ref::<String>().map(String::as_str);
                    let text = text.or_else(|| panic.downcast_ref::<&str>().copied());
                    // Whoever unwinds with a value of their own also catches it.
                    let Some(text) = text else { resume_unwind(panic) };
                    let error = format!("panicked: {text}");
                    done.failed.push(self.failed(store, spec, key, *replication, error)?);
                }
            }
        }
        if !parts.is_empty() {
            store.save_chunk(&parts, done.wall_s)?;
        }
        done.keys = parts.into_iter().map(|(key, _)| key).collect();
        Ok(done)
    }

    /// Puts the results that a folder has of this campaign together in few files, sorted by cell, each of
    /// about `most`, removes what they replace, and says how many files there are. The results read
    /// afterwards are the same; an interruption leaves some replications twice, which does no harm.
    ///
    /// # Errors
    ///
    /// Returns an error if the folder cannot be read or written; nothing is removed before what replaces it is there.
    pub fn compact(&self, folder: &Path, most: ChunkSize) -> Result<usize, StoreError> {
        let store = Store::open(folder)?;
        let _claim = store.claim_alone()?;
        let mut kept = Vec::new();
        let mut parts: Vec<(String, Bytes)> = Vec::new();
        let mut keys = BTreeSet::new();
        let mut size = 0;
        for spec in &self.cells {
            let key = self.keys(spec);
            for key in (0..spec.reps).map(&key) {
                let Some(file) = store.file(&key)? else { continue };
                size += match most {
                    ChunkSize::Rows(_) => u64::from(spec.scenario.clients.count.max(1)),
                    ChunkSize::Bytes(_) => file.len() as u64,
                };
                keys.insert(key.clone());
                parts.push((key, file));
                if size >= most.size() {
                    kept.push(store.save_chunk(&parts, 0.0)?);
                    parts.clear();
                    size = 0;
                }
            }
        }
        if !parts.is_empty() {
            kept.push(store.save_chunk(&parts, 0.0)?);
        }
        store.remove_replaced(&kept, &keys)?;
        Ok(kept.len())
    }

    fn failed(
        &self,
        store: &Store,
        spec: &CellSpec,
        key: String,
        replication: u32,
        error: String,
    ) -> Result<FailedRun, StoreError> {
        let replay = self.replay_command(spec, replication);
        let failed = FailedRun { key, cell: spec.name(), replication, error, replay };
        let text = json!({
            "cell": failed.cell,
            "cc": spec.cc,
            "settings": spec.settings,
            "replication": replication,
            "error": failed.error,
            "replay": failed.replay,
        });
        store.save_failure(&failed.key, &format!("{text:#}\n"))?;
        Ok(failed)
    }
}
