//! The folder of a campaign: one file per replication, named by what it is the result of.

use super::chunk::{self, Chunks};
use super::clients::{self, RunIdentity};
use super::over_time::TimeGrid;
use super::run_record::RunRecord;
use super::seal;
use crate::random::Fnv;
use crate::scenario::{Axis, LoadCurve};
use bytes::Bytes;
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
use std::fmt;
use std::fs::{self, File, TryLockError};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

/// Results on disk. Files are written whole and renamed into place, so that an interrupted
/// campaign leaves only finished ones, and running it again runs what is missing.
#[derive(Clone, Debug)]
pub struct Store {
    folder: PathBuf,
    /// Files of several replications, listed when one is first looked for.
    chunks: Arc<OnceLock<Chunks>>,
}

/// The right to write into a folder, until it is dropped. Other commands of the same campaign have it,
/// too, and those of another campaign do not.
#[derive(Debug)]
pub struct Claim {
    lock: File,
    /// The process that has claimed it.
    holder: u32,
}

impl Claim {
    fn held(lock: File) -> Self {
        Self { lock, holder: process::id() }
    }
}

/// Closing the file would not suffice: a program that is being started shares it, and its lock, for a moment.
impl Drop for Claim {
    fn drop(&mut self) {
        // A forked process drops its copy of what is still in use here.
        if self.holder == process::id() {
            // It is closed now in any case.
            let _ = self.lock.unlock();
        }
    }
}

/// A file of results that cannot be written or read.
#[derive(Debug)]
pub struct StoreError {
    pub(super) path: PathBuf,
    pub(super) reason: String,
}

impl fmt::Display for StoreError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.path.display(), self.reason)
    }
}

impl std::error::Error for StoreError {}

/// The campaign of which a folder holds the results: enough to run it again and to report on it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Manifest {
    /// The scenario's name.
    pub scenario: String,
    /// The scenario's TOML text, before `set`.
    pub scenario_toml: String,
    /// A hash of all that results depend on in it, before `set`.
    #[serde(default)]
    pub scenario_hash: String,
    /// The `--set` arguments, in order.
    pub set: Vec<Axis>,
    /// The `--cc` names, in order.
    pub cc: Vec<String>,
    /// The papers that are reproduced; empty for a run.
    #[serde(default)]
    pub papers: Vec<String>,
    /// Replications; zero for those of the papers.
    pub reps: u32,
    /// Seed.
    pub seed: u64,
    /// Version of the program.
    pub version: String,
    /// The command that computes it again.
    pub command: String,
    /// The key over which curves are drawn.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub curve: Option<LoadCurve>,
    /// The series of each replication, if they are kept.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub series: Option<TimeGrid>,
    /// The cells and the files of their replications, in order.
    pub cells: Vec<ManifestCell>,
    /// A hash of this file; computed when it is written and verified when it is read.
    #[serde(default)]
    pub seal: String,
}

/// One cell of a [`Manifest`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ManifestCell {
    /// The control.
    pub cc: String,
    /// Swept keys and their values.
    pub settings: Vec<(String, String)>,
    /// A hash of all that its results depend on in the scenario, settings applied.
    #[serde(default)]
    pub scenario_hash: String,
    /// `runs/KEY.parquet` of each replication.
    pub runs: Vec<String>,
}

impl Store {
    /// Opens a folder, made if need be.
    ///
    /// # Errors
    ///
    /// Returns an error if it cannot be made.
    pub fn open(folder: &Path) -> Result<Self, StoreError> {
        let runs = folder.join("runs");
        fs::create_dir_all(&runs).map_err(|error| failure(&runs, &error))?;
        Ok(Self { folder: folder.to_owned(), chunks: Arc::default() })
    }

    /// The folder.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// The key of a replication: everything that its rows depend on, the swept settings and the
    /// control as they were written included.
    pub fn key(parts: &[&str]) -> String {
        Self::keys_with(parts)(&[])
    }

    /// The keys of replications that have their first parts in common, which are hashed once.
    pub fn keys_with(first: &[&str]) -> impl Fn(&[&str]) -> String + use<> {
        // Lengths first: parts that run together differently are different.
        let text = |parts: &[&str]| -> String {
            parts.iter().map(|part| format!("{}:{part}", part.len())).collect()
        };
        let state = Fnv::default().and(text(first).as_bytes());
        move |last| format!("{:032x}", state.and(text(last).as_bytes()).0)
    }

    /// Claims the folder for a campaign and writes its manifest.
    ///
    /// # Errors
    ///
    /// If another campaign is being written into it, if what is in it is of another scenario, seed or
    /// version, or files in it are not this program's; the message names them and the way out.
    pub fn claim(&self, manifest: &Manifest) -> Result<Claim, StoreError> {
        let path = self.folder.join(".lock");
        let lock = File::options().create(true).truncate(false).write(true).open(&path);
        let lock = lock.map_err(|error| failure(&path, &error))?;
        loop {
            match lock.try_lock() {
                Ok(()) => {
                    self.refuse_a_mix(manifest)?;
                    self.save_manifest(manifest)?;
                    // From now on others of the same campaign may join.
                    lock.lock_shared().map_err(|error| failure(&path, &error))?;
                    return Ok(Claim::held(lock));
                }
                Err(TryLockError::WouldBlock) => {
                    lock.lock_shared().map_err(|error| failure(&path, &error))?;
                    if self.load_manifest()?.is_of(manifest) {
                        return Ok(Claim::held(lock));
                    }
                    // Whoever wrote the other manifest is gone if nobody else holds the lock now.
                    lock.unlock().map_err(|error| failure(&path, &error))?;
                    if matches!(lock.try_lock(), Err(TryLockError::WouldBlock)) {
                        let reason = "another command is being computed into this folder; wait for it, \
                                      or give this one another --out";
                        return Err(self.fault(reason.to_owned()));
                    }
                    lock.unlock().map_err(|error| failure(&path, &error))?;
                }
                Err(TryLockError::Error(error)) => return Err(failure(&path, &error)),
            }
        }
    }

    /// Claims the folder for one command alone, which may remove files of results.
    ///
    /// # Errors
    ///
    /// Returns an error if anything else is being computed into it.
    pub fn claim_alone(&self) -> Result<Claim, StoreError> {
        let path = self.folder.join(".lock");
        let lock = File::options().create(true).truncate(false).write(true).open(&path);
        let lock = lock.map_err(|error| failure(&path, &error))?;
        match lock.try_lock() {
            Ok(()) => Ok(Claim::held(lock)),
            Err(TryLockError::WouldBlock) => {
                let reason = "another command is being computed into this folder; wait for it";
                Err(self.fault(reason.to_owned()))
            }
            Err(TryLockError::Error(error)) => Err(failure(&path, &error)),
        }
    }

    /// Refuses to add results to those of another scenario, seed or version.
    fn refuse_a_mix(&self, manifest: &Manifest) -> Result<(), StoreError> {
        self.refuse_foreign_files()?;
        if !self.folder.join("manifest.json").is_file() {
            return Ok(());
        }
        let there = self.load_manifest()?;
        let differs = [
            (there.version != manifest.version, "version", &there.version),
            (there.scenario_hash != manifest.scenario_hash, "scenario", &there.scenario),
            (there.seed != manifest.seed, "seed", &there.seed.to_string()),
        ];
        let Some((_, what, which)) = differs.into_iter().find(|(differs, ..)| *differs) else {
            return Ok(());
        };
        let edited = if what == "scenario" && there.scenario == manifest.scenario {
            ", as it was before it was changed"
        } else {
            ""
        };
        Err(self.fault(format!(
            "holds results of another {what} ({which}{edited}); give this run another --out, or \
             delete the folder, so that they are not mixed up"
        )))
    }

    /// Refuses files among the replications that this program does not write.
    ///
    /// # Errors
    ///
    /// If there are such; the message names them.
    pub fn refuse_foreign_files(&self) -> Result<(), StoreError> {
        let runs = self.folder.join("runs");
        let entries = fs::read_dir(&runs).map_err(|error| failure(&runs, &error))?;
        let names = entries.flatten().map(|entry| entry.file_name().to_string_lossy().into_owned());
        let mut foreign: Vec<String> = names.filter(|name| !is_ours(name)).collect();
        foreign.sort();
        if foreign.is_empty() {
            return Ok(());
        }
        foreign.truncate(5);
        let reason = format!("{}: not written by ebbtide; move it out", foreign.join(", "));
        Err(StoreError { path: runs, reason })
    }

    fn fault(&self, reason: String) -> StoreError {
        StoreError { path: self.folder.clone(), reason }
    }

    /// The record of a replication; `None` if it is not there.
    ///
    /// # Errors
    ///
    /// If its file cannot be read, or is not as it was written: its content is verified.
    pub fn load(&self, key: &str) -> Result<Option<RunRecord>, StoreError> {
        let Some(bytes) = self.file(key)? else { return Ok(None) };
        clients::read(bytes, key).map(Some).map_err(|error| self.damaged(key, &error))
    }

    /// The file of a replication, byte for byte, whether it is a file by itself or part of one; `None`
    /// if it is not there.
    ///
    /// # Errors
    ///
    /// Returns an error if it cannot be read, or is not as it was written.
    pub fn file(&self, key: &str) -> Result<Option<Bytes>, StoreError> {
        let path = self.run_path(key);
        let bytes = match fs::read(&path) {
            Ok(bytes) => Some(bytes.into()),
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                self.chunks().file(key).map_err(|error| self.damaged(key, &error))?
            }
            Err(error) => return Err(failure(&path, &error)),
        };
        match bytes {
            Some(bytes) if !seal::holds(&bytes) => {
                Err(self.damaged(key, &"its content is not what was written"))
            }
            bytes => Ok(bytes),
        }
    }

    fn damaged(&self, key: &str, why: &dyn fmt::Display) -> StoreError {
        let run = self.run_path(key);
        let path = if run.exists() { run } else { self.chunks().place(key).unwrap_or(run) };
        let reason = format!("is damaged ({why}); delete it and run the command again");
        StoreError { path, reason }
    }

    /// The keys of all replications that are there.
    ///
    /// # Errors
    ///
    /// Returns an error if the folder cannot be read.
    pub fn keys(&self) -> Result<BTreeSet<String>, StoreError> {
        let runs = self.folder.join("runs");
        let entries = fs::read_dir(&runs).map_err(|error| failure(&runs, &error))?;
        let names = entries.filter_map(|entry| entry.ok()?.file_name().into_string().ok());
        let keys = names.filter_map(|name| Some(name.strip_suffix(".parquet")?.to_owned()));
        Ok(keys.chain(self.chunks().keys().map(str::to_owned)).collect())
    }

    fn chunks(&self) -> &Chunks {
        self.chunks.get_or_init(|| Chunks::open(&self.folder.join("chunks")))
    }

    /// The file of a replication.
    ///
    /// # Errors
    ///
    /// Returns an error if the record cannot be written as Parquet. All of ours can.
    pub(crate) fn encode(
        identity: &RunIdentity<'_>,
        record: &RunRecord,
    ) -> Result<Vec<u8>, StoreError> {
        clients::write(identity, record)
            .map_err(|error| StoreError { path: identity.key.into(), reason: error.to_string() })
    }

    /// Keeps a replication's file.
    ///
    /// # Errors
    ///
    /// Returns an error if it cannot be written.
    pub(crate) fn save(&self, key: &str, bytes: &[u8]) -> Result<(), StoreError> {
        write_whole(&self.run_path(key), bytes)
    }

    /// Keeps the files of several replications as one, and says where: `chunks/NAME.parquet`, and
    /// `NAME.keys` with the keys of what it has. The name is that of its keys, so that the same ones make the
    /// same file, however often.
    ///
    /// # Errors
    ///
    /// Returns an error if it cannot be written.
    pub fn save_chunk(
        &self,
        parts: &[(String, Bytes)],
        wall_s: f64,
    ) -> Result<PathBuf, StoreError> {
        let folder = self.folder.join("chunks");
        fs::create_dir_all(&folder).map_err(|error| failure(&folder, &error))?;
        let keys: Vec<&str> = parts.iter().map(|(key, _)| key.as_str()).collect();
        let path = folder.join(format!("{}.parquet", Self::key(&keys)));
        let wrong = |error: parquet::errors::ParquetError| StoreError {
            path: path.clone(),
            reason: error.to_string(),
        };
        let (bytes, rows) = chunk::join(parts).map_err(wrong)?;
        write_whole(&path, &bytes)?;
        // Without its list a file of this kind is not looked at: it comes last.
        write_whole(&path.with_extension("keys"), chunk::list(&keys, &rows, wall_s).as_bytes())?;
        Ok(path)
    }

    /// Removes the files of these replications that `kept` replaces. Files that hold anything else stay.
    pub(crate) fn remove_replaced(
        &self,
        kept: &[PathBuf],
        keys: &BTreeSet<String>,
    ) -> Result<(), StoreError> {
        let is_replaced = |path: &Path| match fs::read_to_string(path.with_extension("keys")) {
            Ok(list) => chunk::listed(&list).all(|key| keys.contains(key)),
            Err(_) => path.file_stem().is_some_and(|key| keys.contains(&*key.to_string_lossy())),
        };
        let remove = |path: PathBuf| match fs::remove_file(&path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(failure(&path, &error)),
            _ => Ok(()),
        };
        for folder in ["chunks", "runs"].map(|name| self.folder.join(name)) {
            let entries = fs::read_dir(&folder).into_iter().flatten();
            for path in entries.filter_map(|entry| Some(entry.ok()?.path())) {
                let is_result = path.extension().is_some_and(|extension| extension == "parquet");
                if is_result && !kept.contains(&path) && is_replaced(&path) {
                    // The list first: without it the file is not looked at.
                    remove(path.with_extension("keys"))?;
                    remove(path)?;
                }
            }
        }
        Ok(())
    }

    /// Says that a replication failed, in `failed/KEY.json`.
    ///
    /// # Errors
    ///
    /// Returns an error if it cannot be written.
    pub fn save_failure(&self, key: &str, text: &str) -> Result<PathBuf, StoreError> {
        let folder = self.folder.join("failed");
        fs::create_dir_all(&folder).map_err(|error| failure(&folder, &error))?;
        let path = folder.join(format!("{key}.json"));
        write_whole(&path, text.as_bytes())?;
        Ok(path)
    }

    /// Writes the manifest.
    ///
    /// # Errors
    ///
    /// Returns an error if the file cannot be written.
    pub fn save_manifest(&self, manifest: &Manifest) -> Result<(), StoreError> {
        let path = self.folder.join("manifest.json");
        let manifest = Manifest { seal: seal::open(), ..manifest.clone() };
        let mut bytes = serde_json::to_vec_pretty(&manifest)
            .map_err(|error| StoreError { path: path.clone(), reason: error.to_string() })?;
        bytes.push(b'\n');
        seal::close(&mut bytes);
        write_whole(&path, &bytes)
    }

    /// Reads the manifest.
    ///
    /// # Errors
    ///
    /// If there is none, or it is not one.
    pub fn load_manifest(&self) -> Result<Manifest, StoreError> {
        let path = self.folder.join("manifest.json");
        let bytes = fs::read(&path).map_err(|error| failure(&path, &error))?;
        let manifest: Manifest = serde_json::from_slice(&bytes).map_err(|error| StoreError {
            path: path.clone(),
            reason: format!("not a manifest: {error}"),
        })?;
        if !seal::holds(&bytes) {
            let reason = "its content is not what was written; run the command again in another \
                          folder";
            return Err(StoreError { path, reason: reason.to_owned() });
        }
        Ok(manifest)
    }

    /// Writes another file of the folder, whole.
    ///
    /// # Errors
    ///
    /// Returns an error if the file cannot be written.
    pub fn save_text(&self, name: &str, text: &str) -> Result<PathBuf, StoreError> {
        let path = self.folder.join(name);
        write_whole(&path, text.as_bytes())?;
        Ok(path)
    }

    fn run_path(&self, key: &str) -> PathBuf {
        self.folder.join("runs").join(format!("{key}.parquet"))
    }
}

impl Manifest {
    /// Whether both are of the same campaign.
    fn is_of(&self, other: &Self) -> bool {
        Self { seal: String::new(), ..self.clone() }
            == Self { seal: String::new(), ..other.clone() }
    }
}

/// Whether a file among the replications has a name of ours, finished or not.
fn is_ours(name: &str) -> bool {
    let key = name.split('.').next().unwrap_or_default();
    let is_key = key.len() == 32 && key.bytes().all(|byte| byte.is_ascii_hexdigit());
    is_key && (name.ends_with(".parquet") || name.ends_with(".partial"))
}

pub(super) fn failure(path: &Path, error: &io::Error) -> StoreError {
    StoreError { path: path.to_owned(), reason: error.to_string() }
}

/// Writes a new file next to `path` and renames it to `path`: the file is there whole or not at
/// all, even while others write the same one. The writer that renames last determines its content.
pub(super) fn write_whole(path: &Path, bytes: &[u8]) -> Result<(), StoreError> {
    let write = || {
        let (partial, mut file) = create_beside(path)?;
        let written = file
            .write_all(bytes)
            .and_then(|()| file.sync_data())
            .and_then(|()| fs::rename(&partial, path));
        if written.is_err() {
            let _ = fs::remove_file(&partial);
        }
        written
    };
    write().map_err(|error: io::Error| failure(path, &error))
}

/// A new file beside the place, with a name that no other thread, process or machine that shares the
/// folder writes to.
fn create_beside(path: &Path) -> io::Result<(PathBuf, File)> {
    static NEXT: AtomicU64 = AtomicU64::new(0);
    loop {
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let partial = path.with_extension(format!("{}-{number}.partial", process::id()));
        match File::create_new(&partial) {
            Ok(file) => return Ok((partial, file)),
            // A process of the same number on another machine, or one that was killed.
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            Err(error) => return Err(error),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Store;

    #[test]
    fn writers_of_the_same_file_leave_one_of_their_texts_and_nothing_else() {
        let folder = tempfile::tempdir().unwrap();
        std::thread::scope(|scope| {
            for writer in 0..8 {
                let store = Store::open(folder.path()).unwrap();
                scope.spawn(move || {
                    for _ in 0..20 {
                        store.save_text("report.html", &writer.to_string().repeat(1000)).unwrap();
                    }
                });
            }
        });
        let text = std::fs::read_to_string(folder.path().join("report.html")).unwrap();
        assert!(text.len() == 1000 && text.chars().all(|c| text.starts_with(c)), "{text}");
        let mut names: Vec<_> =
            folder.path().read_dir().unwrap().map(|entry| entry.unwrap().file_name()).collect();
        names.sort();
        assert_eq!(names, ["report.html", "runs"]);
    }
}
