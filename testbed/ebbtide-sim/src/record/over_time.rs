//! A replication step by step, and the file that keeps it.

use super::clients::{
    IDENTITY, IDENTITY_COLUMNS, RunIdentity, column, columns_about, integers, properties,
};
use super::seal;
use crate::scenario::units::Time;
use bytes::Bytes;
use parquet::data_type::{Int32Type, Int64Type};
use parquet::errors::{ParquetError, Result};
use parquet::file::metadata::KeyValue;
use parquet::file::reader::{FileReader, SerializedFileReader};
use parquet::file::writer::SerializedFileWriter;
use parquet::schema::parser::parse_message_type;
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// The grid of the series of a replication.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TimeGrid {
    /// The length of a step, ns; at least 1.
    pub step_ns: u64,
    /// Clients with a series of their own.
    pub clients: Vec<u32>,
}

impl TimeGrid {
    /// The options of `ebbtide run` that ask for it.
    pub(crate) fn options(&self) -> String {
        let step = format!(" --series '{}'", Time(self.step_ns));
        let clients: Vec<String> = self.clients.iter().map(u32::to_string).collect();
        match clients.as_slice() {
            [] => step,
            own => format!("{step} --series-clients {}", own.join(",")),
        }
    }
}

/// A replication on a regular grid of times, without gaps: where nothing happens, there are zeros.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct OverTime {
    /// The length of a step, ns.
    pub step_ns: u64,
    /// All clients together, step by step.
    pub all: Vec<TimeStep>,
    /// Bytes that wait before the bottleneck at the end of each step, towards the server and towards the devices.
    pub queues: Vec<(u64, u64)>,
    /// Single clients, each with its own steps.
    pub clients: Vec<(u32, Vec<TimeStep>)>,
}

/// The events of one step, and the state at its end.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq)]
pub struct TimeStep {
    /// Transmissions of messages that begin exchanges, copies and probes included.
    pub sent: u32,
    /// Copies that left because a timeout had expired.
    pub timeouts: u32,
    /// Exchanges that got their response.
    pub delivered: u32,
    /// Exchanges that ended without one.
    pub failed: u32,
    /// Transmissions of the exchanges that were answered in this step after the one that was answered.
    pub unnecessary: u32,
    /// Exchanges whose first transmission has left and which have not ended, at the end of the step.
    pub in_flight: u32,
}

/// A column of [`TimeStep`].
struct StepColumn {
    name: &'static str,
    about: &'static str,
    get: fn(&TimeStep) -> u32,
    set: fn(&mut TimeStep, u32),
}

macro_rules! step_columns {
    ($($field:ident: $about:literal),* $(,)?) => {
        const COLUMNS: &[StepColumn] = &[$(StepColumn {
            name: stringify!($field),
            about: $about,
            get: |step| step.$field,
            set: |step, value| step.$field = value,
        }),*];
    };
}

step_columns! {
    sent: "transmissions of messages that begin exchanges, copies and probes included",
    timeouts: "copies that left because a timeout had expired",
    delivered: "exchanges that got their response",
    failed: "exchanges that ended without one",
    unnecessary: "transmissions, after the one that was answered, of exchanges answered in the step",
    in_flight: "exchanges sent and not ended, at the end of the step",
}

/// The columns between those of [`IDENTITY`] and those of a step; the last ones are the queues.
const PLACE: &str = "
  optional int32 client;
  required int64 time_ns;
  optional int64 queue_up;
  optional int64 queue_down;
";

/// The number of the column `client`.
const CLIENT: usize = IDENTITY_COLUMNS;

/// The key of the step in the file's metadata.
const STEP: &str = "ebbtide.step_ns";

/// A replication over time as the bytes of a sealed file: a row for each step of all clients, and of each single one.
pub(super) fn write(
    identity: &RunIdentity<'_>,
    replication: u32,
    over_time: &OverTime,
) -> Result<Vec<u8>> {
    let mut sink = Vec::new();
    let about = [
        ("client", "", "the client; null: all of them"),
        ("time_ns", "ns", "beginning of the step, since the start of the run"),
        (
            "queue_up",
            "B",
            "waiting before the bottleneck towards the server, at the end of the step",
        ),
        ("queue_down", "B", "the same towards the devices"),
    ];
    let steps = COLUMNS.iter().map(|one| (one.name, "1", one.about));
    let metadata = vec![
        KeyValue::new("ebbtide.key".to_owned(), identity.key.to_owned()),
        KeyValue::new(STEP.to_owned(), over_time.step_ns.to_string()),
        columns_about(about.into_iter().chain(steps)),
        KeyValue::new(seal::NAME.to_owned(), seal::open()),
    ];
    let properties = properties(format!("ebbtide {}", identity.version), metadata);
    let counts: String =
        COLUMNS.iter().map(|one| format!("required int32 {};", one.name)).collect();
    let schema =
        Arc::new(parse_message_type(&format!("message over_time {{{IDENTITY}{PLACE}{counts}}}"))?);
    let mut file = SerializedFileWriter::new(&mut sink, schema, Arc::new(properties))?;
    let mut group = file.next_row_group()?;
    let own = over_time.clients.iter().flat_map(|(_, steps)| steps);
    let rows: Vec<&TimeStep> = over_time.all.iter().chain(own).collect();
    identity.write(&mut group, replication, rows.len())?;
    let whole = over_time.all.len();
    let levels = |of_whole: bool| -> Vec<i16> {
        (0..rows.len()).map(|row| i16::from((row < whole) == of_whole)).collect()
    };
    let clients = over_time.clients.iter();
    let clients = clients.flat_map(|(client, steps)| steps.iter().map(|_| client.cast_signed()));
    column::<Int32Type>(&mut group, &clients.collect::<Vec<i32>>(), Some(&levels(false)))?;
    let lengths = std::iter::once(whole).chain(over_time.clients.iter().map(|one| one.1.len()));
    let times = lengths.flat_map(|length| 0..length as u64);
    let times: Vec<i64> =
        times.map(|step| step.saturating_mul(over_time.step_ns).cast_signed()).collect();
    column::<Int64Type>(&mut group, &times, None)?;
    for of in [|queues: &(u64, u64)| queues.0, |queues: &(u64, u64)| queues.1] {
        let bytes: Vec<i64> =
            over_time.queues.iter().map(|queues| of(queues).cast_signed()).collect();
        column::<Int64Type>(&mut group, &bytes, Some(&levels(true)))?;
    }
    for one in COLUMNS {
        let values: Vec<i32> = rows.iter().map(|row| (one.get)(row).cast_signed()).collect();
        column::<Int32Type>(&mut group, &values, None)?;
    }
    group.close()?;
    file.close()?;
    seal::close(&mut sink);
    Ok(sink)
}

/// Reads back what [`write`] wrote of all clients; single ones are left out.
pub(super) fn read(bytes: Bytes) -> Result<OverTime> {
    let wrong = |message: &str| ParquetError::General(message.into());
    if !seal::holds(&bytes) {
        return Err(wrong("its content is not what was written"));
    }
    let reader = SerializedFileReader::new(bytes)?;
    let metadata = reader.metadata().file_metadata();
    let pairs = metadata.key_value_metadata().into_iter().flatten();
    let step =
        pairs.filter(|pair| pair.key == STEP).find_map(|pair| pair.value.as_ref()?.parse().ok());
    let step_ns = step.ok_or_else(|| wrong("no step in the file"))?;
    let rows = usize::try_from(metadata.num_rows()).unwrap_or(0);
    let group = reader.get_row_group(0)?;
    let single = integers(group.get_column_reader(CLIENT)?, rows)?.len();
    let whole = rows.saturating_sub(single);
    let numbers = |index: usize| integers(group.get_column_reader(index)?, whole);
    let queues = numbers(CLIENT + 2)?.into_iter().zip(numbers(CLIENT + 3)?).collect();
    let mut all = vec![TimeStep::default(); whole];
    for (place, column) in COLUMNS.iter().enumerate() {
        for (step, value) in all.iter_mut().zip(numbers(CLIENT + 4 + place)?) {
            (column.set)(step, u32::try_from(value).unwrap_or(u32::MAX));
        }
    }
    Ok(OverTime { step_ns, all, queues, clients: Vec::new() })
}
