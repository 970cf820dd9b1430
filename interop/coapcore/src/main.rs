//! The adapter of coapcore for the interoperability matrix, which ../README.md describes. coapcore
//! is a server, and gets its security contexts by EDHOC; it serves `/test` to the client of
//! `INTEROP_EDHOC` alone.

use coap_handler::Handler;
use coap_message::{Code as _, MinimalWritableMessage, MutableWritableMessage, ReadableMessage};
use coap_message_implementations::{inmemory, inmemory_write};
use coap_message_utils::Error as CoapError;
use coap_message_utils::OptionsExt as _;
use coapcore::OscoreEdhocHandler;
use coapcore::scope::{AifValue, UnionScope};
use coapcore::seccfg::ConfigBuilder;
use coapcore::time::TimeUnknown;
use lakers::Credential;
use std::error::Error;
use std::net::UdpSocket;

const GET: u8 = 1;
const CONTENT: u8 = 0x45;
const INTERNAL_SERVER_ERROR: u8 = 0xa0;
const CONFIRMABLE: u8 = 0;
const ACKNOWLEDGEMENT: u8 = 2;
/// The exit code of an adapter that does not support what it is asked for.
const UNSUPPORTED: i32 = 127;

/// `/test`: 60 digits.
struct Test;

impl Handler for Test {
    type RequestData = ();
    type ExtractRequestError = CoapError;
    type BuildResponseError<M: MinimalWritableMessage> = M::UnionError;

    fn extract_request_data<M: ReadableMessage>(&mut self, request: &M) -> Result<(), CoapError> {
        let mut path = Vec::new();
        let rest = request.options().take_uri_path(|segment| path.push(segment.to_owned()));
        rest.ignore_elective_others()?;
        match (request.code().into(), path.as_slice()) {
            (GET, [only]) if only == "test" => Ok(()),
            (_, [only]) if only == "test" => Err(CoapError::method_not_allowed()),
            _ => Err(CoapError::not_found()),
        }
    }

    fn estimate_length(&mut self, _: &()) -> usize {
        80
    }

    fn build_response<M: MutableWritableMessage>(
        &mut self,
        response: &mut M,
        _: (),
    ) -> Result<(), M::UnionError> {
        response.set_code(M::Code::new(CONTENT)?);
        response.set_payload(&b"0123456789".repeat(6))?;
        Ok(())
    }
}

fn hex(text: &str) -> Result<Vec<u8>, Box<dyn Error>> {
    let pair =
        |at| Ok(u8::from_str_radix(text.get(at..at + 2).ok_or("an odd number of digits")?, 16)?);
    (0..text.len()).step_by(2).map(pair).collect()
}

fn credential(text: &str) -> Result<Credential, Box<dyn Error>> {
    Ok(Credential::parse_ccs(&hex(text)?).map_err(|error| format!("{error:?}"))?)
}

/// The datagram that answers this one, if it is a request.
fn answer(handler: &mut impl Handler, request: &[u8], next_id: u16) -> Option<Vec<u8>> {
    let (&[first, code, high, low], rest) = request.split_first_chunk()?;
    let (kind, token_length) = (first >> 4 & 3, usize::from(first & 15));
    if first >> 6 != 1 || !(1..32).contains(&code) || kind > 1 {
        return None;
    }
    let (token, options) = rest.split_at_checked(token_length)?;
    let (mut code_out, mut tail) = (0, [0; 1152]);
    let mut response = inmemory_write::Message::new(&mut code_out, &mut tail);
    let is_built = match handler.extract_request_data(&inmemory::Message::new(code, options)) {
        Ok(data) => handler.build_response(&mut response, data).is_ok(),
        Err(error) => {
            coap_message::error::RenderableOnMinimal::render(error, &mut response).is_ok()
        }
    };
    let length = response.finish();
    let (kind, id) = match kind {
        CONFIRMABLE => (ACKNOWLEDGEMENT, [high, low]),
        other => (other, next_id.to_be_bytes()),
    };
    let (code, options) =
        if is_built { (code_out, &tail[..length]) } else { (INTERNAL_SERVER_ERROR, &[][..]) };
    let header = [1 << 6 | kind << 4 | first & 15, code, id[0], id[1]];
    Some([&header, token, options].concat())
}

fn main() -> Result<(), Box<dyn Error>> {
    let variable = |name: &str| std::env::var(name).unwrap_or_default();
    let edhoc = variable("INTEROP_EDHOC");
    let keys: Vec<&str> = edhoc.split(':').collect();
    let ([key, own, _, client], "server") = (keys.as_slice(), variable("INTEROP_ROLE").as_str())
    else {
        std::process::exit(UNSUPPORTED);
    };
    let key = hex(key)?.try_into().map_err(|_| "a key has 32 bytes")?;
    // RFC 9237: [["/test", 1]], for GET.
    let scope = AifValue::parse(b"\x81\x82\x65/test\x01");
    let scope = UnionScope::from(scope.map_err(|_| "the scope")?);
    let config = ConfigBuilder::new()
        .with_own_edhoc_credential(credential(own)?, key)
        .with_known_edhoc_credential(credential(client)?, scope);
    let crypto = || lakers_crypto_rustcrypto::Crypto::new(rand_core_06::OsRng);
    let random = rand_core::UnwrapErr(rand_core::OsRng);
    let mut handler = OscoreEdhocHandler::new(Test, config, crypto, random, TimeUnknown);
    let at = (variable("INTEROP_HOST"), variable("INTEROP_PORT").parse()?);
    let socket = UdpSocket::bind((at.0.as_str(), at.1))?;
    println!("ready");
    let mut buffer = [0; 1500];
    for id in (0..=u16::MAX).cycle() {
        let (length, from) = socket.recv_from(&mut buffer)?;
        if let Some(answer) = answer(&mut handler, &buffer[..length], id) {
            socket.send_to(&answer, from)?;
        }
    }
    Ok(())
}
