//! The resources that the test descriptions of the ETSI CoAP plugtests name (TD_COAP_CORE,
//! TD_COAP_BLOCK, TD_COAP_LINK and TD_COAP_OBS).

use bytes::Bytes;
use ebbtide::server::{Call, Resource, Router, Subject, get, post, put};
use ebbtide::{Code, ContentFormat, OptionNumber, Response, Server, ServerConfig};
use std::io;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::sync::Notify;

const XML: ContentFormat = ContentFormat(41);
/// Lines in a resource that needs several blocks.
const LINES: u64 = 20;

/// What a plugtest server offers.
#[derive(Clone)]
pub(crate) struct Plugtest {
    pub(crate) router: Router,
    /// Told by a POST to `/obs-reset`: the server has to lose its observers (TD_COAP_OBS_04).
    pub(crate) reset: Arc<Notify>,
}

impl Plugtest {
    /// The observable resources change once in `period`. Must be called within a tokio runtime.
    #[must_use]
    pub(crate) fn new(period: Duration) -> Self {
        let reset = Arc::new(Notify::new());
        let router = observable(blocks(links(core(Router::new()))), period);
        let router = router.route("/obs-reset", obs_reset(&reset));
        Self { router, reset }
    }

    /// Serves at `address`, and forgets everything about its clients whenever it is reset.
    ///
    /// # Errors
    ///
    /// If the address cannot be bound, or the server ends.
    pub(crate) async fn serve(&self, config: &ServerConfig, address: SocketAddr) -> io::Result<()> {
        loop {
            let server = self.bound(config, address).await?;
            let answered = Duration::from_millis(100);
            tokio::select! {
                ended = server.run() => return ended,
                () = async { self.reset.notified().await; tokio::time::sleep(answered).await } => {}
            }
        }
    }

    /// The server that was there before may need a moment to leave the port.
    async fn bound(&self, config: &ServerConfig, address: SocketAddr) -> io::Result<Server> {
        let mut attempts = 0;
        loop {
            match Server::with_config(self.router.clone(), config.clone(), [address]) {
                Ok(server) => return Ok(server),
                Err(_) if attempts < 50 => attempts += 1,
                Err(error) => return Err(io::Error::other(error)),
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }
}

pub(crate) fn locked<T>(state: &Mutex<T>) -> MutexGuard<'_, T> {
    state.lock().unwrap_or_else(PoisonError::into_inner)
}

pub(crate) fn text(text: impl Into<Bytes>) -> Response {
    Response::content(text).format(ContentFormat::TEXT)
}

/// The body of a request and its format, which a resource that keeps bodies has to know.
fn stored(call: &Call<'_>) -> Result<(Bytes, ContentFormat), Response> {
    let missing = || Response::error(Code::BAD_REQUEST, "the request has no Content-Format");
    Ok((Bytes::copy_from_slice(call.payload()), call.format().ok_or_else(missing)?))
}

/// TD_COAP_CORE.
fn core(router: Router) -> Router {
    let created = |_: &Call<'_>| {
        let path = |response: Response, segment: &str| {
            response.option(OptionNumber::LOCATION_PATH, segment.as_bytes())
        };
        ["location1", "location2", "location3"].into_iter().fold(Response::new(Code::CREATED), path)
    };
    let with_query = |_: &Call<'_>| {
        let created = Response::new(Code::CREATED);
        let created = created.option(OptionNumber::LOCATION_QUERY, b"first=1");
        created.option(OptionNumber::LOCATION_QUERY, b"second=2")
    };
    let test = get(|call: &Call<'_>| text(format!("{} {}", call.method(), call.path())))
        .post(created)
        .put(|_: &Call<'_>| Response::new(Code::CHANGED))
        .delete(|_: &Call<'_>| Response::new(Code::DELETED));
    let query = |call: &Call<'_>| text(format!("?{}", call.query().collect::<Vec<_>>().join("&")));
    router
        .route("/test", test.attribute("title", "the default test resource"))
        .route("/seg1", get(|call: &Call<'_>| text(call.path())))
        .route("/seg1/seg2", get(|call: &Call<'_>| text(call.path())))
        .route("/seg1/seg2/seg3", get(|call: &Call<'_>| text(call.path())))
        .route("/query", get(query))
        .route("/separate", get(separate))
        .route("/location-query", post(with_query))
        .route("/multi-format", get(multi_format).attribute("ct", "0 41 50 60"))
        .route("/validate", validate())
        .route("/create1", create1())
}

async fn separate(_: Call<'static>) -> Response {
    tokio::time::sleep(Duration::from_secs(1)).await;
    text("that took a while")
}

fn multi_format(call: &Call<'_>) -> Response {
    let format = call.accept().unwrap_or(ContentFormat::TEXT);
    let content: &[u8] = match format {
        ContentFormat::TEXT => b"several formats",
        XML => b"<msg>several formats</msg>",
        ContentFormat::JSON => b"{\"msg\":\"several formats\"}",
        // The same map, encoded in CBOR.
        ContentFormat::CBOR => b"\xa1\x63msg\x6fseveral formats",
        _ => return Response::error(Code::NOT_ACCEPTABLE, "text, XML, JSON or CBOR"),
    };
    Response::content(content).format(format)
}

/// A resource with an ETag, which is replaced by who knows its state (TD_COAP_CORE_21 and 22).
fn validate() -> Resource {
    let state = Arc::new(Mutex::new((1u32, Bytes::from_static(b"the first state"))));
    let shown = state.clone();
    let options = |call: &Call<'_>, number| {
        let options = call.message().options().filter(move |option| option.number == number);
        options.map(|option| option.value.to_vec()).collect::<Vec<_>>()
    };
    get(move |call: &Call<'_>| {
        let (version, content) = &*locked(&shown);
        let etag = version.to_be_bytes();
        if options(call, OptionNumber::ETAG).iter().any(|known| known[..] == etag) {
            return Response::new(Code::VALID).etag(&etag);
        }
        text(content.clone()).etag(&etag)
    })
    .put(move |call: &Call<'_>| {
        let (version, content) = &mut *locked(&state);
        let expected = options(call, OptionNumber::IF_MATCH);
        let current = version.to_be_bytes();
        // An empty If-Match asks for existence only (RFC 7252 section 5.10.8.1).
        let fits = |etag: &Vec<u8>| etag.is_empty() || etag[..] == current;
        let none = call.message().option(OptionNumber::IF_NONE_MATCH).is_some();
        if none || !expected.is_empty() && !expected.iter().any(fits) {
            return Response::new(Code::PRECONDITION_FAILED);
        }
        *version += 1;
        *content = Bytes::copy_from_slice(call.payload());
        Response::new(Code::CHANGED)
    })
    .conditional()
}

/// A resource that does not exist until somebody creates it (TD_COAP_CORE_23).
fn create1() -> Resource {
    let state = Arc::new(Mutex::new(None));
    let (shown, deleted) = (state.clone(), state.clone());
    put(move |call: &Call<'_>| {
        let state = &mut *locked(&state);
        if state.is_some() && call.message().option(OptionNumber::IF_NONE_MATCH).is_some()
            || state.is_none() && call.message().option(OptionNumber::IF_MATCH).is_some()
        {
            return Response::new(Code::PRECONDITION_FAILED);
        }
        match stored(call) {
            Ok(body) => {
                let existed = state.replace(body).is_some();
                Response::new(if existed { Code::CHANGED } else { Code::CREATED })
            }
            Err(refused) => refused,
        }
    })
    .get(move |_: &Call<'_>| match &*locked(&shown) {
        Some((body, format)) => Response::content(body.clone()).format(*format),
        None => Response::new(Code::NOT_FOUND),
    })
    .delete(move |_: &Call<'_>| {
        *locked(&deleted) = None;
        Response::new(Code::DELETED)
    })
    .conditional()
    .hidden()
}

/// TD_COAP_LINK.
fn links(router: Router) -> Router {
    let link = |types: &str, interface: &str| {
        let resource = get(|call: &Call<'_>| text(call.path()));
        resource.attribute("rt", types).attribute("if", interface)
    };
    let children = "</path/sub1>;ct=0,</path/sub2>;ct=0,</path/sub3>;ct=0";
    let path =
        get(move |_: &Call<'_>| Response::content(children).format(ContentFormat::LINK_FORMAT));
    let child = || get(|call: &Call<'_>| text(call.path())).attribute("ct", "0");
    router
        .route("/link1", link("Type1 Type2", "If1"))
        .route("/link2", link("Type2 Type3", "If2"))
        .route("/link3", link("Type1 Type3", "foo"))
        .route("/path", path.attribute("ct", "40"))
        .route("/path/sub1", child())
        .route("/path/sub2", child())
        .route("/path/sub3", child())
}

/// A body of twenty lines of 64 bytes, each of which `line` tells.
fn lines(line: impl Fn(u64) -> u64) -> Bytes {
    (0..LINES).map(|n| format!("{:>63}\n", line(n))).collect::<String>().into()
}

/// TD_COAP_BLOCK.
fn blocks(router: Router) -> Router {
    let large = || text(lines(|n| n));
    let updated = Arc::new(Mutex::new((lines(|n| n), ContentFormat::TEXT)));
    let shown = updated.clone();
    let update = get(move |_: &Call<'_>| {
        let (body, format) = &*locked(&shown);
        Response::content(body.clone()).format(*format)
    })
    .put(move |call: &Call<'_>| match stored(call) {
        Ok(body) => {
            *locked(&updated) = body;
            Response::new(Code::CHANGED)
        }
        Err(refused) => refused,
    });
    let bodies = Arc::new(Mutex::new(Vec::new()));
    let created = bodies.clone();
    let create = post(move |call: &Call<'_>| {
        let body = match stored(call) {
            Ok(body) => body,
            Err(refused) => return refused,
        };
        let bodies = &mut *locked(&bodies);
        bodies.push(body);
        let created = Response::new(Code::CREATED);
        let created = created.option(OptionNumber::LOCATION_PATH, b"large-create");
        created.option(OptionNumber::LOCATION_PATH, bodies.len().to_string().as_bytes())
    });
    let show_created = get(move |call: &Call<'_>| {
        let number = call.param("number").and_then(|number| number.parse::<usize>().ok());
        let bodies = &*locked(&created);
        match number.and_then(|number| bodies.get(number.checked_sub(1)?)) {
            Some((body, format)) => Response::content(body.clone()).format(*format),
            None => Response::new(Code::NOT_FOUND),
        }
    });
    let echo = |call: &Call<'_>| {
        let body: Bytes = call.payload().to_ascii_uppercase().into();
        Response::new(Code::CHANGED).payload(body).format(ContentFormat::TEXT)
    };
    router
        .route("/large", get(move |_: &Call<'_>| large()).attribute("sz", "1280"))
        .route("/large-update", update.attribute("sz", "1280"))
        .route("/large-create", create)
        .route("/large-create/{number}", show_created)
        .route("/large-post", post(echo))
}

/// What changes by itself, or is changed by PUT until then.
struct Changing {
    body: Bytes,
    format: ContentFormat,
}

/// TD_COAP_OBS.
fn observable(router: Router, period: Duration) -> Router {
    fn small(n: u64) -> Bytes {
        format!("state {n}").into()
    }
    fn large(n: u64) -> Bytes {
        lines(|_| n)
    }
    /// Bodies of one block and of several take turns.
    fn pumping(n: u64) -> Bytes {
        if n.is_multiple_of(2) { small(n) } else { large(n) }
    }
    router
        .route("/obs", changing(&Subject::new(), period, small))
        .route("/obs-non", changing(&Subject::non_confirmable(), period, small))
        .route("/obs-large", changing(&Subject::new(), period, large))
        .route("/obs-pumping", changing(&Subject::new(), period, pumping))
}

fn changing(subject: &Subject, period: Duration, body: fn(u64) -> Bytes) -> Resource {
    let state = Arc::new(Mutex::new(Changing { body: body(0), format: ContentFormat::TEXT }));
    let (shown, ticking, cleared) = (state.clone(), state.clone(), subject.clone());
    let (changed, ticks) = (subject.clone(), subject.clone());
    // A whole second is the least that Max-Age can say.
    let max_age = u32::try_from(period.as_millis().div_ceil(1000)).unwrap_or(u32::MAX);
    tokio::spawn(async move {
        for n in 1.. {
            tokio::time::sleep(period).await;
            *locked(&ticking) = Changing { body: body(n), format: ContentFormat::TEXT };
            ticks.changed();
        }
    });
    get(move |_: &Call<'_>| {
        let state = &*locked(&shown);
        Response::content(state.body.clone()).format(state.format).max_age(max_age)
    })
    .put(move |call: &Call<'_>| {
        let (body, format) = match stored(call) {
            Ok(stored) => stored,
            Err(refused) => return refused,
        };
        let before = std::mem::replace(&mut *locked(&state), Changing { body, format });
        // Observers asked for the format that they got (RFC 7641 section 4.2).
        if before.format == format {
            changed.changed();
        } else {
            changed.clear(Code::NOT_ACCEPTABLE);
        }
        Response::new(Code::CHANGED)
    })
    .delete(move |_: &Call<'_>| {
        cleared.clear(Code::NOT_FOUND);
        Response::new(Code::DELETED)
    })
    .observable(subject)
    .attribute("rt", "observe")
}

/// Observers are lost without a word, as by a reboot.
fn obs_reset(reset: &Arc<Notify>) -> Resource {
    let reset = reset.clone();
    post(move |call: &Call<'_>| {
        if call.payload() != b"sesame" {
            return Response::new(Code::FORBIDDEN);
        }
        reset.notify_one();
        Response::new(Code::CHANGED)
    })
    .hidden()
}
