//! Values from the segments of a path and the arguments of a query.

use super::values::from_pairs;
use super::{Call, FromCall, Rejection};
use ebbtide_core::wire::Code;
use serde::de::DeserializeOwned;

/// The segments that stood for the names in the route, such as `{room}`: one value, a tuple of
/// them in the route's order, or a struct whose fields have the route's names.
///
/// A segment that is not such a value is answered 4.00 with its name.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct Path<T>(pub T);

/// The arguments of the query, `name=value` each: a struct whose fields have those names. A field
/// may be an `Option`, a `Vec` of what is given several times, or a `bool` that is true if
/// the name stands alone.
///
/// An argument that is missing or not such a value is answered 4.00 with its name.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct Query<T>(pub T);

impl<S, T: DeserializeOwned> FromCall<S> for Path<T> {
    type Rejection = Rejection;

    fn from_call(call: &Call<'_>, _: &S) -> Result<Self, Rejection> {
        from_pairs("path parameter", &call.params())
            .map(Self)
            .map_err(|error| Rejection::new(Code::BAD_REQUEST, error.to_string()))
    }
}

impl<S, T: DeserializeOwned> FromCall<S> for Query<T> {
    type Rejection = Rejection;

    fn from_call(call: &Call<'_>, _: &S) -> Result<Self, Rejection> {
        let arguments = call.query().collect::<Vec<_>>();
        let pairs =
            arguments.iter().map(|argument| argument.split_once('=').unwrap_or((argument, "")));
        from_pairs("query argument", &pairs.collect::<Vec<_>>())
            .map(Self)
            .map_err(|error| Rejection::new(Code::BAD_REQUEST, error.to_string()))
    }
}
