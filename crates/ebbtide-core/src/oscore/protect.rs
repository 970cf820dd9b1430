//! Protecting requests and responses (RFC 8613 sections 8.1 and 8.3).

use super::binding::Binding;
use super::context::{Naming, RequestNumber, SecurityContext};
use super::error::ProtectError;
use super::numbers::SequenceStore;
use super::option::OscoreOption;
use super::outer::{OptionPlace, OuterMessage};
use super::renewal;
use super::short::ContextId;
use crate::wire::{Code, Content, EncodeError, Opt, OptionNumber, PAYLOAD_MARKER, encode_option};

impl<S: SequenceStore> SecurityContext<S> {
    /// Protects a request. The ciphertext is written into `buf`, for which [`Content::encoded_len`]
    /// and 17 bytes suffice.
    ///
    /// # Errors
    ///
    /// See [`ProtectError`].
    pub fn protect_request<'b>(
        &mut self,
        content: &Content<'_>,
        buf: &'b mut [u8],
    ) -> Result<(OuterMessage<'b>, RequestNumber), ProtectError> {
        check(content)?;
        let number = self.numbers.take(&mut self.store)?;
        let keys = &self.keys;
        let id_context = keys.id_context.as_ref().and_then(|id| match self.naming {
            Naming::Whole => Some(*id),
            Naming::Encoded => renewal::encode_part(id.as_slice()),
            Naming::ById => None,
        });
        let value = OscoreOption {
            partial_iv: Some(number),
            kid_context: id_context.as_ref().map(ContextId::as_slice),
            kid: Some(keys.sender.id.as_slice()),
        };
        let nonce = keys.nonce(&keys.sender, number);
        let binding = Binding { request: number, kid: &keys.sender.id, nonce };
        let payload = self.seal(content, &binding, Role::Request, buf)?;
        // RFC 8613 section 4.2: FETCH, so that a proxy lets the observation pass.
        let code = if observes(content) { Code::FETCH } else { Code::POST };
        Ok((OuterMessage { code, value: value.encode(), payload }, RequestNumber(number)))
    }

    /// Protects a response to a request that was accepted. Its nonce is that of the request, which
    /// costs no bytes, unless it is a notification or that nonce is used.
    ///
    /// # Errors
    ///
    /// See [`ProtectError`].
    pub fn protect_response<'b>(
        &mut self,
        request: RequestNumber,
        content: &Content<'_>,
        buf: &'b mut [u8],
    ) -> Result<OuterMessage<'b>, ProtectError> {
        check(content)?;
        let notification = observes(content);
        let bare = !notification && self.window.take_nonce(request.0);
        let number = if bare { None } else { Some(self.numbers.take(&mut self.store)?) };
        let keys = &self.keys;
        let nonce = match number {
            None => keys.nonce(&keys.recipient, request.0),
            Some(number) => keys.nonce(&keys.sender, number),
        };
        let binding = Binding { request: request.0, kid: &keys.recipient.id, nonce };
        let payload = self.seal(content, &binding, Role::Response, buf)?;
        let value = OscoreOption { partial_iv: number, ..OscoreOption::default() }.encode();
        let code = if notification { Code::CONTENT } else { Code::CHANGED };
        Ok(OuterMessage { code, value, payload })
    }

    /// Protects the first answer in an exchange of new keys, to a request that the context `asked` has
    /// accepted. It has the nonce of that request, which was used with another key.
    ///
    /// # Errors
    ///
    /// See [`ProtectError`].
    pub fn protect_renewal<'b>(
        &self,
        asked: &Self,
        request: RequestNumber,
        content: &Content<'_>,
        buf: &'b mut [u8],
    ) -> Result<OuterMessage<'b>, ProtectError> {
        check(content)?;
        let nonce = asked.keys.nonce(&asked.keys.recipient, request.0);
        let binding = Binding { request: request.0, kid: &self.keys.recipient.id, nonce };
        let payload = self.seal(content, &binding, Role::Response, buf)?;
        let value = OscoreOption::default().encode();
        Ok(OuterMessage { code: Code::CHANGED, value, payload })
    }

    fn seal<'b>(
        &self,
        content: &Content<'_>,
        binding: &Binding<'_>,
        role: Role,
        buf: &'b mut [u8],
    ) -> Result<&'b [u8], ProtectError> {
        let keys = &self.keys;
        let len = write_plaintext(content, role, buf)?;
        let end = len + keys.algorithm.tag_len();
        let whole = buf.get_mut(..end).ok_or(EncodeError::BufferTooSmall)?;
        let (plaintext, tag) = whole.split_at_mut(len);
        let aad = binding.additional_data(keys.algorithm);
        let (key, nonce) = (&keys.sender.key, &binding.nonce);
        if !keys.algorithm.seal(key, nonce, aad.as_slice(), plaintext, tag) {
            return Err(ProtectError::TooLong);
        }
        Ok(whole)
    }
}

#[derive(Copy, Clone, PartialEq, Eq)]
enum Role {
    Request,
    Response,
}

fn observes(content: &Content<'_>) -> bool {
    content.options.iter().any(|opt| opt.number == OptionNumber::OBSERVE)
}

fn check(content: &Content<'_>) -> Result<(), ProtectError> {
    let bad = |opt: &&Opt<'_>| matches!(opt.number, OptionNumber::OSCORE | OptionNumber::PROXY_URI);
    match content.options.iter().find(bad) {
        Some(opt) => Err(ProtectError::NotProtectable(opt.number)),
        None => Ok(()),
    }
}

/// Writes code, inner options and payload (RFC 8613 section 5.3).
fn write_plaintext(
    content: &Content<'_>,
    role: Role,
    buf: &mut [u8],
) -> Result<usize, EncodeError> {
    *buf.first_mut().ok_or(EncodeError::BufferTooSmall)? = content.code.0;
    let (mut len, mut previous) = (1, OptionNumber(0));
    for opt in content.in_order().filter(|opt| OptionPlace::of(opt.number) != OptionPlace::Outer) {
        // Section 4.1.3.5.2: that of a notification is empty, since its Partial IV says the order.
        let is_order = role == Role::Response && opt.number == OptionNumber::OBSERVE;
        let value = if is_order { &[] } else { opt.value };
        len += encode_option(buf.get_mut(len..).unwrap_or_default(), previous, opt.number, value)?;
        previous = opt.number;
    }
    if content.payload.is_empty() {
        return Ok(len);
    }
    let end = len + 1 + content.payload.len();
    let room = buf.get_mut(len..end).and_then(<[u8]>::split_first_mut);
    let (marker, room) = room.ok_or(EncodeError::BufferTooSmall)?;
    *marker = PAYLOAD_MARKER;
    room.copy_from_slice(content.payload);
    Ok(end)
}
