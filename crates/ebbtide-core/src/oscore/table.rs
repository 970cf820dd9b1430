//! The contexts of a server, by the names in requests.

use super::option::OscoreOption;
use super::renewal;
use super::short::{ContextId, PeerId};
use alloc::boxed::Box;
use alloc::collections::BTreeMap;

/// The name of a context in a client's requests.
#[derive(Copy, Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ContextName {
    /// The client's Sender ID.
    pub kid: PeerId,
    /// The ID Context.
    pub kid_context: Option<ContextId>,
}

/// A name as it is kept. Few have an ID Context, which is the longest part.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct KeptName {
    kid: PeerId,
    kid_context: Option<Box<ContextId>>,
}

impl From<ContextName> for KeptName {
    fn from(ContextName { kid, kid_context }: ContextName) -> Self {
        Self { kid, kid_context: kid_context.map(Box::new) }
    }
}

/// Contexts by name. They have numbers as well, in the order in which they were added. No number is used again.
#[derive(Debug)]
pub struct ContextTable<T> {
    contexts: BTreeMap<u32, T>,
    /// The number of the next one.
    next: u32,
    names: BTreeMap<KeptName, u32>,
}

impl<T> Default for ContextTable<T> {
    fn default() -> Self {
        Self { contexts: BTreeMap::new(), next: 0, names: BTreeMap::new() }
    }
}

impl<T> ContextTable<T> {
    /// Adds a context. Returns it if there is one of this name.
    ///
    /// # Errors
    ///
    /// Returns the context if its name is taken.
    pub fn add(&mut self, name: ContextName, context: T) -> Result<u32, T> {
        let (number, name) = (self.next, KeptName::from(name));
        if self.names.contains_key(&name) {
            return Err(context);
        }
        self.names.insert(name, number);
        self.contexts.insert(number, context);
        self.next += 1;
        Ok(number)
    }

    /// Removes the context with this number.
    pub fn remove(&mut self, number: u32) -> Option<T> {
        self.names.retain(|_, named| *named != number);
        self.contexts.remove(&number)
    }

    /// Whether a request can name a context by this ID.
    #[must_use]
    pub fn has(&self, kid: &PeerId) -> bool {
        let first = self.names.range(KeptName { kid: *kid, kid_context: None }..).next();
        first.is_some_and(|(name, _)| name.kid == *kid)
    }

    /// The number of the context that a request names. A request without an ID Context may name one
    /// that has it, the one with the lowest ID Context if there are several (RFC 8613 section 5.1
    /// leaves this to the server). Those of an exchange of new keys may be encoded.
    #[must_use]
    pub fn find(&self, option: &OscoreOption<'_>) -> Option<u32> {
        let kid = PeerId::new(option.kid?)?;
        match option.kid_context {
            Some(given) => {
                let named = |id: &[u8]| {
                    let kid_context = Some(ContextId::new(id)?);
                    self.names.get(&ContextName { kid, kid_context }.into()).copied()
                };
                named(given).or_else(|| named(renewal::decode_part(given)?))
            }
            None => {
                let first = self.names.range(KeptName { kid, kid_context: None }..).next();
                first.filter(|(name, _)| name.kid == kid).map(|(_, number)| *number)
            }
        }
    }

    /// The context with this number.
    #[must_use]
    pub fn get(&self, number: u32) -> Option<&T> {
        self.contexts.get(&number)
    }

    /// All contexts with their numbers, in the order of these.
    pub fn iter(&self) -> impl DoubleEndedIterator<Item = (u32, &T)> {
        self.contexts.iter().map(|(number, context)| (*number, context))
    }
}
