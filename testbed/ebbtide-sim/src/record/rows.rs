//! Files of a folder of results that are kept on request: a row for each exchange, a row for each step of time.

use super::clients::RunIdentity;
use super::files::{failure, write_whole};
use super::{ExchangeRecord, OverTime, Store, StoreError, exchanges, over_time, seal};
use std::path::PathBuf;
use std::{fs, io};

impl Store {
    /// Keeps the exchanges of a replication, a row each, as `exchanges/KEY.parquet`.
    ///
    /// # Errors
    ///
    /// Returns an error if it cannot be written.
    pub(crate) fn save_exchanges(
        &self,
        identity: &RunIdentity<'_>,
        replication: u32,
        rows: &[ExchangeRecord],
    ) -> Result<(), StoreError> {
        let path = self.exchanges_path(identity.key);
        let folder = self.folder().join("exchanges");
        fs::create_dir_all(&folder).map_err(|error| failure(&folder, &error))?;
        let bytes = exchanges::write(identity, replication, rows)
            .map_err(|error| StoreError { path: path.clone(), reason: error.to_string() })?;
        write_whole(&path, &bytes)
    }

    /// Keeps a replication over time, as `series/KEY.parquet`.
    ///
    /// # Errors
    ///
    /// Returns an error if it cannot be written.
    pub(crate) fn save_over_time(
        &self,
        identity: &RunIdentity<'_>,
        replication: u32,
        rows: &OverTime,
    ) -> Result<(), StoreError> {
        let path = self.series_path(identity.key);
        let folder = self.folder().join("series");
        fs::create_dir_all(&folder).map_err(|error| failure(&folder, &error))?;
        let bytes = over_time::write(identity, replication, rows)
            .map_err(|error| StoreError { path: path.clone(), reason: error.to_string() })?;
        write_whole(&path, &bytes)
    }

    /// A replication over time, all clients together; `None` if it was not kept.
    ///
    /// # Errors
    ///
    /// Returns an error if the file cannot be read, or is not as it was written.
    pub(crate) fn load_over_time(&self, key: &str) -> Result<Option<OverTime>, StoreError> {
        let path = self.series_path(key);
        match fs::read(&path) {
            Ok(bytes) => over_time::read(bytes.into()).map(Some).map_err(|error| {
                let reason = format!("is damaged ({error}); delete it and run the command again");
                StoreError { path, reason }
            }),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(failure(&path, &error)),
        }
    }

    /// Whether a replication is there over time.
    pub(crate) fn has_over_time(&self, key: &str) -> bool {
        self.series_path(key).exists()
    }

    fn series_path(&self, key: &str) -> PathBuf {
        self.folder().join("series").join(format!("{key}.parquet"))
    }

    /// Whether the exchanges of a replication are there.
    ///
    /// # Errors
    ///
    /// Returns an error if their file cannot be read, or is not as it was written.
    pub(crate) fn has_exchanges(&self, key: &str) -> Result<bool, StoreError> {
        let path = self.exchanges_path(key);
        match fs::read(&path) {
            Ok(bytes) if seal::holds(&bytes) => Ok(true),
            Ok(_) => {
                let reason = "is damaged (its content is not what was written); delete it and run \
                              the command again";
                Err(StoreError { path, reason: reason.to_owned() })
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
            Err(error) => Err(failure(&path, &error)),
        }
    }

    fn exchanges_path(&self, key: &str) -> PathBuf {
        self.folder().join("exchanges").join(format!("{key}.parquet"))
    }
}
