//! Resources: the handlers of one path.

use super::call::Call;
use super::gate::Gate;
use super::handler::Handler;
use super::late_methods::LateMethods;
use super::layer::{Layer, Next};
use super::observe::Subject;
use super::panics::{self, CaughtPanic};
use super::reply::Reply;
use crate::message::Response;
use ebbtide_core::wire::{Code, Message, OptionNumber};
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

/// A handler whose form and arguments are erased.
type BoundHandler<S> = Arc<dyn Fn(&Call<'_>, &S) -> Reply + Send + Sync>;
type SubjectOf = Arc<dyn Fn(&Message<'_>) -> Option<Subject> + Send + Sync>;
type MessageTest = Arc<dyn Fn(&Message<'_>) -> bool + Send + Sync>;
type RequestTest = Arc<dyn Fn(&Message<'_>, SocketAddr) -> bool + Send + Sync>;
type Authorize = Arc<dyn Fn(&Call<'_>) -> Result<(), Response> + Send + Sync>;

/// The number of methods: codes 0.01 to 0.07.
const METHODS: usize = 7;

/// A resource: a handler for each method, and its entry in `/.well-known/core`.
///
/// `S` is the state that its handlers take, see [`Router::with_state`](super::Router::with_state).
pub struct Resource<S = ()> {
    handlers: [Option<BoundHandler<S>>; METHODS],
    pub(super) late: LateMethods,
    pub(super) attributes: Vec<(String, String)>,
    pub(super) subject: Option<Subject>,
    /// See [`Self::observable_by`].
    subject_of: Option<SubjectOf>,
    /// Whether that is asked before the handler.
    pub(super) is_subject_first: bool,
    pub(super) hidden: bool,
    /// Whether its handlers obey If-Match and If-None-Match.
    pub(super) conditional: bool,
    pub(super) max_body: usize,
    /// See [`Self::streamed_if`].
    streamed: Option<MessageTest>,
    /// See [`Self::max_pause`].
    pub(super) max_pause: Option<Duration>,
    pub(super) authorize: Option<Authorize>,
    /// See [`Self::max_unverified`].
    unverified: Vec<(Arc<Gate>, RequestTest)>,
}

impl<S> Default for Resource<S> {
    fn default() -> Self {
        Self {
            handlers: Default::default(),
            late: LateMethods::default(),
            attributes: Vec::new(),
            subject: None,
            subject_of: None,
            is_subject_first: false,
            hidden: false,
            conditional: false,
            max_body: usize::MAX,
            streamed: None,
            max_pause: None,
            authorize: None,
            unverified: Vec::new(),
        }
    }
}

impl<S> Clone for Resource<S> {
    fn clone(&self) -> Self {
        Self {
            handlers: self.handlers.clone(),
            late: self.late.clone(),
            attributes: self.attributes.clone(),
            subject: self.subject.clone(),
            subject_of: self.subject_of.clone(),
            authorize: self.authorize.clone(),
            unverified: self.unverified.clone(),
            streamed: self.streamed.clone(),
            ..*self
        }
    }
}

impl<S> core::fmt::Debug for Resource<S> {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("Resource").field("attributes", &self.attributes).finish_non_exhaustive()
    }
}

macro_rules! methods {
    ($($name:ident $index:literal $what:literal;)*) => {
        $(
            #[doc = concat!("A resource that answers ", $what, ". See [`Handler`] for what answers.")]
            pub fn $name<M, S: Send + Sync + 'static>(handler: impl Handler<M, S>) -> Resource<S> {
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
            )*
        }
    };
}

methods! {
    get 1 "GET";
    post 2 "POST";
    put 3 "PUT";
    delete 4 "DELETE";
    fetch 5 "FETCH";
    patch 6 "PATCH";
    ipatch 7 "iPATCH";
}

impl<S: Send + Sync + 'static> Resource<S> {
    fn on(mut self, method: usize, handler: BoundHandler<S>) -> Self {
        if let Some(place) = self.handlers.get_mut(method - 1) {
            *place = Some(handler);
        }
        self
    }

    /// Adds an attribute to the resource's entry in `/.well-known/core`, such as `rt` (RFC 6690
    /// section 3).
    #[must_use]
    pub fn attribute(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.attributes.push((name.into(), value.into()));
        self
    }

    /// Omits the resource from `/.well-known/core`.
    #[must_use]
    pub fn hidden(mut self) -> Self {
        self.hidden = true;
        self
    }

    /// Lets clients observe the resource (RFC 7641). They receive notifications when `subject`
    /// changes.
    #[must_use]
    pub fn observable(mut self, subject: &Subject) -> Self {
        self.subject = Some(subject.clone());
        self
    }

    /// Lets clients observe the resource, where each request may have a subject of its own: `subject_of` returns it
    /// for a request with Observe. It is called after the handler, unless that has refused the request, before the
    /// handler's future is polled, and for an observer that is restored after a restart, without a handler before. It
    /// must not block. `None`, or a subject that is [closed](Subject::close) when the response is there, answers the
    /// request without an observation.
    #[must_use]
    pub fn observable_by(
        mut self,
        subject_of: impl Fn(&Message<'_>) -> Option<Subject> + Send + Sync + 'static,
    ) -> Self {
        self.subject_of = Some(Arc::new(subject_of));
        self.is_subject_first = false;
        self
    }

    /// As [`Self::observable_by`], but `subject_of` is called before the handler: an observer learns of a change that
    /// comes after the handler has read the state. For subjects that there are without the handler.
    #[must_use]
    pub fn observable_by_existing(
        self,
        subject_of: impl Fn(&Message<'_>) -> Option<Subject> + Send + Sync + 'static,
    ) -> Self {
        Self { is_subject_first: true, ..self.observable_by(subject_of) }
    }

    /// Declares that the handlers obey If-Match and If-None-Match (RFC 7252 section 5.10.8).
    /// Without it, a request with one of these options is answered 4.02 (Bad Option): a condition
    /// is never ignored.
    #[must_use]
    pub fn conditional(mut self) -> Self {
        self.conditional = true;
        self
    }

    /// Sets the maximum length of a request's body. A longer body is answered 4.13 (Request Entity
    /// Too Large) with the maximum in Size1, as soon as its length is known and before it is
    /// stored. The server's maximum applies as well
    /// ([`ServerConfig::max_body`](crate::ServerConfig::max_body)). Default: no limit.
    #[must_use]
    pub fn max_body(mut self, bytes: usize) -> Self {
        self.max_body = bytes;
        self
    }

    /// Lets handlers take bodies as they arrive, by a [`BodyStream`](super::BodyStream): a handler begins with the
    /// first block, and a block is acknowledged when there is room for it. So memory does not grow with the body, and
    /// only [`Self::max_body`] bounds it. An error response before the end of the body ends the
    /// transfer.
    ///
    /// That holds for the blocks of RFC 7959 over any transport. Bodies in the blocks of RFC 9177, which may come in
    /// any order, are assembled first.
    ///
    /// ```
    /// use ebbtide::{Code, server::{BodyStream, HandlerError, Router, put}};
    /// use tokio::io::AsyncWriteExt;
    ///
    /// async fn store(mut body: BodyStream) -> Result<Code, HandlerError> {
    ///     let mut file = tokio::io::sink();
    ///     while let Some(bytes) = body.next().await? {
    ///         file.write_all(&bytes).await?;
    ///     }
    ///     Ok(Code::CHANGED)
    /// }
    ///
    /// let router: Router = Router::new().route("/firmware", put(store).streamed().max_body(64 << 20));
    /// ```
    #[must_use]
    pub fn streamed(self) -> Self {
        self.streamed_if(|_| true)
    }

    /// As [`Self::streamed`], for the requests that `is` selects. It sees each block of a request, and must say the
    /// same of all of them. It must not block.
    #[must_use]
    pub fn streamed_if(
        mut self,
        is: impl Fn(&Message<'_>) -> bool + Send + Sync + 'static,
    ) -> Self {
        self.streamed = Some(Arc::new(is));
        self
    }

    /// Sets how long the handler of a [`streamed`](Self::streamed) body waits for the next bytes,
    /// so that an upload that its client has abandoned does not keep a handler at work. A client
    /// that goes on repeats a lost block within MAX_TRANSMIT_SPAN (45 s by default). Default:
    /// EXCHANGE_LIFETIME, 247 s.
    #[must_use]
    pub fn max_pause(mut self, span: Duration) -> Self {
        self.max_pause = Some(span);
        self
    }

    /// Bounds the requests a second that are handled of addresses that may be forged. Any others of
    /// such addresses are challenged before anything is done for them (4.01 with Echo, RFC 9175 section
    /// 2.4); a client that answers the challenge is served, and its address verified for an hour. For a
    /// resource that is expensive to make, such as one that reads files on threads. With 0, every
    /// request has to show that its sender is there, also from a verified address, which a stranger could forge. The
    /// later blocks of an upload that was let in need no proof of their own.
    /// Clients without RFC 9175 cannot. It selects every request, so a limit after it has no effect
    /// ([`Self::max_unverified_if`]).
    ///
    /// ```
    /// # use ebbtide::{Response, server::{Router, get}};
    /// let report = get(|| async { Response::content("read from a disk") }).max_unverified(64);
    /// let router: Router = Router::new().route("/report", report);
    /// ```
    #[must_use]
    pub fn max_unverified(self, per_second: u32) -> Self {
        self.max_unverified_if(per_second, |_, _| true)
    }

    /// As [`Self::max_unverified`], for the requests that `is` selects by message and sender. It must not block. Of
    /// several limits, the first one that selects a request counts.
    #[must_use]
    pub fn max_unverified_if(
        mut self,
        per_second: u32,
        is: impl Fn(&Message<'_>, SocketAddr) -> bool + Send + Sync + 'static,
    ) -> Self {
        self.unverified.push((Arc::new(Gate::new(per_second)), Arc::new(is)));
        self
    }

    /// Calls `authorize` before a request is stored or handled; an `Err` is the answer, such as
    /// 4.01 or 4.03. It receives every message of a request, and for a body in blocks each block in
    /// order. It must not block.
    ///
    /// ```
    /// # use ebbtide::{Code, Response, server::{Call, Router, put}};
    /// let upload = put(|_: &Call<'_>| Response::new(Code::CHANGED)).authorize(|call| {
    ///     let key = call.query().any(|argument| argument == "key=12345");
    ///     if key { Ok(()) } else { Err(Response::new(Code::UNAUTHORIZED)) }
    /// });
    /// let router: Router = Router::new().route("/firmware", upload);
    /// ```
    #[must_use]
    pub fn authorize(
        mut self,
        authorize: impl Fn(&Call<'_>) -> Result<(), Response> + Send + Sync + 'static,
    ) -> Self {
        self.authorize = Some(Arc::new(authorize));
        self
    }

    /// Adds a layer around all handlers added so far. Of several layers, the one added last
    /// receives a request first.
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

    /// Sets the state that the handlers take.
    pub(super) fn with_state<T>(self, state: &S) -> Resource<T>
    where
        S: Clone,
    {
        let handlers = self.handlers.map(|handler| {
            let (handler, state) = (handler?, state.clone());
            let with: BoundHandler<T> = Arc::new(move |call, _| handler(call, &state));
            Some(with)
        });
        let Self {
            late,
            attributes,
            subject,
            subject_of,
            is_subject_first,
            hidden,
            conditional,
            max_body,
            streamed,
            max_pause,
            authorize,
            unverified,
            ..
        } = self;
        Resource {
            handlers,
            late,
            attributes,
            subject,
            subject_of,
            is_subject_first,
            hidden,
            conditional,
            max_body,
            streamed,
            max_pause,
            authorize,
            unverified,
        }
    }
}

impl Resource {
    fn handler(&self, method: Code) -> Option<&BoundHandler<()>> {
        self.handlers.get(usize::from(method.0).wrapping_sub(1))?.as_ref()
    }

    /// The subject that a request observes, if it has one of its own.
    pub(super) fn subject_of(&self, message: &Message<'_>) -> Result<Option<Subject>, CaughtPanic> {
        match &self.subject_of {
            Some(subject_of) if message.option(OptionNumber::OBSERVE).is_some() => {
                panics::catch(|| subject_of(message))
            }
            _ => Ok(None),
        }
    }

    /// Whether the handler takes the body of this request as it arrives.
    pub(super) fn streams(&self, message: &Message<'_>) -> Result<bool, CaughtPanic> {
        self.streamed.as_ref().map_or(Ok(false), |is| panics::catch(|| is(message)))
    }

    /// The limit for unverified addresses that concerns this request.
    pub(super) fn gate(
        &self,
        message: &Message<'_>,
        from: SocketAddr,
    ) -> Result<Option<&Gate>, CaughtPanic> {
        for (gate, is) in &self.unverified {
            if panics::catch(|| is(message, from))? {
                return Ok(Some(gate));
            }
        }
        Ok(None)
    }

    /// Whether there is a handler for a method.
    pub(super) fn answers(&self, method: Code) -> bool {
        self.handler(method).is_some()
    }

    pub(super) fn call(&self, call: &Call<'_>) -> Reply {
        match self.handler(call.method()) {
            Some(handler) => handler(call, &()),
            None => Reply::now(Response::new(Code::METHOD_NOT_ALLOWED)),
        }
    }
}
