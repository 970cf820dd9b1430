//! The lengths of messages on the wire.

use crate::scenario::{Scenario, Transport};

/// Bytes on the wire of a request and of a response.
pub(super) fn wire_lengths(scenario: &Scenario, transport: Transport) -> (f64, f64) {
    let w = &scenario.workload;
    let marked = |payload: u32| payload + u32::from(payload > 0);
    // The path, or the content format; then marker and payload.
    let path = w.path.len() as u32 + if w.path.len() < 13 { 1 } else { 2 };
    let token = u32::from(scenario.coap.token_length);
    let length = |rest: u32| match transport {
        Transport::Udp => f64::from(scenario.network.header + 4 + token + rest),
        // RFC 8323 section 3.2: no type, no ID, but a length that may need two more bytes. TCP has
        // 12 bytes of header more than UDP.
        Transport::Tcp => {
            let length = match rest {
                0..13 => 2,
                13..269 => 3,
                _ => 4,
            };
            let header = f64::from(scenario.network.header + 12);
            let message = f64::from(length + token.min(4) + rest);
            // Messages of a flow share segments as long as the MTU allows.
            let segment = f64::from(scenario.network.mtu) - header;
            if w.flow().is_some() { message * (1.0 + header / segment) } else { header + message }
        }
    };
    if w.is_notifying() {
        // Observe with a value of three bytes; the acknowledgement is a header alone.
        let empty = f64::from(scenario.network.header + 4);
        return (empty, length(4 + marked(w.response_payload)));
    }
    let request = length(path + marked(w.request_payload));
    let response = length(1 + marked(w.response_payload));
    if w.is_from_server() { (response, request) } else { (request, response) }
}
