//! A simulated device: it asks over UDP or over TCP, or sends a body in blocks.

use super::flow::Flow;
use super::secure::SecureClient;
use super::{
    Client, ClientSetup, Model, OutcomeBook, QBlockClient, QBlockServer, Tag, TcpClient, TcpServer,
};
use crate::random::Streams;
use crate::record::ClientRecord;
use crate::record::Recorder;
use crate::scenario::Scenario;
use crate::scenario::SecurityMode;
use crate::scenario::units::Time;
use ebbtide_core::cc::ControlConfig;
use ebbtide_core::endpoint::{EndpointConfig, OutputBuffers};
use ebbtide_core::params::Parameters;
use ebbtide_core::time::{Instant, Micros};
use std::ops::Range;

/// A device, with its measurements.
pub(crate) enum Device {
    /// Its messages are datagrams.
    Udp(Box<Client>),
    /// They are in streams, whose other ends at the server belong to it.
    Tcp(Box<(TcpClient, TcpServer)>),
    /// They are the blocks of a body, which the server keeps for it.
    QBlock(Box<(QBlockClient, QBlockServer)>),
    /// They are records of a DTLS session.
    Secure(Box<SecureClient>),
}

/// The server's state for one device alone.
pub(crate) enum ServerEnd<'d> {
    Tcp(&'d mut TcpServer),
    QBlock(&'d mut QBlockServer),
}

/// Does the same with any client.
macro_rules! client {
    ($device:expr, $client:ident => $what:expr) => {
        match $device {
            Device::Udp($client) => $what,
            Device::Secure(secure) => {
                let $client = &mut secure.client;
                $what
            }
            Device::Tcp(ends) => {
                let ($client, _) = &mut **ends;
                $what
            }
            Device::QBlock(ends) => {
                let ($client, _) = &mut **ends;
                $what
            }
        }
    };
}

impl Device {
    /// The device of this number and model, in this group of those under the same control.
    pub(crate) fn new(
        (number, group): (u32, u8),
        model: &Model,
        scenario: &Scenario,
        streams: &Streams,
    ) -> Self {
        match model {
            Model::Udp(model) => {
                let model = model.clone();
                let setup = ClientSetup { number, group, model, scenario, streams };
                match scenario.security.mode {
                    SecurityMode::None => Self::Udp(Box::new(Client::new(setup))),
                    SecurityMode::DtlsPsk => Self::Secure(Box::new(SecureClient::new(setup))),
                }
            }
            Model::Tcp(settings) => Self::Tcp(Box::new((
                TcpClient::new((number, group), *settings, scenario, streams),
                TcpServer::new(number, *settings, scenario, streams),
            ))),
            Model::QBlock(settings) => Self::QBlock(Box::new((
                QBlockClient::new((number, group), *settings, scenario, streams),
                QBlockServer::new(number, *settings, scenario, streams),
            ))),
        }
    }

    /// Whether nothing is left to do.
    pub(crate) fn is_done(&self) -> bool {
        match self {
            Self::Udp(client) => client.is_done(),
            Self::Secure(secure) => secure.client.is_done(),
            Self::Tcp(ends) => ends.0.is_done(),
            Self::QBlock(ends) => ends.0.is_done(),
        }
    }

    /// Whether there are requests still to be made.
    pub(crate) fn has_more(&self) -> bool {
        match self {
            Self::Udp(client) => client.has_more(),
            Self::Secure(secure) => secure.client.has_more(),
            Self::Tcp(ends) => ends.0.has_more(),
            Self::QBlock(ends) => ends.0.has_more(),
        }
    }

    /// Makes as many requests as the workload has ready.
    pub(crate) fn act(&mut self, now: Instant) {
        match self {
            Self::Secure(secure) => secure.act(now),
            _ => client!(self, client => client.act(now)),
        }
    }

    /// Sends what its workload has ready where requests go by the clock: more of a body that is under way.
    pub(crate) fn goes_on(&mut self, now: Instant) {
        if let Self::Udp(client) = self {
            client.transfer(now);
        }
    }

    /// The client whose messages are datagrams, as all are in a low-power network.
    pub(crate) fn client(&mut self) -> Option<&mut Client> {
        match self {
            Self::Udp(client) => Some(client),
            _ => None,
        }
    }

    /// Takes a packet from the network, and whether a queue has marked it. Returns whether the application
    /// wants to act. The mark reaches CoAP's own congestion control only.
    pub(crate) fn receive(
        &mut self,
        now: Instant,
        (bytes, tag, is_marked): (&[u8], Tag, bool),
        recorder: &mut impl Recorder,
    ) -> bool {
        match self {
            Self::Udp(client) => client.receive(now, (bytes, tag, is_marked), recorder),
            Self::Secure(secure) => secure.receive(now, (bytes, tag, is_marked), recorder),
            Self::Tcp(ends) => ends.0.receive(now, bytes, tag, recorder),
            Self::QBlock(ends) => ends.0.receive(now, bytes, recorder),
        }
    }

    /// The same behind DTLS, if it is.
    pub(crate) fn secure(&mut self) -> Option<&mut SecureClient> {
        match self {
            Self::Secure(secure) => Some(secure),
            _ => None,
        }
    }

    /// Swaps the buffers of its CoAP messages with others, so that all devices take turns with one set.
    #[inline]
    pub(crate) fn swap_buffers(&mut self, other: &mut OutputBuffers) {
        match self {
            Self::Udp(client) => client.exchanges.endpoint.swap_buffers(other),
            Self::Secure(secure) => secure.client.exchanges.endpoint.swap_buffers(other),
            Self::Tcp(_) | Self::QBlock(_) => {}
        }
    }

    /// Its flow of messages, if it sends such.
    pub(crate) fn flow(&mut self) -> Option<&mut Flow> {
        client!(self, client => client.flow.as_deref_mut())
    }

    /// The book on its exchanges.
    #[inline]
    pub(crate) fn book(&mut self) -> &mut OutcomeBook {
        match self {
            Self::Udp(client) => &mut client.exchanges.book,
            Self::Secure(secure) => &mut secure.client.exchanges.book,
            Self::Tcp(ends) => &mut ends.0.book,
            Self::QBlock(ends) => &mut ends.0.book,
        }
    }

    /// Its exchanges under way.
    fn open(&self) -> u32 {
        match self {
            Self::Udp(client) => client.open(),
            Self::Secure(secure) => secure.client.open(),
            Self::Tcp(ends) => ends.0.open_exchanges(),
            Self::QBlock(ends) => ends.0.open_exchanges(),
        }
    }

    /// The measurements, which have to be changeable.
    fn record_mut(&mut self) -> &mut ClientRecord {
        match self {
            Self::Udp(client) => &mut client.exchanges.record,
            Self::Secure(secure) => &mut secure.client.exchanges.record,
            Self::Tcp(ends) => &mut ends.0.record,
            Self::QBlock(ends) => &mut ends.0.record,
        }
    }

    /// Notes how many exchanges were asked for: `asked` if the workload says so, else all that there
    /// were. The requests of so many of them `arrived`.
    pub(crate) fn note_asked(&mut self, asked: Option<u32>, arrived: u32) {
        let open = self.open();
        let record = self.record_mut();
        record.arrived = arrived;
        record.asked = asked.unwrap_or(record.completed + record.failed + open);
    }

    /// When its flow began and ended, in a run that ended at `end`.
    pub(crate) fn flow_span(&mut self, end: Instant) -> Option<Range<Instant>> {
        let (is_done, time) = (self.is_done(), self.record().fct);
        let start = self.flow()?.starts();
        Some(start..if is_done { start + time } else { end })
    }

    /// Reads what the next event needs, if it is a client of datagrams: the others are few. See
    /// [`Endpoint::read_ahead`](ebbtide_core::endpoint::Endpoint::read_ahead).
    #[inline]
    pub(crate) fn read_ahead(&self) -> u64 {
        match self {
            Self::Udp(client) => client.read_ahead(),
            Self::Secure(_) | Self::Tcp(_) | Self::QBlock(_) => 0,
        }
    }

    /// The timer may be due.
    pub(crate) fn handle_timeout(&mut self, now: Instant) {
        match self {
            Self::Udp(client) => client.handle_timeout(now),
            Self::Secure(secure) => secure.handle_timeout(now),
            Self::Tcp(ends) => ends.0.handle_timeout(),
            Self::QBlock(ends) => ends.0.handle_timeout(now),
        }
    }

    /// Hands what is to be sent to `send`. Returns when it wants to be called again, and whether
    /// the application wants to act.
    pub(crate) fn drain<R: Recorder>(
        &mut self,
        now: Instant,
        recorder: &mut R,
        send: impl FnMut(&mut R, &[u8], Tag),
    ) -> (Option<Instant>, bool) {
        match self {
            Self::Secure(secure) => secure.drain(now, recorder, send),
            _ => client!(self, client => client.drain(now, recorder, send)),
        }
    }

    /// Whether a call before the instant that [`Self::drain`] returned has no effect.
    pub(crate) fn is_punctual(&self) -> bool {
        matches!(self, Self::Udp(client) if client.flow.is_none())
    }

    /// The server's state for this device alone, if there is any.
    pub(crate) fn server(&mut self) -> Option<ServerEnd<'_>> {
        match self {
            Self::Udp(_) | Self::Secure(_) => None,
            Self::Tcp(ends) => Some(ServerEnd::Tcp(&mut ends.1)),
            Self::QBlock(ends) => Some(ServerEnd::QBlock(&mut ends.1)),
        }
    }

    /// Its measurements.
    pub(crate) const fn record(&self) -> &ClientRecord {
        match self {
            Self::Udp(client) => &client.exchanges.record,
            Self::Secure(secure) => &secure.client.exchanges.record,
            Self::Tcp(ends) => &ends.0.record,
            Self::QBlock(ends) => &ends.0.record,
        }
    }

    /// The final measurements, and its exchanges by the number of retransmissions that they took.
    pub(crate) fn finish(&mut self) -> &[u32] {
        match self {
            Self::Udp(client) => {
                client.exchanges.finish();
                &client.exchanges.by_retransmissions
            }
            Self::Secure(secure) => {
                secure.client.exchanges.finish();
                &secure.client.exchanges.by_retransmissions
            }
            Self::Tcp(ends) => {
                let (client, server) = &mut **ends;
                client.finish(server.repeats());
                &client.by_retransmissions
            }
            Self::QBlock(ends) => {
                let (client, server) = &mut **ends;
                client.finish(server.again);
                &client.by_retransmissions
            }
        }
    }
}

impl ServerEnd<'_> {
    /// Takes a packet from the network. Returns the exchanges whose requests it completes.
    pub(crate) fn receive(&mut self, now: Instant, bytes: &[u8], tag: Tag) -> Range<u32> {
        match self {
            Self::Tcp(server) => server.receive(now, bytes, tag),
            Self::QBlock(server) => server.receive(now, bytes, tag),
        }
    }

    /// The earliest timer event that is scheduled for it.
    pub(crate) const fn timer(&mut self) -> &mut Option<Instant> {
        match self {
            Self::Tcp(server) => &mut server.timer,
            Self::QBlock(server) => &mut server.timer,
        }
    }

    /// A timer may be due. Blocks that are due leave when they are drained.
    pub(crate) fn handle_timeout(&mut self) {
        if let Self::Tcp(server) = self {
            server.handle_timeout();
        }
    }

    /// Hands what is to be sent to `send`. Returns when it wants to be called again.
    pub(crate) fn drain(&mut self, now: Instant, send: impl FnMut(&[u8], Tag)) -> Option<Instant> {
        match self {
            Self::Tcp(server) => server.drain(now, send),
            Self::QBlock(server) => server.drain(now, send),
        }
    }
}

/// The endpoint of a device in a scenario under a control.
#[must_use]
pub fn endpoint_config(scenario: &Scenario, control: ControlConfig) -> EndpointConfig {
    let coap = &scenario.coap;
    let micros = |time: Time| Micros::from_nanos(time.0);
    let params = Parameters {
        ack_timeout: micros(coap.ack_timeout),
        // Checked to lie in 1..=10; thousandths are exact enough for a factor.
        ack_random_permille: (coap.ack_random_factor * 1000.0).round() as u32,
        max_retransmit: coap.max_retransmit,
        nstart: coap.nstart,
        patience: coap.patience,
        ..Parameters::DEFAULT
    };
    let places = control.settings.places(&params);
    let config = EndpointConfig {
        params,
        control,
        token_length: coap.token_length,
        // The server is this program's: it answers each copy with that copy's marks.
        trust_marks: true,
        // The testbed sees both ends and counts for itself.
        count_per_control: false,
        ..EndpointConfig::default()
    };
    let mut config = device_config(config, places);
    if let Some(flow) = scenario.workload.flow() {
        config.limits.queue_per_peer = flow.queue;
        config.limits.exchanges += usize::from(flow.queue);
    }
    config
}

/// Limits of a simulated endpoint: those of a device, not of a server farm, so that a thousand of
/// them fit where one would otherwise be.
pub(crate) fn device_config(mut config: EndpointConfig, window: u16) -> EndpointConfig {
    config.limits.peers = 4;
    config.limits.exchanges = usize::from(window) + 64;
    config.limits.queue_per_peer = 64;
    config.limits.message_bytes = 65_535;
    config
}
