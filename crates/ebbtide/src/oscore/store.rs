//! Where the sequence numbers of a context are stored.

use super::sequence_file::SequenceFile;
use ebbtide_core::oscore::SequenceStore;

/// Most contexts of a server whose clients shake hands have no file.
pub(super) enum NumberStore {
    /// The context ends with the program.
    Volatile,
    File(Box<SequenceFile>),
}

impl SequenceStore for NumberStore {
    fn reserve(&mut self, limit: u64) -> bool {
        match self {
            Self::Volatile => true,
            Self::File(file) => file.reserve(limit),
        }
    }
}
