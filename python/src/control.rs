//! Congestion controls that are written in Python.
//!
//! The simulator calls an object of a Python class where it would call a control of its own, on
//! its own threads. An exception ends the replication by unwinding, and whoever started the run
//! raises it ([`Raised`]).

use crate::control_args::{
    Context, DRAWS, Load, OutgoingMessage, ProbeReply, Sample, Slot, Transmission, micros,
};
use ebbtide_core::cc::{
    self, Admission, CongestionControl, ControlFactory, Custom, DynControl, Expiry, Marking,
    Metrics, Outcome, Registry, SettingError,
};
use ebbtide_core::time::{Instant, Micros};
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::{Arc, Mutex, PoisonError};

/// The first exception of any control of a run.
#[derive(Clone, Default)]
pub(crate) struct Raised(Arc<Mutex<Option<PyErr>>>);

/// The payload with which an exception unwinds. The exception itself is in [`Raised`].
struct Unwinding;

impl Raised {
    fn keep(&self, error: PyErr) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(error);
    }

    /// Ends the replication. Unwinding with a payload of its own prints nothing, unlike a panic.
    fn unwind(&self, error: PyErr) -> ! {
        self.keep(error);
        resume_unwind(Box::new(Unwinding))
    }

    /// The exception, if there is one.
    pub(crate) fn take(&self) -> Option<PyErr> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).take()
    }

    /// Whether there is an exception.
    pub(crate) fn is_raised(&self) -> bool {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).is_some()
    }

    /// Runs `work`, and returns the exception of a control if that is what ended it.
    pub(crate) fn during<T>(&self, work: impl FnOnce() -> PyResult<T>) -> PyResult<T> {
        let ended = catch_unwind(AssertUnwindSafe(work));
        match (self.take(), ended) {
            (Some(error), _) => Err(error),
            (None, Ok(result)) => result,
            (None, Err(panic)) => resume_unwind(panic),
        }
    }
}

/// A class, as Python describes it: a callable that builds an object from settings, the name, the
/// settings with their defaults, the version, and the methods that the class defines.
#[pyclass(frozen)]
pub(crate) struct PythonControl {
    build: Py<PyAny>,
    name: String,
    keys: Vec<(String, String)>,
    version: String,
    methods: Vec<String>,
    marking: String,
}

#[pymethods]
impl PythonControl {
    #[new]
    const fn new(
        build: Py<PyAny>,
        name: String,
        keys: Vec<(String, String)>,
        version: String,
        methods: Vec<String>,
        marking: String,
    ) -> Self {
        Self { build, name, keys, version, methods, marking }
    }
}

/// The classes of a run, and where their exceptions go.
pub(crate) fn registry(
    py: Python<'_>,
    classes: &[Py<PythonControl>],
) -> PyResult<(Registry, Raised)> {
    let raised = Raised::default();
    let factories = classes.iter().map(|class| {
        let class = class.get();
        Custom::new(Factory {
            class: Arc::new(Class::of(py, class)),
            settings: BTreeMap::new(),
            raised: raised.clone(),
        })
    });
    let registry = Registry::new(factories);
    Ok((registry.map_err(|error| PyValueError::new_err(format!("cc: {error}")))?, raised))
}

/// What all controls of a class share.
struct Class {
    build: Py<PyAny>,
    name: &'static str,
    keys: &'static [&'static str],
    defaults: BTreeMap<&'static str, String>,
    version: String,
    defines: Defines,
    marking: Marking,
}

/// The optional methods that a class defines; the others are not called.
#[derive(Clone, Copy, Default)]
struct Defines {
    admit: bool,
    on_expire: bool,
    on_probe: bool,
    on_close: bool,
    poll_timeout: bool,
    handle_timeout: bool,
}

impl Class {
    fn of(py: Python<'_>, class: &PythonControl) -> Self {
        let defaults: BTreeMap<&'static str, String> =
            class.keys.iter().map(|(key, text)| (interned(key), text.clone())).collect();
        let own: Vec<&str> = defaults.keys().copied().chain(["nstart"]).collect();
        let defines = |name: &str| class.methods.iter().any(|own| own == name);
        Self {
            build: class.build.clone_ref(py),
            name: interned(&class.name),
            keys: interned_list(&own),
            defaults,
            version: class.version.clone(),
            defines: Defines {
                admit: defines("admit"),
                on_expire: defines("on_expire"),
                on_probe: defines("on_probe"),
                on_close: defines("on_close"),
                poll_timeout: defines("poll_timeout"),
                handle_timeout: defines("handle_timeout"),
            },
            marking: match class.marking.as_str() {
                "token" => Marking::Token,
                "copy-token" => Marking::CopyToken,
                "option" => Marking::Option,
                _ => Marking::None,
            },
        }
    }
}

/// Builds the controls of a class with some settings.
#[derive(Clone)]
struct Factory {
    class: Arc<Class>,
    settings: BTreeMap<&'static str, String>,
    raised: Raised,
}

impl Factory {
    fn object(&self) -> PyResult<Py<PyAny>> {
        Python::attach(|py| {
            let settings: Vec<(&str, &str)> =
                self.settings.iter().map(|(key, value)| (*key, value.as_str())).collect();
            self.class.build.call1(py, (settings,))
        })
    }
}

impl ControlFactory for Factory {
    fn name(&self) -> &'static str {
        self.class.name
    }

    fn build(&self) -> Box<dyn DynControl> {
        match self.object() {
            Ok(object) => {
                let (class, raised) = (self.class.clone(), self.raised.clone());
                Box::new(Control { object, class, raised })
            }
            Err(error) => self.raised.unwind(error),
        }
    }

    fn keys(&self) -> &'static [&'static str] {
        self.class.keys
    }

    fn with(&self, key: &str, value: &str) -> Result<Custom, SettingError> {
        let (key, default) = self.class.defaults.get_key_value(key).ok_or(SettingError::Key)?;
        let mut changed = self.clone();
        match value == default {
            true => changed.settings.remove(key),
            false => changed.settings.insert(key, value.to_owned()),
        };
        // The class validates its settings; its exception says more than this error does.
        if let Err(error) = changed.object() {
            self.raised.keep(error);
            return Err(SettingError::Value { expected: "a value that its class accepts" });
        }
        Ok(Custom::new(changed))
    }

    fn write_settings(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.settings.iter().try_for_each(|(key, value)| write!(f, ":{key}={value}"))
    }

    fn version(&self) -> &str {
        &self.class.version
    }
}

/// One control: an object of the class.
struct Control {
    object: Py<PyAny>,
    class: Arc<Class>,
    raised: Raised,
}

impl fmt::Debug for Control {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.class.name)
    }
}

impl Control {
    /// Calls Python, and ends the replication if that raises an exception.
    fn python<T>(&self, call: impl FnOnce(Python<'_>, &Bound<'_, PyAny>) -> PyResult<T>) -> T {
        let called = Python::attach(|py| call(py, self.object.bind(py)));
        called.unwrap_or_else(|error| self.raised.unwind(error))
    }

    /// The same with a context, whose randomness Python may draw from until the call returns.
    fn with<T>(
        &self,
        cx: &mut cc::Context<'_>,
        call: impl FnOnce(Python<'_>, &Bound<'_, PyAny>, Bound<'_, Context>) -> PyResult<T>,
    ) -> T {
        let context = Context::of(cx);
        DRAWS.set(cx, || self.python(|py, object| call(py, object, Bound::new(py, context)?)))
    }

    /// A returned value that is not what the method may return.
    fn wrong(&self, method: &str, takes: &str, value: &Bound<'_, PyAny>) -> PyErr {
        let shown = value.repr().map_or_else(|_| String::new(), |text| text.to_string());
        let text = format!("{}.{method}: returns {takes}, not {shown}", self.class.name);
        PyTypeError::new_err(text)
    }

    fn span(&self, method: &str, value: &Bound<'_, PyAny>) -> PyResult<Micros> {
        let takes = "seconds, at least 0";
        let number: f64 = value.extract().map_err(|_| self.wrong(method, takes, value))?;
        micros(number).ok_or_else(|| self.wrong(method, takes, value))
    }

    fn instant(&self, method: &str, value: &Bound<'_, PyAny>) -> PyResult<Instant> {
        let takes = "a time in seconds, such as cx.now + 0.5";
        let number: f64 = value.extract().map_err(|_| self.wrong(method, takes, value))?;
        let nanos = number * 1e9;
        if !(0.0..1.8e19).contains(&nanos) {
            return Err(self.wrong(method, takes, value));
        }
        Ok(Instant::from_nanos(nanos.round() as u64))
    }

    fn admission(&self, value: &Bound<'_, PyAny>) -> PyResult<Admission> {
        if value.is_none() {
            return Ok(Admission::Send);
        }
        if let Ok(word) = value.extract::<&str>() {
            match word {
                "blocked" => return Ok(Admission::Blocked),
                "confirmable" => return Ok(Admission::SendAsConfirmable),
                "give-up" => return Ok(Admission::GiveUp),
                _ => {}
            }
        } else if let Ok((word, at)) = value.extract::<(String, Bound<'_, PyAny>)>() {
            if word == "probe" {
                return Ok(Admission::Probe(self.instant("admit", &at)?));
            }
        } else if value.extract::<f64>().is_ok() {
            return Ok(Admission::NotBefore(self.instant("admit", value)?));
        }
        let takes =
            "None, 'blocked', 'confirmable', 'give-up', a time, or a pair of 'probe' and a time";
        Err(self.wrong("admit", takes, value))
    }
}

impl CongestionControl for Control {
    fn admit(
        &mut self,
        message: &cc::OutgoingMessage,
        load: &cc::Load,
        cx: &mut cc::Context<'_>,
    ) -> Admission {
        if !self.class.defines.admit {
            return Admission::Send;
        }
        self.with(cx, |_, object, context| {
            let (message, load) = (OutgoingMessage::from(message), Load::from(load));
            self.admission(&object.call_method1("admit", (message, load, context))?)
        })
    }

    fn on_transmit(
        &mut self,
        transmission: &cc::Transmission,
        slot: &mut cc::Slot,
        cx: &mut cc::Context<'_>,
    ) -> Micros {
        self.with(cx, |py, object, context| {
            let own = Bound::new(py, Slot::from(&*slot))?;
            let arguments = (Transmission::from(transmission), &own, context);
            let timeout = object.call_method1("on_transmit", arguments)?;
            own.borrow().write(slot)?;
            self.span("on_transmit", &timeout)
        })
    }

    fn on_expire(&mut self, slot: &cc::Slot, cx: &mut cc::Context<'_>) -> Expiry {
        if !self.class.defines.on_expire {
            return Expiry::Repeat;
        }
        self.with(cx, |_, object, context| {
            let wish = object.call_method1("on_expire", (Slot::from(slot), context))?;
            match wish.extract::<Option<&str>>() {
                Ok(None | Some("repeat")) => Ok(Expiry::Repeat),
                Ok(Some("probe")) => Ok(Expiry::Probe),
                _ => Err(self.wrong("on_expire", "None, 'repeat' or 'probe'", &wish)),
            }
        })
    }

    fn on_probe(
        &mut self,
        slot: &mut cc::Slot,
        reply: &cc::ProbeReply,
        cx: &mut cc::Context<'_>,
    ) -> Option<Micros> {
        if !self.class.defines.on_probe {
            return None;
        }
        self.with(cx, |py, object, context| {
            let own = Bound::new(py, Slot::from(&*slot))?;
            let wait = object.call_method1("on_probe", (&own, ProbeReply::from(reply), context))?;
            own.borrow().write(slot)?;
            match wait.is_none() {
                true => Ok(None),
                false => self.span("on_probe", &wait).map(Some),
            }
        })
    }

    fn on_feedback(&mut self, slot: &cc::Slot, sample: &cc::Sample, cx: &mut cc::Context<'_>) {
        self.with(cx, |_, object, context| {
            let arguments = (Slot::from(slot), Sample::from(sample), context);
            object.call_method1("on_feedback", arguments).map(drop)
        });
    }

    fn on_close(
        &mut self,
        slot: &cc::Slot,
        outcome: Outcome,
        retransmissions: u8,
        cx: &mut cc::Context<'_>,
    ) {
        if !self.class.defines.on_close {
            return;
        }
        let outcome = match outcome {
            Outcome::Acknowledged => "acknowledged",
            Outcome::Reset => "reset",
            Outcome::GaveUp => "gave-up",
            Outcome::Cancelled => "cancelled",
        };
        self.with(cx, |_, object, context| {
            let arguments = (Slot::from(slot), outcome, retransmissions, context);
            object.call_method1("on_close", arguments).map(drop)
        });
    }

    fn poll_timeout(&self) -> Option<Instant> {
        if !self.class.defines.poll_timeout {
            return None;
        }
        self.python(|_, object| {
            let at = object.call_method0("poll_timeout")?;
            match at.is_none() {
                true => Ok(None),
                false => self.instant("poll_timeout", &at).map(Some),
            }
        })
    }

    fn handle_timeout(&mut self, cx: &mut cc::Context<'_>) {
        if self.class.defines.handle_timeout {
            self.with(cx, |_, object, context| {
                object.call_method1("handle_timeout", (context,)).map(drop)
            });
        }
    }

    fn marking(&self) -> Marking {
        self.class.marking
    }

    fn metrics(&self) -> Metrics {
        Metrics::default()
    }
}

/// Names and keys live as long as the process: there are few, and each is stored once.
fn interned(text: &str) -> &'static str {
    static KNOWN: Mutex<BTreeSet<&'static str>> = Mutex::new(BTreeSet::new());
    let mut known = KNOWN.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(same) = known.get(text) {
        return same;
    }
    let text: &'static str = Box::leak(text.to_owned().into_boxed_str());
    known.insert(text);
    text
}

/// The same for lists of keys.
fn interned_list(keys: &[&str]) -> &'static [&'static str] {
    static KNOWN: Mutex<BTreeSet<&'static [&'static str]>> = Mutex::new(BTreeSet::new());
    let keys: Vec<&'static str> = keys.iter().map(|key| interned(key)).collect();
    let mut known = KNOWN.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(same) = known.get(keys.as_slice()) {
        return same;
    }
    let keys: &'static [&'static str] = Box::leak(keys.into_boxed_slice());
    known.insert(keys);
    keys
}
