//! The endpoint in the caller's event loop. `include/ebbtide_endpoint.h` is the reference.

mod caller;
mod calls;
mod requests;
mod serving;

pub use caller::{CallerAddress, CallerIo, CallerMessage, CallerOption, CallerRequest};
pub use calls::*;
pub use serving::{CallerAnswer, CallerHandler};

use crate::control::{CallRefusal, RfcSettings};
use caller::{Callbacks, millis};
use core::ffi::c_int;
use core::ptr::addr_of_mut;
use ebbtide_core::cc::Fasor;
use ebbtide_core::device::{
    DeviceConfig, DeviceEndpoint, DevicePoll, DeviceReceived, DeviceServer, DeviceTables,
    DeviceVerify, Io,
};
use ebbtide_core::time::{Instant, Micros};
use rand_core::Rng as _;
use requests::{Pinned, RequestPlaces};
use serving::Resources;

const PEERS: usize = 4;
const EXCHANGES: usize = 8;
/// A block of 256 bytes with its options.
const MESSAGE: usize = 320;
/// The size exponent of these blocks.
const SZX: u8 = 4;

type Tables = DeviceTables<CallerAddress, Fasor, PEERS, EXCHANGES, MESSAGE>;
type CallersEndpoint = DeviceEndpoint<'static, CallerAddress, Fasor>;
type CallersServer = DeviceServer<CallerAddress, 4, 8, MESSAGE>;

/// `ebbtide_endpoint`. All zeros are valid: an endpoint that was not initialised.
#[repr(C, align(8))]
#[derive(Debug)]
pub struct EndpointMemory([u64; WORDS]);

const WORDS: usize = 1024;
const _: () = assert!(size_of::<EndpointInPlace>() <= size_of::<EndpointMemory>());
const _: () = assert!(align_of::<EndpointInPlace>() <= align_of::<EndpointMemory>());

/// The contents of that memory. `core` refers to `tables` and `pinned`, so it is never moved, and
/// no reference to it as a whole exists.
#[repr(C)]
struct EndpointInPlace {
    magic: u32,
    /// 1 during a call.
    is_in_call: u32,
    tables: Tables,
    pinned: Pinned,
    core: Core,
}

/// The first bytes of an initialised endpoint.
const MAGIC: u32 = 0xebb7_1de0;

struct Core {
    endpoint: CallersEndpoint,
    requests: RequestPlaces,
    server: CallersServer,
    handler: Option<CallerHandler>,
    io: CallerIo,
}

impl EndpointMemory {
    /// Makes an endpoint in this memory.
    ///
    /// # Safety
    ///
    /// `memory` is valid for writes, and stays where it is for as long as the endpoint is used.
    unsafe fn init(
        memory: *mut Self,
        io: CallerIo,
        settings: &RfcSettings,
    ) -> Result<(), CallRefusal> {
        let ack_timeout = settings.ack_timeout()?;
        let mut config = DeviceConfig::fasor_token();
        config.params.ack_timeout = ack_timeout;
        config.params.max_retransmit = settings.max_retransmit;
        config.settings.nstart = Some(settings.nstart.into());
        let state = memory.cast::<EndpointInPlace>();
        let mut callbacks = Callbacks(&io);
        let key = (callbacks.next_u64(), callbacks.next_u64());
        let tag = callbacks.next_u32();
        // SAFETY: the memory is large enough and aligned (see the assertions above). `tables` and
        // `pinned` are used by `core` alone from here on, which lives in the same memory.
        unsafe {
            addr_of_mut!((*state).magic).write(0);
            addr_of_mut!((*state).tables).write(Tables::new());
            addr_of_mut!((*state).pinned).write(Pinned::EMPTY);
            let tables: &'static mut Tables = &mut *addr_of_mut!((*state).tables);
            let requests = RequestPlaces::new(addr_of_mut!((*state).pinned), tag);
            let endpoint = tables.endpoint(config);
            let server = CallersServer::new(DeviceVerify::Challenge { key });
            let core = Core { endpoint, requests, server, handler: None, io };
            addr_of_mut!((*state).core).write(core);
            addr_of_mut!((*state).is_in_call).write(0);
            addr_of_mut!((*state).magic).write(MAGIC);
        }
        Ok(())
    }

    /// Calls an endpoint. A call within a callback of another one is out of order.
    ///
    /// # Safety
    ///
    /// `memory` is null, or memory for an endpoint that is zeroed or was initialised here.
    unsafe fn enter(
        memory: *mut Self,
        now_ms: u64,
        call: impl FnOnce(&mut Core, Instant) -> Result<c_int, CallRefusal>,
    ) -> c_int {
        if memory.is_null() {
            return CallRefusal::Null.code();
        }
        let state = memory.cast::<EndpointInPlace>();
        // SAFETY: by this function's contract these two words can be read, and `core` exists if
        // `magic` is right. No other reference to `core` exists, since that would be a call under
        // way.
        unsafe {
            if (*state).magic != MAGIC || (*state).is_in_call != 0 {
                return CallRefusal::Order.code();
            }
            (*state).is_in_call = 1;
            let result = call(&mut *addr_of_mut!((*state).core), millis(now_ms));
            (*state).is_in_call = 0;
            result.unwrap_or_else(CallRefusal::code)
        }
    }
}

impl RfcSettings {
    fn ack_timeout(&self) -> Result<Micros, CallRefusal> {
        self.check().map(|()| Micros::from_millis(self.ack_timeout_ms))
    }
}

impl Core {
    /// A datagram arrived.
    fn receive(&mut self, now: Instant, from: CallerAddress, datagram: &[u8]) {
        let Self { endpoint, requests, server, handler, io } = self;
        let callbacks = Callbacks(io);
        callbacks.with(now, |io| match endpoint.receive(io, from, datagram) {
            DeviceReceived::Request(request, message) => match handler {
                Some(handler) => {
                    server.receive(endpoint, io, &request, &message, &mut Resources(handler));
                }
                None => endpoint.reject(io, &request),
            },
            DeviceReceived::Response { exchange, message } => {
                requests.received(io, exchange, &message, false);
            }
            DeviceReceived::Notification { exchange, message } => {
                requests.received(io, exchange, &message, true);
            }
            DeviceReceived::Acknowledged(exchange) => server.acknowledged(exchange),
            DeviceReceived::Reset(exchange) => {
                requests.failed(io, exchange);
                server.lost(exchange);
            }
            DeviceReceived::Ignored => {}
        });
    }

    /// Does what is due, and returns when more will be.
    fn poll(&mut self, now: Instant) -> Option<Instant> {
        let Self { endpoint, requests, server, handler, io } = self;
        let callbacks = Callbacks(io);
        callbacks.with(now, |io: &mut Io<'_, CallerAddress>| {
            loop {
                let due = requests.poll(endpoint, io);
                if let Some(handler) = handler {
                    server.notify(endpoint, io, &mut Resources(handler));
                }
                match endpoint.poll(io) {
                    DevicePoll::Failed { exchange, .. } => {
                        requests.failed(io, exchange);
                        server.lost(exchange);
                    }
                    DevicePoll::Wait(at) => return due.into_iter().chain(at).min(),
                }
            }
        })
    }
}
