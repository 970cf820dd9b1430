//! Bodies of HTTP requests: short ones are held, and long ones pass through block by block (RFC 7959), as fast as the
//! device takes them.

use super::request::Refused;
use crate::ask::{Ask, CacheKey};
use crate::blocks;
use crate::gateway::Gateway;
use crate::options;
use crate::outcome;
use crate::remainder::HELD;
use crate::shared::RequestProgress;
use crate::system;
use bytes::{Bytes, BytesMut};
use ebbtide::client::StreamedUpload;
use ebbtide::{Code, Response};
use ebbtide_core::sharing_prefix;
use http_body_util::BodyExt;
use hyper::StatusCode;
use hyper::body::{Body as _, Incoming};
use std::net::IpAddr;
use std::time::Duration;

/// How long a body may keep the gateway waiting. Bytes that come give it this time again, at the
/// least rate. The time of the device does not count.
const BODY_PATIENCE: Duration = Duration::from_secs(30);
/// Bytes per second.
const LEAST_RATE: u64 = 1024;

/// The body of a request.
pub(super) enum RequestBody {
    Held(Bytes),
    Long(LongBody),
}

/// A body with its beginning.
pub(super) struct LongBody {
    beginning: Bytes,
    body: Limited,
}

/// A body that has no more than `max` bytes.
struct Limited {
    body: Incoming,
    max: usize,
    read: usize,
    /// How long it may still keep the gateway waiting.
    patience: Duration,
}

/// Reads a body, or the beginning of a long one.
///
/// # Errors
///
/// The status and the reason, if it is too long or does not come in time.
pub(super) async fn read(
    body: Incoming,
    gateway: &Gateway,
    client: IpAddr,
) -> Result<RequestBody, Refused> {
    if body.is_end_stream() {
        // Most requests have none, and need no timer.
        return Ok(RequestBody::Held(Bytes::new()));
    }
    let max = gateway.inner.max_body;
    let length = body.size_hint().upper().and_then(|length| usize::try_from(length).ok());
    let held = length.unwrap_or(HELD).min(HELD);
    // While it arrives; then its request counts it.
    let _arriving = gateway.admit_body(sharing_prefix(client), held).map_err(|refusal| {
        let why = refusal.text().into_owned();
        Refused { status: StatusCode::SERVICE_UNAVAILABLE, why }
    })?;
    let mut body = Limited { body, max, read: 0, patience: BODY_PATIENCE };
    if body.body.size_hint().lower() > max as u64 {
        return Err(body.too_long());
    }
    let mut beginning = BytesMut::new();
    while beginning.len() <= HELD {
        match body.next().await? {
            Some(bytes) => beginning.extend_from_slice(&bytes),
            None => return Ok(RequestBody::Held(beginning.freeze())),
        }
    }
    Ok(RequestBody::Long(LongBody { beginning: beginning.freeze(), body }))
}

impl Limited {
    fn too_long(&self) -> Refused {
        let why = format!("the body exceeds {} bytes", self.max);
        Refused { status: StatusCode::PAYLOAD_TOO_LARGE, why }
    }

    /// The next bytes; `None` at the end.
    async fn next(&mut self) -> Result<Option<Bytes>, Refused> {
        let (began, patience) = (system::now(), self.patience);
        let Ok(bytes) = tokio::time::timeout(patience, self.next_data()).await else {
            let why = "the body took too long".to_owned();
            return Err(Refused { status: StatusCode::REQUEST_TIMEOUT, why });
        };
        let bytes = bytes?;
        let left = patience.saturating_sub(system::now().saturating_duration_since(began));
        let length = bytes.as_ref().map_or(0, Bytes::len) as u64;
        let earned = Duration::from_micros(length * 1_000_000 / LEAST_RATE);
        self.patience = BODY_PATIENCE.min(left + earned);
        Ok(bytes)
    }

    async fn next_data(&mut self) -> Result<Option<Bytes>, Refused> {
        loop {
            let Some(frame) = self.body.frame().await else { return Ok(None) };
            let broken = |error: hyper::Error| Refused {
                status: StatusCode::BAD_REQUEST,
                why: error.to_string(),
            };
            // Trailers have no counterpart in CoAP.
            let Ok(bytes) = frame.map_err(broken)?.into_data() else { continue };
            self.read += bytes.len();
            return if self.read > self.max { Err(self.too_long()) } else { Ok(Some(bytes)) };
        }
    }
}

impl RequestBody {
    pub(super) fn beginning(&self) -> Bytes {
        match self {
            Self::Held(bytes) => bytes.clone(),
            Self::Long(body) => body.beginning.clone(),
        }
    }
}

impl LongBody {
    /// Sends the body to the device block by block, each when it is its turn and within the request's time limit. A
    /// client that goes away, or a body that is refused, ends the transfer: the device then discards what it has.
    ///
    /// # Errors
    ///
    /// The status and the reason, if the body does not come to its end.
    pub(super) async fn send(
        mut self,
        gateway: &Gateway,
        mut ask: Ask,
    ) -> Result<Response, Refused> {
        if !matches!(ask.code, Code::POST | Code::PUT | Code::PATCH) {
            // RFC 7252 section 5.5: a GET or DELETE has no payload.
            let why = "this method has no body in CoAP".to_owned();
            return Err(Refused { status: StatusCode::BAD_REQUEST, why });
        }
        let inner = &gateway.inner;
        let patience = ask.deadline.saturating_duration_since(system::now()).min(inner.deadline);
        let uri = CacheKey::of_uri(&ask.target);
        let _counted = match gateway.admit(&ask) {
            Ok(counted) => counted,
            Err(refusal) => return Ok(refusal),
        };
        let Some(_alone) = inner.upstream.uploads.begin(&uri) else {
            let why = "another long body is on its way to this resource";
            return Ok(outcome::unavailable(Duration::from_secs(1), why));
        };
        ask.payload = Bytes::new();
        let (request, address) = match inner.upstream.prepare(&ask).await {
            Ok(prepared) => prepared,
            Err(refusal) => return Ok(refusal),
        };
        let progress = RequestProgress::new(system::now() + patience);
        let mut noted = inner.upstream.note(&ask, &progress);
        let mut upload = inner.upstream.client.begin_upload(request);
        upload.push(&std::mem::take(&mut self.beginning));
        loop {
            self.body.fill(&mut upload).await?;
            let deadline = system::now() + patience;
            progress.extend(deadline);
            let exchange = async {
                let answered = upload.send().await?;
                Ok((answered, upload.is_repeated()))
            };
            let turn = inner.upstream.turn(&ask, address, &progress, exchange, |(_, repeated)| {
                blocks::round_trip(*repeated)
            });
            let answered = tokio::time::timeout_at(deadline, turn).await;
            let answered = match answered.unwrap_or_else(|_| Err(progress.too_late())) {
                Ok((None, _)) => continue,
                Ok((Some(response), _)) => {
                    if response.is_success() {
                        gateway.changed(&uri);
                    }
                    options::of_response(response, &inner.upstream.name)
                }
                Err(refusal) => refusal,
            };
            noted.code = Some(answered.code());
            return Ok(answered);
        }
    }
}

impl Limited {
    /// Reads as much as the next block needs.
    async fn fill(&mut self, upload: &mut StreamedUpload) -> Result<(), Refused> {
        while upload.wants() > 0 {
            match self.next().await? {
                Some(bytes) => upload.push(&bytes),
                None => upload.end(),
            }
        }
        Ok(())
    }
}
