//! Several replications in one Parquet file, and each of them out of it again, byte for byte: a
//! million small files are more than a shared file system bears.
//!
//! Nothing here knows what a column means, so that what is recorded can change elsewhere.

use super::clients::properties;
use bytes::Bytes;
use parquet::basic::Type;
use parquet::column::reader::{ColumnReader, ColumnReaderImpl};
use parquet::data_type::{
    BoolType, ByteArrayType, DataType, DoubleType, FloatType, Int32Type, Int64Type,
};
use parquet::errors::{ParquetError, Result};
use parquet::file::metadata::KeyValue;
use parquet::file::reader::{FileReader, SerializedFileReader};
use parquet::file::writer::{SerializedColumnWriter, SerializedFileWriter};
use parquet::schema::types::SchemaDescriptor;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, VecDeque};
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

/// The key, in a file's metadata, of what its parts are.
const PARTS: &str = "ebbtide.parts";
/// Files whose parts are remembered: those that are read at once by as many threads.
const REMEMBERED: usize = 4;

/// The entry of a part in the metadata of its file, in the order of the rows.
#[derive(Serialize, Deserialize)]
struct ChunkPart {
    key: String,
    rows: usize,
    /// The metadata of its own file.
    metadata: Vec<(String, Option<String>)>,
}

/// Puts replications together, and says how many rows each has.
pub(super) fn join(parts: &[(String, Bytes)]) -> Result<(Vec<u8>, Vec<usize>)> {
    let readers = parts
        .iter()
        .map(|(_, bytes)| SerializedFileReader::new(bytes.clone()))
        .collect::<Result<Vec<_>>>()?;
    let Some(first) = readers.first() else {
        return Err(ParquetError::General("a file of no replications".into()));
    };
    let first = first.metadata().file_metadata();
    let schema = first.schema_descr().clone();
    let created_by = first.created_by().unwrap_or_default().to_owned();
    let mut columns = columns(&schema)?;
    let mut listed = Vec::with_capacity(parts.len());
    let mut counts = Vec::with_capacity(parts.len());
    for ((key, _), reader) in parts.iter().zip(&readers) {
        let metadata = reader.metadata().file_metadata();
        if metadata.schema_descr().root_schema() != schema.root_schema() {
            return Err(ParquetError::General("replications of different columns".into()));
        }
        let rows = fill(reader, &mut columns)?;
        let pairs = metadata.key_value_metadata().into_iter().flatten();
        let pairs = pairs.map(|pair| (pair.key.clone(), pair.value.clone())).collect();
        listed.push(ChunkPart { key: key.clone(), rows, metadata: pairs });
        counts.push(rows);
    }
    let listed =
        serde_json::to_string(&listed).map_err(|error| ParquetError::External(Box::new(error)))?;
    let metadata = vec![KeyValue::new(PARTS.to_owned(), listed)];
    let rows = counts.iter().sum();
    Ok((write(&schema, created_by, metadata, &columns, 0, rows)?, counts))
}

/// Takes a file apart into its replications' own files.
fn split(file: Bytes) -> Result<BTreeMap<String, Bytes>> {
    let reader = SerializedFileReader::new(file)?;
    let metadata = reader.metadata().file_metadata();
    let schema = metadata.schema_descr().clone();
    let created_by = metadata.created_by().unwrap_or_default().to_owned();
    let pairs = metadata.key_value_metadata();
    let listed = pairs
        .and_then(|pairs| pairs.iter().find(|pair| pair.key == PARTS))
        .and_then(|pair| pair.value.as_deref())
        .ok_or_else(|| ParquetError::General("does not say what its parts are".into()))?;
    let listed: Vec<ChunkPart> =
        serde_json::from_str(listed).map_err(|error| ParquetError::External(Box::new(error)))?;
    let mut columns = columns(&schema)?;
    fill(&reader, &mut columns)?;
    let mut from = 0;
    let mut parts = BTreeMap::new();
    for part in listed {
        let pairs = part.metadata.into_iter();
        let pairs = pairs.map(|(key, value)| KeyValue { key, value }).collect();
        let bytes = write(&schema, created_by.clone(), pairs, &columns, from, part.rows)?;
        parts.insert(part.key, bytes.into());
        from += part.rows;
    }
    Ok(parts)
}

/// The list beside a file: the seconds that it took, then each key with its rows.
pub(super) fn list(keys: &[&str], rows: &[usize], wall_s: f64) -> String {
    let mut text = format!("wall_s {wall_s:.6}\n");
    for (key, rows) in keys.iter().zip(rows) {
        text.push_str(&format!("{key} {rows}\n"));
    }
    text
}

/// The keys in such a list.
pub(super) fn listed(text: &str) -> impl Iterator<Item = &str> {
    text.lines().skip(1).filter_map(|line| Some(line.split_once(' ')?.0))
}

/// The values of one column, of one of the types that results have.
enum Values {
    Bool(OptionalColumn<BoolType>),
    Int32(OptionalColumn<Int32Type>),
    Int64(OptionalColumn<Int64Type>),
    Float(OptionalColumn<FloatType>),
    Double(OptionalColumn<DoubleType>),
    Bytes(OptionalColumn<ByteArrayType>),
}

/// The values of a column that may leave some out: a level per row says whether it has one.
struct OptionalColumn<T: DataType> {
    is_optional: bool,
    values: Vec<T::T>,
    levels: Vec<i16>,
}

impl<T: DataType> OptionalColumn<T> {
    const fn new(is_optional: bool) -> Self {
        Self { is_optional, values: Vec::new(), levels: Vec::new() }
    }

    fn read(&mut self, mut column: ColumnReaderImpl<T>, rows: usize) -> Result<()> {
        let levels = self.is_optional.then_some(&mut self.levels);
        column.read_records(rows, levels, None, &mut self.values)?;
        Ok(())
    }

    fn write(
        &self,
        column: &mut SerializedColumnWriter<'_>,
        from: usize,
        rows: usize,
    ) -> Result<()> {
        let missing = || ParquetError::General("a column is shorter than the others".into());
        if !self.is_optional {
            let values = self.values.get(from..from + rows).ok_or_else(missing)?;
            column.typed::<T>().write_batch(values, None, None)?;
            return Ok(());
        }
        let there = |levels: &[i16]| levels.iter().filter(|level| **level > 0).count();
        let levels = self.levels.get(from..from + rows).ok_or_else(missing)?;
        let before = there(self.levels.get(..from).ok_or_else(missing)?);
        let values = self.values.get(before..before + there(levels)).ok_or_else(missing)?;
        column.typed::<T>().write_batch(values, Some(levels), None)?;
        Ok(())
    }
}

/// Empty columns of a schema.
fn columns(schema: &SchemaDescriptor) -> Result<Vec<Values>> {
    let columns = schema.columns().iter().map(|column| {
        let is_optional = column.max_def_level() == 1;
        if column.max_rep_level() > 0 || column.max_def_level() > 1 {
            return Err(ParquetError::General(format!("column {} is nested", column.name())));
        }
        Ok(match column.physical_type() {
            Type::BOOLEAN => Values::Bool(OptionalColumn::new(is_optional)),
            Type::INT32 => Values::Int32(OptionalColumn::new(is_optional)),
            Type::INT64 => Values::Int64(OptionalColumn::new(is_optional)),
            Type::FLOAT => Values::Float(OptionalColumn::new(is_optional)),
            Type::DOUBLE => Values::Double(OptionalColumn::new(is_optional)),
            Type::BYTE_ARRAY => Values::Bytes(OptionalColumn::new(is_optional)),
            other => {
                let name = column.name();
                return Err(ParquetError::General(format!("column {name} is of type {other}")));
            }
        })
    });
    columns.collect()
}

/// Appends all rows of a file, and says how many there are.
fn fill(reader: &SerializedFileReader<Bytes>, columns: &mut [Values]) -> Result<usize> {
    let mut rows = 0;
    for index in 0..reader.num_row_groups() {
        let group = reader.get_row_group(index)?;
        let count = usize::try_from(group.metadata().num_rows()).unwrap_or(0);
        for (index, values) in columns.iter_mut().enumerate() {
            match (values, group.get_column_reader(index)?) {
                (Values::Bool(to), ColumnReader::BoolColumnReader(from)) => to.read(from, count)?,
                (Values::Int32(to), ColumnReader::Int32ColumnReader(from)) => {
                    to.read(from, count)?
                }
                (Values::Int64(to), ColumnReader::Int64ColumnReader(from)) => {
                    to.read(from, count)?
                }
                (Values::Float(to), ColumnReader::FloatColumnReader(from)) => {
                    to.read(from, count)?
                }
                (Values::Double(to), ColumnReader::DoubleColumnReader(from)) => {
                    to.read(from, count)?;
                }
                (Values::Bytes(to), ColumnReader::ByteArrayColumnReader(from)) => {
                    to.read(from, count)?;
                }
                _ => return Err(ParquetError::General("a column of another type".into())),
            }
        }
        rows += count;
    }
    Ok(rows)
}

/// A file of some of the rows.
fn write(
    schema: &SchemaDescriptor,
    created_by: String,
    metadata: Vec<KeyValue>,
    columns: &[Values],
    from: usize,
    rows: usize,
) -> Result<Vec<u8>> {
    let mut bytes = Vec::new();
    let properties = Arc::new(properties(created_by, metadata));
    let mut file = SerializedFileWriter::new(&mut bytes, schema.root_schema_ptr(), properties)?;
    let mut group = file.next_row_group()?;
    for values in columns {
        let Some(mut column) = group.next_column()? else {
            return Err(ParquetError::General("more columns than the schema has".into()));
        };
        match values {
            Values::Bool(values) => values.write(&mut column, from, rows)?,
            Values::Int32(values) => values.write(&mut column, from, rows)?,
            Values::Int64(values) => values.write(&mut column, from, rows)?,
            Values::Float(values) => values.write(&mut column, from, rows)?,
            Values::Double(values) => values.write(&mut column, from, rows)?,
            Values::Bytes(values) => values.write(&mut column, from, rows)?,
        }
        column.close()?;
    }
    group.close()?;
    file.close()?;
    Ok(bytes)
}

/// The parts of a file, by their keys.
type Parts = Arc<BTreeMap<String, Bytes>>;

/// The files of a folder that hold several replications each.
#[derive(Debug, Default)]
pub(super) struct Chunks {
    /// In which file a replication is; of several that have it, in the first by name.
    places: BTreeMap<String, Arc<PathBuf>>,
    recent: Mutex<VecDeque<(Arc<PathBuf>, Parts)>>,
}

impl Chunks {
    /// Lists a folder, which need not be there. Files without a list are passed over.
    pub(super) fn open(folder: &Path) -> Self {
        let entries = fs::read_dir(folder).into_iter().flatten();
        let mut lists: Vec<PathBuf> = entries
            .filter_map(|entry| Some(entry.ok()?.path()))
            .filter(|path| path.extension().is_some_and(|extension| extension == "keys"))
            .collect();
        lists.sort_unstable();
        let mut places = BTreeMap::new();
        for list in lists {
            let file = Arc::new(list.with_extension("parquet"));
            let text = fs::read_to_string(&list).unwrap_or_default();
            for key in listed(&text) {
                places.entry(key.to_owned()).or_insert_with(|| file.clone());
            }
        }
        Self { places, recent: Mutex::default() }
    }

    /// The replications that are there.
    pub(super) fn keys(&self) -> impl Iterator<Item = &str> {
        self.places.keys().map(String::as_str)
    }

    /// The file that a replication is in.
    pub(super) fn place(&self, key: &str) -> Option<PathBuf> {
        self.places.get(key).map(|path| path.to_path_buf())
    }

    /// A replication's own file; `None` if it is not there.
    pub(super) fn file(&self, key: &str) -> Result<Option<Bytes>> {
        let Some(path) = self.places.get(key) else { return Ok(None) };
        let recent = || self.recent.lock().unwrap_or_else(PoisonError::into_inner);
        let known =
            recent().iter().find(|(known, _)| known == path).map(|(_, parts)| parts.clone());
        if let Some(parts) = known {
            return Ok(parts.get(key).cloned());
        }
        let bytes = fs::read(path.as_path()).map_err(|e| ParquetError::External(Box::new(e)))?;
        let parts: Parts = Arc::new(split(bytes.into())?);
        let mut recent = recent();
        recent.push_back((path.clone(), parts.clone()));
        if recent.len() > REMEMBERED {
            recent.pop_front();
        }
        Ok(parts.get(key).cloned())
    }
}
