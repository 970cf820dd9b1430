//! Which handler a request goes to.

use super::call::{Call, MAX_PARAMS, OwnedCall, Params};
use super::handler::Handler;
use super::layer::{Layer, Next};
pub(crate) use super::reply::{BoxFuture as Later, Inner as Reply};
use crate::message::Response;
use ebbtide_core::wire::{Code, Path};
use std::future::Future;
use std::sync::Arc;

/// A handler whose form and arguments are settled.
type Answer<S> = Arc<dyn Fn(&Call<'_>, &S) -> super::reply::Reply + Send + Sync>;

/// The methods that a resource can have: 0.01 to 0.07.
const METHODS: usize = 7;

/// A resource: a handler per method, and what `/.well-known/core` says about it.
///
/// `S` is the state that its handlers take, see [`Router::with_state`].
pub struct Resource<S = ()> {
    handlers: [Option<Answer<S>>; METHODS],
    pub(crate) attributes: Vec<(String, String)>,
    pub(crate) subject: Option<super::Subject>,
    pub(crate) hidden: bool,
}

impl<S> Default for Resource<S> {
    fn default() -> Self {
        Self { handlers: Default::default(), attributes: Vec::new(), subject: None, hidden: false }
    }
}

impl<S> Clone for Resource<S> {
    fn clone(&self) -> Self {
        Self {
            handlers: self.handlers.clone(),
            attributes: self.attributes.clone(),
            subject: self.subject.clone(),
            hidden: self.hidden,
        }
    }
}

impl<S> core::fmt::Debug for Resource<S> {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("Resource").field("attributes", &self.attributes).finish_non_exhaustive()
    }
}

macro_rules! methods {
    ($($name:ident $name_async:ident $index:literal $what:literal;)*) => {
        $(
            #[doc = concat!("A resource that answers ", $what, ". See [`Handler`] for what answers.")]
            pub fn $name<M, S: Send + Sync + 'static>(handler: impl Handler<M, S>) -> Resource<S> {
                Resource::default().$name(handler)
            }

            #[doc = concat!("A resource that answers ", $what, " when it can.")]
            pub fn $name_async<F: Future<Output = Response> + Send + 'static>(
                handler: impl Fn(OwnedCall) -> F + Send + Sync + 'static,
            ) -> Resource {
                Resource::default().$name(handler)
            }
        )*

        impl<S: Send + Sync + 'static> Resource<S> {
            $(
                #[doc = concat!("Answers ", $what, ". See [`Handler`] for what answers.")]
                #[must_use]
                pub fn $name<M>(self, handler: impl Handler<M, S>) -> Self {
                    self.on($index, Arc::new(move |call, state| handler.call(call, state)))
                }

                #[doc = concat!("Answers ", $what, " when it can.")]
                #[must_use]
                pub fn $name_async<F: Future<Output = Response> + Send + 'static>(
                    self,
                    handler: impl Fn(OwnedCall) -> F + Send + Sync + 'static,
                ) -> Self {
                    self.$name(handler)
                }
            )*
        }
    };
}

methods! {
    get get_async 1 "GET";
    post post_async 2 "POST";
    put put_async 3 "PUT";
    delete delete_async 4 "DELETE";
    fetch fetch_async 5 "FETCH";
    patch patch_async 6 "PATCH";
    ipatch ipatch_async 7 "iPATCH";
}

impl<S: Send + Sync + 'static> Resource<S> {
    fn on(mut self, method: usize, handler: Answer<S>) -> Self {
        if let Some(place) = self.handlers.get_mut(method - 1) {
            *place = Some(handler);
        }
        self
    }

    /// Says something about the resource in `/.well-known/core`, such as `rt` (RFC 6690 section 3).
    #[must_use]
    pub fn attribute(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.attributes.push((name.into(), value.into()));
        self
    }

    /// Keeps it out of `/.well-known/core`.
    #[must_use]
    pub fn hidden(mut self) -> Self {
        self.hidden = true;
        self
    }

    /// Lets clients observe it (RFC 7641): they are told when `subject` says so.
    #[must_use]
    pub fn observable(mut self, subject: &super::Subject) -> Self {
        self.subject = Some(subject.clone());
        self
    }

    /// Puts a layer around all handlers that the resource has by now. Of several, the one that was
    /// added last sees a request first.
    #[must_use]
    pub fn layer(mut self, layer: impl Layer) -> Self {
        let layer = Arc::new(layer);
        for handler in self.handlers.iter_mut().flatten() {
            let (layer, inner) = (layer.clone(), handler.clone());
            *handler = Arc::new(move |call, state| {
                layer.call(call, Next(&|call: &Call<'_>| inner(call, state)))
            });
        }
        self
    }

    /// Gives the handlers their state.
    fn with_state<T>(self, state: &S) -> Resource<T>
    where
        S: Clone,
    {
        let handlers = self.handlers.map(|handler| {
            let (handler, state) = (handler?, state.clone());
            let with: Answer<T> = Arc::new(move |call, _| handler(call, &state));
            Some(with)
        });
        let Self { attributes, subject, hidden, .. } = self;
        Resource { handlers, attributes, subject, hidden }
    }
}

impl Resource {
    pub(crate) fn call(&self, call: &Call<'_>) -> Reply {
        let index = usize::from(call.method().0).wrapping_sub(1);
        match self.handlers.get(index) {
            Some(Some(handler)) => handler(call, &()).0,
            // RFC 7252 section 5.8: "An unrecognized or unsupported Method Code MUST generate a
            // 4.05 (Method Not Allowed) piggybacked response."
            _ => Reply::Now(Response::new(Code::METHOD_NOT_ALLOWED)),
        }
    }
}

/// The resources of a server by path.
///
/// A segment `{name}` stands for any one segment, a last segment `{*name}` for any number of them.
/// What is spelled out goes before what stands for anything.
///
/// `S` is the state that handlers take by `State<S>`; a server takes a router without one, which
/// [`Self::with_state`] makes.
#[derive(Debug)]
pub struct Router<S = ()> {
    root: Node,
    pub(crate) routes: Vec<Route<S>>,
}

impl<S> Default for Router<S> {
    fn default() -> Self {
        Self { root: Node::default(), routes: Vec::new() }
    }
}

impl<S> Clone for Router<S> {
    fn clone(&self) -> Self {
        Self { root: self.root.clone(), routes: self.routes.clone() }
    }
}

#[derive(Debug)]
pub(crate) struct Route<S = ()> {
    pub(crate) path: String,
    pub(crate) names: Vec<String>,
    pub(crate) resource: Resource<S>,
}

impl<S> Clone for Route<S> {
    fn clone(&self) -> Self {
        Self { path: self.path.clone(), names: self.names.clone(), resource: self.resource.clone() }
    }
}

#[derive(Clone, Debug, Default)]
struct Node {
    fixed: Vec<(Box<[u8]>, Node)>,
    any: Option<Box<Node>>,
    rest: Option<usize>,
    route: Option<usize>,
}

impl<S: Send + Sync + 'static> Router<S> {
    /// A router without resources.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a resource at a path such as `/rooms/{room}/light`; of two at one path the later one
    /// stays. At most four parameters are captured, the rest match without a name.
    #[must_use]
    pub fn route(mut self, path: &str, resource: Resource<S>) -> Self {
        let index = self.routes.len();
        let mut names = Vec::new();
        let mut node = &mut self.root;
        let mut segments = path.trim_start_matches('/').split('/').peekable();
        if path.trim_start_matches('/').is_empty() {
            segments.next();
        }
        let mut rest = false;
        for segment in segments {
            match segment.strip_prefix('{').and_then(|name| name.strip_suffix('}')) {
                Some(name) if name.starts_with('*') => {
                    names.push(name.trim_start_matches('*').to_owned());
                    rest = true;
                    break;
                }
                Some(name) => {
                    names.push(name.to_owned());
                    node = node.any.get_or_insert_default();
                }
                None => {
                    let found =
                        node.fixed.iter().position(|(name, _)| **name == *segment.as_bytes());
                    let at = found.unwrap_or(node.fixed.len());
                    if found.is_none() {
                        node.fixed.push((segment.as_bytes().into(), Node::default()));
                    }
                    let Some((_, next)) = node.fixed.get_mut(at) else { return self };
                    node = next;
                }
            }
        }
        let place = if rest { &mut node.rest } else { &mut node.route };
        *place = Some(index);
        self.routes.push(Route { path: path.to_owned(), names, resource });
        self
    }

    /// Adds the routes of another router. Of two at one path, the other's stays.
    #[must_use]
    pub fn merge(self, other: Self) -> Self {
        self.nest("", other)
    }

    /// Adds the routes of another router below a path such as `/rooms/{room}`.
    #[must_use]
    pub fn nest(self, prefix: &str, other: Self) -> Self {
        let prefix = prefix.trim_end_matches('/');
        other.routes.into_iter().fold(self, |router, route| {
            let path = route.path.trim_start_matches('/');
            let path = if path.is_empty() { prefix.to_owned() } else { format!("{prefix}/{path}") };
            router.route(&path, route.resource)
        })
    }

    /// Answers what no other route does, instead of 4.04: a route `/{*path}` that is not listed in
    /// `/.well-known/core`.
    #[must_use]
    pub fn fallback(self, resource: Resource<S>) -> Self {
        self.route("/{*path}", resource.hidden())
    }

    /// Puts a layer around all routes that there are by now. Of several, the one that was added last
    /// sees a request first.
    #[must_use]
    pub fn layer(mut self, layer: impl Layer + Clone) -> Self {
        for route in &mut self.routes {
            route.resource = core::mem::take(&mut route.resource).layer(layer.clone());
        }
        self
    }

    /// Gives the handlers their state. The router then takes another one, or none.
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
        let routes = self.routes.into_iter().map(|route| {
            let resource = route.resource.with_state(&state);
            Route { path: route.path, names: route.names, resource }
        });
        Router { root: self.root, routes: routes.collect() }
    }
}

impl Router {
    /// The route of a path, with its parameters.
    pub(crate) fn find<'a>(&self, path: Path<'a>) -> Option<(&Route, Params<'a>)> {
        let mut params = Params::default();
        let index = self.root.find(path, &mut params)?;
        Some((self.routes.get(index)?, params))
    }
}

impl Node {
    /// Goes no deeper than the longest route, whatever the request.
    fn find<'a>(&self, mut path: Path<'a>, params: &mut Params<'a>) -> Option<usize> {
        let Some(segment) = path.next() else {
            return self.route.or(self.rest);
        };
        if let Some((_, next)) = self.fixed.iter().find(|(name, _)| **name == *segment)
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
    use super::*;
    use ebbtide_core::wire::{Encoder, Message, MessageId, OptionNumber, Token, Type};

    fn find(router: &Router, path: &[&str]) -> Option<(String, Vec<String>)> {
        let mut buf = [0; 128];
        let mut encoder =
            Encoder::new(&mut buf, Type::Confirmable, Code::GET, MessageId(1), Token::EMPTY)
                .unwrap();
        for segment in path {
            encoder.option(OptionNumber::URI_PATH, segment.as_bytes()).unwrap();
        }
        let message = Message::parse(encoder.finish()).unwrap();
        let (route, params) = router.find(message.path())?;
        let values = params.values.iter().take(params.count);
        Some((
            route.path.clone(),
            values.map(|value| String::from_utf8_lossy(value).into_owned()).collect(),
        ))
    }

    #[test]
    fn what_is_spelled_out_goes_first_and_dead_ends_are_left_again() {
        let resource = || get(|_: &Call<'_>| Response::new(Code::CONTENT));
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
        assert_eq!(find(&router, &["files", "a", "b"]), Some(("/files/{*path}".into(), vec![])));
        assert_eq!(find(&router, &["nothing"]), None);
    }
}
