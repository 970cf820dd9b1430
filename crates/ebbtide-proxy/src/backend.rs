//! Reverse proxying: paths of the gateway that stand for servers (RFC 7252 section 5.7.3).

use crate::target::{NamedBy, Target};
use ebbtide::Uri;

/// A path of the gateway and the URI for which it stands.
#[derive(Clone, Debug)]
struct Backend {
    path: Vec<String>,
    base: Target,
}

/// All backends, the longest paths first.
#[derive(Clone, Debug, Default)]
pub(crate) struct Backends(Vec<Backend>);

impl Backends {
    pub(crate) fn add(&mut self, path: &str, uri: &Uri) {
        let path: Vec<_> =
            path.split('/').filter(|segment| !segment.is_empty()).map(str::to_owned).collect();
        let base = Target { named_by: NamedBy::Operator, ..Target::of_uri(uri) };
        self.0.retain(|known| known.path != path);
        self.0.push(Backend { path, base });
        self.0.sort_by_key(|backend| core::cmp::Reverse(backend.path.len()));
    }

    /// The paths below which there are backends.
    pub(crate) fn paths(&self) -> impl Iterator<Item = String> {
        self.0.iter().map(|backend| backend.path.join("/"))
    }

    /// The URIs for which paths stand.
    pub(crate) fn uris(&self) -> impl Iterator<Item = String> {
        self.0.iter().map(|backend| backend.base.uri())
    }

    /// Whether a path stands for something at this server.
    pub(crate) fn has_server(&self, target: &Target) -> bool {
        self.0.iter().any(|backend| backend.base.is_same_server(target))
    }

    /// The target of a request to the gateway's own path.
    pub(crate) fn target(&self, mut path: Vec<String>, query: Vec<String>) -> Option<Target> {
        let Backend { path: own, base } =
            self.0.iter().find(|backend| path.starts_with(&backend.path))?;
        drop(path.splice(..own.len(), base.path.iter().cloned()));
        let Target { scheme, address, port, named_by, .. } = *base;
        Some(Target { scheme, host: base.host.clone(), address, port, path, query, named_by })
    }

    /// The gateway's own path of a resource that a server reports.
    pub(crate) fn own_path(&self, target: &Target) -> Option<Vec<String>> {
        self.0.iter().find_map(|Backend { path, base }| {
            let is_same = base.is_same_server(target);
            let below = target.path.strip_prefix(&*base.path).filter(|_| is_same)?;
            Some(path.iter().chain(below).cloned().collect())
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn segments(path: &str) -> Vec<String> {
        path.split('/').filter(|segment| !segment.is_empty()).map(str::to_owned).collect()
    }

    #[test]
    fn the_longest_path_decides_and_a_resource_is_found_in_both_directions() {
        let mut backends = Backends::default();
        backends.add("/", &"coap://192.0.2.1/".parse().unwrap());
        backends.add("/floor/2", &"coap+tcp://b.example/rooms".parse().unwrap());
        for (path, uri) in [
            ("/floor/2/kitchen", "coap+tcp://b.example:5683/rooms/kitchen?x"),
            ("/floor/2", "coap+tcp://b.example:5683/rooms?x"),
            ("/floor/22", "coap://192.0.2.1:5683/floor/22?x"),
        ] {
            let target = backends.target(segments(path), vec!["x".to_owned()]).unwrap();
            assert_eq!(target.uri(), uri);
            assert_eq!(backends.own_path(&target), Some(segments(path)));
        }
        assert!(Backends::default().target(segments("/a"), Vec::new()).is_none());
    }
}
