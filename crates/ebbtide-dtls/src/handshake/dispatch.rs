//! The messages that a handshake expects, and what handles them.

use super::reassembly::Message;
use super::{Context, ExpectedMessage, Handshake};
use crate::failure::Failure;
use crate::keys::Role;
use crate::message::{HandshakeType, parse_hint};

/// Handles a message. Returns true if it was valid and the next one is due.
///
/// It is a value, so that a program whose handshakes are all of one kind does not link the other kinds.
pub(crate) type OnMessage = fn(&mut Handshake, &mut Context<'_>, &Message) -> Result<bool, Failure>;

impl Handshake {
    /// Messages of all handshakes.
    pub(crate) fn on_message(
        &mut self,
        cx: &mut Context<'_>,
        message: &Message,
    ) -> Result<bool, Failure> {
        match (self.expected, message.kind) {
            (ExpectedMessage::Certificate, HandshakeType::Certificate) => {
                self.on_certificate(cx, message)
            }
            (ExpectedMessage::ServerKeyExchange, HandshakeType::ServerKeyExchange) => {
                self.on_signed_key_exchange(message)
            }
            (ExpectedMessage::ServerHelloDone, HandshakeType::CertificateRequest) => {
                Ok(self.on_certificate_request(message))
            }
            (ExpectedMessage::CertificateVerify, HandshakeType::CertificateVerify) => {
                self.on_certificate_verify(message)
            }
            (ExpectedMessage::ServerHelloDone, HandshakeType::ServerHelloDone)
                if self.suite.has_certificates() =>
            {
                self.on_server_hello_done(cx, message, Self::answer_certificate)
            }
            (ExpectedMessage::ClientKeyExchange, HandshakeType::ClientKeyExchange) => {
                self.on_client_key_exchange(cx, message)
            }
            (ExpectedMessage::Finished, HandshakeType::Finished) if self.role == Role::Server => {
                self.on_client_finished(cx, message)
            }
            _ => self.on_message_at_key_client(cx, message),
        }
    }

    /// Messages at a client with a pre-shared key.
    pub(crate) fn on_message_at_key_client(
        &mut self,
        cx: &mut Context<'_>,
        message: &Message,
    ) -> Result<bool, Failure> {
        match (self.expected, message.kind) {
            (ExpectedMessage::ServerHello, HandshakeType::HelloVerifyRequest) => {
                Ok(self.on_verify_request(cx, message))
            }
            (ExpectedMessage::ServerHello, HandshakeType::ServerHello) => {
                self.on_server_hello(cx, message)
            }
            (ExpectedMessage::ServerHelloDone, HandshakeType::ServerKeyExchange)
                if !self.suite.has_certificates() =>
            {
                let good = parse_hint(&message.body).is_some();
                if good {
                    self.note(message);
                }
                Ok(good)
            }
            (ExpectedMessage::ServerHelloDone, HandshakeType::ServerHelloDone) => {
                self.on_server_hello_done(cx, message, Self::answer_with_key)
            }
            (ExpectedMessage::Finished, HandshakeType::Finished) => self.on_finished(cx, message),
            _ => Ok(false),
        }
    }
}
