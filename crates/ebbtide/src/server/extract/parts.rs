//! Parts that need no parsing: the state, the peer, options.

use super::{Call, FromCall};
use crate::client::Peer;
use crate::message::ContentFormat;
use crate::server::BodyStream;
use core::convert::Infallible;
use ebbtide_core::wire::OptionNumber;
use std::net::SocketAddr;

/// The state that [`Router::with_state`](crate::server::Router::with_state) was given, cloned for
/// each request: mostly an `Arc`, or a struct of them.
#[derive(Copy, Clone, Debug)]
pub struct State<S>(pub S);

impl<S: Clone> FromCall<S> for State<S> {
    type Rejection = Infallible;

    fn from_call(_: &Call<'_>, state: &S) -> Result<Self, Infallible> {
        Ok(Self(state.clone()))
    }
}

/// The address that the request came from.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct Remote(pub SocketAddr);

impl<S> FromCall<S> for Remote {
    type Rejection = Infallible;

    fn from_call(call: &Call<'_>, _: &S) -> Result<Self, Infallible> {
        Ok(Self(call.remote()))
    }
}

impl<S> FromCall<S> for Peer {
    type Rejection = Infallible;

    fn from_call(call: &Call<'_>, _: &S) -> Result<Self, Infallible> {
        Ok(call.peer())
    }
}

/// The format that the client asks for, if it asks for one (RFC 7252 section 5.10.4).
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct Accept(pub Option<ContentFormat>);

impl<S> FromCall<S> for Accept {
    type Rejection = Infallible;

    fn from_call(call: &Call<'_>, _: &S) -> Result<Self, Infallible> {
        Ok(Self(call.accept()))
    }
}

/// The versions of the resource that the client has (RFC 7252 section 5.10.6.2): answer 2.03 without
/// a payload if one of them is current.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ETags(pub Vec<Vec<u8>>);

impl ETags {
    /// Whether the client has this version.
    #[must_use]
    pub fn contains(&self, etag: &[u8]) -> bool {
        self.0.iter().any(|known| known == etag)
    }
}

impl<S> FromCall<S> for ETags {
    type Rejection = Infallible;

    fn from_call(call: &Call<'_>, _: &S) -> Result<Self, Infallible> {
        let options = call.message().options();
        let etags = options.filter(|opt| opt.number == OptionNumber::ETAG);
        Ok(Self(etags.map(|opt| opt.value.to_vec()).collect()))
    }
}

impl<S> FromCall<S> for BodyStream {
    type Rejection = Infallible;

    fn from_call(call: &Call<'_>, _: &S) -> Result<Self, Infallible> {
        Ok(call.body_stream())
    }
}
