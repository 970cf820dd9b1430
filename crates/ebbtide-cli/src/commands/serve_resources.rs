//! The test resources of `ebbtide serve`.

use bytes::Bytes;
use ebbtide::server::{Call, Router, Subject, get, post};
use ebbtide::{Code, ContentFormat, Response};
use ebbtide_sim::scenario::Workload;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// The contents of `/test`: sixty bytes.
pub(crate) const TEST: &str = "012345678901234567890123456789012345678901234567890123456789";
/// The size of `/large`, bytes.
const LARGE: usize = 1 << 20;
/// The response time of `/separate`.
const SLOW: Duration = Duration::from_secs(2);

/// The resources; `time` notifies the observers of `/time`.
pub(crate) fn router(time: &Subject) -> Router {
    let large = Bytes::from_iter((0..LARGE).map(|n| b'0' + (n % 10) as u8));
    let count = AtomicU64::new(0);
    let echo = |call: &Call<'_>| {
        let response = Response::new(Code::CHANGED).payload(Bytes::copy_from_slice(call.payload()));
        call.format().map_or(response.clone(), |format| response.format(format))
    };
    Router::new()
        .route(
            "/test",
            get(|_: &Call<'_>| Response::content(TEST).format(ContentFormat::TEXT))
                .attribute("title", "sixty bytes of text"),
        )
        .route(
            "/time",
            get(|_: &Call<'_>| Response::content(now()).format(ContentFormat::TEXT).max_age(1))
                .observable(time)
                .attribute("title", "seconds since 1970"),
        )
        .route("/echo", post(echo).put(echo).attribute("title", "echoes the payload"))
        .route(
            "/large",
            get(move |_: &Call<'_>| Response::content(large.clone()).format(ContentFormat::TEXT))
                .attribute("title", "1 MB of digits")
                .attribute("sz", LARGE.to_string()),
        )
        .route(
            "/separate",
            get(|| async {
                tokio::time::sleep(SLOW).await;
                Response::content("that took two seconds").format(ContentFormat::TEXT)
            })
            .attribute("title", "answers after two seconds"),
        )
        .route(
            "/count",
            post(move |_: &Call<'_>| {
                let before = count.fetch_add(1, Ordering::Relaxed);
                Response::new(Code::CHANGED).payload((before + 1).to_string())
            })
            .attribute("title", "counts POST requests"),
        )
}

/// Adds the resource of a scenario's server.
pub(crate) fn of_scenario(router: Router, workload: &Workload) -> Router {
    let digits = TEST.bytes().cycle().take(workload.response_payload as usize);
    let payload = Bytes::from_iter(digits);
    let answer = move |_: &Call<'_>| Response::content(payload.clone()).format(ContentFormat::TEXT);
    let resource = get(answer).attribute("title", "a scenario's");
    // It replaces the resource of the command that has the same path.
    router.merge(Router::new().route(&format!("/{}", workload.path), resource))
}

#[expect(clippy::disallowed_methods, reason = "the time of day is what this resource is about")]
fn now() -> String {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    since.as_secs().to_string()
}
