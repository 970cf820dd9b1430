//! Observers that registered before the run (RFC 7641 section 3.1).

use super::{ConstantServer, client_address, server_address};
use ebbtide_core::endpoint::{Endpoint, Output, Received, Reliability};
use ebbtide_core::time::Instant;
use ebbtide_core::wire::{Code, Content, Opt, OptionNumber, Token};

/// Registers the device of this number with the endpoint that sends it notifications, and returns the token of
/// the observation. `devices` is the endpoint of all devices.
pub(super) fn observe_before(
    number: u32,
    notifier: &mut Endpoint,
    devices: &mut ConstantServer,
) -> Option<Token> {
    let (now, device) = (Instant::ZERO, client_address(number));
    let mut observation = None;
    let observe = [Opt { number: OptionNumber::OBSERVE, value: &[] }];
    let register = Content { code: Code::GET, options: &observe, payload: &[] };
    // There is room for all of them.
    let _ = devices.endpoint.request(now, device.into(), &register, Reliability::Confirmable);
    while let Output::Transmit(transmit) = devices.endpoint.poll_output() {
        if let Received::Request(incoming, message) =
            notifier.handle_datagram(now, server_address().into(), transmit.datagram)
        {
            observation = message.token();
            let response = Content { code: Code::CONTENT, options: &observe, payload: &[] };
            let _ = notifier.respond(now, &incoming, &response);
        }
    }
    while let Output::Transmit(transmit) = notifier.poll_output() {
        let _ = devices.endpoint.handle_datagram(now, device.into(), transmit.datagram);
    }
    observation
}
