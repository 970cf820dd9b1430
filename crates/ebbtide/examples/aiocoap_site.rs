//! The resources that aiocoap's own tests of servers, observation and block-wise transfer ask for:
//! `aiocoap_site ADDRESS`, over UDP and TCP. `interop/aiocoap/own_tests.py` starts it.

use bytes::Bytes;
use ebbtide::server::{Call, Resource, Router, Subject, get, post, put};
use ebbtide::stream::Listen;
use ebbtide::{Code, ContentFormat, OptionNumber, Response, Server, ServerConfig};
use std::error::Error;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// One resource in several formats.
fn formats(list: &'static [(ContentFormat, &'static str)]) -> Resource {
    get(move |call: &Call<'_>| {
        let wanted = call.accept().unwrap_or(ContentFormat::TEXT);
        match list.iter().find(|(format, _)| *format == wanted) {
            Some((format, text)) => Response::content(*text).format(*format),
            None => Response::new(Code::NOT_ACCEPTABLE),
        }
    })
}

fn body(repetitions: usize) -> Bytes {
    "0123456789----------".repeat(repetitions).into()
}

/// A resource with an ETag.
fn big(call: &Call<'_>) -> Response {
    let etag = OptionNumber::ETAG;
    if call.message().options().any(|option| option.number == etag && option.value == b"big") {
        return Response::new(Code::VALID).etag(b"big");
    }
    Response::content(body(512)).etag(b"big")
}

fn slow(span: Duration, body: Bytes) -> Resource {
    get(move |_: Call<'static>| {
        let body = body.clone();
        async move {
            tokio::time::sleep(span).await;
            Response::content(body)
        }
    })
}

/// What is put, with letters in place of its zeros; observers are told.
fn replacing(subject: &Subject) -> Resource {
    let replaced = |body: &[u8]| -> Bytes {
        body.iter().map(|&byte| if byte == b'0' { b'O' } else { byte }).collect()
    };
    let state = Arc::new(Mutex::new(Bytes::new()));
    let (shown, subject) = (state.clone(), subject.clone());
    let observed = subject.clone();
    put(move |call: &Call<'_>| {
        *state.lock().unwrap_or_else(PoisonError::into_inner) = replaced(call.payload());
        subject.changed();
        Response::new(Code::CHANGED)
    })
    .post(move |call: &Call<'_>| Response::content(replaced(call.payload())))
    .get(move |_: &Call<'_>| {
        Response::content(shown.lock().unwrap_or_else(PoisonError::into_inner).clone())
    })
    .observable(&observed)
}

/// A counter: POST adds one, or two, and DELETE sets it to zero.
fn counter(show: fn(u64) -> String) -> Resource {
    let subject = Subject::new();
    let count = Arc::new(AtomicU64::new(0));
    let (shown, fetched, zeroed) = (count.clone(), count.clone(), count.clone());
    let (added, reset) = (subject.clone(), subject.clone());
    get(move |_: &Call<'_>| Response::content(show(shown.load(Ordering::Relaxed))))
        .fetch(move |call: &Call<'_>| {
            let state = show(fetched.load(Ordering::Relaxed));
            Response::content(format!("{state}; request had length {}", call.payload().len()))
        })
        .post(move |call: &Call<'_>| {
            let double = call.payload() == b"double";
            count.fetch_add(if double { 2 } else { 1 }, Ordering::Relaxed);
            added.changed();
            if double {
                added.changed();
            }
            Response::new(Code::CHANGED)
        })
        .delete(move |_: &Call<'_>| {
            zeroed.store(0, Ordering::Relaxed);
            reset.changed();
            Response::new(Code::CHANGED)
        })
        .observable(&subject)
}

fn router() -> Router {
    let create = |_: &Call<'_>| {
        let options = [
            (OptionNumber::LOCATION_PATH, &b"create"[..]),
            (OptionNumber::LOCATION_PATH, b"here"),
            (OptionNumber::LOCATION_PATH, b""),
            (OptionNumber::LOCATION_QUERY, b"this=this"),
            (OptionNumber::LOCATION_QUERY, b"that=that"),
        ];
        let response = Response::new(Code::CREATED);
        options
            .into_iter()
            .fold(response, |response, (number, value)| response.option(number, value))
    };
    let failing = || get(|_: &Call<'_>| Response::new(Code::INTERNAL_SERVER_ERROR));
    let missing = |_: &Call<'_>| Response::error(Code::NOT_FOUND, "I'm sorry nothing is here");
    let unauthorized = get(|_: &Call<'_>| Response::new(Code::UNAUTHORIZED));
    let empty = &[
        (ContentFormat::JSON, "{}"),
        (ContentFormat::LINK_FORMAT, "<>"),
        (ContentFormat::TEXT, ""),
    ];
    let answer = &[
        (ContentFormat::JSON, "{\"answer\": 42}"),
        (ContentFormat::TEXT, "The answer to life, the universe, and everything is 42."),
    ];
    Router::new()
        .route("/", get(|_: &Call<'_>| Response::content("Welcome to the test server")))
        .route("/empty", formats(empty))
        .route("/answer", formats(answer))
        .route("/slow", slow(Duration::from_millis(200), Bytes::new()))
        .route("/big", get(big))
        .route("/big/chunky", get(big))
        .route("/slowbig", slow(Duration::from_secs(2), body(80)))
        .route("/manualbig", get(|_: &Call<'_>| Response::content(body(80))))
        .route("/replacing/one", replacing(&Subject::new()))
        .route("/error/generic", failing())
        .route("/error/double", failing())
        .route("/error/pretty", get(missing))
        .route("/create/", post(create))
        .route("/deep/unobservable", formats(&[(ContentFormat::TEXT, "")]))
        .route("/deep/count", counter(|count| count.to_string()))
        .route("/deep/large", counter(|count| format!(" {count:>3}").repeat(400)))
        .route("/deep/echo", replacing(&Subject::new()))
        .route("/deep/failure", unauthorized.observable(&Subject::new()))
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    let address: SocketAddr = std::env::args().nth(1).ok_or("aiocoap_site ADDRESS")?.parse()?;
    let server = Server::with_config(router(), ServerConfig::new(), [address])?;
    let server = server.listen(Listen::Tcp(address))?;
    println!("ready");
    server.run().await?;
    Ok(())
}
