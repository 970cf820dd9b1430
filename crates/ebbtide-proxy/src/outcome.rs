//! Answers that the gateway gives itself.

use crate::remainder::{ClaimedRest, Remainder};
use ebbtide::{Code, Error, ErrorKind, Response};
use std::time::Duration;

/// The result of a request.
#[derive(Clone, Debug)]
pub(crate) enum ForwardOutcome {
    /// The server's answer.
    Answer(Response),
    /// The server's answer with the beginning of its body, which goes on.
    Beginning(Response, Remainder),
    /// The gateway's own, which is not stored.
    Refusal(Response),
}

impl ForwardOutcome {
    pub(crate) fn code(&self) -> Code {
        match self {
            Self::Answer(response) | Self::Beginning(response, _) | Self::Refusal(response) => {
                response.code()
            }
        }
    }

    /// The response, and the rest of its body for one client; `None` if another client has taken that.
    pub(crate) fn claim(self) -> Option<(Response, Option<ClaimedRest>)> {
        match self {
            Self::Answer(response) | Self::Refusal(response) => Some((response, None)),
            Self::Beginning(response, remainder) => Some((response, Some(remainder.claim()?))),
        }
    }
}

/// 5.05: the request is not one that this proxy forwards (RFC 7252 section 5.10.2).
pub(crate) fn not_supported(why: &'static str) -> Response {
    Response::error(Code::PROXYING_NOT_SUPPORTED, why)
}

/// 5.03: the request was not sent, and may be repeated after this span (RFC 7252 section 5.9.3.4).
pub(crate) fn unavailable(retry: Duration, why: &'static str) -> Response {
    let seconds = u32::try_from(retry.as_millis().div_ceil(1000)).unwrap_or(u32::MAX).max(1);
    Response::error(Code::SERVICE_UNAVAILABLE, why).max_age(seconds)
}

/// 4.03: what the request would change belongs to another client.
pub(crate) fn not_owner() -> Response {
    Response::error(Code::FORBIDDEN, "it is another client's")
}

/// 5.04: no answer within the time limit. The server may have processed the request.
pub(crate) fn timed_out() -> Response {
    // Repeated at once, it would wait for the same device.
    Response::error(Code::GATEWAY_TIMEOUT, "no answer within the time limit").max_age(1)
}

/// The answer in place of a server's response that did not come (RFC 7252 section 5.7.1).
pub(crate) fn failed(error: &Error) -> Response {
    let code = match error.kind() {
        ErrorKind::GaveUp | ErrorKind::NoResponse | ErrorKind::TimedOut => Code::GATEWAY_TIMEOUT,
        ErrorKind::NotSent => Code::SERVICE_UNAVAILABLE,
        _ => Code::BAD_GATEWAY,
    };
    // The text of an error may name addresses of this machine; the kind is enough for strangers.
    Response::error(code, format!("{:?}", error.kind())).max_age(1)
}
