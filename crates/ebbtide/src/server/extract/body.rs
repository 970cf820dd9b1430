//! Bodies, as bytes or as values.

use super::{Call, FromCall};
use crate::message::ContentFormat;
use bytes::Bytes;
use core::convert::Infallible;

/// The body with its format, whatever it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Body {
    /// The payload; of a block-wise transfer the whole body.
    pub bytes: Bytes,
    /// Its format, if the request names one.
    pub format: Option<ContentFormat>,
}

impl<S> FromCall<S> for Body {
    type Rejection = Infallible;

    fn from_call(call: &Call<'_>, _: &S) -> Result<Self, Infallible> {
        Ok(Self { bytes: call.body(), format: call.format() })
    }
}
