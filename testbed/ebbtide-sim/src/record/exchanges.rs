//! The exchanges of one replication as a Parquet file, a row each: for those who ask for more than a
//! row per client.

use super::clients::{IDENTITY, RunIdentity, column, columns_about, properties};
use super::seal;
use ebbtide_core::time::Instant;
use parquet::data_type::{Int32Type, Int64Type};
use parquet::errors::Result;
use parquet::file::metadata::KeyValue;
use parquet::file::writer::SerializedFileWriter;
use parquet::schema::parser::parse_message_type;
use std::sync::Arc;

/// One exchange that has ended.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct ExchangeRecord {
    /// Its client, from 0.
    pub client: u32,
    /// Its number at the client, from 0.
    pub exchange: u32,
    /// When the application asked.
    pub asked: Instant,
    /// When its first transmission left; `None` if none did.
    pub first_sent: Option<Instant>,
    /// When its response arrived, or the client gave up.
    pub ended: Instant,
    /// How often it was transmitted.
    pub transmissions: u32,
    /// Which transmission was answered, 0 being the original; `None` if the exchange failed.
    pub answered: Option<u8>,
}

/// The columns of an exchange; those of [`IDENTITY`] come before them.
const OWN: &str = "
  required int32 client;
  required int32 exchange;
  required int64 asked_ns;
  optional int64 first_sent_ns;
  required int64 ended_ns;
  required int32 transmissions;
  optional int32 answered;
";

/// The units and meanings of the columns of an exchange.
const ABOUT: [(&str, &str, &str); 7] = [
    ("client", "", "number of the client, from 0"),
    ("exchange", "", "number of the exchange at its client, from 0"),
    ("asked_ns", "ns", "when the application asked, since the start of the run"),
    ("first_sent_ns", "ns", "when the first transmission left; null: none did"),
    ("ended_ns", "ns", "when the response arrived, or the client gave up"),
    ("transmissions", "1", "how often it was transmitted"),
    ("answered", "", "the transmission that was answered, 0 being the original; null: it failed"),
];

/// The exchanges of a replication as the bytes of a sealed file.
pub(super) fn write(
    identity: &RunIdentity<'_>,
    replication: u32,
    rows: &[ExchangeRecord],
) -> Result<Vec<u8>> {
    let mut sink = Vec::new();
    let metadata = vec![
        KeyValue::new("ebbtide.key".to_owned(), identity.key.to_owned()),
        columns_about(ABOUT.into_iter()),
        KeyValue::new(seal::NAME.to_owned(), seal::open()),
    ];
    let properties = properties(format!("ebbtide {}", identity.version), metadata);
    let schema = Arc::new(parse_message_type(&format!("message exchanges {{{IDENTITY}{OWN}}}"))?);
    let mut file = SerializedFileWriter::new(&mut sink, schema, Arc::new(properties))?;
    let mut group = file.next_row_group()?;
    identity.write(&mut group, replication, rows.len())?;
    let narrow = |of: fn(&ExchangeRecord) -> u32| -> Vec<i32> {
        rows.iter().map(|row| of(row).cast_signed()).collect()
    };
    let wide = |of: fn(&ExchangeRecord) -> Instant| -> Vec<i64> {
        rows.iter().map(|row| of(row).as_nanos().cast_signed()).collect()
    };
    let levels = |is_there: fn(&ExchangeRecord) -> bool| -> Vec<i16> {
        rows.iter().map(|row| i16::from(is_there(row))).collect()
    };
    column::<Int32Type>(&mut group, &narrow(|row| row.client), None)?;
    column::<Int32Type>(&mut group, &narrow(|row| row.exchange), None)?;
    column::<Int64Type>(&mut group, &wide(|row| row.asked), None)?;
    let first: Vec<i64> =
        rows.iter().filter_map(|row| Some(row.first_sent?.as_nanos().cast_signed())).collect();
    column::<Int64Type>(&mut group, &first, Some(&levels(|row| row.first_sent.is_some())))?;
    column::<Int64Type>(&mut group, &wide(|row| row.ended), None)?;
    column::<Int32Type>(&mut group, &narrow(|row| row.transmissions), None)?;
    let answered: Vec<i32> = rows.iter().filter_map(|row| row.answered.map(i32::from)).collect();
    column::<Int32Type>(&mut group, &answered, Some(&levels(|row| row.answered.is_some())))?;
    group.close()?;
    file.close()?;
    seal::close(&mut sink);
    Ok(sink)
}
