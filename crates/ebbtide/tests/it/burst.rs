//! Bursts over real sockets: back-pressure, order, what is handed back.

use crate::common::relay::{Trouble, relay};
use ebbtide::client::Reason;
use ebbtide::congestion::ControlConfig;
use ebbtide::server::{Call, Router, Server, in_order, post, put};
use ebbtide::{BurstMark, Client, ClientConfig, Code, Request, Response};
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::time::Duration;

type Log = Arc<Mutex<Vec<(Option<BurstMark>, Vec<u8>)>>>;

/// A server with an ordered resource `/log`, a plain one `/file`, and one that refuses.
fn serve() -> (Server, SocketAddr, Log) {
    let log = Log::default();
    let told = log.clone();
    let ordered = in_order(move |message| {
        told.lock().unwrap().push((message.mark, message.payload.to_vec()));
    });
    let router = Router::new()
        .route("/log", post(ordered))
        .route(
            "/refuses",
            post(|call: &Call<'_>| match call.burst().map(|mark| mark.sequence) {
                Some(3) => Response::new(Code::FORBIDDEN),
                _ => Response::new(Code::CHANGED),
            }),
        )
        .route(
            "/file",
            put(|call: &Call<'_>| Response::new(Code::CHANGED).payload(call.payload().to_vec())),
        );
    let server = Server::bind(router, ["127.0.0.1:0"]).unwrap();
    let address = server.local_addrs()[0];
    (server, address, log)
}

/// Under `control`; MAX_RETRANSMIT so large that a bad wire loses nothing for good.
fn client(control: &str) -> Client {
    let config =
        ClientConfig::new().control(ControlConfig::parse(control).unwrap()).max_retransmit(12);
    Client::with_config(config)
}

const LOSING: Trouble = Trouble { lost: 5, repeated: 5, late: 10, damaged: 0 };

#[tokio::test]
async fn messages_are_delivered_in_order_and_each_once_over_a_bad_wire() {
    for control in ["rcoap", "fasor-token:nstart=16"] {
        let (_server, address, log) = serve();
        let through = relay(address, LOSING, 5).await;
        let client = client(control);
        let reported = Arc::new(Mutex::new(Vec::new()));
        let told = reported.clone();
        let burst = client.burst(format!("coap://{through}/log")).await.unwrap();
        let mut burst = burst.on_report(move |report| {
            assert!(report.outcome.is_ok_and(Response::is_success));
            told.lock().unwrap().push(report.sequence);
        });
        let count = 100;
        for number in 0..count {
            assert_eq!(burst.send(format!("message {number}")).await.unwrap(), number);
        }
        let summary = burst.finish().await;
        assert_eq!((summary.acknowledged, summary.unacknowledged.len()), (count.into(), 0));
        assert_eq!(*reported.lock().unwrap(), (0..count).collect::<Vec<_>>(), "{control}");
        let log = log.lock().unwrap();
        assert_eq!(log.len(), count as usize, "{control}");
        for (number, (mark, payload)) in log.iter().enumerate() {
            assert_eq!(mark.unwrap().sequence as usize, number, "{control}");
            assert_eq!(payload, format!("message {number}").as_bytes());
        }
        assert_eq!(client.snapshot().open_exchanges(), 0);
    }
}

#[tokio::test]
async fn a_burst_waits_instead_of_holding_more_than_its_window() {
    let (_server, address, _) = serve();
    let client = client("default");
    let burst = client.burst(format!("coap://{address}/log")).await.unwrap();
    let mut burst = burst.in_flight(10);
    for _ in 0..200 {
        burst.send("x").await.unwrap();
        assert!(client.snapshot().open_exchanges() <= 10);
    }
    assert_eq!(burst.finish().await.acknowledged, 200);
}

#[tokio::test]
async fn a_server_that_knows_nothing_of_bursts_takes_the_messages() {
    let (_server, address, _) = serve();
    let request = Request::put(format!("coap://{address}/file")).unwrap();
    let mut burst = client("rcoap").burst_with(request).await.unwrap();
    for _ in 0..20 {
        burst.send(vec![7; 1000]).await.unwrap();
    }
    let refused = burst.send(vec![7; 1025]).await.unwrap_err();
    assert_eq!(refused.payload.len(), 1025, "what is too long is handed back at once");
    assert_eq!(burst.finish().await.acknowledged, 20);
}

#[tokio::test]
async fn a_refused_message_is_handed_back_and_stops_the_burst() {
    let (_server, address, _) = serve();
    let burst = client("default").burst(format!("coap://{address}/refuses")).await.unwrap();
    let mut burst = burst.in_flight(1);
    let mut accepted = 0;
    let stopped = loop {
        match burst.send(format!("{accepted}")).await {
            Ok(_) => accepted += 1,
            Err(stopped) => break stopped,
        }
    };
    assert_eq!((stopped.payload.as_ref(), stopped.error.is_none()), (&b"4"[..], true));
    let summary = burst.finish().await;
    assert_eq!(summary.acknowledged, 3);
    let [message] = &summary.unacknowledged[..] else { panic!("{summary:?}") };
    assert_eq!((message.sequence, message.payload.as_ref()), (3, &b"3"[..]));
    assert!(matches!(&message.reason, Reason::Refused(r) if r.code() == Code::FORBIDDEN));
}

#[tokio::test]
async fn a_burst_may_go_on_after_a_refusal_and_leave_it_out() {
    let (_server, address, _) = serve();
    let burst = client("default").burst(format!("coap://{address}/refuses")).await.unwrap();
    let mut burst = burst.stop_after(2);
    for number in 0..10 {
        burst.send(format!("{number}")).await.unwrap();
    }
    let summary = burst.finish().await;
    assert_eq!((summary.acknowledged, summary.unacknowledged.len()), (9, 1));
}

#[tokio::test]
async fn a_peer_that_answers_nothing_gets_everything_handed_back() {
    let silent = tokio::net::UdpSocket::bind("127.0.0.1:0").await.unwrap();
    let address = silent.local_addr().unwrap();
    // MAX_TRANSMIT_SPAN, before which nothing is given up, follows ACK_TIMEOUT.
    let control = ControlConfig::parse("rcoap:initial-rto=100ms").unwrap();
    let config = ClientConfig::new().control(control).ack_timeout(Duration::from_millis(100));
    let client = Client::with_config(config);
    let mut burst = client.burst(format!("coap://{address}/log")).await.unwrap();
    for number in 0..5 {
        burst.send(format!("{number}")).await.unwrap();
    }
    let ended = tokio::time::timeout(Duration::from_secs(60), burst.finish()).await.unwrap();
    assert_eq!((ended.acknowledged, ended.unacknowledged.len()), (0, 5));
    for (number, message) in ended.unacknowledged.iter().enumerate() {
        assert_eq!(message.payload, number.to_string().as_bytes());
        assert!(matches!(message.reason, Reason::Failed(_)));
    }
    assert_eq!(client.snapshot().open_exchanges(), 0);
}

#[tokio::test]
async fn a_burst_that_is_stopped_hands_back_what_is_under_way() {
    let silent = tokio::net::UdpSocket::bind("127.0.0.1:0").await.unwrap();
    let client = client("default");
    let uri = format!("coap://{}/log", silent.local_addr().unwrap());
    let mut burst = client.burst(uri).await.unwrap();
    for number in 0..5 {
        burst.send(format!("{number}")).await.unwrap();
    }
    let summary = burst.stop();
    assert_eq!(summary.unacknowledged.len(), 5);
    assert!(summary.unacknowledged.iter().all(|m| matches!(m.reason, Reason::Stopped)));
    assert_eq!(client.snapshot().open_exchanges(), 0);
}

#[tokio::test]
async fn a_body_arrives_whole_with_several_blocks_in_flight_over_a_bad_wire() {
    for (control, bytes) in [("rcoap", 60_001), ("fasor-token:nstart=16", 200_000), ("default", 5)]
    {
        let (_server, address, _) = serve();
        let through = relay(address, LOSING, 6).await;
        let body: Vec<u8> = (0..bytes).map(|n: u32| (n * 7 + n / 251) as u8).collect();
        let request = Request::put(format!("coap://{through}/file")).unwrap();
        let client = client(control);
        let done = Arc::new(Mutex::new(0));
        let told = done.clone();
        let upload = client.upload(request.payload(body.clone())).await.unwrap();
        let mut upload = upload.on_progress(move |bytes| {
            let mut last = told.lock().unwrap();
            assert!(bytes >= *last, "progress goes forward");
            *last = bytes;
        });
        let answer = upload.run().await.unwrap();
        assert_eq!(answer.code(), Code::CHANGED, "{control}: {}", answer.text());
        assert!(*answer.body() == body, "{control}: {} bytes came back", answer.body().len());
        assert_eq!((upload.acknowledged(), upload.unacknowledged()), (bytes as usize, vec![]));
        assert!(!upload.is_in_order());
        assert_eq!(*done.lock().unwrap(), bytes as usize);
    }
}

#[tokio::test]
async fn an_upload_that_is_dropped_says_which_bytes_are_missing() {
    let silent = tokio::net::UdpSocket::bind("127.0.0.1:0").await.unwrap();
    let request = Request::put(format!("coap://{}/file", silent.local_addr().unwrap())).unwrap();
    let client = client("default");
    let mut upload = client.upload(request.payload(vec![0; 5000])).await.unwrap();
    let ended = tokio::time::timeout(Duration::from_millis(50), upload.run()).await;
    assert!(ended.is_err());
    let missing = upload.unacknowledged();
    let [all] = &missing[..] else { panic!("{missing:?}") };
    assert_eq!((upload.acknowledged(), all), (0, &(0..5000)));
    assert_eq!(client.snapshot().open_exchanges(), 0);
}
