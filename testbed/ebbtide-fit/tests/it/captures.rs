//! Captures of simulated networks, in memory.

use ebbtide_core::time::Instant;
use ebbtide_sim::record::{Capture, PLACES};
use ebbtide_sim::run::simulate_with;
use ebbtide_sim::run::{Tap, Trace, TraceFilter};
use ebbtide_sim::scenario::Scenario;
use std::cell::RefCell;
use std::io::Write;
use std::rc::Rc;

/// A sink that is read after the trace is done.
#[derive(Clone, Default)]
struct Sink(Rc<RefCell<Vec<u8>>>);

impl Write for Sink {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.borrow_mut().extend_from_slice(bytes);
        Ok(bytes.len())
    }
    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

/// The capture of a replication under a control at a place, 0 for the clients and 1 for the server; `None`: at both.
pub(crate) fn capture(
    scenario: &Scenario,
    control: &str,
    place: Option<u32>,
    seed: u64,
) -> Vec<u8> {
    let sink = Sink::default();
    let names: Vec<&str> = match place {
        None => PLACES.to_vec(),
        Some(place) => vec![PLACES[place as usize]],
    };
    let capture = Capture::new(sink.clone(), &names).unwrap();
    let tap = Tap { place, capture: capture.with_header(scenario.network.header) };
    let until = Some(Instant::from_nanos(3_600_000_000_000));
    let only = TraceFilter { until, ..TraceFilter::default() };
    let trace = Trace::<Vec<u8>, Sink>::new(None, vec![tap], only);
    let controls = [scenario.control_config(control).unwrap()];
    let (_, trace) = simulate_with(scenario, &controls, seed, 0, trace).unwrap();
    trace.finish().unwrap();
    sink.0.take()
}
