//! The interface between a server and the program that serves.

use super::request::AddedOptions;
use crate::wire::{Block, Code, Message, OptionNumber};

/// The program behind a server.
pub trait DeviceHandler {
    /// Takes a piece of a request's body, the payload of `message`, which belongs at `offset`. A
    /// piece at 0 begins a body. Not called for methods that have none, such as GET.
    ///
    /// # Errors
    ///
    /// The code of the response if it is not accepted, such as 4.13 (Request Entity Too Large).
    fn take(&mut self, message: &Message<'_>, offset: usize) -> Result<(), Code> {
        let _ = (message, offset);
        Ok(())
    }

    /// Answers a request whose body has arrived as a whole. Writes as much of the response's body
    /// from `offset` to `room` as there is room for. Called again for each block of a long
    /// response, and for a copy of an idempotent request.
    fn answer(&mut self, message: &Message<'_>, offset: usize, room: &mut [u8]) -> DeviceAnswer;

    /// The state of a subject, for a notification.
    fn state(&mut self, subject: u8, room: &mut [u8]) -> DeviceAnswer {
        let _ = (subject, room);
        DeviceAnswer::new(Code::NOT_FOUND)
    }
}

/// A response, whose payload is in the room that the handler was given.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct DeviceAnswer {
    /// The response code.
    pub code: Code,
    /// The bytes in the room.
    pub length: usize,
    /// The length of the whole body in bytes.
    pub total: usize,
    /// Content-Format.
    pub content_format: Option<u16>,
    /// Max-Age in seconds.
    pub max_age: Option<u32>,
    /// An entity tag, by which the client sees that a body changes between its blocks. A body of several blocks should
    /// have one.
    pub etag: Option<u32>,
    /// The subject that the client may observe.
    pub subject: Option<u8>,
}

impl DeviceAnswer {
    /// A response without a body.
    #[must_use]
    pub const fn new(code: Code) -> Self {
        let (length, total) = (0, 0);
        let (content_format, max_age, etag, subject) = (None, None, None, None);
        Self { code, length, total, content_format, max_age, etag, subject }
    }

    /// The response whose whole body is the first `length` bytes of the room.
    #[must_use]
    pub const fn content(length: usize) -> Self {
        Self { length, total: length, ..Self::new(Code::CONTENT) }
    }

    /// Whether the block at `at` is one of several.
    const fn is_part(&self, at: usize) -> bool {
        at > 0 && self.code.class() == 2 || self.total > self.length
    }

    /// Whether the client asked for a block after the end.
    pub(super) const fn is_beyond(&self, at: usize) -> bool {
        self.is_part(at) && at > 0 && at >= self.total
    }

    /// The options of the block at `at`, or of the whole response, except for those that its request decides.
    pub(super) fn options(&self, at: usize, szx: u8) -> AddedOptions {
        let mut options = AddedOptions::NONE;
        if let Some(etag) = self.etag {
            options.push(OptionNumber::ETAG, &etag.to_be_bytes());
        }
        if let Some(format) = self.content_format {
            options.push_uint(OptionNumber::CONTENT_FORMAT, format.into());
        }
        if let Some(age) = self.max_age {
            options.push_uint(OptionNumber::MAX_AGE, age);
        }
        let number = u32::try_from(at >> (szx + 4)).unwrap_or(u32::MAX);
        let more = at + self.length < self.total;
        if self.is_part(at)
            && let Ok(block) = Block::new(number, more, szx)
        {
            options.push_uint(OptionNumber::BLOCK2, block.to_uint());
            if at == 0 {
                let total = u32::try_from(self.total).unwrap_or(u32::MAX);
                options.push_uint(OptionNumber::SIZE2, total);
            }
        }
        options
    }
}
