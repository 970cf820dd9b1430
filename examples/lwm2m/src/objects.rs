//! Objects 1 (Server), 3 (Device), 5 (Firmware Update) and 3303 (Temperature), one instance of each; object 0 is in
//! `security.rs`.

use crate::senml::{self, SENML_JSON, Value};
use crate::tlv::{self, TLV, Type};
use ebbtide::server::{Accept, Call, Path, Router, State, Subject, get};
use ebbtide::{Code, ContentFormat, Response};
use sha2::{Digest, Sha256};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};

/// Object, instance and resource.
pub type Id = (u16, u16, u16);
pub(crate) const LIFETIME: Id = (1, 0, 1);
pub(crate) const PACKAGE: Id = (5, 0, 0);
pub(crate) const PACKAGE_URI: Id = (5, 0, 1);
pub(crate) const UPDATE: Id = (5, 0, 2);
/// The version of the package; here its SHA-256.
const VERSION: Id = (5, 0, 7);
/// The object that no server may use.
const SECURITY: u16 = 0;

/// The type that the registry of objects states.
const fn kind(id: Id) -> Type {
    match id {
        LIFETIME | (5, 0, 3 | 5) => Type::Integer,
        (3, 0, 11) => Type::Integers,
        (3303, 0, 5700) => Type::Float,
        _ => Type::Text,
    }
}

const EXECUTABLE: [Id; 4] = [(1, 0, 8), (3, 0, 4), UPDATE, (3303, 0, 5605)];

/// A device; clones are the same.
#[derive(Clone, Debug)]
pub struct Device {
    pub(crate) endpoint: Arc<str>,
    values: Arc<Mutex<BTreeMap<Id, String>>>,
    changes: Subject,
    wanted: UnboundedSender<Id>,
}

impl Device {
    /// A device of this name, and what its server writes and executes.
    #[must_use]
    pub fn new(endpoint: &str, lifetime: u32) -> (Self, UnboundedReceiver<Id>) {
        let (wanted, commands) = unbounded_channel();
        let lifetime = lifetime.to_string();
        let values = [
            (LIFETIME, &*lifetime),
            ((3, 0, 0), "Ebbtide"),
            ((3, 0, 3), "1.0"),
            ((3, 0, 11), "0"),
            ((3, 0, 16), "U"),
            ((5, 0, 3), "0"),
            ((5, 0, 5), "0"),
            ((3303, 0, 5700), "21.5"),
            ((3303, 0, 5701), "Cel"),
        ];
        let values = values.map(|(id, value)| (id, value.to_owned())).into();
        let (values, changes) = (Arc::new(Mutex::new(values)), Subject::new());
        (Self { endpoint: endpoint.into(), values, changes, wanted }, commands)
    }

    pub(crate) fn values(&self) -> MutexGuard<'_, BTreeMap<Id, String>> {
        self.values.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Sets values, and notifies those who observe them or their instances.
    pub fn set<const N: usize>(&self, values: [(Id, &str); N]) {
        for (id @ (object, instance, resource), value) in values {
            self.values().insert(id, value.to_owned());
            self.changes.changed_at(&format!("/{object}/{instance}/{resource}"));
            self.changes.changed_at(&format!("/{object}/{instance}"));
        }
    }

    /// A package has arrived whole.
    pub(crate) fn downloaded(&self, package: &[u8]) {
        let digest = Sha256::digest(package).into_iter().map(|byte| format!("{byte:02x}"));
        let (length, digest) = (package.len().to_string(), digest.collect::<String>());
        self.set([(PACKAGE, &*length), (VERSION, &*digest), ((5, 0, 3), "2")]);
    }

    /// The resources, for the server.
    pub(crate) fn router(&self) -> Router {
        let resource = get(read).put(write).post(execute).observable(&self.changes);
        let router = Router::new().route("/{object}/{instance}/{resource}", resource);
        let instance = get(read_all).put(write_all).post(write_all).observable(&self.changes);
        let router = router.route("/{object}/{instance}", instance);
        router.with_state(self.clone())
    }
}

/// The forms of values that a request may ask for.
fn accepted(accept: Option<ContentFormat>, usual: ContentFormat) -> Result<ContentFormat, Code> {
    match accept.unwrap_or(usual) {
        known @ (ContentFormat::TEXT | SENML_JSON | TLV) => Ok(known),
        _ => Err(Code::NOT_ACCEPTABLE),
    }
}

/// The values in a form.
fn shown<'v>(
    (object, instance): (u16, u16),
    values: impl Iterator<Item = (&'v Id, &'v String)>,
    format: ContentFormat,
) -> Result<Response, Code> {
    if format == TLV {
        let mut out = Vec::new();
        values.for_each(|(id, value)| tlv::write(&mut out, id.2, kind(*id), value));
        return Ok(Response::content(out).format(TLV));
    }
    let typed = |id: &Id, value: &'v String| match (kind(*id), value.parse()) {
        (Type::Integer | Type::Integers | Type::Float, Ok(number)) => Value::Number(number),
        _ => Value::Text(value),
    };
    let name = |id: &Id| match kind(*id) {
        Type::Integers => format!("{}/0", id.2),
        _ => id.2.to_string(),
    };
    let values = values.map(|(id, value)| (name(id), typed(id, value)));
    let pack = senml::write(&format!("/{object}/{instance}/"), values);
    Ok(Response::content(pack.map_err(|_| Code::INTERNAL_SERVER_ERROR)?).format(SENML_JSON))
}

async fn read(
    Path(id): Path<Id>,
    Accept(accept): Accept,
    State(device): State<Device>,
) -> Result<Response, Code> {
    if id.0 == SECURITY {
        return Err(Code::UNAUTHORIZED);
    }
    let usual = match kind(id) {
        Type::Integers => SENML_JSON,
        _ => ContentFormat::TEXT,
    };
    let format = accepted(accept, usual)?;
    let values = device.values();
    let value = values.get_key_value(&id).ok_or(Code::NOT_FOUND)?;
    match format {
        // Plain text has a single value.
        ContentFormat::TEXT if usual != ContentFormat::TEXT => Err(Code::NOT_ACCEPTABLE),
        ContentFormat::TEXT => Ok(Response::content(value.1.clone()).format(ContentFormat::TEXT)),
        format => shown((id.0, id.1), std::iter::once(value), format),
    }
}

async fn read_all(
    Path((object, instance)): Path<(u16, u16)>,
    Accept(accept): Accept,
    State(device): State<Device>,
) -> Result<Response, Code> {
    if object == SECURITY {
        return Err(Code::UNAUTHORIZED);
    }
    let format = accepted(accept, SENML_JSON)?;
    if format == ContentFormat::TEXT {
        return Err(Code::NOT_ACCEPTABLE);
    }
    let values = device.values();
    let values = values.range((object, instance, 0)..=(object, instance, u16::MAX));
    shown((object, instance), values, format)
}

/// A resource, in TLV or alone: then as bytes if it is opaque, and else as text.
async fn write(Path(id): Path<Id>, State(device): State<Device>, call: Call<'static>) -> Code {
    let change = match call.format() {
        Some(TLV) => match tlv::read(call.payload()).as_deref() {
            Some([entry]) if entry.id == id.2 => Change::of_entry(id, *entry),
            _ => Err(Code::BAD_REQUEST),
        },
        _ => Change::of_bytes(id, call.payload()),
    };
    device.apply(change.map(|change| vec![change]))
}

/// Several resources of an instance, in TLV: all of them, or none.
async fn write_all(
    Path((object, instance)): Path<(u16, u16)>,
    State(device): State<Device>,
    call: Call<'static>,
) -> Code {
    let all = (object, instance, 0)..=(object, instance, u16::MAX);
    if object == SECURITY {
        return Code::UNAUTHORIZED;
    }
    if device.values().range(all).next().is_none() {
        return Code::NOT_FOUND;
    }
    if call.format() != Some(TLV) {
        return Code::UNSUPPORTED_CONTENT_FORMAT;
    }
    let Some(entries) = tlv::read(call.payload()) else { return Code::BAD_REQUEST };
    let change = |entry: &tlv::Entry<'_>| Change::of_entry((object, instance, entry.id), *entry);
    device.apply(entries.iter().map(change).collect())
}

/// A write that may be carried out.
enum Change {
    Package(Vec<u8>),
    Value(Id, String),
}

impl Change {
    fn of_entry(id: Id, entry: tlv::Entry<'_>) -> Result<Self, Code> {
        match kind(id) {
            _ if id == PACKAGE => Self::of_bytes(id, entry.value),
            kind => {
                let text = entry.text(kind).ok_or(Code::BAD_REQUEST)?;
                Self::of_bytes(id, text.as_bytes())
            }
        }
    }

    fn of_bytes(id: Id, value: &[u8]) -> Result<Self, Code> {
        let text = str::from_utf8(value).ok();
        match id {
            (SECURITY, ..) => Err(Code::UNAUTHORIZED),
            PACKAGE => Ok(Self::Package(value.to_vec())),
            LIFETIME if text.is_none_or(|text| text.parse::<u32>().is_err()) => {
                Err(Code::BAD_REQUEST)
            }
            LIFETIME | PACKAGE_URI => {
                Ok(Self::Value(id, text.ok_or(Code::BAD_REQUEST)?.to_owned()))
            }
            _ => Err(Code::METHOD_NOT_ALLOWED),
        }
    }
}

impl Device {
    fn apply(&self, changes: Result<Vec<Change>, Code>) -> Code {
        let changes = match changes {
            Ok(changes) => changes,
            Err(code) => return code,
        };
        for change in changes {
            match change {
                Change::Package(package) => self.downloaded(&package),
                Change::Value(id, text) => {
                    self.set([(id, &*text)]);
                    let _ = self.wanted.send(id);
                }
            }
        }
        Code::CHANGED
    }
}

async fn execute(Path(id): Path<Id>, State(device): State<Device>) -> Code {
    if id.0 == SECURITY {
        return Code::UNAUTHORIZED;
    }
    if !EXECUTABLE.contains(&id) {
        return Code::METHOD_NOT_ALLOWED;
    }
    let _ = device.wanted.send(id);
    Code::CHANGED
}
