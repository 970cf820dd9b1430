//! One replication as a Parquet file: a row per client, the totals in the file's metadata.

use super::client::{COLUMNS, ClientRecord, Column, Width};
use super::run_record::{RunRecord, Totals};
use super::seal;
use bytes::Bytes;
use parquet::basic::Compression;
use parquet::column::reader::ColumnReader;
use parquet::data_type::{ByteArray, ByteArrayType, DataType, Int32Type, Int64Type};
use parquet::errors::{ParquetError, Result};
use parquet::file::metadata::KeyValue;
use parquet::file::properties::WriterProperties;
use parquet::file::reader::{FileReader, SerializedFileReader};
use parquet::file::writer::{SerializedFileWriter, SerializedRowGroupWriter};
use parquet::schema::parser::parse_message_type;
use parquet::schema::types::TypePtr;
use std::io::Write;
use std::sync::Arc;

/// The identity of a replication; written to every row, so that rows of many files can be put
/// together and still say where they are from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct RunIdentity<'i> {
    pub(crate) scenario: &'i str,
    /// The swept settings as a JSON object.
    pub(crate) settings: &'i str,
    pub(crate) cc: &'i str,
    pub(crate) seed: u64,
    pub(crate) version: &'i str,
    /// A hash of everything in the scenario that results depend on.
    pub(crate) scenario_hash: &'i str,
    /// The key of the replication, which is also the file's name.
    pub(crate) key: &'i str,
}

/// The columns with which every row of a file of results begins, as a part of its schema.
pub(super) const IDENTITY: &str = "
  required binary scenario (UTF8);
  required binary settings (UTF8);
  required binary cc (UTF8);
  required binary version (UTF8);
  required binary scenario_hash (UTF8);
  required int64 seed (INTEGER(64,false));
  required int32 replication;
";

/// The number of these columns, of which `replication` is the last.
pub(super) const IDENTITY_COLUMNS: usize = 7;

impl RunIdentity<'_> {
    /// Writes the columns of [`IDENTITY`] for so many rows.
    pub(super) fn write(
        &self,
        group: &mut SerializedRowGroupWriter<'_, impl Write + Send>,
        replication: u32,
        rows: usize,
    ) -> Result<()> {
        for text in [self.scenario, self.settings, self.cc, self.version, self.scenario_hash] {
            column::<ByteArrayType>(group, &vec![ByteArray::from(text); rows], None)?;
        }
        column::<Int64Type>(group, &vec![self.seed.cast_signed(); rows], None)?;
        column::<Int32Type>(group, &vec![replication.cast_signed(); rows], None)
    }
}

/// The schema of a file: its identity, the columns of a client, and these columns at its end.
fn schema(last: &str) -> Result<TypePtr> {
    let line = |column: &Column| {
        let width = match column.width {
            Width::Int32 => "int32",
            Width::Int64 => "int64",
        };
        format!("required {width} {};", column.name)
    };
    let columns: String = COLUMNS.iter().map(line).collect();
    Ok(Arc::new(parse_message_type(&format!("message clients {{{IDENTITY}{columns}{last}}}"))?))
}

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
pub(super) fn write(identity: &RunIdentity<'_>, record: &RunRecord) -> Result<Vec<u8>> {
    let mut sink = Vec::new();
    let totals = serde_json::to_string(&record.totals)
        .map_err(|error| ParquetError::External(Box::new(error)))?;
    let metadata = vec![
        KeyValue::new(TOTALS.to_owned(), totals),
        KeyValue::new(KEY.to_owned(), identity.key.to_owned()),
        columns_about(COLUMNS.iter().map(|one| (one.name, one.unit, one.about))),
        KeyValue::new(seal::NAME.to_owned(), seal::open()),
    ];
    let properties = properties(format!("ebbtide {}", identity.version), metadata);
    let classes = &record.totals.classes;
    let class = if classes.is_empty() { "" } else { "required binary class (UTF8);" };
    let mut file = SerializedFileWriter::new(&mut sink, schema(class)?, Arc::new(properties))?;
    let mut group = file.next_row_group()?;
    let clients = &record.clients;
    identity.write(&mut group, record.replication, clients.len())?;
    for one in &COLUMNS {
        let values = clients.iter().map(one.get);
        match one.width {
            Width::Int32 => {
                let values: Vec<i32> = values.map(|value| (value as u32).cast_signed()).collect();
                column::<Int32Type>(&mut group, &values, None)?;
            }
            Width::Int64 => {
                let values: Vec<i64> = values.map(u64::cast_signed).collect();
                column::<Int64Type>(&mut group, &values, None)?;
            }
        }
    }
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

/// The units and meanings of columns as an entry of the file's metadata, since Parquet has no place for them at a
/// column: a JSON object by name.
pub(super) fn columns_about<'c>(
    columns: impl Iterator<Item = (&'c str, &'c str, &'c str)>,
) -> KeyValue {
    let about = columns.map(|(name, unit, about)| {
        let value = match unit {
            "" => serde_json::json!({ "about": about }),
            unit => serde_json::json!({ "unit": unit, "about": about }),
        };
        (name.to_owned(), value)
    });
    let about: serde_json::Map<String, serde_json::Value> = about.collect();
    KeyValue::new("ebbtide.columns".to_owned(), serde_json::Value::Object(about).to_string())
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
    let numbers = |index: usize| integers(group.get_column_reader(index)?, rows);
    let mut clients = vec![ClientRecord::default(); rows];
    for (place, column) in COLUMNS.iter().enumerate() {
        for (client, value) in clients.iter_mut().zip(numbers(IDENTITY_COLUMNS + place)?) {
            (column.set)(client, value);
        }
    }
    let replication = numbers(IDENTITY_COLUMNS - 1)?.first().copied().unwrap_or(0);
    let replication = u32::try_from(replication).unwrap_or(u32::MAX);
    Ok(RunRecord { replication, clients, totals, wall_s: 0.0 })
}

/// The values of a column of either integer type, as unsigned, without those that are absent.
pub(super) fn integers(column: ColumnReader, rows: usize) -> Result<Vec<u64>> {
    match column {
        ColumnReader::Int32ColumnReader(mut reader) => {
            let mut values = Vec::with_capacity(rows);
            reader.read_records(rows, Some(&mut Vec::new()), None, &mut values)?;
            Ok(values.into_iter().map(|value: i32| value.cast_unsigned().into()).collect())
        }
        ColumnReader::Int64ColumnReader(mut reader) => {
            let mut values = Vec::with_capacity(rows);
            reader.read_records(rows, Some(&mut Vec::new()), None, &mut values)?;
            Ok(values.into_iter().map(i64::cast_unsigned).collect())
        }
        _ => Err(ParquetError::General("a column that is not of integers".into())),
    }
}
