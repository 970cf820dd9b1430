//! From a capture to a scenario: reads a user's own CoAP traffic and estimates the network and the workload behind it.
//!
//! The estimates of the network are those of a model: packets pass a buffer with tail drop, a
//! serialiser and a delay, the same that [`ebbtide_sim::net`] simulates. The rate and the buffer
//! are those under which the model explains the times and losses of all packets best; the delay is
//! what remains. Where the capture was taken decides what can be known: with both ends of the path
//! in it each direction by itself; next to the clients only there and back together; next to the
//! server that only if clients go on at once after each answer.

mod copies;
mod devices;
mod error;
mod estimates;
mod exchanges;
mod figures;
mod fitted;
mod hops;
mod logarithm;
mod losses;
mod passages;
mod path;
mod read;
mod search;
mod sides;
mod taken_at;
mod translated;
mod unknown;
mod wording;

mod workload;
mod write;

pub use devices::ClientsBy;
pub use error::FitError;
pub use figures::Estimate;
pub use fitted::Fit;
pub use taken_at::TakenAt;

use ebbtide_sim::scenario::Source;
use exchanges::CapturedExchange;
use path::FittedPath;
use sides::Sides;
use std::io::Read;
use workload::{Sizes, traffic};

/// Fewer exchanges show nothing.
const LEAST_EXCHANGES: usize = 4;

/// Settings of a fit.
#[derive(Clone, Debug)]
pub struct Options {
    /// The name of the scenario.
    pub name: String,
    /// The UDP port of the CoAP servers.
    pub port: u16,
    /// Where the capture was taken; `None`: to be found out.
    pub taken_at: Option<TakenAt>,
    /// Which senders of requests are one client; `None`: to be found out.
    pub clients_by: Option<ClientsBy>,
    /// The most CoAP messages that are read; more are an error.
    pub most_messages: usize,
}

impl Default for Options {
    fn default() -> Self {
        let (taken_at, clients_by) = (None, None);
        Self { name: "fitted".into(), port: 5683, taken_at, clients_by, most_messages: 2_000_000 }
    }
}

/// Fits a scenario to a capture in pcap or pcapng format, which may be compressed with gzip.
///
/// # Errors
///
/// Returns an error if the source cannot be read, is not a capture, holds no CoAP messages or only one direction of
/// them, or holds more messages than `options` allows.
pub fn fit(source: impl Read, options: &Options) -> Result<Fit, FitError> {
    let mut contents = read::read(source, options.port, options.most_messages)?;
    if contents.datagrams.is_empty() {
        return Err(FitError::NoCoap {
            port: options.port,
            packets: contents.others.0 + contents.fragments,
            unsupported: contents.unsupported,
            dtls: contents.dtls,
            dtls_devices: contents.dtls_devices.len(),
            cut: contents.cut_packets,
            busiest: contents.busiest(),
        });
    }
    copies::remove(&mut contents)?;
    translated::refuse_within(&contents.datagrams)?;
    let clients = devices::count(&mut contents.datagrams, options.port, options.clients_by);
    let all = &contents.datagrams;
    let sides = Sides::found_in(&contents, options.taken_at)?;
    if let (Some(near), Some(far)) = (sides.near, sides.far) {
        translated::refuse_between(all, near, far)?;
    }
    let own = sides.near.or(sides.far).unwrap_or(0);
    let list = exchanges::exchanges(all, &sides, own);
    match list.iter().filter(|exchange| exchange.ended.is_some()).count() {
        0 => return Err(FitError::NoExchange(list.len())),
        few @ 1..LEAST_EXCHANGES => return Err(FitError::TooFew(few)),
        _ => {}
    }
    let traffic = traffic(all, &sides, &list, sides.near.is_some());
    let sizes = Sizes::found_in(&contents, &list);
    let path = FittedPath::estimated(all, &sides, &list, traffic.is_back_to_back);
    let far = match (sides.near, sides.far) {
        (Some(_), Some(far)) => exchanges::exchanges(all, &sides, far),
        _ => Vec::new(),
    };
    let taken_at = match (sides.near, sides.far) {
        (Some(_), Some(_)) => TakenAt::Link,
        (Some(_), None) if sides.is_from_server => TakenAt::Server,
        (None, Some(_)) if !sides.is_from_server => TakenAt::Server,
        _ => TakenAt::Clients,
    };
    let measured = figures::MeasuredCapture {
        contents: &contents,
        clients,
        sides: &sides,
        exchanges: &list,
        far: &far,
        traffic: &traffic,
        sizes: &sizes,
        path: &path,
        taken_at,
    };
    let network = figures::network(&measured);
    let figures = estimates::estimates(&measured, &network);
    let unknown = unknown::unknown(&measured, &network);
    let toml = write::scenario(&options.name, &measured, &network, &figures, &unknown);
    let scenario = Source::new("the fitted scenario", toml.as_str())
        .scenario(&[])
        .map_err(|error| FitError::Scenario(error.to_string()))?;
    let asked = |own: &CapturedExchange| Some((all.get(*own.copies.first()?)?.at, own.device));
    let mut requests: Vec<_> = list.iter().filter_map(asked).collect();
    let start = requests.iter().map(|(at, _)| *at).min().unwrap_or(0);
    requests.iter_mut().for_each(|(at, _)| *at -= start);
    let first = all.first().map_or(0, |datagram| datagram.at);
    let last = all.last().map_or(0, |datagram| datagram.at);
    Ok(Fit {
        toml,
        scenario,
        figures,
        unknown,
        taken_at,
        is_place_certain: sides.is_place_certain,
        messages: all.len(),
        exchanges: list.len(),
        duration_s: (last - first) as f64 / 1e9,
        requests,
    })
}
