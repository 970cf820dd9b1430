//! A client on the core alone: bodies in blocks and an observation, over a blocking socket (`driver.rs`).
//!
//!     cargo run -p ebbtide-core --example blocking_client 127.0.0.1:5683

mod driver;

use driver::{BUFFER, Driver, Happened};
use ebbtide_core::ExchangeId;
use ebbtide_core::endpoint::{Received, Reliability};
use ebbtide_core::session::client::{
    Loss, Observation, ObservationSettings, ObservationStep, Outgoing, RequestParts, Step,
    Transfer, TransferSettings,
};
use ebbtide_core::session::{BlockSizes, Options, Response};
use ebbtide_core::time::Instant;
use ebbtide_core::wire::{Code, Content, OptionNumber};
use rand_chacha::ChaCha8Rng;
use std::io;
use std::net::{SocketAddr, UdpSocket};

struct Client {
    driver: Driver,
    server: SocketAddr,
    /// The open exchanges, and what the transfer or observation calls them.
    open: Vec<(ExchangeId, u32)>,
}

/// What has become of an exchange: a response, after which more may follow, or a loss.
type Outcome = Result<(Response, bool), Loss>;

/// What the client works at.
#[expect(clippy::large_enum_variant, reason = "a client has few of them")]
enum Work {
    Request(Transfer),
    Observation(Observation),
}

impl Work {
    /// A request is driven like an observation of which one state is wanted.
    fn poll(&mut self, now: Instant, rng: &mut ChaCha8Rng) -> ObservationStep {
        match self {
            Self::Observation(observation) => observation.poll(now, rng),
            Self::Request(transfer) => match transfer.poll(now, rng) {
                Step::Send(outgoing) => ObservationStep::Send { outgoing, again: None },
                Step::Cancel(id) => ObservationStep::Cancel(id),
                Step::Wait(until) => ObservationStep::Wait(until),
                Step::Done(end) => end.map_or_else(ObservationStep::Failed, ObservationStep::State),
            },
        }
    }

    fn handle(&mut self, now: Instant, id: u32, outcome: Outcome) {
        match (self, outcome) {
            (Self::Request(work), Ok((response, _))) => work.handle_response(now, id, response),
            (Self::Request(work), Err(loss)) => work.handle_loss(now, id, loss),
            (Self::Observation(work), Ok((response, more))) => {
                work.handle_response(now, id, response, more);
            }
            (Self::Observation(work), Err(loss)) => work.handle_loss(now, id, loss),
        }
    }
}

impl Client {
    /// The response to a request, or the next state of an observation; `None` at its end.
    fn next(&mut self, work: &mut Work) -> io::Result<Option<Response>> {
        loop {
            let now = self.driver.now();
            match work.poll(now, &mut self.driver.rng) {
                ObservationStep::Send { outgoing, again } => {
                    if let Err(loss) = self.send(now, &outgoing, again) {
                        work.handle(now, outgoing.id, Err(loss));
                    }
                }
                ObservationStep::Cancel(id) => {
                    for (exchange, _) in self.open.extract_if(.., |(_, name)| *name == id) {
                        self.driver.endpoint.cancel(now, exchange);
                    }
                }
                ObservationStep::Wait(until) => self.wait(until, work)?,
                ObservationStep::Renew => {
                    // The server's name could mean another address by now; here it is known.
                    let Work::Observation(observation) = work else { continue };
                    observation.renewed(settings());
                }
                ObservationStep::State(response) => return Ok(Some(response)),
                ObservationStep::Failed(error) => return Err(io::Error::other(error)),
                ObservationStep::Over => return Ok(None),
            }
        }
    }

    /// Starts an exchange. It takes the token of the exchange `again`, which ends then.
    fn send(&mut self, now: Instant, message: &Outgoing, again: Option<u32>) -> Result<(), Loss> {
        let old = again.and_then(|id| self.open.extract_if(.., |(_, name)| *name == id).next());
        let (endpoint, how) = (&mut self.driver.endpoint, Reliability::Confirmable);
        let sent = message.options.with_slice(None, |options| {
            let content = Content { code: message.code, options, payload: &message.payload };
            match old {
                Some((old, _)) => endpoint.request_again(now, old, &content, how),
                None => endpoint.request(now, self.server.into(), &content, how),
            }
        });
        self.open.push((sent?, message.id));
        Ok(())
    }

    fn wait(&mut self, until: Option<Instant>, work: &mut Work) -> io::Result<()> {
        let mut buffer = [0; BUFFER];
        let happened = self.driver.turn(until, &mut buffer)?;
        let (exchange, outcome) = match happened {
            Some(Happened::Received(Received::Response { exchange, message, .. })) => {
                (exchange, Ok((Response::from_message(&message), false)))
            }
            Some(Happened::Received(Received::Notification { exchange, message, .. })) => {
                (exchange, Ok((Response::from_message(&message), true)))
            }
            Some(Happened::Received(Received::Reset { exchange, .. })) => {
                (exchange, Err(Loss::Final))
            }
            Some(Happened::Failed(exchange, reason)) => (exchange, Err(reason.into())),
            // RFC 7252 section 4.2: a client has no context for requests.
            Some(Happened::Received(Received::Request(incoming, _))) => {
                self.driver.endpoint.reset(&incoming);
                return Ok(());
            }
            _ => return Ok(()),
        };
        if let Some(at) = self.open.iter().position(|(open, _)| *open == exchange) {
            let id = self.open[at].1;
            if !matches!(outcome, Ok((_, true))) {
                self.open.swap_remove(at);
            }
            work.handle(self.driver.now(), id, outcome);
        }
        Ok(())
    }
}

fn settings() -> TransferSettings {
    TransferSettings::new(BlockSizes::of_datagrams(1024), 1 << 20)
}

fn parts(code: Code, path: &str, payload: Vec<u8>) -> RequestParts {
    let mut options = Options::new();
    options.push(OptionNumber::URI_PATH, path.as_bytes());
    RequestParts { code, options, payload: payload.into(), block_size: None }
}

/// Sends a long body, which comes back, and observes the time for three states.
fn main() -> io::Result<()> {
    let server = std::env::args().nth(1).unwrap_or_else(|| "127.0.0.1:5683".into());
    let server = server.parse().map_err(io::Error::other)?;
    let driver = Driver::new(UdpSocket::bind("0.0.0.0:0")?)?;
    let mut client = Client { driver, server, open: Vec::new() };
    let body: Vec<u8> = (0..60_000_u32).map(|at| at as u8).collect();
    let request = parts(Code::PUT, "echo", body.clone());
    let answer = client.next(&mut Work::Request(Transfer::new(request, settings())))?;
    println!("the body came back: {}", answer.is_some_and(|answer| *answer.body() == *body));
    let (transfer, timeout, ordered, end_at_error) = (settings(), None, false, false);
    let settings = ObservationSettings { transfer, timeout, ordered, end_at_error };
    let time = parts(Code::GET, "time", Vec::new());
    let mut work = Work::Observation(Observation::new(time, settings));
    for _ in 0..3 {
        let Some(state) = client.next(&mut work)? else { break };
        println!("{}", state.text());
    }
    if let Work::Observation(observation) = &mut work {
        observation.cancel();
    }
    while client.next(&mut work)?.is_some() {}
    println!("{} exchanges are open", client.driver.endpoint.open_exchanges());
    Ok(())
}
