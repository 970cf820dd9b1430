//! One network: the drawn values, as settings of a scenario.

use ebbtide_sim::scenario::{Clocked, Pattern, Scenario, Source};

/// A network of a map.
#[derive(Clone, Debug)]
pub struct DrawnNetwork {
    /// Its number in the draw, from 0.
    pub number: u32,
    /// The place of its stratum in [`Plan::strata`](super::Plan::strata).
    pub stratum: usize,
    /// The scenario from which it is derived: the map's, or one with classes.
    pub source: Source,
    /// The settings that derive it from that scenario, in order.
    pub settings: Vec<(String, String)>,
    /// The scenario with these settings.
    pub scenario: Scenario,
    /// The time that the bottleneck link needs for one exchange, s.
    pub exchange_s: f64,
    /// Whether the bottleneck is the link from the clients to the server.
    pub is_up: bool,
    /// The duration of an exchange on the idle path, s.
    pub idle_s: f64,
    /// The bandwidth-delay product of the bottleneck, with the idle round trip, bytes.
    pub bdp_bytes: f64,
}

impl DrawnNetwork {
    /// The load that the clients offer, divided by the capacity of the bottleneck: the time that it
    /// needs for their exchanges, divided by the time in which they would make them on an idle path.
    pub fn load(&self) -> f64 {
        let (clients, workload) = (&self.scenario.clients, &self.scenario.workload);
        let exchanges = f64::from(workload.exchanges);
        let window_s = clients.start_window.0 as f64 / 1e9;
        let alone_s = self.alone_s();
        let (exchanges, span_s) = match (workload.clocked(), workload.interval_ns()) {
            (Some(Clocked { pattern: Pattern::Synchronised { .. }, .. }), _) => {
                (1.0, window_s + alone_s)
            }
            (_, Some(interval)) => (1.0, alone_s.max(interval as f64 / 1e9)),
            (_, None) => (exchanges, window_s + exchanges * alone_s),
        };
        f64::from(clients.count) * self.exchange_s * exchanges / span_s
    }

    /// The mean time of an exchange on an idle path, s, link errors and the timeouts of RFC 7252
    /// included.
    fn alone_s(&self) -> f64 {
        let carried = 1.0 - self.scenario.average_loss();
        let lost = 1.0 - carried * carried;
        let mut waited = 0.0;
        let (mut chance, mut timeout) = (lost, 2.5);
        for _ in 0..self.scenario.coap.max_retransmit.min(20) {
            waited += chance * timeout;
            chance *= lost;
            timeout *= 2.0;
        }
        self.idle_s + waited
    }

    /// The buffer divided by the bandwidth-delay product; `None` without a limit.
    pub fn buffer_bdp(&self) -> Option<f64> {
        self.scenario.network.down.buffer.0.map(|bytes| bytes as f64 / self.bdp_bytes)
    }

    /// Whether each client's share of the capacity is at least one exchange a minute.
    pub fn has_a_share(&self) -> bool {
        f64::from(self.scenario.clients.count) * self.exchange_s <= 60.0
    }
}
