//! `--broker`: a broker of topics beside the other resources.

use super::serve_directory::beside;
use crate::failure::Failure;
use clap::Args;
use ebbtide_proxy::{Broker, BrokerConfig};
use std::path::Path;

/// A broker of topics
#[derive(Args, Debug)]
pub(crate) struct BrokerArgs {
    /// Let clients create topics at /ps, publish to them, and observe what others publish
    /// (draft-ietf-core-coap-pubsub-21). With --state, topics and their latest publications are stored next to that
    /// file, in FILE.broker
    #[arg(long)]
    broker: bool,
}

impl BrokerArgs {
    /// The broker, if it is asked for. Must be called within a tokio runtime.
    pub(crate) fn open(&self, state: Option<&Path>) -> Result<Option<Broker>, Failure> {
        if !self.broker {
            return Ok(None);
        }
        let config = match state {
            Some(path) => BrokerConfig::new().state(beside(path, "broker")),
            None => BrokerConfig::new(),
        };
        let failed = |error| Failure::work(format_args!("--state {error}"));
        Broker::open(config).map(Some).map_err(failed)
    }
}
