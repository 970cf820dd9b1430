//! Routes: the choice of the handler for a request.

use super::call::{MAX_PARAMS, Params};
use super::layer::Layer;
use super::resource::Resource;
use super::route::{Route, RouteMatch};
use super::well_known;
use crate::message::Response;
use ebbtide_core::wire::{Message, OptionNumber, Path};
use std::sync::Arc;

/// The resources of a server by path.
///
/// A segment `{name}` matches any one segment, and a final `{*name}` any number of segments. A
/// literal segment takes precedence over `{name}`, and both over `{*name}`.
///
/// `S` is the state that handlers take as `State<S>`. A server takes a router without state;
/// [`Self::with_state`] supplies the state.
#[derive(Debug)]
pub struct Router<S = ()> {
    root: Node,
    pub(super) routes: Vec<Arc<Route<S>>>,
    /// Indices of removed routes.
    free: Vec<usize>,
    /// See [`Self::forward_proxy`].
    forward: Option<Arc<Route<S>>>,
}

impl<S> Default for Router<S> {
    fn default() -> Self {
        Self { root: Node::default(), routes: Vec::new(), free: Vec::new(), forward: None }
    }
}

impl<S> Clone for Router<S> {
    fn clone(&self) -> Self {
        Self {
            root: self.root.clone(),
            routes: self.routes.clone(),
            free: self.free.clone(),
            forward: self.forward.clone(),
        }
    }
}

/// A path in the form in which routes are kept: with one slash before its segments.
fn absolute(path: &str) -> String {
    format!("/{}", path.trim_start_matches('/'))
}

/// The segments of a path. The root has none; a final slash is an empty segment (RFC 7252 section 6.5).
fn segments(path: &str) -> impl Iterator<Item = &str> {
    let path = path.trim_start_matches('/');
    path.split('/').take(if path.is_empty() { 0 } else { usize::MAX })
}

#[derive(Clone, Debug, Default)]
struct Node {
    fixed: Vec<(Box<[u8]>, Node)>,
    any: Option<Box<Node>>,
    rest: Option<usize>,
    route: Option<usize>,
}

impl<S: Send + Sync + 'static> Router<S> {
    /// Creates a router without resources.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a resource at a path such as `/rooms/{room}/light`, with at most four parameters and a
    /// final `{*rest}`.
    ///
    /// # Panics
    ///
    /// Panics if there is a route with this path already, whatever the names of its parameters, or
    /// if it has more than four parameters.
    #[must_use]
    #[track_caller]
    pub fn route(mut self, path: &str, resource: Resource<S>) -> Self {
        let former = self.replace(path, resource);
        assert!(former.is_none(), "two routes match '{path}': remove one, or use `merge`");
        self
    }

    /// Adds a resource, in place of the one that the path has.
    #[must_use]
    #[track_caller]
    fn with_route(mut self, path: &str, resource: Resource<S>) -> Self {
        self.replace(path, resource);
        self
    }

    /// Adds a resource at a path. Returns the place of the route that it replaces, which is vacated.
    #[track_caller]
    pub(super) fn replace(&mut self, path: &str, resource: Resource<S>) -> Option<usize> {
        let count = parameters(path);
        assert!(
            count <= MAX_PARAMS,
            "the route '{path}' has {count} parameters, but at most {MAX_PARAMS} are possible"
        );
        let index = self.free.pop().unwrap_or(self.routes.len());
        let mut names = Vec::new();
        let mut node = &mut self.root;
        let mut rest = None;
        for (depth, segment) in segments(path).enumerate() {
            match segment.strip_prefix('{').and_then(|name| name.strip_suffix('}')) {
                Some(name) if name.starts_with('*') => {
                    names.push(name.trim_start_matches('*').to_owned());
                    rest = Some(depth);
                    break;
                }
                Some(name) => {
                    names.push(name.to_owned());
                    node = node.any.get_or_insert_default();
                }
                None => {
                    let at = node.place(segment.as_bytes()).unwrap_or_else(|at| {
                        node.fixed.insert(at, (segment.as_bytes().into(), Node::default()));
                        at
                    });
                    let (_, next) = node.fixed.get_mut(at)?;
                    node = next;
                }
            }
        }
        let place = if rest.is_some() { &mut node.rest } else { &mut node.route };
        let former = place.replace(index);
        let path = absolute(path);
        let route = Arc::new(Route { path, names, resource, rest });
        match self.routes.get_mut(index) {
            Some(place) => *place = route,
            None => self.routes.push(route),
        }
        self.vacate(former);
        former
    }

    /// Removes the route that was added with this path. Returns false if there is none.
    pub(super) fn remove(&mut self, path: &str) -> Option<Arc<Route<S>>> {
        let path = absolute(path);
        let index = self.routes.iter().position(|route| route.path == path)?;
        self.root.forget(&mut segments(&path), index);
        let removed = self.routes.get(index).cloned();
        self.vacate(Some(index));
        removed
    }

    /// A route that no path reaches any more.
    fn vacate(&mut self, index: Option<usize>) {
        if let Some(index) = index
            && let Some(place) = self.routes.get_mut(index)
        {
            debug_assert!(!self.free.contains(&index), "a place is free once");
            // No route has this path: theirs begin with a slash.
            let resource = Resource::default().hidden();
            let (path, names) = ("".to_owned(), Vec::new());
            *place = Arc::new(Route { path, names, resource, rest: None });
            self.free.push(index);
        }
    }

    /// Adds the routes of another router. Of two at one path, the other router's remains.
    #[must_use]
    pub fn merge(self, other: Self) -> Self {
        self.nest("", other)
    }

    /// Adds the routes of another router below a path such as `/rooms/{room}`. Of two at one path, the
    /// other router's remains.
    ///
    /// # Panics
    ///
    /// Panics if a route then has more than four parameters.
    #[must_use]
    #[track_caller]
    pub fn nest(self, prefix: &str, other: Self) -> Self {
        let prefix = prefix.trim_end_matches('/');
        let there = |route: &Arc<Route<S>>| !route.path.is_empty();
        let forward = other.forward.or_else(|| self.forward.clone());
        let merged = Self { forward, ..self };
        other.routes.into_iter().filter(there).fold(merged, |router, route| {
            let path = if route.path == "/" { "" } else { &route.path };
            router.with_route(&format!("{prefix}{path}"), route.resource.clone())
        })
    }

    /// Sets the resource for requests that match no other route; without it they are answered 4.04.
    /// It has the route `/{*path}` and is not listed in `/.well-known/core`.
    #[must_use]
    pub fn fallback(self, resource: Resource<S>) -> Self {
        self.with_route("/{*path}", resource.hidden())
    }

    /// Sets the resource that answers requests to a forward proxy, which are those with Proxy-Uri or Proxy-Scheme
    /// (RFC 7252 section 5.7.2), whatever their path; without it they are answered 5.05. Its handlers read the
    /// options with [`Call::message`](super::Call::message). Crate `ebbtide-proxy` provides such a resource.
    #[must_use]
    pub fn forward_proxy(mut self, resource: Resource<S>) -> Self {
        let route = Route { path: String::new(), names: Vec::new(), resource, rest: None };
        self.forward = Some(Arc::new(route));
        self
    }

    /// Adds a layer around all routes added so far. Of several layers, the one added last receives
    /// a request first.
    #[must_use]
    pub fn layer(mut self, layer: impl Layer + Clone) -> Self {
        for route in self.routes.iter_mut().chain(&mut self.forward) {
            let route = Arc::make_mut(route);
            route.resource = core::mem::take(&mut route.resource).layer(layer.clone());
        }
        self
    }

    /// Supplies the state of the handlers. The router can then take another state, or none.
    ///
    /// ```
    /// use ebbtide::server::{Router, State, get};
    /// use std::sync::Arc;
    ///
    /// async fn name(State(names): State<Arc<Vec<String>>>) -> Option<String> {
    ///     names.first().cloned()
    /// }
    ///
    /// let names = Arc::new(vec!["kitchen".to_owned()]);
    /// let router: Router = Router::new().route("/name", get(name)).with_state(names);
    /// ```
    #[must_use]
    pub fn with_state<T>(self, state: S) -> Router<T>
    where
        S: Clone,
    {
        let with_state = |route: Arc<Route<S>>| {
            let resource = route.resource.clone().with_state(&state);
            let (path, names) = (route.path.clone(), route.names.clone());
            Arc::new(Route { path, names, resource, rest: route.rest })
        };
        Router {
            root: self.root,
            routes: self.routes.into_iter().map(with_state).collect(),
            free: self.free,
            forward: self.forward.map(with_state),
        }
    }
}

impl Router {
    /// The route of a request with its parameters, or the answer if there is none.
    pub(super) fn find<'a>(&self, message: &Message<'a>) -> Result<RouteMatch<'_, 'a>, Response> {
        match self.look_up(message) {
            Some((route, params)) => Ok(RouteMatch::fixed(route, params)),
            None => Err(well_known::answer(self.routes.iter(), message)),
        }
    }

    /// The route of a request, with its parameters.
    #[inline]
    pub(super) fn look_up<'a>(&self, message: &Message<'a>) -> Option<(&Arc<Route>, Params<'a>)> {
        if let Some(forward) = self.forward_route(message) {
            return Some((forward, Params::NONE));
        }
        let mut params = Params::NONE;
        let found = self.root.find(message.path(), &mut params);
        let route = found.and_then(|index| self.routes.get(index))?;
        // A route with parameters does not match `/.well-known/core`; a literal one does.
        if route.is_template() && well_known::is_asked(message) {
            return None;
        }
        Some((route, params))
    }

    /// Whether it answers requests to a forward proxy.
    pub(super) fn is_forward_proxy(&self) -> bool {
        self.forward.is_some()
    }

    /// The route of a request to a forward proxy.
    pub(super) fn forward_route(&self, message: &Message<'_>) -> Option<&Arc<Route>> {
        let asks = |number| message.option(number).is_some();
        let forward = self.forward.as_ref()?;
        (asks(OptionNumber::PROXY_URI) || asks(OptionNumber::PROXY_SCHEME)).then_some(forward)
    }
}

/// The number of parameters in a path, without a final `{*rest}`.
fn parameters(path: &str) -> usize {
    let is_one = |segment: &&str| {
        segment.starts_with('{') && segment.ends_with('}') && !segment.starts_with("{*")
    };
    path.split('/').filter(is_one).count()
}

impl Node {
    /// The position of a segment among the literal ones, or the position at which to insert it.
    fn place(&self, segment: &[u8]) -> Result<usize, usize> {
        self.fixed.binary_search_by(|(name, _)| (**name).cmp(segment))
    }

    /// Removes a route. Returns true if nothing remains below this node.
    fn forget(&mut self, path: &mut dyn Iterator<Item = &str>, index: usize) -> bool {
        if self.rest == Some(index) {
            self.rest = None;
        } else if let Some(segment) = path.next() {
            if segment.starts_with('{') && segment.ends_with('}') {
                if self.any.as_mut().is_some_and(|any| any.forget(path, index)) {
                    self.any = None;
                }
            } else if let Ok(at) = self.place(segment.as_bytes())
                && self.fixed.get_mut(at).is_some_and(|(_, next)| next.forget(path, index))
            {
                self.fixed.remove(at);
            }
        } else if self.route == Some(index) {
            self.route = None;
        }
        self.fixed.is_empty() && self.any.is_none() && self.rest.is_none() && self.route.is_none()
    }

    /// Its depth is limited by the longest route, whatever the request.
    fn find<'a>(&self, mut path: Path<'a>, params: &mut Params<'a>) -> Option<usize> {
        let Some(segment) = path.next() else {
            return self.route.or(self.rest);
        };
        if let Ok(at) = self.place(segment)
            && let Some((_, next)) = self.fixed.get(at)
            && let Some(found) = next.find(path.clone(), params)
        {
            return Some(found);
        }
        let count = params.count;
        if let Some(next) = &self.any {
            if count < MAX_PARAMS {
                params.values[count] = segment;
                params.count = count + 1;
            }
            if let Some(found) = next.find(path, params) {
                return Some(found);
            }
            params.count = count;
        }
        self.rest
    }
}

#[cfg(test)]
mod tests {
    use super::super::get;
    use super::super::rest_of_path::RestOfPath;
    use super::*;
    use ebbtide_core::wire::{Code, Encoder, MessageId, Token, Type};

    fn find(router: &Router, path: &[&str]) -> Option<(String, Vec<String>)> {
        let mut buf = [0; 128];
        let mut encoder =
            Encoder::new(&mut buf, Type::Confirmable, Code::GET, MessageId(1), Token::EMPTY)
                .unwrap();
        for segment in path {
            encoder.option(OptionNumber::URI_PATH, segment.as_bytes()).unwrap();
        }
        let message = Message::parse(encoder.finish()).unwrap();
        let RouteMatch { route, params, .. } = router.find(&message).ok()?;
        let values = params.values.iter().take(params.count);
        let values = values.map(|value| String::from_utf8_lossy(value).into_owned());
        let rest = route.rest.map(|from| RestOfPath::new(&message, from).as_str().to_owned());
        Some((route.path.clone(), values.chain(rest).collect()))
    }

    #[test]
    fn a_removed_route_is_gone_and_its_place_is_used_again() {
        let resource = || get(|| Code::CONTENT);
        let mut router = Router::new().route("/a/{b}", resource()).route("/a/{b}/c", resource());
        assert!(router.remove("/a/{b}").is_some());
        assert!(router.remove("/a/{b}").is_none());
        assert_eq!(find(&router, &["a", "x"]), None);
        assert!(find(&router, &["a", "x", "c"]).is_some());
        router.replace("/z", resource());
        assert_eq!(router.routes.len(), 2);
        assert_eq!(find(&router, &["z"]), Some(("/z".into(), vec![])));
        router.replace("/z", resource());
        assert!(router.remove("a/{b}/c").is_some());
        assert!(router.root.any.is_none() && router.root.fixed.len() == 1);
    }

    #[test]
    fn a_removed_route_leaves_nothing_that_another_path_could_remove() {
        let resource = || get(|| Code::CONTENT);
        let mut router: Router = Router::new().route("/x", resource()).route("/t/", resource());
        assert!(router.remove("/x").is_some());
        for never_added in ["/", "", "/x", "x", "/t"] {
            assert!(router.remove(never_added).is_none(), "{never_added}");
        }
        router = router.route("/", resource());
        assert!(router.remove("").is_some(), "the root, however it is written");
        assert_eq!(find(&router, &[]), None);
        assert!(router.remove("/t/").is_some());
        router = router.route("/a", resource()).route("/b", resource());
        assert_eq!(find(&router, &["t", ""]), None);
        assert_eq!(find(&router, &["a"]), Some(("/a".into(), vec![])));
        assert_eq!(find(&router, &["b"]), Some(("/b".into(), vec![])));
    }

    #[test]
    fn the_root_of_a_merged_router_may_be_written_without_a_slash() {
        let other: Router = Router::new().route("", get(|| Code::CONTENT));
        let router = Router::new().merge(other.clone()).nest("/below", other);
        assert_eq!(find(&router, &[]), Some(("/".into(), vec![])));
        assert_eq!(find(&router, &["below"]), Some(("/below".into(), vec![])));
    }

    #[test]
    #[should_panic(expected = "two routes match '/rooms/{name}'")]
    fn a_second_route_at_one_path_is_refused_even_if_its_parameters_have_other_names() {
        let resource = || get(|| Code::CONTENT);
        let _: Router =
            Router::new().route("/rooms/{room}", resource()).route("/rooms/{name}", resource());
    }

    #[test]
    #[should_panic(expected = "the route '/{a}/{b}/{c}/{d}/{e}' has 5 parameters, but at most 4")]
    fn a_fifth_parameter_is_refused() {
        let _: Router = Router::new().route("/{a}/{b}/{c}/{d}/{e}", get(|| Code::CONTENT));
    }

    #[test]
    fn a_merged_router_replaces_routes_and_the_fallback_may_be_set_again() {
        let resource = || get(|| Code::CONTENT);
        let other = Router::new().route("/a", resource());
        let router: Router = Router::new().route("/a", resource()).merge(other);
        let router = router.fallback(resource()).fallback(resource());
        assert_eq!(find(&router, &["a"]), Some(("/a".into(), vec![])));
        assert_eq!(find(&router, &["x", "y"]), Some(("/{*path}".into(), vec!["x/y".into()])));
    }

    #[test]
    fn literal_segments_take_precedence_and_dead_ends_are_left_again() {
        let resource = || get(|| Code::CONTENT);
        let router = Router::new()
            .route("/", resource())
            .route("/rooms/kitchen", resource())
            .route("/rooms/{room}/light", resource())
            .route("/files/{*path}", resource());
        assert_eq!(find(&router, &[]), Some(("/".into(), vec![])));
        assert_eq!(find(&router, &["rooms", "kitchen"]), Some(("/rooms/kitchen".into(), vec![])));
        assert_eq!(
            find(&router, &["rooms", "kitchen", "light"]),
            Some(("/rooms/{room}/light".into(), vec!["kitchen".into()]))
        );
        assert_eq!(find(&router, &["rooms", "hall"]), None);
        assert_eq!(
            find(&router, &["files", "a", "b"]),
            Some(("/files/{*path}".into(), vec!["a/b".into()]))
        );
        assert_eq!(find(&router, &["nothing"]), None);
    }
}
