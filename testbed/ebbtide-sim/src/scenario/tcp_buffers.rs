//! The memory of simulated TCP: the buffers of all connections of a replication.

use super::class::ClassView;
use super::control::{Control, Transport};
use super::{Scenario, ScenarioError};

/// Bytes of a socket's buffer for requests: many of them.
const REQUESTS: u32 = 8192;
/// Bytes of a socket's buffer for a flow: the largest window that needs no scaling (RFC 9293 section 3.1).
const FLOW: u32 = 65_535;
/// The buffers of a connection: at each end one to send and one to receive.
const BUFFERS: u64 = 4;
/// The bytes of all buffers of a replication.
const MOST_BUFFERS: u64 = 4 << 30;

impl Scenario {
    /// Bytes of a socket's send buffer, and of its receive buffer.
    pub(crate) const fn tcp_buffer(&self) -> u32 {
        match self.workload.flow() {
            Some(_) => FLOW,
            None => REQUESTS,
        }
    }

    /// Bytes of the TCP buffers of a replication, those of `[network.background]` included, if its clients are under
    /// these controls in turn, unless their class has its own.
    #[must_use]
    pub fn tcp_buffers(&self, controls: &[Control]) -> u64 {
        let of = |class: &ClassView| {
            let own = class.control.as_ref();
            let own = own.and_then(|text| class.scenario.control_config(text).ok());
            let controls = own.as_ref().map_or(controls, std::slice::from_ref);
            let is_tcp = |control: &&Control| control.transport() == Transport::Tcp;
            let over_tcp = controls.iter().filter(is_tcp).count() as u64;
            let clients = u64::from(class.scenario.clients.count);
            let clients = clients.div_ceil(controls.len().max(1) as u64) * over_tcp;
            clients * u64::from(class.scenario.tcp_buffer())
        };
        let background = &self.network.background;
        let flows = u64::from(background.flows) * u64::from(background.window);
        BUFFERS * (flows + self.classes().iter().map(of).sum::<u64>())
    }

    /// Refuses more clients over TCP than their buffers have room for.
    pub(crate) fn check_tcp_buffers(
        &self,
        cc: &str,
        controls: &[Control],
    ) -> Result<(), ScenarioError> {
        let bytes = self.tcp_buffers(controls);
        if bytes <= MOST_BUFFERS {
            return Ok(());
        }
        let most = u64::from(self.client_count()) * (MOST_BUFFERS >> 10) / (bytes >> 10);
        let message = format!(
            "needs {:.1} GiB for the buffers of TCP, at most 4 GiB: lower clients.count to {most}, or the counts of \
             the classes in this proportion",
            bytes as f64 / f64::from(1 << 30)
        );
        Err(ScenarioError::argument("--cc", cc, &message))
    }
}
