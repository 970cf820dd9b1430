//! The resources and the security contexts of the OSCORE interop test specification
//! (<https://github.com/EricssonResearch/OSCOAP/blob/master/test-spec5.md>).

use super::resources::{locked, text};
use bytes::Bytes;
use ebbtide::oscore::OscoreContext;
use ebbtide::server::{Call, Resource, Router, Subject, delete, get, post, put};
use ebbtide::{Code, ContentFormat, OptionNumber, Response};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::sync::Notify;

/// A context of the client and the one of the server that belongs to it.
#[derive(Copy, Clone, Debug)]
pub(crate) enum ContextPair {
    /// A and B.
    Ab,
    /// C and D, which have an ID Context.
    Cd,
}

impl ContextPair {
    pub(crate) const ALL: [Self; 2] = [Self::Ab, Self::Cd];
    pub(crate) const CLIENT: &'static [u8] = b"";
    pub(crate) const SERVER: &'static [u8] = b"\x01";
    pub(crate) const ID_CONTEXT: [u8; 8] = 0x37cb_f321_0017_a2d3_u64.to_be_bytes();

    pub(crate) fn context(self, sender: &[u8], recipient: &[u8]) -> OscoreContext {
        let secret = 0x0102_0304_0506_0708_090a_0b0c_0d0e_0f10_u128.to_be_bytes();
        let salt = 0x9e7c_a922_2378_6340_u64.to_be_bytes();
        let context = OscoreContext::new(&secret, sender, recipient).salt(&salt);
        match self {
            Self::Ab => context,
            Self::Cd => context.id_context(&Self::ID_CONTEXT),
        }
    }

    pub(crate) fn server(self) -> OscoreContext {
        self.context(Self::SERVER, Self::CLIENT)
    }
}

/// Adds the resources. The state of those that are observed changes after each `period`.
pub(crate) fn protected(router: Router, period: Duration) -> Router {
    let hello = || text("Hello World!");
    router
        .route("/oscore/hello/coap", get(hello))
        .route("/oscore/hello/1", only_protected(get(hello)))
        .route("/oscore/hello/2", only_protected(get(move || hello().etag(b"\x2b"))))
        .route("/oscore/hello/3", only_protected(get(move || hello().max_age(5))))
        .route("/oscore/hello/6", only_protected(hello_6()))
        .route("/oscore/hello/7", only_protected(hello_7()))
        .route("/oscore/observe1", only_protected(observed(period, Ending::Error)))
        .route("/oscore/observe2", only_protected(observed(period, Ending::None)))
        .route("/oscore/test", only_protected(delete(|| Response::new(Code::DELETED))))
}

fn only_protected(resource: Resource) -> Resource {
    resource.authorize(|call| {
        let refusal = || Response::error(Code::UNAUTHORIZED, "OSCORE is required");
        call.identity().map(drop).ok_or_else(refusal)
    })
}

/// Takes a value and shows it.
fn hello_6() -> Resource {
    post(|call: &Call<'_>| {
        let value = Bytes::copy_from_slice(call.payload());
        Response::new(Code::CHANGED).payload(value).format(ContentFormat::TEXT)
    })
}

/// Has a state with the ETag 7b.
fn hello_7() -> Resource {
    let put = put(|call: &Call<'_>| {
        let message = call.message();
        let mut expected = message.options().filter(|opt| opt.number == OptionNumber::IF_MATCH);
        let is_another = expected.next().is_some_and(|first| {
            first.value != b"\x7b" && !expected.any(|other| other.value == b"\x7b")
        });
        let is_there = message.option(OptionNumber::IF_NONE_MATCH).is_some();
        Response::new(if is_another || is_there {
            Code::PRECONDITION_FAILED
        } else {
            Code::CHANGED
        })
    });
    put.conditional()
}

/// What comes after the second state.
#[derive(Copy, Clone, PartialEq, Eq)]
enum Ending {
    None,
    Error,
}

/// Begins with its first state whenever someone has begun to observe it.
fn observed(period: Duration, ending: Ending) -> Resource {
    let (step, begun, changes) =
        (Arc::new(Mutex::new(0_u8)), Arc::new(Notify::new()), Subject::new());
    let (shown, begins) = (step.clone(), begun.clone());
    let read = move |_: &Call<'_>| match *locked(&shown) {
        0 => {
            begins.notify_one();
            text("one")
        }
        1 => text("two"),
        _ => Response::error(Code::INTERNAL_SERVER_ERROR, "Terminate Observe"),
    };
    let resource = get(read).observable(&changes);
    tokio::spawn(async move {
        loop {
            begun.notified().await;
            let last = if ending == Ending::Error { 2 } else { 1 };
            for next in 1..=last {
                tokio::time::sleep(period).await;
                *locked(&step) = next;
                changes.changed();
            }
            tokio::time::sleep(period).await;
            *locked(&step) = 0;
        }
    });
    resource
}
