//! One end of one TCP connection: smoltcp, under the virtual clock.

use super::device::Device;
use super::handshake::{Handshake, SynDue};
use super::wheel::TimerWheel;
use crate::scenario::units::Time;
use crate::scenario::{Tcp, TcpCongestion};
use ebbtide_core::time::{Duration, Instant};
use smoltcp::iface::{Config, Interface, PollResult, SocketHandle, SocketSet};
use smoltcp::socket::tcp::{self, CongestionControl, State};
use smoltcp::time::{Duration as SmolDuration, Instant as SmolInstant};
use smoltcp::wire::{HardwareAddress, IpAddress, IpCidr, IpEndpoint};
use std::net::{Ipv4Addr, SocketAddrV4};

/// A stack that has been served and says that it is due now is served again after this span, so
/// that time goes on whatever it wants.
const AGAIN: Duration = Duration::from_millis(1);
/// A first round trip of 1 s gives an RTO of 3 s (RFC 6298 section 2.2), which is what data begins
/// with after a SYN that was repeated (section 5.7).
const AMBIGUOUS: SmolDuration = SmolDuration::from_secs(1);

/// Settings of a socket.
#[derive(Copy, Clone, Debug)]
pub(super) struct Setup {
    pub(super) settings: Tcp,
    /// The largest IP packet, bytes.
    pub(super) mtu: usize,
    /// Bytes of the send and of the receive buffer.
    pub(super) buffer: usize,
    /// Seed of its initial sequence number.
    pub(super) seed: u64,
}

/// How a connection begins.
#[derive(Clone, Debug)]
enum ConnectionStart {
    /// With a SYN of ours.
    Connect { local: SocketAddrV4, remote: SocketAddrV4 },
    /// With the SYN that arrived.
    Listen { local: SocketAddrV4, syn: Vec<u8> },
}

/// One end of a connection, with a stack of its own: the timers of one never make another wait, and
/// nothing is polled that has no work.
pub(super) struct Socket {
    stack: TcpStack,
    setup: Setup,
    opening: ConnectionStart,
    handshake: Handshake,
    wheel: TimerWheel,
    /// When the earliest timer of the stack is due, and when it expires on the wheel.
    timer: Option<(Instant, Instant)>,
}

/// smoltcp with one socket.
struct TcpStack {
    interface: Interface,
    sockets: SocketSet<'static>,
    handle: SocketHandle,
    device: Device,
}

impl Socket {
    /// Connects; the SYN leaves when it is served.
    pub(super) fn connect(
        now: Instant,
        setup: Setup,
        local: SocketAddrV4,
        remote: SocketAddrV4,
    ) -> Self {
        Self::new(smol(now), setup, ConnectionStart::Connect { local, remote })
    }

    /// Listens for one connection. It refuses any packet other than a SYN with a RST (RFC 9293 section
    /// 3.10.7.1).
    pub(super) fn listen(now: Instant, setup: Setup, local: SocketAddrV4) -> Self {
        Self::new(smol(now), setup, ConnectionStart::Listen { local, syn: Vec::new() })
    }

    fn new(now: SmolInstant, setup: Setup, opening: ConnectionStart) -> Self {
        let wheel = TimerWheel::new(setup.settings.tick.0);
        let handshake = Handshake::new(&setup.settings, wheel);
        let stack = TcpStack::open(now, &setup, &opening);
        Self { stack, setup, opening, handshake, wheel, timer: None }
    }

    /// Its state (RFC 9293 section 3.3.2).
    pub(super) fn state(&self) -> State {
        self.stack.socket().state()
    }

    fn is_opening(&self) -> bool {
        matches!(self.state(), State::SynSent | State::SynReceived)
    }

    /// A packet arrives. Urgent answers leave at once, the others when the socket is
    /// served.
    pub(super) fn receive(&mut self, now: Instant, packet: &[u8]) {
        if let (ConnectionStart::Listen { syn, .. }, State::Listen) =
            (&mut self.opening, self.stack.state())
        {
            *syn = packet.to_vec();
        }
        if self.is_opening() && self.handshake.is_ambiguous() {
            // The same handshake again, as if it had begun 1 s ago and nothing had been repeated.
            let before = smol(now) - AMBIGUOUS;
            let mut fresh = TcpStack::open(before, &self.setup, &self.opening);
            fresh.send(before);
            fresh.device.clear();
            std::mem::swap(&mut fresh.device, &mut self.stack.device);
            self.stack = fresh;
        }
        self.stack.receive(smol(now), packet);
    }

    /// Sends what is due.
    pub(super) fn serve(&mut self, now: Instant) {
        if self.state() == State::Closed {
            return;
        }
        if !self.is_opening() {
            let now = self.before_timer(now);
            self.stack.send(now);
            return;
        }
        match self.handshake.serve(now) {
            SynDue::Nothing => {}
            SynDue::Original => {
                self.stack.send(smol(now));
                if let Some(packet) = self.stack.device.leaving().last() {
                    self.handshake.keep_packet(packet);
                }
            }
            SynDue::Again => self.stack.device.send(self.handshake.packet()),
            SynDue::GiveUp => self.give_up(),
        }
    }

    /// When it wants to be served; `None`: when something arrives or is written.
    pub(super) fn timeout(&mut self, now: Instant) -> Option<Instant> {
        if self.state() == State::Closed {
            return None;
        }
        if self.is_opening() {
            return self.handshake.due();
        }
        let TcpStack { interface, sockets, .. } = &mut self.stack;
        let due = interface.poll_at(smol(now), sockets)?;
        let due = u64::try_from(due.total_micros()).unwrap_or(0).saturating_mul(1000);
        let due = Instant::from_nanos(due);
        let timer = self.timer.filter(|timer| timer.0 == due);
        let (_, expiry) = *self.timer.insert(timer.unwrap_or((due, self.wheel.expiry(now, due))));
        Some(if expiry <= now { now + AGAIN } else { expiry })
    }

    /// The time that the stack receives: just before its timer, while that is due and has not
    /// expired.
    fn before_timer(&self, now: Instant) -> SmolInstant {
        match self.timer {
            Some((due, expiry)) if due <= now && now < expiry => {
                smol(due) - SmolDuration::from_micros(1)
            }
            _ => smol(now),
        }
    }

    /// The packets that leave, in order.
    pub(super) fn packets(&self) -> impl Iterator<Item = &[u8]> {
        self.stack.device.leaving()
    }

    /// Forgets the packets that have been looked at.
    pub(super) fn clear_packets(&mut self) {
        self.stack.device.clear();
    }

    /// Puts bytes into the send buffer. How many found room.
    pub(super) fn write(&mut self, bytes: &[u8]) -> usize {
        // It fails if the connection cannot send any more, and then nothing found room.
        self.stack.socket_mut().send_slice(bytes).unwrap_or(0)
    }

    /// Moves what has been received to the end of `bytes`.
    pub(super) fn read(&mut self, bytes: &mut Vec<u8>) {
        let socket = self.stack.socket_mut();
        while socket.can_recv() {
            let read = socket.recv(|received| {
                bytes.extend_from_slice(received);
                (received.len(), received.len())
            });
            if !matches!(read, Ok(1..)) {
                return;
            }
        }
    }

    /// Bytes that are not acknowledged yet, sent or not.
    pub(super) fn unacknowledged(&self) -> usize {
        self.stack.socket().send_queue()
    }

    /// The application asks or answers: from now on acknowledgements wait for data to go with, as
    /// Linux's do then. (Sooner, one that is due would take a request along that Nagle's algorithm
    /// holds.)
    pub(super) fn becomes_interactive(&mut self) {
        let delay = ack_delay(&self.setup.settings);
        self.stack.socket_mut().set_ack_delay(delay);
    }

    /// A segment came again: its acknowledgement was late or lost. Until the application asks or
    /// answers the next ones do not wait, as Linux's do not (`tcp_enter_quickack_mode`).
    pub(super) fn becomes_quick(&mut self) {
        if self.setup.settings.quick_ack {
            self.stack.socket_mut().set_ack_delay(None);
        }
    }

    /// Whether acknowledgements leave at once.
    pub(super) fn is_quick(&self) -> bool {
        self.stack.socket().ack_delay().is_none()
    }

    /// Ends the connection in order: a FIN follows what was written.
    pub(super) fn close(&mut self) {
        self.stack.socket_mut().close();
    }

    /// For how long what it sends may be repeated in vain.
    pub(super) fn patience(&self) -> Duration {
        self.setup.settings.patience()
    }

    /// Ends the connection without a word to the other end, as Linux does with one that timed out.
    pub(super) fn give_up(&mut self) {
        self.clear_packets();
        self.stack.socket_mut().abort();
    }

    /// Whether the peer sends no more.
    pub(super) fn is_at_end(&self) -> bool {
        self.state() == State::CloseWait
    }

    /// Whether there is no connection: none yet, or nothing of it is left.
    pub(super) fn is_gone(&self) -> bool {
        matches!(self.state(), State::Closed | State::Listen)
    }
}

impl TcpStack {
    fn open(now: SmolInstant, setup: &Setup, opening: &ConnectionStart) -> Self {
        let (ConnectionStart::Connect { local, .. } | ConnectionStart::Listen { local, .. }) =
            opening;
        let mut stack = Self::new(now, setup, *local.ip());
        let Self { interface, sockets, handle, .. } = &mut stack;
        let socket = sockets.get_mut::<tcp::Socket<'_>>(*handle);
        // Both fail for an address or a port of zero only.
        match opening {
            ConnectionStart::Connect { local, remote } => {
                let (local, remote) = (IpEndpoint::from(*local), IpEndpoint::from(*remote));
                let _ = socket.connect(interface.context(), remote, local);
            }
            ConnectionStart::Listen { local, syn } => {
                let _ = socket.listen(IpEndpoint::from(*local));
                if !syn.is_empty() {
                    stack.receive(now, syn);
                }
            }
        }
        stack
    }

    fn new(now: SmolInstant, setup: &Setup, address: Ipv4Addr) -> Self {
        let mut device = Device::new(setup.mtu);
        let mut config = Config::new(HardwareAddress::Ip);
        config.random_seed = setup.seed;
        let mut interface = Interface::new(config, &mut device, now);
        interface.update_ip_addrs(|addresses| {
            // There is room for one.
            let _ = addresses.push(IpCidr::new(IpAddress::Ipv4(address), 32));
        });
        let buffer = || tcp::SocketBuffer::new(vec![0; setup.buffer]);
        let mut socket = tcp::Socket::new(buffer(), buffer());
        let settings = setup.settings;
        socket.set_nagle_enabled(settings.nagle);
        socket.set_ack_delay(if settings.quick_ack { None } else { ack_delay(&settings) });
        socket.set_congestion_control(match settings.congestion {
            TcpCongestion::Reno => CongestionControl::Reno,
            TcpCongestion::Cubic => CongestionControl::Cubic,
            TcpCongestion::None => CongestionControl::None,
        });
        let mut sockets = SocketSet::new(Vec::with_capacity(1));
        let handle = sockets.add(socket);
        Self { interface, sockets, handle, device }
    }

    fn socket(&self) -> &tcp::Socket<'static> {
        self.sockets.get(self.handle)
    }

    fn socket_mut(&mut self) -> &mut tcp::Socket<'static> {
        self.sockets.get_mut(self.handle)
    }

    fn state(&self) -> State {
        self.socket().state()
    }

    fn receive(&mut self, now: SmolInstant, packet: &[u8]) {
        self.device.arrive(packet);
        let Self { interface, sockets, device, .. } = self;
        let _ = interface.poll_ingress_single(now, device, sockets);
    }

    fn send(&mut self, now: SmolInstant) {
        let Self { interface, sockets, device, .. } = self;
        // It returns something as long as it sends, and it sends no more than the window holds.
        while interface.poll_egress(now, device, sockets) == PollResult::SocketStateChanged {}
    }
}

fn ack_delay(settings: &Tcp) -> Option<SmolDuration> {
    let delay = settings.delayed_ack;
    (delay != Time(0)).then(|| SmolDuration::from_micros(delay.0 / 1000))
}

/// smoltcp counts microseconds; the rest of one is lost, never gained.
fn smol(now: Instant) -> SmolInstant {
    SmolInstant::from_micros(i64::try_from(now.as_nanos() / 1000).unwrap_or(i64::MAX))
}
