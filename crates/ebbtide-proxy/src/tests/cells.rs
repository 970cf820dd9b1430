//! Requests in flight in a cell, and refused ones.

use super::{Through, patient, serve};
use crate::GatewayConfig;
use ebbtide::server::{Router, get};
use ebbtide::{Client, Code, Request, Response};
use futures_util::future::join_all;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

/// Counts how many requests are at its servers at once.
#[derive(Clone, Default)]
struct Busy {
    now: Arc<AtomicUsize>,
    most: Arc<AtomicUsize>,
    asked: Arc<AtomicUsize>,
}

impl Busy {
    fn server(&self, span: Duration) -> Router {
        let busy = self.clone();
        Router::new().route(
            "/{n}",
            get(move || {
                let busy = busy.clone();
                async move {
                    busy.asked.fetch_add(1, Ordering::SeqCst);
                    busy.most
                        .fetch_max(busy.now.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
                    tokio::time::sleep(span).await;
                    busy.now.fetch_sub(1, Ordering::SeqCst);
                    Response::content("x").max_age(0)
                }
            }),
        )
    }
}

/// A gateway whose requests in flight are those at its servers.
fn config() -> GatewayConfig {
    super::config().client(patient())
}

/// Sends requests at once, each to another of these servers, from a client of its own.
async fn at_once(
    through: &Through,
    servers: &[std::net::SocketAddr],
    count: usize,
) -> Vec<Response> {
    let clients: Vec<_> = (0..count).map(|_| Client::new()).collect();
    let requests = clients.iter().enumerate().map(|(n, client)| {
        let server = servers[n % servers.len()];
        let request: Request = through.get(&format!("coap://{server}/{n}"));
        async move { client.request(request).await.unwrap() }
    });
    join_all(requests).await
}

#[tokio::test]
async fn a_cell_has_no_more_in_flight_than_its_maximum() {
    let busy = Busy::default();
    let servers: Vec<_> = (0..8).map(|_| serve(busy.server(Duration::from_millis(50)))).collect();
    let through = Through::gateway(config().max_in_flight(3));
    let answers = at_once(&through, &servers, 24).await;
    assert!(answers.iter().all(|answer| answer.code() == Code::CONTENT));
    assert_eq!(busy.asked.load(Ordering::SeqCst), 24);
    assert!((1..=3).contains(&busy.most.load(Ordering::SeqCst)), "{:?}", busy.most);
}

#[tokio::test]
async fn a_device_has_one_request_in_flight() {
    let busy = Busy::default();
    let server = serve(busy.server(Duration::from_millis(20)));
    let through = Through::gateway(config());
    let answers = at_once(&through, &[server], 10).await;
    assert!(answers.iter().all(|answer| answer.code() == Code::CONTENT));
    assert_eq!(busy.most.load(Ordering::SeqCst), 1);
}

#[tokio::test]
async fn requests_that_cannot_be_answered_in_time_are_refused_and_not_sent() {
    let busy = Busy::default();
    let servers: Vec<_> = (0..4).map(|_| serve(busy.server(Duration::from_millis(400)))).collect();
    let through = Through::gateway(config().max_in_flight(1).deadline(Duration::from_secs(1)));
    let answers = at_once(&through, &servers, 20).await;
    let answered = answers.iter().filter(|answer| answer.code() == Code::CONTENT).count();
    let refused =
        answers.iter().filter(|answer| answer.code() == Code::SERVICE_UNAVAILABLE).count();
    let late = answers.iter().filter(|answer| answer.code() == Code::GATEWAY_TIMEOUT).count();
    assert_eq!(answered + refused + late, 20);
    assert!(
        answered >= 1 && busy.asked.load(Ordering::SeqCst) == answered + late,
        "{answered} {late}"
    );
    let ages = answers.iter().filter(|answer| answer.code() == Code::SERVICE_UNAVAILABLE);
    let named =
        |answer: &Response| answer.options().get_uint(ebbtide::OptionNumber::MAX_AGE) >= Some(1);
    assert!(ages.clone().all(named));
}

#[tokio::test]
async fn beyond_the_maximum_of_requests_a_client_is_told_at_once() {
    let busy = Busy::default();
    let server = serve(busy.server(Duration::from_secs(5)));
    let config = config().max_requests(4).max_in_flight(1).deadline(Duration::from_secs(2));
    let through = Through::gateway(config);
    let answers = at_once(&through, &[server], 12).await;
    let told = |answer: &&Response| answer.text() == "too many requests are waiting";
    assert!(answers.iter().filter(told).count() >= 8);
}
