//! Observers that registered before the run (RFC 7641 section 3.1).

use super::{Client, ConstantServer, client_address, server_address};
use ebbtide_core::endpoint::{Output, Received, Reliability};
use ebbtide_core::time::Instant;
use ebbtide_core::wire::{Code, Content, Opt, OptionNumber};

/// Registers a device with the client that sends it notifications. `devices` is the endpoint of all
/// devices.
pub(crate) fn observe_before(client: &mut Client, devices: &mut ConstantServer) {
    let (now, device) = (Instant::ZERO, client_address(client.number()));
    let observe = [Opt { number: OptionNumber::OBSERVE, value: &[] }];
    let register = Content { code: Code::GET, options: &observe, payload: &[] };
    // There is room for all of them.
    let _ = devices.endpoint.request(now, device.into(), &register, Reliability::Confirmable);
    let notifier = &mut client.exchanges.endpoint;
    while let Output::Transmit(transmit) = devices.endpoint.poll_output() {
        if let Received::Request(incoming, message) =
            notifier.handle_datagram(now, server_address().into(), transmit.datagram)
        {
            client.observer = message.token();
            let response = Content { code: Code::CONTENT, options: &observe, payload: &[] };
            let _ = notifier.respond(now, &incoming, &response);
        }
    }
    while let Output::Transmit(transmit) = notifier.poll_output() {
        let _ = devices.endpoint.handle_datagram(now, device.into(), transmit.datagram);
    }
}
