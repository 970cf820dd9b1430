//! The two ends of OSCORE: contexts of `ebbtide-core`, one for each client, of which both sides
//! know the secret from before the run.

use super::client_at;
use ebbtide_core::PeerId;
use ebbtide_core::oscore::{
    Algorithm, MasterSecret, NotificationOrder, OpenedRequest, RequestNumber, SecurityContext,
    Volatile,
};
use ebbtide_core::wire::{Content, Message, Opt};
use std::collections::BTreeMap;

/// The bytes that the protection of a message adds at most to what is encrypted: a code and a tag.
const SEAL: usize = 17;

/// The ID of the server, which no message contains.
const SERVER: &[u8] = b"";

/// The ID of a client: its number, in as few bytes as it has.
fn id(client: u32) -> Vec<u8> {
    let bytes = client.to_be_bytes();
    let zeros = bytes.iter().take_while(|byte| **byte == 0).count().min(3);
    bytes.get(zeros..).unwrap_or_default().to_vec()
}

fn context(client: u32, sender: &[u8], recipient: &[u8]) -> SecurityContext<Volatile> {
    let mut secret = *b"secret of 0000\0\0";
    secret[10..14].copy_from_slice(&client.to_be_bytes());
    let secret = MasterSecret {
        secret: &secret,
        salt: &[],
        id_context: None,
        algorithm: Algorithm::AesCcm16_64_128,
    };
    let context = SecurityContext::new(&secret, sender, recipient, Volatile);
    context.unwrap_or_else(|_| unreachable!("IDs have at most 4 bytes, and differ"))
}

/// A client's context, and its requests that wait for their responses.
pub(super) struct ProtectedRequests {
    context: SecurityContext<Volatile>,
    open: BTreeMap<u32, RequestNumber>,
}

impl ProtectedRequests {
    pub(super) fn new(client: u32) -> Self {
        Self { context: context(client, &id(client), SERVER), open: BTreeMap::new() }
    }

    /// Calls `send` with the protected form of a client's request with this number.
    pub(super) fn protect<R>(
        &mut self,
        number: u32,
        plain: &Content<'_>,
        send: impl FnOnce(&Content<'_>) -> R,
    ) -> Option<R> {
        let mut buffer = vec![0; plain.encoded_len() + SEAL];
        let (outer, request) = self.context.protect_request(plain, &mut buffer).ok()?;
        self.open.insert(number, request);
        let options: Vec<Opt<'_>> = outer.options(plain).collect();
        Some(send(&Content { code: outer.code, options: &options, payload: outer.payload }))
    }

    /// The request with this number has ended.
    pub(super) fn ended(&mut self, number: u32) {
        self.open.remove(&number);
    }

    /// Verifies the response to a request. Returns the length of its payload, or `None` if it is
    /// not the server's answer.
    pub(super) fn verify(&self, number: u32, response: &Message<'_>) -> Option<u64> {
        let mut buffer = vec![0; 2 * response.as_bytes().len()];
        let (request, mut order) = (*self.open.get(&number)?, NotificationOrder::default());
        let opened =
            self.context.unprotect_response(request, &mut order, response, &mut buffer).ok()?;
        let plain = Message::parse(buffer.get(..opened)?).ok()?;
        Some(plain.payload().len() as u64)
    }
}

/// The contexts of a server.
pub(super) struct ProtectedAnswers {
    contexts: Vec<SecurityContext<Volatile>>,
    /// A request, decrypted; reused.
    plain: Vec<u8>,
}

/// A verified request.
pub(super) struct AuthenticRequest<'a> {
    context: &'a mut SecurityContext<Volatile>,
    opened: OpenedRequest,
    plain: &'a [u8],
}

impl ProtectedAnswers {
    /// The contexts of so many clients.
    pub(super) fn new(clients: u32) -> Self {
        let contexts = (0..clients).map(|client| context(client, SERVER, &id(client)));
        Self { contexts: contexts.collect(), plain: Vec::new() }
    }

    /// Verifies a request; `None` if it is refused.
    pub(super) fn verify(
        &mut self,
        from: PeerId,
        outer: &Message<'_>,
    ) -> Option<AuthenticRequest<'_>> {
        let context = self.contexts.get_mut(client_at(from)? as usize)?;
        self.plain.resize(2 * outer.as_bytes().len(), 0);
        let opened = context.unprotect_request(outer, &mut self.plain).ok()?;
        let plain = self.plain.get(..opened.len)?;
        Some(AuthenticRequest { context, opened, plain })
    }
}

impl AuthenticRequest<'_> {
    /// The request that it would have been without OSCORE.
    pub(super) fn plain(&self) -> Option<Message<'_>> {
        Message::parse(self.plain).ok()
    }

    /// Calls `send` with the protected form of the answer.
    pub(super) fn answer(self, plain: &Content<'_>, send: impl FnOnce(&Content<'_>)) {
        let mut buffer = vec![0; plain.encoded_len() + SEAL];
        let protected = self.context.protect_response(self.opened.number, plain, &mut buffer);
        let Ok(outer) = protected else { return };
        let options: Vec<Opt<'_>> = outer.options(plain).collect();
        send(&Content { code: outer.code, options: &options, payload: outer.payload });
    }
}
