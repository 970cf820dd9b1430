//! The states of an observed resource as server-sent events (HTML, section 9.2).

use super::response::AnswerBody;
use crate::observed::{self, State};
use bytes::Bytes;
use ebbtide::Response;
use futures_util::stream;
use http_body_util::{BodyExt, StreamBody};
use hyper::body::Frame;
use hyper::header::{self, HeaderValue};
use std::fmt::Write as _;
use std::io;
use std::time::Duration;
use tokio::sync::watch;

/// How often a comment is sent, by which a client that is gone is noticed.
const ALIVE: Duration = Duration::from_secs(15);

/// An answer that goes on for as long as the client reads it and the resource is observed.
pub(super) fn of(follower: watch::Receiver<Option<State>>) -> hyper::Response<AnswerBody> {
    let events = stream::unfold(Some(follower), |follower| async move {
        let mut follower = follower?;
        let next = tokio::time::timeout(ALIVE, observed::next(&mut follower)).await;
        let (text, follower) = match next {
            Err(_) => (":\n\n".to_owned(), Some(follower)),
            Ok(None) => return None,
            Ok(Some(state @ State::Last(_))) => (event(&state.response()), None),
            Ok(Some(state)) => (event(&state.response()), Some(follower)),
        };
        Some((Ok::<_, io::Error>(Frame::data(Bytes::from(text))), follower))
    });
    let mut answer = hyper::Response::new(StreamBody::new(events).boxed_unsync());
    let fields = answer.headers_mut();
    fields.insert(header::CONTENT_TYPE, HeaderValue::from_static("text/event-stream"));
    fields.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    answer
}

/// One event: its type is the code, its data the payload as text, or as hexadecimal digits if it is not text.
fn event(response: &Response) -> String {
    let mut text = format!("event: {}\n", response.code());
    match std::str::from_utf8(response.body()) {
        // A line of the payload is a line of the data, whatever ends it.
        Ok(payload) => {
            for line in payload.replace("\r\n", "\n").split(['\n', '\r']) {
                let _ = writeln!(text, "data: {line}");
            }
        }
        Err(_) => {
            text.push_str("data: ");
            response.body().iter().for_each(|byte| {
                let _ = write!(text, "{byte:02x}");
            });
            text.push('\n');
        }
    }
    text.push('\n');
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_payload_cannot_forge_events() {
        let forged = Response::content("a\r\n\r\nevent: x\rdata: y\n\n");
        let text = event(&forged);
        assert_eq!(text.matches("\n\n").count(), 1, "{text:?}");
        assert!(
            text.starts_with("event: 2.05\ndata: a\ndata: \ndata: event: x\ndata: data: y\n"),
            "{text:?}"
        );
        assert_eq!(event(&Response::content(vec![0xff, 0])), "event: 2.05\ndata: ff00\n\n");
    }
}
