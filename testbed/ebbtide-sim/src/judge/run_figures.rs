//! The figures of replications.

use serde::{Deserialize, Serialize};

/// The figures of one replication, or of several together. NaN where there is nothing to divide by.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct RunFigures {
    /// Share of the exchanges whose answer reached the client.
    pub delivered: f64,
    /// Share of the exchanges whose request reached the server.
    pub arrived: f64,
    /// Share of all transmissions of the clients that were unnecessary.
    pub unnecessary_share: f64,
    /// Packets that clients sent, probes and acknowledgements included, per delivered exchange.
    pub transmissions_per_delivered: f64,
    /// Bytes on the wire, both ways, per delivered exchange.
    pub bytes_per_delivered: f64,
    /// Seconds by which 50, 90, 99 and 100 % of the exchanges were delivered; `None`: never.
    pub delivered_by_s: [Option<f64>; 4],
    /// Share of the capacity, until the last client was done, that delivered exchanges took.
    pub goodput_share: f64,
    /// Share of the capacity that packets of the clients took.
    pub occupied: f64,
    /// Share of the exchanges that were not answered within the deadline; `None` without one.
    pub deadline_missed: Option<f64>,
    /// Jain's index over what each client got answered per time.
    pub fairness: f64,
    /// Mean power of the radio of a device, mW; `None` where it is not known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub power_mw: Option<f64>,
}
