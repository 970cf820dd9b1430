//! The caller's addresses, messages and requests, its socket and its random numbers.

use core::convert::Infallible;
use core::ffi::{c_int, c_void};
use core::hash::{Hash, Hasher};
use ebbtide_core::device::Io;
use ebbtide_core::time::Instant;
use ebbtide_core::wire::Message;
use rand_core::TryRng;

/// `ebbtide_address`.
#[repr(C)]
#[derive(Copy, Clone, Debug)]
pub struct CallerAddress {
    length: u8,
    bytes: [u8; 31],
}

impl CallerAddress {
    pub(super) fn is_valid(&self) -> bool {
        usize::from(self.length) <= self.bytes.len()
    }

    fn as_slice(&self) -> &[u8] {
        self.bytes.get(..usize::from(self.length)).unwrap_or(&self.bytes)
    }
}

impl PartialEq for CallerAddress {
    fn eq(&self, other: &Self) -> bool {
        self.as_slice() == other.as_slice()
    }
}

impl Eq for CallerAddress {}

impl Hash for CallerAddress {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.as_slice().hash(state);
    }
}

/// `ebbtide_io`.
#[repr(C)]
#[derive(Copy, Clone, Debug)]
pub struct CallerIo {
    /// Passed to the functions.
    pub context: *mut c_void,
    /// Sends a datagram, or drops it.
    pub send: Option<unsafe extern "C" fn(*mut c_void, *const CallerAddress, *const u8, usize)>,
    /// An unpredictable number.
    pub random: Option<unsafe extern "C" fn(*mut c_void) -> u32>,
}

impl CallerIo {
    pub(super) fn is_complete(&self) -> bool {
        self.send.is_some() && self.random.is_some()
    }

    fn draw(&self) -> u32 {
        // SAFETY: the header requires a function that may be called with the context.
        self.random.map_or(0, |random| unsafe { random(self.context) })
    }
}

/// The caller's functions as the endpoint uses them.
pub(super) struct Callbacks<'i>(pub(super) &'i CallerIo);

impl Callbacks<'_> {
    pub(super) fn with<R>(
        mut self,
        now: Instant,
        call: impl FnOnce(&mut Io<'_, CallerAddress>) -> R,
    ) -> R {
        let io = self.0;
        let mut send = |to: CallerAddress, datagram: &[u8]| {
            if let Some(send) = io.send {
                // SAFETY: the header requires a function that may be called with these; both live until it returns.
                unsafe { send(io.context, &to, datagram.as_ptr(), datagram.len()) };
            }
        };
        call(&mut Io { now, rng: &mut self, send: &mut send })
    }
}

impl TryRng for Callbacks<'_> {
    type Error = Infallible;

    fn try_next_u32(&mut self) -> Result<u32, Infallible> {
        Ok(self.0.draw())
    }

    fn try_next_u64(&mut self) -> Result<u64, Infallible> {
        Ok(u64::from(self.0.draw()) << 32 | u64::from(self.0.draw()))
    }

    fn try_fill_bytes(&mut self, bytes: &mut [u8]) -> Result<(), Infallible> {
        for piece in bytes.chunks_mut(4) {
            let drawn = self.0.draw().to_le_bytes();
            piece.iter_mut().zip(drawn).for_each(|(byte, drawn)| *byte = drawn);
        }
        Ok(())
    }
}

/// `ebbtide_option`.
#[repr(C)]
#[derive(Copy, Clone, Debug)]
pub struct CallerOption {
    /// Its number.
    pub number: u16,
    /// Bytes of its value.
    pub length: u16,
    /// Its value.
    pub value: *const u8,
}

/// `ebbtide_message`.
#[repr(C)]
#[derive(Debug)]
pub struct CallerMessage {
    code: u8,
    length: usize,
    payload: *const u8,
    /// The [`Message`].
    message: *const c_void,
}

impl CallerMessage {
    pub(super) fn new(message: &Message<'_>) -> Self {
        let payload = message.payload();
        Self {
            code: message.code().0,
            length: payload.len(),
            payload: payload.as_ptr(),
            message: (&raw const *message).cast(),
        }
    }

    /// # Safety
    ///
    /// This was made by [`Self::new`], and the call that it was made for has not returned.
    pub(super) unsafe fn message(&self) -> &Message<'_> {
        // SAFETY: by this function's contract the message lives.
        unsafe { &*self.message.cast() }
    }
}

/// `ebbtide_request`.
#[repr(C)]
#[derive(Copy, Clone, Debug)]
pub struct CallerRequest {
    /// The server.
    pub to: CallerAddress,
    /// The method.
    pub code: u8,
    /// 1 to observe the resource.
    pub observe: u8,
    /// Options.
    pub option_count: u16,
    /// The options, which the endpoint copies without their values.
    pub options: *const CallerOption,
    /// The body, which stays valid until the request is done.
    pub body: *const u8,
    /// Its length.
    pub body_length: usize,
    /// Passed to the functions.
    pub context: *mut c_void,
    /// A piece of the response.
    pub on_body: Option<unsafe extern "C" fn(*mut c_void, *const CallerMessage, usize) -> c_int>,
    /// The response is complete, or the request has failed.
    pub on_done: Option<unsafe extern "C" fn(*mut c_void, c_int)>,
}

pub(super) fn millis(at: u64) -> Instant {
    Instant::from_nanos(at.saturating_mul(1_000_000))
}

/// # Safety
///
/// `bytes` is null if `length` is 0, and otherwise so many bytes that live for `'a`.
pub(super) unsafe fn slice<'a, T>(bytes: *const T, length: usize) -> &'a [T] {
    match length {
        0 => &[],
        // SAFETY: by this function's contract.
        _ => unsafe { core::slice::from_raw_parts(bytes, length) },
    }
}
