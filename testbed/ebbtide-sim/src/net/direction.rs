use serde::{Deserialize, Serialize};

/// A direction, seen from the devices.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Direction {
    /// Towards the server.
    #[default]
    Up,
    /// Towards the devices.
    Down,
}

impl Direction {
    /// Both directions, in the order of their numbers.
    pub const BOTH: [Self; 2] = [Self::Up, Self::Down];

    /// The name in scenarios, traces and results.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Up => "up",
            Self::Down => "down",
        }
    }

    /// The value for this direction.
    #[inline]
    pub fn select<T>(self, up: T, down: T) -> T {
        match self {
            Self::Up => up,
            Self::Down => down,
        }
    }
}
