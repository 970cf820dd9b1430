//! A statement of a paper, and when it is judged.

use serde::Serialize;

/// With fewer replications nothing is judged. The tolerances were set for 20, and the interval of
/// a few replications is wider than the tolerance.
pub const REPS_TO_JUDGE: u32 = 10;

/// A statement of a paper.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Statement {
    /// The statement of the paper.
    pub says: String,
    /// The measured figures.
    pub measured: String,
    /// Whether the measured value agrees.
    pub holds: bool,
}

impl Statement {
    /// Whether it holds after so many replications; `None` if these are too few to tell.
    #[must_use]
    pub fn holds_after(&self, reps: u32) -> Option<bool> {
        (reps >= REPS_TO_JUDGE).then_some(self.holds)
    }

    /// In a sentence, after so many replications.
    #[must_use]
    pub fn words(&self, reps: u32) -> String {
        format!("{}: {}; {}.", self.says, self.verdict(reps), self.measured)
    }

    /// Whether it holds, in words.
    #[must_use]
    pub fn verdict(&self, reps: u32) -> String {
        match self.holds_after(reps) {
            Some(true) => "holds".to_owned(),
            Some(false) => "does not hold".to_owned(),
            None => format!("not judged, which needs {REPS_TO_JUDGE} replications"),
        }
    }
}
