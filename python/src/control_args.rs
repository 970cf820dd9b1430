//! The arguments of a congestion control's methods, as Python objects. Times are in seconds.

use ebbtide_core::cc;
use ebbtide_core::time::{Instant, Micros};
use pyo3::exceptions::{PyRuntimeError, PyValueError};
use pyo3::prelude::*;
use std::sync::{Mutex, PoisonError};

/// The randomness of a context.
pub(crate) trait Draws {
    fn uniform(&mut self, low: Micros, high: Micros) -> Micros;
}

impl Draws for cc::Context<'_> {
    fn uniform(&mut self, low: Micros, high: Micros) -> Micros {
        cc::Context::uniform(self, low, high)
    }
}

scoped_tls_hkt::scoped_thread_local! {
    /// The randomness of the call that this thread is in. A Python object may outlive the call, so
    /// it cannot hold the borrowed generator.
    pub(crate) static mut DRAWS: for<'a> &'a mut (dyn Draws + 'a)
}

/// Seconds of a span.
pub(crate) fn seconds(span: Micros) -> f64 {
    span.as_secs_f64()
}

/// The span of so many seconds, rounded to a microsecond, at most the longest span; `None` for a
/// negative number and for NaN.
pub(crate) fn micros(seconds: f64) -> Option<Micros> {
    let micros = (seconds * 1e6).round();
    (micros >= 0.0).then(|| Micros::from_u64(micros as u64))
}

fn since_start(at: Instant) -> f64 {
    at.as_nanos() as f64 / 1e9
}

/// The arguments common to all calls.
#[pyclass(frozen, get_all)]
pub(crate) struct Context {
    now: f64,
    ack_timeout: f64,
    ack_random_factor: f64,
    max_retransmit: u8,
    nstart: u16,
}

impl Context {
    pub(crate) fn of(cx: &cc::Context<'_>) -> Self {
        Self {
            now: since_start(cx.now),
            ack_timeout: seconds(cx.settings.ack_timeout(cx.params)),
            ack_random_factor: f64::from(cx.params.ack_random_permille) / 1e3,
            max_retransmit: cx.params.max_retransmit,
            nstart: cx.settings.nstart(cx.params),
        }
    }
}

#[pymethods]
impl Context {
    #[staticmethod]
    fn uniform(low: f64, high: f64) -> PyResult<f64> {
        let span = |name: &str, value: f64| {
            let wrong = || format!("{name}: must be at least 0 seconds, not {value}");
            micros(value).ok_or_else(|| PyValueError::new_err(wrong()))
        };
        let (low, high) = (span("low", low)?, span("high", high)?);
        if !DRAWS.is_set() {
            let text = "uniform: a control draws only inside of a call that passes it a context";
            return Err(PyRuntimeError::new_err(text));
        }
        Ok(seconds(DRAWS.with(|draws| draws.uniform(low, high))))
    }
}

/// Per-exchange state.
#[pyclass(frozen)]
pub(crate) struct Slot(Mutex<State>);

#[derive(Clone, Copy)]
struct State {
    armed: f64,
    base: f64,
    tag: u8,
}

impl Slot {
    fn state(&self) -> State {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn change(&self, change: impl FnOnce(&mut State)) {
        change(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner));
    }

    /// Stores what Python may have changed.
    pub(crate) fn write(&self, slot: &mut cc::Slot) -> PyResult<()> {
        let state = self.state();
        slot.base = micros(state.base).ok_or_else(|| {
            let text = format!("slot.base: takes seconds, at least 0, not {}", state.base);
            PyValueError::new_err(text)
        })?;
        slot.tag = state.tag;
        Ok(())
    }
}

impl From<&cc::Slot> for Slot {
    fn from(slot: &cc::Slot) -> Self {
        let (armed, base) = (seconds(slot.armed), seconds(slot.base));
        Self(Mutex::new(State { armed, base, tag: slot.tag }))
    }
}

#[pymethods]
impl Slot {
    #[getter]
    fn armed(&self) -> f64 {
        self.state().armed
    }

    #[getter]
    fn base(&self) -> f64 {
        self.state().base
    }

    #[setter]
    fn set_base(&self, base: f64) {
        self.change(|state| state.base = base);
    }

    #[getter]
    fn tag(&self) -> u8 {
        self.state().tag
    }

    #[setter]
    fn set_tag(&self, tag: u8) {
        self.change(|state| state.tag = tag);
    }
}

/// A transmission that leaves.
#[pyclass(frozen, get_all)]
pub(crate) struct Transmission {
    kind: &'static str,
    ordinal: u8,
    beside: u16,
    remaining: f64,
}

impl From<&cc::Transmission> for Transmission {
    fn from(transmission: &cc::Transmission) -> Self {
        let kind = match transmission.kind {
            cc::Kind::Message => "message",
            cc::Kind::Probe => "probe",
            cc::Kind::Unprobed => "unprobed",
        };
        let remaining = seconds(transmission.remaining);
        Self { kind, ordinal: transmission.ordinal, beside: transmission.beside, remaining }
    }
}

/// A message that is ready to leave.
#[pyclass(frozen, get_all)]
pub(crate) struct OutgoingMessage {
    confirmable: bool,
    bytes: u16,
}

impl From<&cc::OutgoingMessage> for OutgoingMessage {
    fn from(message: &cc::OutgoingMessage) -> Self {
        Self { confirmable: message.confirmable, bytes: message.bytes }
    }
}

/// The traffic under way.
#[pyclass(frozen, get_all)]
pub(crate) struct Load {
    open: u16,
    last_non: Option<f64>,
    nons_since_con: u8,
    unanswered_bytes: u32,
    unanswered_since: Option<f64>,
    probes: u16,
}

impl From<&cc::Load> for Load {
    fn from(load: &cc::Load) -> Self {
        Self {
            open: load.open,
            last_non: load.last_non.map(since_start),
            nons_since_con: load.nons_since_con,
            unanswered_bytes: load.unanswered_bytes,
            unanswered_since: (load.unanswered_bytes > 0)
                .then(|| since_start(load.unanswered_since)),
            probes: load.probes,
        }
    }
}

/// The measurements of an acknowledgement.
#[pyclass(frozen, get_all)]
pub(crate) struct Sample {
    since_first: f64,
    since_last: f64,
    transmissions: u8,
    retransmissions: u8,
    answered: Option<(u8, f64)>,
}

impl From<&cc::Sample> for Sample {
    fn from(sample: &cc::Sample) -> Self {
        Self {
            since_first: seconds(sample.since_first),
            since_last: seconds(sample.since_last),
            transmissions: sample.transmissions,
            retransmissions: sample.retransmissions(),
            answered: sample.answered.map(|answered| (answered.ordinal, seconds(answered.since))),
        }
    }
}

/// The measurements of an answer to a probe.
#[pyclass(frozen, get_all)]
pub(crate) struct ProbeReply {
    since: f64,
    since_last: f64,
    transmissions: u8,
}

impl From<&cc::ProbeReply> for ProbeReply {
    fn from(reply: &cc::ProbeReply) -> Self {
        Self {
            since: seconds(reply.since),
            since_last: seconds(reply.since_last),
            transmissions: reply.transmissions,
        }
    }
}
