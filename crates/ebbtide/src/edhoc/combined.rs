//! The combined request of RFC 9668: message 3 in front of the first request that OSCORE protects.

use super::Edhoc;
use super::handshake::HandshakeFault;
use crate::oscore::OscoreContexts;
use ebbtide_core::PeerId;
use ebbtide_core::oscore::OscoreOption;
use ebbtide_core::wire::{Content, Message, Opt, OptionNumber};

impl Edhoc {
    /// Completes the handshake with message 3, and returns the protected request that follows it
    /// (RFC 9668 section 3.3.1).
    pub(crate) fn complete(
        &self,
        contexts: &OscoreContexts,
        client: PeerId,
        message: &Message<'_>,
    ) -> Result<Vec<u8>, HandshakeFault> {
        // Steps 2 and 3: the client's `kid` is our identifier.
        let option = message.option(OptionNumber::OSCORE).ok_or(HandshakeFault::Malformed)?;
        let option = OscoreOption::decode(option.value).ok_or(HandshakeFault::Malformed)?;
        let id = option.kid.ok_or(HandshakeFault::Malformed)?;
        let (message_3, ciphertext) =
            split_string(message.payload()).ok_or(HandshakeFault::Malformed)?;
        self.complete_with(contexts, client, id, message_3)?;
        let options: Vec<Opt<'_>> =
            message.options().filter(|opt| opt.number != OptionNumber::EDHOC).collect();
        let content = Content { code: message.code(), options: &options, payload: ciphertext };
        let mut request = vec![0; message.as_bytes().len()];
        let (kind, id, token) = (message.kind(), message.message_id(), message.token_bytes());
        let encoded =
            content.encode(&mut request, kind, id, token).map_err(|_| HandshakeFault::Malformed)?;
        request.truncate(encoded.len);
        Ok(request)
    }
}

/// Splits a byte string of CBOR, with its head, from what follows.
fn split_string(payload: &[u8]) -> Option<(&[u8], &[u8])> {
    let len = match payload {
        [head @ 0x40..=0x57, ..] => 1 + usize::from(head & 0x1f),
        [0x58, len, ..] => 2 + usize::from(*len),
        _ => return None,
    };
    payload.split_at_checked(len)
}

#[cfg(test)]
mod tests {
    use super::super::HandshakePeer;
    use super::super::handshake::Initiator;
    use super::super::tests::{client, crypto, server};
    use super::*;
    use crate::message::Uri;
    use ebbtide_core::time::Instant;
    use ebbtide_core::wire::{Code, MessageId, Token, Type};
    use std::net::SocketAddr;

    #[test]
    fn a_combined_request_completes_the_handshake_and_is_verified() {
        let (edhoc, of_server, of_client) =
            (Edhoc::new(server()), OscoreContexts::empty(), OscoreContexts::empty());
        let address: SocketAddr = "192.0.2.1:5683".parse().unwrap();
        let (from, ip) = (PeerId::Address(address), address.ip());
        let ours = client();
        let (initiator, message_1) = Initiator::begin(crypto(), &ours, &[0x37]).unwrap();
        let peer = HandshakePeer { id: from, ip };
        let step = edhoc.read(from, &[&[0xf5], &*message_1].concat());
        let step = step.unwrap_or_else(|fault| panic!("{fault:?}"));
        let message_2 = edhoc.answer(Instant::ZERO, &of_server, peer, step);
        assert_eq!(message_2.code(), Code::CHANGED);
        let (finishing, message_3) = initiator.finish(&ours, message_2.body()).unwrap();
        let uri: Uri = "coap://192.0.2.7/".parse().unwrap();
        let context = of_client.add_of_server(finishing.finish(&[]).unwrap(), &uri).unwrap();
        let get = Content { code: Code::GET, options: &[], payload: &[] };
        let combine = |sealed: &Content<'_>| {
            let joined = Opt { number: OptionNumber::EDHOC, value: &[] };
            let options = [sealed.options, &[joined]].concat();
            let payload = [&*message_3, sealed.payload].concat();
            let content = Content { code: sealed.code, options: &options, payload: &payload };
            let mut bytes = vec![0; 256];
            let (kind, id, token) = (Type::Confirmable, MessageId(1), Token::EMPTY);
            let len = content.encode(&mut bytes, kind, id, token).unwrap().len;
            bytes.truncate(len);
            bytes
        };
        let (bytes, _) = context.seal(&get, None, combine).unwrap();
        let combined = Message::parse(&bytes).unwrap();
        let stranger = PeerId::Address("192.0.2.66:5683".parse().unwrap());
        assert!(edhoc.complete(&of_server, stranger, &combined).is_err());
        let protected = edhoc.complete(&of_server, from, &combined).unwrap();
        let mut plain = [0; 512];
        let opened = of_server
            .open(&Message::parse(&protected).unwrap(), &mut plain, || None)
            .unwrap_or_else(|_| panic!("it is authentic"));
        assert_eq!(Message::parse(&plain[..opened.length]).unwrap().code(), Code::GET);
        assert!(edhoc.complete(&of_server, from, &combined).is_err(), "a handshake ends once");
    }
}
