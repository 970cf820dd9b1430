//! The devices of a scenario: which host a model has.

use super::secure::SecureClient;
use super::{Client, ClientSetup, Model, ObservedHost, QBlockClient, TcpClient};
use crate::record::Recorder;
use crate::scenario::SecurityMode;

/// The host of a device of this model.
pub(crate) fn device<R: Recorder>(
    model: &Model,
    setup: ClientSetup<'_>,
) -> Box<dyn ObservedHost<R>> {
    match (model, setup.scenario.security.mode) {
        (Model::Udp(model), SecurityMode::None | SecurityMode::Oscore) => {
            Box::new(Client::new(setup, model.clone()))
        }
        (Model::Udp(model), SecurityMode::DtlsPsk) => {
            Box::new(SecureClient::new(setup, model.clone()))
        }
        (Model::Tcp(settings), _) => Box::new(TcpClient::new(setup, *settings)),
        (Model::QBlock(settings), _) => Box::new(QBlockClient::new(setup, *settings)),
    }
}
