//! A client and a server for a handful of peers, in tables of fixed size, without an allocator.
//!
//! [`DeviceEndpoint`] speaks the protocol of [`endpoint`](crate::endpoint), and is made of the same
//! parts: the codec, the congestion controls in their [`Shell`](crate::cc::Shell), message IDs,
//! tokens and marks. Given the same calls, datagrams and random numbers, both send the same
//! datagrams at the same instants, which tests show. It leaves out:
//!
//! * controls that probe or pace (`ebb`, `rcoap`), and marks other than those of `fasor-token`;
//! * one control for several addresses, or several controls in one endpoint;
//! * Non-confirmable messages of its own, groups, pings, and the mark Congestion Experienced;
//! * responses later than the acknowledgement of their request;
//! * duplicates of requests whose responses are longer than the program reserves;
//! * bodies with more than one block in flight, and those of RFC 9177;
//! * several bodies at a time for one peer, answers withheld until an address is proved (shorter blocks instead);
//! * copies of Confirmable responses before the last four, which it rejects;
//! * connections (RFC 8323);
//! * counters.
//!
//! # Contract
//!
//! A program owns the socket, the clock and the random numbers, and passes them to each call as
//! [`Io`]. It calls [`DeviceEndpoint::poll`] after every other call until that returns
//! [`DevicePoll::Wait`], then waits until this instant or until a datagram arrives, and hands the
//! datagram to [`DeviceEndpoint::receive`]. Every accepted exchange ends exactly once.

mod answer;
mod duplicates;
mod endpoint;
mod marks;
mod observation;
mod observers;
mod peers;
mod proof;
mod receive;
mod request;
mod request_key;
mod server;
mod tables;
mod transfer;
mod upload;

pub use answer::{DeviceAnswer, DeviceHandler};
pub use endpoint::{
    DeviceConfig, DeviceEndpoint, DeviceExchangeId, DevicePoll, DeviceSendError, Io,
};
pub use observation::{DeviceObservation, DeviceObservationStep};
pub use proof::DeviceVerify;
pub use receive::{DeviceReceived, DeviceRequest};
pub use request::DeviceRequestParts;
pub use server::DeviceServer;
pub use tables::{DeviceFailure, DeviceTables};
pub use transfer::{DeviceBody, DeviceStep, DeviceTransfer, DeviceTransferError};
