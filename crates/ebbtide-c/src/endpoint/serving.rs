//! The server's handler.

use super::caller::CallerMessage;
use core::ffi::{c_int, c_void};
use ebbtide_core::device::{DeviceAnswer, DeviceHandler};
use ebbtide_core::wire::{Code, Message};

/// `ebbtide_answer`.
#[repr(C)]
#[derive(Copy, Clone, Debug)]
pub struct CallerAnswer {
    /// The response code.
    pub code: u8,
    /// The subject that may be observed; 0 if none.
    pub subject: u8,
    /// Whether `content_format` holds.
    pub has_format: u8,
    /// Whether `max_age` holds.
    pub has_max_age: u8,
    /// Content-Format.
    pub content_format: u16,
    /// Max-Age in seconds.
    pub max_age: u32,
    /// The entity tag; 0 if none.
    pub etag: u32,
    /// The bytes in the room.
    pub length: usize,
    /// The length of the whole body.
    pub total: usize,
}

type TakeFunction = unsafe extern "C" fn(*mut c_void, *const CallerMessage, usize) -> c_int;
type AnswerFunction = unsafe extern "C" fn(
    *mut c_void,
    *const CallerMessage,
    usize,
    *mut u8,
    usize,
    *mut CallerAnswer,
);
type StateFunction = unsafe extern "C" fn(*mut c_void, u8, *mut u8, usize, *mut CallerAnswer);

/// `ebbtide_handler`.
#[repr(C)]
#[derive(Copy, Clone, Debug)]
pub struct CallerHandler {
    /// Passed to the functions.
    pub context: *mut c_void,
    /// Takes a piece of a request's body.
    pub take: Option<TakeFunction>,
    /// Answers a request.
    pub answer: Option<AnswerFunction>,
    /// The state of a subject.
    pub state: Option<StateFunction>,
}

/// The caller's resources.
pub(super) struct Resources<'h>(pub(super) &'h CallerHandler);

const NONE: CallerAnswer = CallerAnswer {
    code: Code::NOT_FOUND.0,
    subject: 0,
    has_format: 0,
    has_max_age: 0,
    content_format: 0,
    max_age: 0,
    etag: 0,
    length: 0,
    total: 0,
};

impl CallerAnswer {
    /// 5.00 if it is not one of a response, or longer than its room.
    fn checked(&self, offset: usize, room: usize) -> DeviceAnswer {
        let code = Code(self.code);
        let end = offset.saturating_add(self.length);
        if !code.is_response() || self.length > room {
            return DeviceAnswer::new(Code::INTERNAL_SERVER_ERROR);
        }
        DeviceAnswer {
            code,
            length: self.length,
            total: self.total.max(end),
            content_format: (self.has_format != 0).then_some(self.content_format),
            max_age: (self.has_max_age != 0).then_some(self.max_age),
            etag: (self.etag != 0).then_some(self.etag),
            subject: (self.subject != 0).then_some(self.subject),
        }
    }
}

impl DeviceHandler for Resources<'_> {
    fn take(&mut self, message: &Message<'_>, offset: usize) -> Result<(), Code> {
        let Some(take) = self.0.take else { return Ok(()) };
        let message = CallerMessage::new(message);
        // SAFETY: the header requires a function that may be called with these; the message lives until it returns.
        match unsafe { take(self.0.context, &message, offset) } {
            0 => Ok(()),
            code => Err(match u8::try_from(code).map(Code) {
                Ok(code) if code.is_response() => code,
                _ => Code::INTERNAL_SERVER_ERROR,
            }),
        }
    }

    fn answer(&mut self, message: &Message<'_>, offset: usize, room: &mut [u8]) -> DeviceAnswer {
        let Some(answer) = self.0.answer else { return DeviceAnswer::new(Code::NOT_FOUND) };
        let (message, mut said) = (CallerMessage::new(message), NONE);
        // SAFETY: as above; the room has this length.
        unsafe {
            answer(self.0.context, &message, offset, room.as_mut_ptr(), room.len(), &mut said);
        }
        said.checked(offset, room.len())
    }

    fn state(&mut self, subject: u8, room: &mut [u8]) -> DeviceAnswer {
        let Some(state) = self.0.state else { return DeviceAnswer::new(Code::NOT_FOUND) };
        let mut said = NONE;
        // SAFETY: as above.
        unsafe { state(self.0.context, subject, room.as_mut_ptr(), room.len(), &mut said) };
        said.checked(0, room.len())
    }
}
