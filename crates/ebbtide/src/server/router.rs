//! Which handler a request goes to.

use super::call::{Call, MAX_PARAMS, OwnedCall, Params};
use super::well_known;
use crate::message::Response;
use ebbtide_core::wire::{Code, Message, Path};
use std::future::Future;
use std::pin::Pin;

/// A response that is still being made.
pub(super) type BoxFuture = Pin<Box<dyn Future<Output = Response> + Send>>;

/// What a handler gives.
pub(super) enum Reply {
    /// At once: it rides on the acknowledgement.
    Now(Response),
    /// When it is ready; acknowledged before, if that takes long.
    Later(BoxFuture),
}

type Handler = Box<dyn Fn(&Call<'_>) -> Reply + Send + Sync>;
type Authorize = Box<dyn Fn(&Call<'_>) -> Result<(), Response> + Send + Sync>;

/// The methods that a resource can have: 0.01 to 0.07.
const METHODS: usize = 7;

/// A resource: a handler per method, and what `/.well-known/core` says about it.
pub struct Resource {
    handlers: [Option<Handler>; METHODS],
    pub(super) attributes: Vec<(String, String)>,
    pub(super) subject: Option<super::Subject>,
    pub(super) hidden: bool,
    /// Whether its handlers obey If-Match and If-None-Match.
    pub(super) conditional: bool,
    pub(super) max_body: usize,
    pub(super) authorize: Option<Authorize>,
}

impl Default for Resource {
    fn default() -> Self {
        Self {
            handlers: Default::default(),
            attributes: Vec::new(),
            subject: None,
            hidden: false,
            conditional: false,
            max_body: usize::MAX,
            authorize: None,
        }
    }
}

impl core::fmt::Debug for Resource {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("Resource").field("attributes", &self.attributes).finish_non_exhaustive()
    }
}

macro_rules! methods {
    ($($name:ident $name_async:ident $index:literal $what:literal;)*) => {
        $(
            #[doc = concat!("A resource that answers ", $what, " at once: `handler` must not block.")]
            pub fn $name(
                handler: impl Fn(&Call<'_>) -> Response + Send + Sync + 'static,
            ) -> Resource {
                Resource::default().$name(handler)
            }

            #[doc = concat!("A resource that answers ", $what, " when it can; what takes long is \
                acknowledged first and answered by a separate response (RFC 7252 section 5.2.2).")]
            pub fn $name_async<F: Future<Output = Response> + Send + 'static>(
                handler: impl Fn(OwnedCall) -> F + Send + Sync + 'static,
            ) -> Resource {
                Resource::default().$name_async(handler)
            }
        )*

        impl Resource {
            $(
                #[doc = concat!("Answers ", $what, " at once: `handler` must not block.")]
                #[must_use]
                pub fn $name(
                    self,
                    handler: impl Fn(&Call<'_>) -> Response + Send + Sync + 'static,
                ) -> Self {
                    self.on($index, Box::new(move |call| Reply::Now(handler(call))))
                }

                #[doc = concat!("Answers ", $what, " when it can.")]
                #[must_use]
                pub fn $name_async<F: Future<Output = Response> + Send + 'static>(
                    self,
                    handler: impl Fn(OwnedCall) -> F + Send + Sync + 'static,
                ) -> Self {
                    self.on($index, Box::new(move |call| Reply::Later(Box::pin(handler(call.to_owned())))))
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

impl Resource {
    fn on(mut self, method: usize, handler: Handler) -> Self {
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

    /// Says that the handlers obey If-Match and If-None-Match (RFC 7252 section 5.10.8). Otherwise a
    /// request with one of these is answered 4.02 (Bad Option): a condition is never ignored.
    #[must_use]
    pub fn conditional(mut self) -> Self {
        self.conditional = true;
        self
    }

    /// Bounds the bodies of requests; one that is longer is answered 4.13 (Request Entity Too Large)
    /// with the bound in Size1, as soon as it is known, before it is stored. The bound of the whole
    /// server holds as well ([`Config::max_body`](crate::Config::max_body)).
    #[must_use]
    pub fn max_body(mut self, bytes: usize) -> Self {
        self.max_body = bytes;
        self
    }

    /// Asks `authorize` before anything is stored or handled: an `Err` is the answer, such as 4.01 or
    /// 4.03. It sees every message of a request: of a body in blocks each block, the first one first.
    /// It must not block.
    ///
    /// ```
    /// # use ebbtide::{Code, Response, server::{Call, Router, put}};
    /// let upload = put(|_: &Call<'_>| Response::new(Code::CHANGED)).authorize(|call| {
    ///     let key = call.query().any(|argument| argument == "key=12345");
    ///     if key { Ok(()) } else { Err(Response::new(Code::UNAUTHORIZED)) }
    /// });
    /// let router = Router::new().route("/firmware", upload);
    /// ```
    #[must_use]
    pub fn authorize(
        mut self,
        authorize: impl Fn(&Call<'_>) -> Result<(), Response> + Send + Sync + 'static,
    ) -> Self {
        self.authorize = Some(Box::new(authorize));
        self
    }

    fn handler(&self, method: Code) -> Option<&Handler> {
        self.handlers.get(usize::from(method.0).wrapping_sub(1))?.as_ref()
    }

    /// Whether there is a handler for a method.
    pub(super) fn answers(&self, method: Code) -> bool {
        self.handler(method).is_some()
    }

    pub(super) fn call(&self, call: &Call<'_>) -> Reply {
        match self.handler(call.method()) {
            Some(handler) => handler(call),
            None => Reply::Now(Response::new(Code::METHOD_NOT_ALLOWED)),
        }
    }
}

/// The resources of a server by path.
///
/// A segment `{name}` stands for any one segment, a last segment `{*name}` for any number of them.
/// What is spelled out goes before what stands for anything.
#[derive(Debug, Default)]
pub struct Router {
    root: Node,
    pub(super) routes: Vec<Route>,
}

#[derive(Debug)]
pub(super) struct Route {
    pub(super) path: String,
    pub(super) names: Vec<String>,
    pub(super) resource: Resource,
    /// How many segments come before a last `{*name}`.
    rest: Option<usize>,
}

impl Route {
    /// What the last `{*name}` stands for, with slashes between the segments.
    pub(super) fn rest(&self, message: &Message<'_>) -> Option<String> {
        let mut rest = String::new();
        for (count, segment) in message.path().skip(self.rest?).enumerate() {
            if count > 0 {
                rest.push('/');
            }
            rest.push_str(&String::from_utf8_lossy(segment));
        }
        Some(rest)
    }

    /// Whether the path stands for others.
    pub(super) fn is_template(&self) -> bool {
        !self.names.is_empty()
    }
}

#[derive(Debug, Default)]
struct Node {
    fixed: Vec<(Box<[u8]>, Node)>,
    any: Option<Box<Node>>,
    rest: Option<usize>,
    route: Option<usize>,
}

impl Router {
    /// No resources.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a resource at a path such as `/rooms/{room}/light`; of two at one path the later one
    /// stays. At most four parameters are captured, the rest match without a name.
    #[must_use]
    pub fn route(mut self, path: &str, resource: Resource) -> Self {
        let index = self.routes.len();
        let mut names = Vec::new();
        let mut node = &mut self.root;
        let mut segments = path.trim_start_matches('/').split('/').peekable();
        if path.trim_start_matches('/').is_empty() {
            segments.next();
        }
        let mut rest = None;
        for (depth, segment) in segments.enumerate() {
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
        let place = if rest.is_some() { &mut node.rest } else { &mut node.route };
        *place = Some(index);
        self.routes.push(Route { path: path.to_owned(), names, resource, rest });
        self
    }

    /// The route of a request, with its parameters; the answer if there is none.
    pub(super) fn find<'a>(&self, message: &Message<'a>) -> Result<(&Route, Params<'a>), Response> {
        let mut params = Params::default();
        let found = self.root.find(message.path(), &mut params);
        let route = found.and_then(|index| self.routes.get(index));
        // A route that stands for any path does not stand for this one, unless it spells it out.
        match route.filter(|route| !route.is_template() || !well_known::is_asked(message)) {
            Some(route) => Ok((route, params)),
            None => Err(well_known::answer(self, message)),
        }
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
    use ebbtide_core::wire::{Encoder, MessageId, OptionNumber, Token, Type};

    fn find(router: &Router, path: &[&str]) -> Option<(String, Vec<String>)> {
        let mut buf = [0; 128];
        let mut encoder =
            Encoder::new(&mut buf, Type::Confirmable, Code::GET, MessageId(1), Token::EMPTY)
                .unwrap();
        for segment in path {
            encoder.option(OptionNumber::URI_PATH, segment.as_bytes()).unwrap();
        }
        let message = Message::parse(encoder.finish()).unwrap();
        let (route, params) = router.find(&message).ok()?;
        let values = params.values.iter().take(params.count);
        let values = values.map(|value| String::from_utf8_lossy(value).into_owned());
        Some((route.path.clone(), values.chain(route.rest(&message)).collect()))
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
        assert_eq!(
            find(&router, &["files", "a", "b"]),
            Some(("/files/{*path}".into(), vec!["a/b".into()]))
        );
        assert_eq!(find(&router, &["nothing"]), None);
    }
}
