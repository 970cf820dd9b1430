//! The functions that C calls.

use super::EndpointMemory;
use super::caller::{Callbacks, CallerAddress, CallerIo, CallerMessage, CallerRequest, slice};
use super::serving::CallerHandler;
use crate::control::{CallRefusal, RfcSettings};
use core::ffi::c_int;
use ebbtide_core::wire::OptionNumber;

/// `ebbtide_endpoint_init`.
///
/// # Safety
///
/// See the header.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ebbtide_endpoint_init(
    endpoint: *mut EndpointMemory,
    size: usize,
    io: Option<&CallerIo>,
    settings: Option<&RfcSettings>,
) -> c_int {
    let Some(io) = io.filter(|io| io.is_complete() && !endpoint.is_null()) else {
        return CallRefusal::Null.code();
    };
    if size != size_of::<EndpointMemory>() {
        return CallRefusal::Size.code();
    }
    let settings = settings.unwrap_or(&RfcSettings::DEFAULT);
    // SAFETY: the caller gives memory of this size, and does not move it.
    match unsafe { EndpointMemory::init(endpoint, *io, settings) } {
        Ok(()) => 0,
        Err(refusal) => refusal.code(),
    }
}

/// `ebbtide_endpoint_request`.
///
/// # Safety
///
/// See the header.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ebbtide_endpoint_request(
    endpoint: *mut EndpointMemory,
    request: Option<&CallerRequest>,
    handle: Option<&mut u32>,
) -> c_int {
    // SAFETY: by the header's contract the endpoint and the request's pointers are valid.
    unsafe {
        EndpointMemory::enter(endpoint, 0, |core, _| {
            let started = core.requests.start(request.ok_or(CallRefusal::Null)?)?;
            if let Some(handle) = handle {
                *handle = started;
            }
            Ok(0)
        })
    }
}

/// `ebbtide_endpoint_cancel`.
///
/// # Safety
///
/// See the header.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ebbtide_endpoint_cancel(
    endpoint: *mut EndpointMemory,
    now_ms: u64,
    handle: u32,
) -> c_int {
    // SAFETY: by the header's contract.
    unsafe {
        EndpointMemory::enter(endpoint, now_ms, |core, now| {
            let callbacks = Callbacks(&core.io);
            callbacks.with(now, |io| core.requests.cancel(&mut core.endpoint, io, handle))?;
            Ok(0)
        })
    }
}

/// `ebbtide_endpoint_receive`.
///
/// # Safety
///
/// See the header.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ebbtide_endpoint_receive(
    endpoint: *mut EndpointMemory,
    now_ms: u64,
    from: Option<&CallerAddress>,
    datagram: *const u8,
    length: usize,
) -> c_int {
    // SAFETY: by the header's contract.
    unsafe {
        EndpointMemory::enter(endpoint, now_ms, |core, now| {
            let from = from.ok_or(CallRefusal::Null)?;
            if datagram.is_null() && length > 0 {
                return Err(CallRefusal::Null);
            }
            if !from.is_valid() {
                return Err(CallRefusal::Range);
            }
            core.receive(now, *from, slice(datagram, length));
            Ok(0)
        })
    }
}

/// `ebbtide_endpoint_poll`.
///
/// # Safety
///
/// See the header.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ebbtide_endpoint_poll(
    endpoint: *mut EndpointMemory,
    now_ms: u64,
    due_ms: Option<&mut u64>,
) -> c_int {
    // SAFETY: by the header's contract.
    unsafe {
        EndpointMemory::enter(endpoint, now_ms, |core, now| {
            let due_ms = due_ms.ok_or(CallRefusal::Null)?;
            let due = core.poll(now);
            *due_ms = due.map_or(u64::MAX, |at| at.as_nanos().div_ceil(1_000_000));
            Ok(0)
        })
    }
}

/// `ebbtide_endpoint_serve`.
///
/// # Safety
///
/// See the header.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ebbtide_endpoint_serve(
    endpoint: *mut EndpointMemory,
    handler: Option<&CallerHandler>,
) -> c_int {
    // SAFETY: by the header's contract.
    unsafe {
        EndpointMemory::enter(endpoint, 0, |core, _| {
            let handler = handler.filter(|it| it.answer.is_some()).ok_or(CallRefusal::Null)?;
            core.handler = Some(*handler);
            Ok(0)
        })
    }
}

/// `ebbtide_endpoint_changed`.
///
/// # Safety
///
/// See the header.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ebbtide_endpoint_changed(
    endpoint: *mut EndpointMemory,
    subject: u8,
) -> c_int {
    // SAFETY: by the header's contract.
    unsafe {
        EndpointMemory::enter(endpoint, 0, |core, _| {
            core.server.changed(subject);
            Ok(0)
        })
    }
}

/// `ebbtide_message_option`.
///
/// # Safety
///
/// See the header.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ebbtide_message_option(
    message: Option<&CallerMessage>,
    number: u16,
    index: usize,
    value: Option<&mut *const u8>,
) -> c_int {
    let (Some(message), Some(value)) = (message, value) else { return CallRefusal::Null.code() };
    // SAFETY: by the header's contract the callback that received the message has not returned.
    let options = unsafe { message.message() }.options();
    let mut all = options.filter(|option| option.number == OptionNumber(number));
    let Some(option) = all.nth(index) else { return CallRefusal::Absent.code() };
    *value = option.value.as_ptr();
    c_int::try_from(option.value.len()).unwrap_or(c_int::MAX)
}
