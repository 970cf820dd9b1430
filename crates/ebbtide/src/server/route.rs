//! One route: the resource at a path, and its call with a request.

use super::body_stream::BodyStream;
use super::call::{Borrowed, Call, Params};
use super::origin::Origin;
use super::resource::Resource;
use super::rest_of_path::RestOfPath;
use ebbtide_core::wire::Message;
use std::sync::Arc;

/// The resource at a path.
#[derive(Debug)]
pub(super) struct Route<S = ()> {
    pub(super) path: String,
    pub(super) names: Vec<String>,
    pub(super) resource: Resource<S>,
    /// The number of segments before a final `{*name}`.
    pub(super) rest: Option<usize>,
}

impl<S> Clone for Route<S> {
    fn clone(&self) -> Self {
        let (path, names) = (self.path.clone(), self.names.clone());
        Self { path, names, resource: self.resource.clone(), rest: self.rest }
    }
}

/// The route of a request, with the segments of its path that match the route's names.
pub(super) struct RouteMatch<'r, 'm> {
    pub(super) route: RouteRef<'r>,
    pub(super) params: Params<'m>,
    /// Whether the first block of the request's body has If-None-Match.
    pub(super) if_none_match: bool,
}

/// A route of the initial router, which needs no lock, or one that was added later.
pub(super) enum RouteRef<'r> {
    Fixed(&'r Route),
    Added(Arc<Route>),
}

impl core::ops::Deref for RouteRef<'_> {
    type Target = Route;

    fn deref(&self) -> &Route {
        match self {
            Self::Fixed(route) => route,
            Self::Added(route) => route,
        }
    }
}

impl<'r, 'm> RouteMatch<'r, 'm> {
    pub(super) fn fixed(route: &'r Route, params: Params<'m>) -> Self {
        Self { route: RouteRef::Fixed(route), params, if_none_match: false }
    }

    pub(super) fn added(route: Arc<Route>, params: Params<'m>) -> Self {
        Self { route: RouteRef::Added(route), params, if_none_match: false }
    }

    /// Calls `with` with the request in the form that the route's handlers receive. `payload` is
    /// the whole body.
    pub(super) fn call<R>(
        &self,
        origin: &Origin<'_>,
        message: &Message<'m>,
        payload: &[u8],
        with: impl FnOnce(&Call<'_>) -> R,
    ) -> R {
        self.call_arriving(origin, message, payload, None, with)
    }

    /// Calls `with` with a request whose body is taken as it arrives.
    pub(super) fn call_arriving<R>(
        &self,
        origin: &Origin<'_>,
        message: &Message<'m>,
        payload: &[u8],
        arriving: Option<&BodyStream>,
        with: impl FnOnce(&Call<'_>) -> R,
    ) -> R {
        let Self { route, params, if_none_match } = self;
        let rest = route.rest.map(|from| RestOfPath::new(message, from));
        let call = Borrowed {
            origin,
            message: *message,
            // RFC 7252 section 5.5: the recipient ignores a payload that the method does not have.
            payload: if message.code().has_payload() { payload } else { &[] },
            names: &route.names,
            params,
            rest: rest.as_ref(),
            arriving,
            if_none_match: *if_none_match,
        };
        with(&call.into())
    }
}

impl Route {
    /// Whether the path has parameters.
    pub(super) fn is_template(&self) -> bool {
        !self.names.is_empty()
    }
}
