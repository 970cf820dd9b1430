//! Records as bytes, for those who compute replications in one place and summarise them in another.

use super::client::COLUMNS;
use super::{ClientRecord, RunRecord, Totals};
use serde::{Deserialize, Serialize};

#[derive(Serialize, Deserialize)]
struct Portable {
    replication: u32,
    /// The columns of each client.
    clients: Vec<[u64; COLUMNS.len()]>,
    totals: Totals,
}

impl RunRecord {
    /// The record as bytes. They do not have the wall-clock time.
    ///
    /// # Errors
    ///
    /// Returns an error if a measurement cannot be written, which no record of this crate has.
    pub fn to_bytes(&self) -> Result<Vec<u8>, serde_json::Error> {
        let columns = |client: &ClientRecord| COLUMNS.each_ref().map(|column| (column.get)(client));
        let clients = self.clients.iter().map(columns).collect();
        let portable =
            Portable { replication: self.replication, clients, totals: self.totals.clone() };
        serde_json::to_vec(&portable)
    }

    /// The record that [`to_bytes`](Self::to_bytes) of the same version wrote.
    ///
    /// # Errors
    ///
    /// Returns an error if the bytes are not those of a record.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, serde_json::Error> {
        let Portable { replication, clients, totals } = serde_json::from_slice(bytes)?;
        let client = |values: &[u64; COLUMNS.len()]| {
            let mut client = ClientRecord::default();
            COLUMNS
                .iter()
                .zip(values)
                .for_each(|(column, value)| (column.set)(&mut client, *value));
            client
        };
        let clients = clients.iter().map(client).collect();
        Ok(Self { replication, clients, totals, wall_s: 0.0 })
    }
}
