//! The measurements of a client, and the columns in which files keep them.

use ebbtide_core::time::{Duration, Micros};

/// One client's measurements.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq)]
pub struct ClientRecord {
    /// Its number, from 0.
    pub client: u32,
    /// Which of the run's controls it used, from 0; above 0 only in mixed runs.
    pub group: u8,
    /// Flow completion time: from the first request to the end of the last exchange.
    pub fct: Duration,
    /// Transmissions of an exchange after the one whose response arrived first.
    pub unnecessary: u32,
    /// Duplicate responses received.
    pub duplicates: u32,
    /// Expired timeouts.
    pub timeouts: u32,
    /// Retransmissions, necessary or not.
    pub retransmissions: u32,
    /// Probes that its congestion control sent.
    pub probes: u32,
    /// The largest timeout armed.
    pub largest_timeout: Micros,
    /// Exchanges that got their response.
    pub completed: u32,
    /// Exchanges that failed, or were not accepted by a full queue.
    pub failed: u32,
    /// Payload of answered requests and of their first responses.
    pub payload_bytes: u64,
    /// Exchanges that its application asked for, those that were still open at the end included.
    pub asked: u32,
    /// Exchanges asked for whose request reached the server.
    pub arrived: u32,
    /// Exchanges asked for that were answered within the deadline, or at all if there is none.
    pub in_time: u32,
    /// Unnecessary transmissions of all exchanges: those after the one that was answered first,
    /// even if the client had given up by then.
    pub needless: u32,
}

/// A column with a measurement of a client.
pub(super) struct Column {
    pub(super) name: &'static str,
    pub(super) unit: &'static str,
    pub(super) about: &'static str,
    pub(super) width: Width,
    pub(super) get: fn(&ClientRecord) -> u64,
    pub(super) set: fn(&mut ClientRecord, u64),
}

/// The type of a column. Parquet's unsigned integers are stored in the signed type of their width.
#[derive(Copy, Clone)]
pub(super) enum Width {
    Int32,
    Int64,
}

/// A column of a field that counts.
macro_rules! count {
    ($name:literal, $field:ident, $about:literal) => {
        Column {
            name: $name,
            unit: "1",
            about: $about,
            width: Width::Int32,
            get: |client| client.$field.into(),
            set: |client, value| client.$field = u32::try_from(value).unwrap_or(u32::MAX),
        }
    };
}

/// The columns of a client, in the order of the file.
pub(super) const COLUMNS: [Column; 16] = [
    count!("client", client, "number of the client, from 0"),
    Column {
        name: "cc_group",
        unit: "",
        about: "which of the run's controls it used, from 0",
        width: Width::Int32,
        get: |client| client.group.into(),
        set: |client, value| client.group = u8::try_from(value).unwrap_or(u8::MAX),
    },
    Column {
        name: "fct_ns",
        unit: "ns",
        about: "from the first request to the end of the last exchange",
        width: Width::Int64,
        get: |client| u64::try_from(client.fct.as_nanos()).unwrap_or(u64::MAX),
        set: |client, value| client.fct = Duration::from_nanos(value),
    },
    count!(
        "unnecessary_retransmissions",
        unnecessary,
        "transmissions of an exchange after the one whose response arrived first"
    ),
    count!("duplicate_responses", duplicates, "responses received again"),
    count!("timeouts", timeouts, "timeouts that expired"),
    count!("retransmissions", retransmissions, "retransmissions, necessary or not"),
    count!("probes", probes, "probes that the congestion control sent"),
    Column {
        name: "largest_timeout_us",
        unit: "us",
        about: "the largest timeout that was armed",
        width: Width::Int64,
        get: |client| client.largest_timeout.as_micros(),
        set: |client, value| client.largest_timeout = Micros::from_u64(value),
    },
    count!("completed", completed, "exchanges that got their response"),
    count!("failed", failed, "exchanges that failed, or were not accepted by a full queue"),
    Column {
        name: "payload_bytes",
        unit: "B",
        about: "payload of answered requests and of their first responses",
        width: Width::Int64,
        get: |client| client.payload_bytes,
        set: |client, value| client.payload_bytes = value,
    },
    count!("asked", asked, "exchanges asked for, those still open at the end included"),
    count!("arrived", arrived, "exchanges whose request reached the server"),
    count!(
        "in_time",
        in_time,
        "exchanges answered within the deadline, or at all if there is none"
    ),
    count!(
        "needless_transmissions",
        needless,
        "transmissions after the one answered first, even if the client had given up by then"
    ),
];
