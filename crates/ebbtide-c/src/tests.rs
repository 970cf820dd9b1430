//! The functions that C calls, and the header that declares them.

use crate::{
    EndpointMemory, OpenExchange, PeerControl, ebbtide_admit, ebbtide_init, ebbtide_on_close,
    ebbtide_on_expire, ebbtide_on_feedback, ebbtide_on_transmit,
};

use std::format;
use std::vec::Vec;

const HEADER: &str = include_str!("../include/ebbtide.h");
const ENDPOINT_HEADER: &str = include_str!("../include/ebbtide_endpoint.h");
const SOURCE: &str = include_str!("lib.rs");
const ENDPOINT_SOURCE: &str = include_str!("endpoint/calls.rs");
const MANUAL: &str = include_str!("../man/ebbtide.3");

fn control() -> PeerControl {
    let mut control = PeerControl::default();
    assert_eq!(ebbtide_init(Some(&mut control), size_of::<PeerControl>(), None), 0);
    control
}

/// The parameters of a function in C or Rust.
fn parameters(text: &str, name: &str) -> usize {
    let start = text.find(&format!("{name}(")).map(|at| at + name.len() + 1);
    let list = start.and_then(|start| text[start..].split(')').next());
    let list = list.unwrap_or_default();
    assert!(!list.is_empty(), "{name} is not declared");
    list.split(',').filter(|parameter| !parameter.trim().is_empty()).count()
}

#[test]
fn the_header_declares_every_function_with_as_many_parameters() {
    for (source, header, functions) in [(SOURCE, HEADER, 6), (ENDPOINT_SOURCE, ENDPOINT_HEADER, 8)]
    {
        let names: Vec<&str> = source
            .split("extern \"C\" fn ")
            .skip(1)
            .filter_map(|rest| rest.split('(').next())
            .collect();
        assert_eq!(names.len(), functions);
        for name in names {
            let declaration = format!("int {name}");
            let definition = format!("fn {name}");
            assert_eq!(parameters(header, &declaration), parameters(source, &definition), "{name}");
            assert!(MANUAL.contains(&declaration), "{name} is not in the manual");
        }
    }
}

#[test]
fn the_header_has_the_sizes_of_the_library() {
    for (name, size) in
        [("control", size_of::<PeerControl>()), ("exchange", size_of::<OpenExchange>())]
    {
        let declaration =
            format!("typedef struct ebbtide_{name} {{ uint32_t opaque[{}]; }}", size / 4);
        assert!(HEADER.contains(&declaration), "{declaration}");
    }
    let declaration =
        format!("uint64_t opaque[{}]; }} ebbtide_endpoint", size_of::<EndpointMemory>() / 8);
    assert!(ENDPOINT_HEADER.contains(&declaration), "{declaration}");
}

#[test]
fn an_exchange_is_given_up_after_max_retransmit_and_not_before_the_span_of_the_rfc() {
    let mut control = control();
    // A round trip of 20 ms is known.
    let (mut exchange, mut timeout, mut waited) = (OpenExchange::default(), 0, 0);
    ebbtide_on_transmit(Some(&mut control), Some(&mut exchange), 1, Some(&mut timeout));
    ebbtide_on_feedback(Some(&mut control), Some(&mut exchange), 20);
    assert_eq!(ebbtide_on_close(Some(&mut control), Some(&mut exchange), 0), 0);
    for transmission in 1..=5 {
        let sent =
            ebbtide_on_transmit(Some(&mut control), Some(&mut exchange), 2, Some(&mut timeout));
        assert_eq!(sent, 0, "transmission {transmission}");
        waited += timeout;
        let next = ebbtide_on_expire(Some(&mut control), Some(&mut exchange));
        assert_eq!(next, if transmission == 5 { -6 } else { 0 });
    }
    // MAX_TRANSMIT_WAIT's lower bound: 45 s of MAX_TRANSMIT_SPAN (RFC 7252 section 4.8.2).
    assert!(waited >= 45_000, "{waited} ms");
    assert_eq!(ebbtide_on_close(Some(&mut control), Some(&mut exchange), 1), 0);
    assert_eq!(ebbtide_admit(Some(&control)), 0);
}

#[test]
fn a_control_that_was_not_initialised_refuses_every_call() {
    let (mut control, mut exchange, mut timeout) =
        (PeerControl::default(), OpenExchange::default(), 0);
    let order = -4;
    assert_eq!(ebbtide_admit(Some(&control)), order);
    assert_eq!(
        ebbtide_on_transmit(Some(&mut control), Some(&mut exchange), 1, Some(&mut timeout)),
        order
    );
    assert_eq!(ebbtide_on_expire(Some(&mut control), Some(&mut exchange)), order);
    assert_eq!(ebbtide_on_feedback(Some(&mut control), Some(&mut exchange), 1), order);
    assert_eq!(ebbtide_on_close(Some(&mut control), Some(&mut exchange), 0), order);
}
