//! From a capture to a scenario: reads a user's own CoAP traffic and estimates the network and the workload behind it.
//!
//! The estimates of the network are those of a model: packets pass a buffer with tail drop, a serialiser and a delay,
//! the same that [`ebbtide_sim::net`] simulates. The rate and the buffer are those under which the model explains the times
//! and losses of all packets best; the delay is what remains. Where the capture was taken decides what can be known:
//! with both ends of the path in it each direction by itself; next to the clients only there and back together; next
//! to the server that only if clients go on at once after each answer.

mod copies;
mod error;
mod exchanges;
mod figures;
mod hops;
mod logarithm;
mod losses;
mod passages;
mod path;
mod read;
mod search;
mod sides;
mod translated;
mod words;
mod workload;
mod write;

pub use error::FitError;
pub use figures::Figure;

use ebbtide_sim::scenario::{Scenario, Source};
use path::Path;
use sides::Sides;
use std::io::Read;
use workload::{Sizes, traffic};

/// Fewer exchanges show nothing.
const LEAST_EXCHANGES: usize = 4;

/// Where a capture was taken.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum TakenAt {
    /// Next to the clients.
    Clients,
    /// Next to the server.
    Server,
    /// At both ends, each with an interface of its own in the file.
    Link,
}

impl TakenAt {
    /// Its name on the command line.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Clients => "clients",
            Self::Server => "server",
            Self::Link => "link",
        }
    }

    /// The place with this name.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        [Self::Clients, Self::Server, Self::Link].into_iter().find(|place| place.name() == name)
    }
}

/// Settings of a fit.
#[derive(Clone, Debug)]
pub struct Options {
    /// The name of the scenario.
    pub name: String,
    /// The UDP port of the CoAP servers.
    pub port: u16,
    /// Where the capture was taken; `None`: to be found out.
    pub taken_at: Option<TakenAt>,
    /// The most CoAP messages that are read; more are an error.
    pub most_messages: usize,
}

impl Default for Options {
    fn default() -> Self {
        Self { name: "fitted".into(), port: 5683, taken_at: None, most_messages: 2_000_000 }
    }
}

/// A scenario that was fitted to a capture.
#[derive(Clone, Debug)]
pub struct Fit {
    /// The scenario file, with the origin of each figure in comments.
    pub toml: String,
    /// The same scenario.
    pub scenario: Scenario,
    /// The estimates, with ranges.
    pub figures: Vec<Figure>,
    /// A sentence for each thing that the capture cannot tell.
    pub unknown: Vec<String>,
    /// Where the capture was taken.
    pub taken_at: TakenAt,
    /// Whether that was given or named in the file, rather than guessed from the times.
    pub is_place_certain: bool,
    /// CoAP messages in the capture.
    pub messages: usize,
    /// Exchanges among them.
    pub exchanges: usize,
    /// The time from the first message to the last one, s.
    pub duration_s: f64,
}

/// Fits a scenario to a capture in pcap or pcapng format.
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
            busiest: contents.busiest(),
        });
    }
    copies::remove(&mut contents)?;
    translated::refuse_within(&contents.datagrams)?;
    let all = &contents.datagrams;
    let sides = Sides::of(&contents, options.taken_at)?;
    if let (Some(near), Some(far)) = (sides.near, sides.far) {
        translated::refuse_between(all, (near, far))?;
    }
    let own = sides.near.or(sides.far).unwrap_or(0);
    let list = exchanges::exchanges(all, &sides, own);
    match list.iter().filter(|exchange| exchange.ended.is_some()).count() {
        0 => return Err(FitError::NoExchange(list.len())),
        few @ 1..LEAST_EXCHANGES => return Err(FitError::TooFew(few)),
        _ => {}
    }
    let traffic = traffic(all, &sides, &list, sides.near.is_some());
    let sizes = Sizes::of(&contents, &list);
    let path = Path::of(all, &sides, &list, traffic.is_back_to_back);
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
    let measured = figures::Measured {
        contents: &contents,
        sides: &sides,
        exchanges: &list,
        far: &far,
        traffic: &traffic,
        sizes: &sizes,
        path: &path,
        taken_at,
    };
    let network = figures::network(&measured);
    let (figures, unknown) = words::said(&measured, &network);
    let toml = write::scenario(&options.name, &measured, &network, &figures, &unknown);
    let scenario = Source::new("the fitted scenario", toml.as_str())
        .scenario(&[])
        .map_err(|error| FitError::Scenario(error.to_string()))?;
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
    })
}
