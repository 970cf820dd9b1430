//! Verifying requests and responses (RFC 8613 sections 8.2 and 8.4).

use super::binding::Binding;
use super::context::{Freshness, RequestNumber, SecurityContext};
use super::derive::ContextKeys;
use super::error::{Refusal, ResponseFault};
use super::numbers::SequenceStore;
use super::option::OscoreOption;
use super::order::NotificationOrder;
use super::outer::OptionPlace;
use super::window::Novelty;
use crate::wire::{Body, Code, EncodeError, Encoder, Message, Opt, OptionNumber, encode_uint};

/// A verified request.
#[derive(Copy, Clone, Debug)]
pub struct OpenedRequest {
    /// The length of the datagram that was written.
    pub len: usize,
    /// The request's number, which protects its responses.
    pub number: RequestNumber,
    /// Whether it may be processed.
    pub freshness: Freshness,
}

/// A verified response.
#[derive(Clone, Debug)]
pub struct OpenedResponse<'b> {
    /// The code.
    pub code: Code,
    /// The value that Observe is to have, if it is a notification.
    pub observe: Option<u32>,
    body: Body<'b>,
}

impl<'b> OpenedResponse<'b> {
    /// The options that were protected, apart from Observe.
    pub fn options(&self) -> impl Iterator<Item = Opt<'b>> {
        let is_meant = |opt: &Opt<'_>| OptionPlace::of(opt.number) == OptionPlace::Inner;
        self.body.options().filter(is_meant)
    }

    /// The payload.
    #[must_use]
    pub fn payload(&self) -> &'b [u8] {
        self.body.payload()
    }

    /// The first critical option that is not understood (RFC 7252 section 5.4.1). A client gets the blocks of RFC
    /// 9177 only if it has asked for them.
    #[must_use]
    pub fn unknown_critical(&self) -> Option<OptionNumber> {
        let is_known = |number: OptionNumber| number.is_known_in(self.code) || number.is_q_block();
        self.body.first_critical_unless(is_known)
    }
}

impl<S: SequenceStore> SecurityContext<S> {
    /// Verifies a request and writes the datagram that it would have been without OSCORE to the
    /// start of `buf`, for which twice the length of `outer` suffices. Its OSCORE option remains,
    /// so that those who keep the datagram know who sent it and what its responses are bound to. A
    /// message that is not authentic changes nothing.
    ///
    /// # Errors
    ///
    /// See [`Refusal`]; `buf` then has unspecified contents.
    pub fn unprotect_request(
        &mut self,
        outer: &Message<'_>,
        buf: &mut [u8],
    ) -> Result<OpenedRequest, Refusal> {
        let option = outer.option(OptionNumber::OSCORE).ok_or(Refusal::Malformed)?;
        let option = OscoreOption::decode(option.value).ok_or(Refusal::Malformed)?;
        // RFC 8613 section 8.2: "kid" and "Partial IV" are in every request.
        let (Some(kid), Some(number)) = (option.kid, option.partial_iv) else {
            return Err(Refusal::Malformed);
        };
        if has_outer_blocks(outer) {
            return Err(Refusal::Malformed);
        }
        let keys = &self.keys;
        let other_context = option.kid_context.is_some_and(|given| !self.is_named(given));
        if keys.recipient.id.as_slice() != kid || other_context {
            return Err(Refusal::NoContext);
        }
        // Before the decryption, which costs more.
        let novelty = self.window.novelty(number);
        if novelty == Novelty::Replayed {
            return Err(Refusal::Replayed);
        }
        let binding = Binding {
            request: number,
            kid: &keys.recipient.id,
            nonce: keys.nonce(&keys.recipient, number),
        };
        let (plain, head) = self.open(outer.payload(), &binding, buf)?;
        let plain = Plain::parse(plain)
            .filter(|plain| plain.code.is_request())
            .ok_or(Refusal::Malformed)?;
        // Section 4.1.3.5.1: a proxy that removed the outer option does not pass notifications on.
        let observe =
            match (outer.option(OptionNumber::OBSERVE), plain.body.option(OptionNumber::OBSERVE)) {
                (Some(_), Some(inner)) => Some(inner.value),
                _ => None,
            };
        let for_proxies =
            outer.options().filter(|opt| OptionPlace::of(opt.number) == OptionPlace::Outer);
        let len = plain.write(outer, for_proxies, observe, head).map_err(|_| Refusal::TooLong)?;
        let number = RequestNumber(number);
        let freshness = match novelty {
            Novelty::New => {
                self.window.accept(number.0);
                Freshness::New
            }
            _ => Freshness::Unknown,
        };
        Ok(OpenedRequest { len, number, freshness })
    }

    /// Verifies a response to a request and writes the datagram that it would have been without
    /// OSCORE to the start of `buf`, for which twice the length of `outer` suffices. Returns the
    /// datagram's length.
    ///
    /// # Errors
    ///
    /// See [`ResponseFault`]; `buf` then has unspecified contents.
    pub fn unprotect_response(
        &self,
        request: RequestNumber,
        order: &mut NotificationOrder,
        outer: &Message<'_>,
        buf: &mut [u8],
    ) -> Result<usize, ResponseFault> {
        let value = outer.option(OptionNumber::OSCORE).map(|option| option.value);
        let (opened, head) =
            self.opened(&self.keys, request, order, value, outer.payload(), buf)?;
        let mut digits = [0; 4];
        let observe = opened.observe.map(|value| encode_uint(value, &mut digits));
        let plain = Plain { code: opened.code, body: opened.body };
        plain.write(outer, core::iter::empty(), observe, head).map_err(|_| ResponseFault::TooLong)
    }

    /// Verifies the response to a request that has this value of the OSCORE option and this
    /// payload, which is decrypted in `buf`, of the payload's length.
    ///
    /// # Errors
    ///
    /// See [`ResponseFault`]; `buf` then has unspecified contents.
    pub fn open_response<'b>(
        &self,
        request: RequestNumber,
        order: &mut NotificationOrder,
        value: Option<&[u8]>,
        payload: &[u8],
        buf: &'b mut [u8],
    ) -> Result<OpenedResponse<'b>, ResponseFault> {
        self.opened(&self.keys, request, order, value, payload, buf).map(|(opened, _)| opened)
    }

    /// Verifies the response, in an exchange of new keys, to a request that the context `asked`
    /// has protected; otherwise as [`Self::open_response`].
    ///
    /// # Errors
    ///
    /// See [`ResponseFault`]; `buf` then has unspecified contents.
    pub fn open_renewal<'b>(
        &self,
        asked: &Self,
        request: RequestNumber,
        value: Option<&[u8]>,
        payload: &[u8],
        buf: &'b mut [u8],
    ) -> Result<OpenedResponse<'b>, ResponseFault> {
        let mut order = NotificationOrder::default();
        let opened = self.opened(&asked.keys, request, &mut order, value, payload, buf);
        opened.map(|(opened, _)| opened)
    }

    /// A verified response, and the rest of `buf`.
    fn opened<'b>(
        &self,
        asked: &ContextKeys,
        request: RequestNumber,
        order: &mut NotificationOrder,
        value: Option<&[u8]>,
        payload: &[u8],
        buf: &'b mut [u8],
    ) -> Result<(OpenedResponse<'b>, &'b mut [u8]), ResponseFault> {
        let option = OscoreOption::decode(value.ok_or(ResponseFault::Unprotected)?);
        let option = option.ok_or(ResponseFault::Malformed)?;
        let keys = &self.keys;
        let nonce = match option.partial_iv {
            Some(number) => keys.nonce(&keys.recipient, number),
            // Section 8.4: that of the request, under whatever keys it was.
            None => asked.nonce(&asked.sender, request.0),
        };
        let binding = Binding { request: request.0, kid: &keys.sender.id, nonce };
        let (plain, head) = self.open(payload, &binding, buf)?;
        let plain = Plain::parse(plain).filter(|plain| plain.code.is_response());
        let Plain { code, body } = plain.ok_or(ResponseFault::Malformed)?;
        let observe = match body.option(OptionNumber::OBSERVE) {
            Some(_) => Some(order.accept(option.partial_iv).ok_or(ResponseFault::Outdated)?),
            None => None,
        };
        Ok((OpenedResponse { code, observe, body }, head))
    }

    /// Decrypts a payload at the end of `buf`. Returns the plaintext, and the rest of `buf`.
    fn open<'b>(
        &self,
        ciphertext: &[u8],
        binding: &Binding<'_>,
        buf: &'b mut [u8],
    ) -> Result<(&'b [u8], &'b mut [u8]), OpenFault> {
        let keys = &self.keys;
        // At least a code and the tag.
        let len = ciphertext.len().checked_sub(keys.algorithm.tag_len()).filter(|len| *len > 0);
        let len = len.ok_or(OpenFault::Short)?;
        let room = buf.len().checked_sub(ciphertext.len()).ok_or(OpenFault::NoRoom)?;
        let (head, tail) = buf.split_at_mut(room);
        tail.copy_from_slice(ciphertext);
        let (data, tag) = tail.split_at_mut(len);
        let aad = binding.additional_data(keys.algorithm);
        let (key, nonce) = (&keys.recipient.key, &binding.nonce);
        if !keys.algorithm.open(key, nonce, aad.as_slice(), data, tag) {
            return Err(OpenFault::NotAuthentic);
        }
        Ok((data, head))
    }
}

/// The reason why a payload was not decrypted.
enum OpenFault {
    Short,
    NoRoom,
    NotAuthentic,
}

impl From<OpenFault> for Refusal {
    fn from(fault: OpenFault) -> Self {
        match fault {
            OpenFault::Short => Self::Malformed,
            OpenFault::NoRoom => Self::TooLong,
            OpenFault::NotAuthentic => Self::NotAuthentic,
        }
    }
}

impl From<OpenFault> for ResponseFault {
    fn from(fault: OpenFault) -> Self {
        match fault {
            OpenFault::Short => Self::Malformed,
            OpenFault::NoRoom => Self::TooLong,
            OpenFault::NotAuthentic => Self::NotAuthentic,
        }
    }
}

/// Whether proxies have cut the ciphertext into blocks of their own (RFC 8613 section 4.1.3.4.2),
/// which no peer puts together here.
fn has_outer_blocks(outer: &Message<'_>) -> bool {
    [OptionNumber::BLOCK1, OptionNumber::Q_BLOCK1]
        .into_iter()
        .any(|number| outer.option(number).is_some())
}

/// A plaintext: code, inner options, payload.
struct Plain<'b> {
    code: Code,
    body: Body<'b>,
}

impl<'b> Plain<'b> {
    fn parse(plain: &'b [u8]) -> Option<Self> {
        let (&code, rest) = plain.split_first()?;
        Some(Self { code: Code(code), body: Body::parse(0, rest).ok()? })
    }

    /// Writes the message with the header and token of `outer`, these outer options and this value
    /// of Observe. Options of Class U that were encrypted have no meaning.
    fn write<'o>(
        &self,
        outer: &Message<'_>,
        for_proxies: impl Iterator<Item = Opt<'o>>,
        observe: Option<&[u8]>,
        buf: &mut [u8],
    ) -> Result<usize, EncodeError> {
        let mut encoder =
            Encoder::new(buf, outer.kind(), self.code, outer.message_id(), outer.token_bytes())?;
        let mut for_proxies = for_proxies.peekable();
        let (mut inner_observe, is_meant) =
            (observe, |opt: &Opt<'_>| OptionPlace::of(opt.number) != OptionPlace::Outer);
        for opt in self.body.options().filter(is_meant) {
            while let Some(first) = for_proxies.next_if(|first| first.number < opt.number) {
                encoder.option(first.number, first.value)?;
            }
            if opt.number != OptionNumber::OBSERVE {
                encoder.option(opt.number, opt.value)?;
            } else if let Some(value) = inner_observe.take() {
                encoder.option(opt.number, value)?;
            }
        }
        for opt in for_proxies {
            encoder.option(opt.number, opt.value)?;
        }
        encoder.payload(self.body.payload())?;
        Ok(encoder.len())
    }
}
