//! In place of `oscore` where that feature is not enabled: there are no contexts.

use crate::error::OscoreFailure;
use crate::message::{Response, Uri};
use crate::proved_identity::ProvedIdentity;
use ebbtide_core::session::SecuredRequest;
use ebbtide_core::wire::{Code, Content, Message};

/// There are none.
#[derive(Clone, Debug)]
pub(crate) enum OscoreContexts {}

/// There are none.
#[derive(Clone, Debug)]
pub(crate) enum ClientContext {}

/// There are none.
#[derive(Debug)]
pub(crate) enum ResponseOpener {}

/// There are none.
pub(crate) struct VerifiedRequest {
    pub(crate) request: SecuredRequest,
    pub(crate) context: ClientContext,
    pub(crate) length: usize,
    pub(crate) is_new: bool,
}

/// There are none.
pub(crate) enum Refusal {}

/// There are none.
#[expect(dead_code, reason = "nothing makes one")]
pub(crate) enum Unopened {
    Refused(Refusal),
    NewKeys(Response),
}

impl Refusal {
    pub(crate) const fn code(&self) -> Code {
        match *self {}
    }

    pub(crate) const fn diagnostic(&self) -> &'static str {
        match *self {}
    }
}

impl ClientContext {
    pub(crate) const fn number(&self) -> u32 {
        match *self {}
    }

    pub(crate) fn identity(&self) -> &ProvedIdentity {
        match *self {}
    }

    pub(crate) fn seal<R>(
        &self,
        _: &Content<'_>,
        _: Option<&ResponseOpener>,
        _: impl FnOnce(&Content<'_>) -> R,
    ) -> Result<(R, ResponseOpener), OscoreFailure> {
        match *self {}
    }
}

impl ResponseOpener {
    pub(crate) fn is_answered(&self) -> bool {
        match *self {}
    }

    pub(crate) fn open(&self, _: &Response) -> Result<Response, OscoreFailure> {
        match *self {}
    }
}

impl OscoreContexts {
    pub(crate) fn for_server(&self, _: &Uri) -> Option<ClientContext> {
        match *self {}
    }

    pub(crate) fn open(
        &self,
        _: &Message<'_>,
        _: &mut [u8],
        _: impl FnOnce() -> Option<[u8; 16]>,
    ) -> Result<VerifiedRequest, Unopened> {
        match *self {}
    }

    pub(crate) fn accept(&self, _: SecuredRequest) -> bool {
        match *self {}
    }

    pub(crate) fn request(&self, _: &Message<'_>) -> Option<SecuredRequest> {
        match *self {}
    }

    pub(crate) fn for_peer(&self, _: SecuredRequest) -> Option<ClientContext> {
        match *self {}
    }

    pub(crate) fn seal<R>(
        &self,
        _: SecuredRequest,
        _: &Content<'_>,
        _: impl FnOnce(&Content<'_>) -> R,
    ) -> Option<R> {
        match *self {}
    }
}

pub(crate) fn with_buffer<R>(_: usize, with: impl FnOnce(&mut [u8]) -> R) -> R {
    with(&mut [])
}

/// The longest payload of a message that is protected. AES-CCM-16-64-128 encrypts less than 64 KiB, options included.
pub(crate) const MAX_PROTECTED: usize = 63 << 10;
