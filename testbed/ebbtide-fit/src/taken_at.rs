//! The place of a capture.

/// Where a capture was taken.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum TakenAt {
    /// Next to the clients.
    Clients,
    /// Next to the server.
    Server,
    /// At both ends, each with an interface of its own in the file.
    Link,
}

impl TakenAt {
    /// Its name on the command line.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Clients => "clients",
            Self::Server => "server",
            Self::Link => "link",
        }
    }

    /// The place with this name.
    pub fn from_name(name: &str) -> Option<Self> {
        [Self::Clients, Self::Server, Self::Link].into_iter().find(|place| place.name() == name)
    }
}
