//! The requests under way.

use super::caller::{CallerAddress, CallerMessage, CallerRequest, slice};
use super::{CallersEndpoint, SZX};
use crate::control::CallRefusal;
use core::ffi::c_int;
use ebbtide_core::device::{
    DeviceBody, DeviceExchangeId, DeviceObservation, DeviceObservationStep, DeviceRequestParts,
    DeviceStep, DeviceTransfer, DeviceTransferError, Io,
};
use ebbtide_core::time::Instant;
use ebbtide_core::wire::{Code, Message, Opt, OptionNumber};

/// Requests at a time.
const REQUESTS: usize = 4;
/// Options of a request.
const OPTIONS: usize = 8;

/// The options of the requests under way, which these refer to.
pub(super) struct Pinned([[Opt<'static>; OPTIONS]; REQUESTS]);

impl Pinned {
    pub(super) const EMPTY: Self =
        Self([[Opt { number: OptionNumber(0), value: &[] }; OPTIONS]; REQUESTS]);
}

enum CallStage {
    Free,
    Transfer(DeviceTransfer<'static, CallerAddress>),
    Observation(DeviceObservation<'static, CallerAddress>),
}

struct RequestPlace {
    stage: CallStage,
    /// How often the place was used.
    generation: u16,
    caller: Option<Caller>,
}

/// The caller's part of a request: its body and its functions.
struct Caller {
    body: &'static [u8],
    request: CallerRequest,
}

impl DeviceBody for Caller {
    fn read(&mut self, offset: usize, length: usize) -> &[u8] {
        self.body.get(offset..offset + length).unwrap_or_default()
    }

    fn write(&mut self, offset: usize, message: &Message<'_>) -> bool {
        let Some(on_body) = self.request.on_body else { return true };
        let message = CallerMessage::new(message);
        // SAFETY: the header requires a function that may be called with these; the message lives until it returns.
        unsafe { on_body(self.request.context, &message, offset) == 0 }
    }
}

impl Caller {
    fn done(&self, result: c_int) {
        if let Some(on_done) = self.request.on_done {
            // SAFETY: as above.
            unsafe { on_done(self.request.context, result) };
        }
    }
}

pub(super) struct RequestPlaces {
    places: [RequestPlace; REQUESTS],
    pinned: *mut Pinned,
    /// The next Request-Tag.
    tag: u32,
}

impl RequestPlaces {
    /// `pinned` lives as long as this, and nothing else uses it.
    pub(super) fn new(pinned: *mut Pinned, tag: u32) -> Self {
        let place = || RequestPlace { stage: CallStage::Free, generation: 0, caller: None };
        Self { places: core::array::from_fn(|_| place()), pinned, tag }
    }

    /// Accepts a request, and returns its handle.
    ///
    /// # Safety
    ///
    /// The pointers in `request` are valid as the header says.
    pub(super) unsafe fn start(&mut self, request: &CallerRequest) -> Result<u32, CallRefusal> {
        let code = Code(request.code);
        let count = usize::from(request.option_count);
        let observes = request.observe != 0;
        if request.options.is_null() && count > 0
            || request.body.is_null() && request.body_length > 0
        {
            return Err(CallRefusal::Null);
        }
        let is_observable = code == Code::GET && request.body_length == 0;
        if !code.is_request()
            || count > OPTIONS
            || !request.to.is_valid()
            || observes && !is_observable
        {
            return Err(CallRefusal::Range);
        }
        let free = self.places.iter().position(|place| matches!(place.stage, CallStage::Free));
        let index = free.ok_or(CallRefusal::Busy)?;
        // SAFETY: the caller's options are valid for this call, and its values and body until the request is done.
        let (given, body) =
            unsafe { (slice(request.options, count), slice(request.body, request.body_length)) };
        if given.iter().any(|it| it.value.is_null() && it.length > 0) {
            return Err(CallRefusal::Null);
        }
        // SAFETY: `pinned` lives as long as this. No request refers to the options of a free place,
        // and only here they change.
        let options: &'static mut [Opt<'static>; OPTIONS] = unsafe { &mut (*self.pinned).0[index] };
        for (place, it) in options.iter_mut().zip(given) {
            let number = OptionNumber(it.number);
            // SAFETY: as above.
            *place = Opt { number, value: unsafe { slice(it.value, it.length.into()) } };
        }
        let options: &'static [Opt<'static>] = options;
        let options = options.get(..count).unwrap_or_default();
        let parts = DeviceRequestParts { code, options, length: body.len(), szx: SZX };
        let place = self.places.get_mut(index).ok_or(CallRefusal::Busy)?;
        place.stage = match observes {
            true => CallStage::Observation(DeviceObservation::new(parts, request.to)),
            false => {
                self.tag = self.tag.wrapping_add(1 << 8);
                CallStage::Transfer(DeviceTransfer::new(parts, request.to, self.tag))
            }
        };
        place.caller = Some(Caller { body, request: *request });
        place.generation = place.generation.wrapping_add(1);
        Ok(u32::from(place.generation) << 8 | index as u32)
    }

    /// Ends a request without a call of `on_done`; an observation first deregisters.
    pub(super) fn cancel(
        &mut self,
        endpoint: &mut CallersEndpoint,
        io: &mut Io<'_, CallerAddress>,
        handle: u32,
    ) -> Result<(), CallRefusal> {
        let place = self.places.get_mut((handle & 0xff) as usize).ok_or(CallRefusal::Range)?;
        if u32::from(place.generation) != handle >> 8 {
            return Err(CallRefusal::Order);
        }
        match &mut place.stage {
            CallStage::Free => return Err(CallRefusal::Order),
            CallStage::Transfer(transfer) => {
                if let Some(open) = transfer.cancel() {
                    endpoint.cancel(io, open);
                }
                (place.stage, place.caller) = (CallStage::Free, None);
            }
            CallStage::Observation(observation) => observation.cancel(endpoint, io),
        }
        Ok(())
    }

    pub(super) fn received(
        &mut self,
        io: &mut Io<'_, CallerAddress>,
        exchange: DeviceExchangeId,
        message: &Message<'_>,
        stays: bool,
    ) {
        for place in &mut self.places {
            let RequestPlace { stage, caller: Some(caller), .. } = place else { continue };
            let is_own = match stage {
                CallStage::Free => false,
                CallStage::Transfer(transfer) => transfer.received(exchange, message, caller),
                CallStage::Observation(it) => it.received(io, exchange, message, stays, caller),
            };
            if is_own {
                return;
            }
        }
    }

    pub(super) fn failed(&mut self, io: &mut Io<'_, CallerAddress>, exchange: DeviceExchangeId) {
        for place in &mut self.places {
            match &mut place.stage {
                CallStage::Free => {}
                CallStage::Transfer(transfer) => drop(transfer.failed(exchange)),
                CallStage::Observation(observation) => drop(observation.failed(io, exchange)),
            }
        }
    }

    /// Sends what is to be sent, and returns when more will be.
    pub(super) fn poll(
        &mut self,
        endpoint: &mut CallersEndpoint,
        io: &mut Io<'_, CallerAddress>,
    ) -> Option<Instant> {
        let mut due = None::<Instant>;
        for place in &mut self.places {
            let RequestPlace { stage, caller: Some(caller), .. } = place else { continue };
            let result = loop {
                match stage {
                    CallStage::Free => break None,
                    CallStage::Transfer(transfer) => match transfer.poll(endpoint, io, caller) {
                        DeviceStep::Wait => break None,
                        DeviceStep::Done(result) => break Some(code_of(result)),
                    },
                    CallStage::Observation(observation) => {
                        match observation.poll(endpoint, io, caller) {
                            DeviceObservationStep::State(code) => caller.done(code.0.into()),
                            DeviceObservationStep::Wait(at) => {
                                due = due.into_iter().chain(at).min();
                                break None;
                            }
                            DeviceObservationStep::Over(Err(error)) => {
                                break Some(code_of(Err(error)));
                            }
                            DeviceObservationStep::Over(Ok(())) => break Some(0),
                        }
                    }
                }
            };
            if let Some(result) = result {
                *stage = CallStage::Free;
                caller.done(result);
                place.caller = None;
            }
        }
        due
    }
}

/// The result of a request in C.
fn code_of(result: Result<Code, DeviceTransferError>) -> c_int {
    match result {
        Ok(code) => code.0.into(),
        Err(DeviceTransferError::Lost) => CallRefusal::GaveUp.code(),
        Err(DeviceTransferError::TooLarge) => CallRefusal::TooLarge.code(),
        Err(DeviceTransferError::Refused(_)) => CallRefusal::Refused.code(),
        Err(_) => CallRefusal::Protocol.code(),
    }
}
