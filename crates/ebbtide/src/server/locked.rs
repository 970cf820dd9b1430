//! State that several threads share, behind a mutex.

use ebbtide_core::session::server::SharedState;
use std::sync::{Mutex, PoisonError};

#[derive(Debug)]
pub(super) struct Locked<T>(Mutex<T>);

impl<T> Locked<T> {
    pub(super) const fn new(shared: T) -> Self {
        Self(Mutex::new(shared))
    }
}

impl<T> SharedState<T> for Locked<T> {
    fn with<R>(&self, change: impl FnOnce(&mut T) -> R) -> R {
        change(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}
