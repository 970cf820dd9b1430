//! The segments that the final `{*name}` of a route matches.

use ebbtide_core::wire::Message;
use std::sync::OnceLock;

/// See the [module](self). They are joined for the first one that asks for them.
pub(crate) struct RestOfPath<'a> {
    message: &'a Message<'a>,
    from: usize,
    joined: OnceLock<String>,
}

impl<'a> RestOfPath<'a> {
    /// The segments of the path from this one on.
    pub(super) const fn new(message: &'a Message<'a>, from: usize) -> Self {
        Self { message, from, joined: OnceLock::new() }
    }

    /// The segments, joined by slashes.
    pub(super) fn as_str(&self) -> &str {
        self.joined.get_or_init(|| {
            let mut joined = String::new();
            for (count, segment) in self.message.path().skip(self.from).enumerate() {
                if count > 0 {
                    joined.push('/');
                }
                joined.push_str(&String::from_utf8_lossy(segment));
            }
            joined
        })
    }
}
