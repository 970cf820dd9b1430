//! `ebbtide check`: rules of the RFCs that a server's datagrams show, and in `client` those of a client.
//!
//! A rule sends datagrams over a plain socket, not through an endpoint, and looks at what comes back: at types, codes,
//! options and bytes. It needs nothing of the server but an address.

pub(crate) mod client;
mod congestion;
mod malformed;
mod observe;
mod options;
mod peer;
mod requests;
mod writing;

pub(crate) use peer::CheckSocket;

use serde::Serialize;

/// How a specification states a rule.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Level {
    Must,
    Should,
}

/// The verdict on a rule.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase", tag = "verdict", content = "detail")]
pub(crate) enum Finding {
    Holds,
    /// The server did this instead.
    Broken(String),
    /// The rule could not be tried, for this reason.
    Untried(String),
}

impl Finding {
    /// Holds if there is no complaint.
    fn unless(complaint: Option<String>) -> Self {
        complaint.map_or(Self::Holds, Self::Broken)
    }
}

/// The server as its list of resources describes it.
#[derive(Clone, Debug, Default)]
pub(crate) struct CheckedServer {
    /// The paths of the resources that it lists, and of the one that the user named.
    pub(crate) paths: Vec<String>,
    /// Those of them that can be observed.
    pub(crate) observable: Vec<String>,
    /// A path whose resource may be changed.
    pub(crate) writable: Option<String>,
    /// Whether it is on this machine, where a stranger cannot forge addresses.
    pub(crate) is_local: bool,
}

/// A rule and the way to try it.
pub(crate) struct Rule {
    pub(crate) clause: &'static str,
    pub(crate) level: Level,
    /// The rule as a sentence about a server.
    pub(crate) text: &'static str,
    pub(crate) attempt: fn(&mut CheckSocket, &CheckedServer) -> Finding,
    /// Whether it takes minutes.
    pub(crate) is_slow: bool,
}

impl Rule {
    const fn must(
        clause: &'static str,
        text: &'static str,
        attempt: fn(&mut CheckSocket, &CheckedServer) -> Finding,
    ) -> Self {
        Self { clause, level: Level::Must, text, attempt, is_slow: false }
    }

    const fn should(
        clause: &'static str,
        text: &'static str,
        attempt: fn(&mut CheckSocket, &CheckedServer) -> Finding,
    ) -> Self {
        Self { level: Level::Should, ..Self::must(clause, text, attempt) }
    }

    const fn slow(self) -> Self {
        Self { is_slow: true, ..self }
    }
}

/// All rules, in the order in which they are tried.
pub(crate) fn rules() -> impl Iterator<Item = &'static Rule> {
    let simple = [requests::RULES, options::RULES, writing::RULES, observe::RULES];
    simple.into_iter().chain([malformed::RULES, congestion::RULES]).flatten()
}

/// Asks the server for its resources (RFC 6690 section 4).
pub(crate) fn discover(peer: &mut CheckSocket, path: Option<String>) -> CheckedServer {
    let paths = path.into_iter().collect();
    let mut server = CheckedServer { paths, is_local: peer.is_local(), ..CheckedServer::default() };
    let Some(answer) = peer.get("/.well-known/core") else { return server };
    for link in String::from_utf8_lossy(&answer.payload()).split(',') {
        let Some((path, attributes)) =
            link.trim().strip_prefix('<').and_then(|l| l.split_once('>'))
        else {
            continue;
        };
        if !path.starts_with('/') || server.paths.len() >= MOST_PATHS {
            continue;
        }
        if attributes.split(';').any(|attribute| attribute.trim() == "obs") {
            server.observable.push(path.to_owned());
        }
        server.paths.push(path.to_owned());
    }
    server
}

/// More resources than this are not tried.
const MOST_PATHS: usize = 32;
