//! The details of errors.

use std::error::Error;

/// The source of an error, if it is of this type.
pub(crate) fn source<T: Error + Clone + 'static>(error: &ebbtide::Error) -> Option<T> {
    error.source()?.downcast_ref().cloned()
}
