//! One replication as a Parquet file: a row per client, the totals in the file's metadata.

use super::run_record::{ClientRecord, RunRecord, Totals};
use super::seal;
use bytes::Bytes;
use ebbtide_core::time::{Duration, Micros};
use parquet::basic::Compression;
use parquet::column::reader::ColumnReader;
use parquet::data_type::{ByteArray, ByteArrayType, DataType, Int32Type, Int64Type};
use parquet::errors::{ParquetError, Result};
use parquet::file::metadata::KeyValue;
use parquet::file::properties::WriterProperties;
use parquet::file::reader::{FileReader, SerializedFileReader};
use parquet::file::writer::{SerializedFileWriter, SerializedRowGroupWriter};
use parquet::schema::parser::parse_message_type;
use std::io::Write;
use std::sync::Arc;

/// The identity of a replication; written to every row, so that rows of many files can be put
/// together and still say where they are from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Identity<'i> {
    pub(super) scenario: &'i str,
    /// The swept settings as a JSON object.
    pub(super) settings: &'i str,
    pub(super) cc: &'i str,
    pub(super) seed: u64,
    pub(super) version: &'i str,
    /// Of everything in the scenario that results depend on.
    pub(super) scenario_hash: &'i str,
    /// The key of the replication, which is also the file's name.
    pub(super) key: &'i str,
}

/// The columns of every file. One of a scenario with classes has `class` after them.
const SCHEMA: &str = "
message clients {
  required binary scenario (UTF8);
  required binary settings (JSON);
  required binary cc (UTF8);
  required binary version (UTF8);
  required binary scenario_hash (UTF8);
  required int64 seed (INTEGER(64,false));
  required int32 replication;
  required int32 client;
  required int32 cc_group;
  required int64 fct_ns;
  required int32 unnecessary_retransmissions;
  required int32 duplicate_responses;
  required int32 timeouts;
  required int32 retransmissions;
  required int32 probes;
  required int64 largest_timeout_us;
  required int32 completed;
  required int32 failed;
  required int64 payload_bytes;
  required int32 asked;
  required int32 arrived;
  required int32 in_time;
  required int32 needless_transmissions;
";

/// The key of the totals in the file's metadata.
const TOTALS: &str = "ebbtide.totals";

/// The key of the replication's key there.
const KEY: &str = "ebbtide.key";

/// How all files of results are written.
pub(super) fn properties(created_by: String, metadata: Vec<KeyValue>) -> WriterProperties {
    WriterProperties::builder()
        .set_compression(Compression::SNAPPY)
        .set_created_by(created_by)
        .set_key_value_metadata(Some(metadata))
        .build()
}

/// A replication as the bytes of a sealed file.
pub(super) fn write(identity: &Identity<'_>, record: &RunRecord) -> Result<Vec<u8>> {
    let mut sink = Vec::new();
    let totals = serde_json::to_string(&record.totals)
        .map_err(|error| ParquetError::External(Box::new(error)))?;
    let metadata = vec![
        KeyValue::new(TOTALS.to_owned(), totals),
        KeyValue::new(KEY.to_owned(), identity.key.to_owned()),
        KeyValue::new(seal::NAME.to_owned(), seal::open()),
    ];
    let properties = properties(format!("ebbtide {}", identity.version), metadata);
    let classes = &record.totals.classes;
    let class = if classes.is_empty() { "" } else { "required binary class (UTF8);" };
    let schema = Arc::new(parse_message_type(&format!("{SCHEMA}{class}}}"))?);
    let mut file = SerializedFileWriter::new(&mut sink, schema, Arc::new(properties))?;
    let mut group = file.next_row_group()?;
    let clients = &record.clients;
    let texts = [identity.scenario, identity.settings, identity.cc, identity.version];
    for text in texts.into_iter().chain([identity.scenario_hash]) {
        let value = ByteArray::from(text);
        column::<ByteArrayType>(&mut group, &vec![value; clients.len()], None)?;
    }
    // Parquet's unsigned integers are stored in the signed type of their width.
    column::<Int64Type>(&mut group, &vec![identity.seed.cast_signed(); clients.len()], None)?;
    column::<Int32Type>(&mut group, &vec![record.replication.cast_signed(); clients.len()], None)?;
    narrow(&mut group, clients, |client| client.client)?;
    narrow(&mut group, clients, |client| client.group.into())?;
    wide(&mut group, clients, |client| nanos(client.fct))?;
    narrow(&mut group, clients, |client| client.unnecessary)?;
    narrow(&mut group, clients, |client| client.duplicates)?;
    narrow(&mut group, clients, |client| client.timeouts)?;
    narrow(&mut group, clients, |client| client.retransmissions)?;
    narrow(&mut group, clients, |client| client.probes)?;
    wide(&mut group, clients, |client| client.largest_timeout.get().into())?;
    narrow(&mut group, clients, |client| client.completed)?;
    narrow(&mut group, clients, |client| client.failed)?;
    wide(&mut group, clients, |client| client.payload_bytes)?;
    narrow(&mut group, clients, |client| client.asked)?;
    narrow(&mut group, clients, |client| client.arrived)?;
    narrow(&mut group, clients, |client| client.in_time)?;
    narrow(&mut group, clients, |client| client.needless)?;
    if !classes.is_empty() {
        let name = |client: &ClientRecord| {
            let place = classes.partition_point(|class| class.first <= client.client);
            classes.get(place.saturating_sub(1)).map_or("", |class| class.name.as_str()).into()
        };
        column::<ByteArrayType>(&mut group, &clients.iter().map(name).collect::<Vec<_>>(), None)?;
    }
    group.close()?;
    file.close()?;
    seal::close(&mut sink);
    Ok(sink)
}

fn nanos(span: Duration) -> u64 {
    u64::try_from(span.as_nanos()).unwrap_or(u64::MAX)
}

fn narrow<W: Write + Send>(
    group: &mut SerializedRowGroupWriter<'_, W>,
    clients: &[ClientRecord],
    field: fn(&ClientRecord) -> u32,
) -> Result<()> {
    let values: Vec<i32> = clients.iter().map(|client| field(client).cast_signed()).collect();
    column::<Int32Type>(group, &values, None)
}

fn wide<W: Write + Send>(
    group: &mut SerializedRowGroupWriter<'_, W>,
    clients: &[ClientRecord],
    field: fn(&ClientRecord) -> u64,
) -> Result<()> {
    let values: Vec<i64> = clients.iter().map(|client| field(client).cast_signed()).collect();
    column::<Int64Type>(group, &values, None)
}

/// Writes the next column; `levels` say which rows of an optional one have a value.
pub(super) fn column<T: DataType>(
    group: &mut SerializedRowGroupWriter<'_, impl Write + Send>,
    values: &[T::T],
    levels: Option<&[i16]>,
) -> Result<()> {
    let Some(mut column) = group.next_column()? else {
        return Err(ParquetError::General("more columns than the schema has".into()));
    };
    column.typed::<T>().write_batch(values, levels, None)?;
    column.close()
}

/// Reads back the replication of this key.
pub(super) fn read(bytes: Bytes, key: &str) -> Result<RunRecord> {
    let wrong = |message: &str| ParquetError::General(message.into());
    if !seal::holds(&bytes) {
        return Err(wrong("its content is not what was written"));
    }
    let reader = SerializedFileReader::new(bytes)?;
    let metadata = reader.metadata().file_metadata();
    let value = |key: &str| {
        let pairs = metadata.key_value_metadata()?;
        pairs.iter().find(|pair| pair.key == key)?.value.as_deref()
    };
    if value(KEY) != Some(key) {
        return Err(wrong("it is the result of something else under this name"));
    }
    let totals = value(TOTALS).ok_or_else(|| wrong("no totals in the file"))?;
    let totals: Totals =
        serde_json::from_str(totals).map_err(|error| ParquetError::External(Box::new(error)))?;
    let rows = usize::try_from(metadata.num_rows()).unwrap_or(0);
    let group = reader.get_row_group(0)?;
    // The columns from `replication` on, in the order of the schema.
    let columns = (6..23)
        .map(|index| integers(group.get_column_reader(index)?, rows))
        .collect::<Result<Vec<_>>>()?;
    let value = |column: usize, row: usize| -> u64 {
        columns.get(column).and_then(|values| values.get(row)).copied().unwrap_or_default()
    };
    let narrow = |column, row| u32::try_from(value(column, row)).unwrap_or(u32::MAX);
    let clients = (0..rows)
        .map(|row| ClientRecord {
            client: narrow(1, row),
            group: u8::try_from(value(2, row)).unwrap_or(u8::MAX),
            fct: Duration::from_nanos(value(3, row)),
            unnecessary: narrow(4, row),
            duplicates: narrow(5, row),
            timeouts: narrow(6, row),
            retransmissions: narrow(7, row),
            probes: narrow(8, row),
            largest_timeout: Micros::from_u64(value(9, row)),
            completed: narrow(10, row),
            failed: narrow(11, row),
            payload_bytes: value(12, row),
            asked: narrow(13, row),
            arrived: narrow(14, row),
            in_time: narrow(15, row),
            needless: narrow(16, row),
        })
        .collect();
    let replication = if rows == 0 { 0 } else { narrow(0, 0) };
    Ok(RunRecord { replication, clients, totals, wall_s: 0.0 })
}

/// A column of either integer type, as unsigned.
fn integers(column: ColumnReader, rows: usize) -> Result<Vec<u64>> {
    match column {
        ColumnReader::Int32ColumnReader(mut reader) => {
            let mut values = Vec::with_capacity(rows);
            reader.read_records(rows, None, None, &mut values)?;
            Ok(values.into_iter().map(|value: i32| value.cast_unsigned().into()).collect())
        }
        ColumnReader::Int64ColumnReader(mut reader) => {
            let mut values = Vec::with_capacity(rows);
            reader.read_records(rows, None, None, &mut values)?;
            Ok(values.into_iter().map(i64::cast_unsigned).collect())
        }
        _ => Err(ParquetError::General("a column that is not of integers".into())),
    }
}
