//! Topics, publications and subscriptions (draft-ietf-core-coap-pubsub-21), as clients make them.

use super::rfc_examples::{answer, message};
use super::{patient, serve};
use crate::{Broker, BrokerConfig};
use ciborium::Value;
use ebbtide::server::StateFile;
use ebbtide::{Client, Code, ContentFormat, OptionNumber, Request, Response, Uri};
use ebbtide_core::wire::Message;
use std::net::SocketAddr;

const PROPERTIES: ContentFormat = ContentFormat(606);
const PATH: OptionNumber = OptionNumber::URI_PATH;
/// 606 as the value of an option.
const FORMAT: (OptionNumber, &[u8]) = (OptionNumber::CONTENT_FORMAT, &[0x02, 0x5e]);

fn open() -> SocketAddr {
    serve(Broker::open(BrokerConfig::new()).unwrap().router())
}

fn cbor(value: &Value) -> Vec<u8> {
    let mut bytes = Vec::new();
    ciborium::into_writer(value, &mut bytes).unwrap();
    bytes
}

/// A map of properties.
fn map(entries: &[(u8, Value)]) -> Vec<u8> {
    let entries = entries.iter().map(|(key, value)| (Value::from(*key), value.clone()));
    cbor(&Value::Map(entries.collect()))
}

fn time(seconds: u64) -> Value {
    Value::Tag(1, Box::new(seconds.into()))
}

/// The properties that every topic has.
fn named(name: &str) -> Vec<(u8, Value)> {
    vec![(0, name.into()), (2, "core.ps.data".into())]
}

/// A client of a broker.
struct PubSub {
    client: Client,
    broker: SocketAddr,
}

/// A topic that a client has created.
struct Created {
    topic: String,
    data: String,
}

impl PubSub {
    fn of(broker: SocketAddr) -> Self {
        Self { client: Client::with_config(patient()), broker }
    }

    async fn ask(&self, code: Code, path: &str, format: ContentFormat, body: &[u8]) -> Response {
        let uri = format!("coap://{}{path}", self.broker);
        let request = Request::new(code, uri.parse::<Uri>().unwrap()).unwrap();
        self.client.request(request.format(format).payload(body.to_vec())).await.unwrap()
    }

    async fn properties(&self, code: Code, path: &str, entries: &[(u8, Value)]) -> Response {
        self.ask(code, path, PROPERTIES, &map(entries)).await
    }

    async fn get(&self, path: &str) -> Response {
        self.client.get(format!("coap://{}{path}", self.broker)).await.unwrap()
    }

    async fn delete(&self, path: &str) -> Code {
        self.client.delete(format!("coap://{}{path}", self.broker)).await.unwrap().code()
    }

    async fn publish(&self, created: &Created, text: &str) -> Code {
        self.ask(Code::PUT, &created.data, ContentFormat::TEXT, text.as_bytes()).await.code()
    }

    async fn create(&self, entries: &[(u8, Value)]) -> Created {
        let made = self.properties(Code::POST, "/ps", entries).await;
        assert_eq!(made.code(), Code::CREATED, "{}", made.text());
        let segments =
            made.options().iter().filter(|opt| opt.number == OptionNumber::LOCATION_PATH);
        let topic =
            segments.map(|opt| format!("/{}", String::from_utf8_lossy(opt.value))).collect();
        let Ok(Value::Map(read)) = ciborium::from_reader(&made.body()[..]) else {
            panic!("no map")
        };
        let data = read.iter().find(|(key, _)| *key == Value::from(1)).unwrap();
        Created { topic, data: data.1.as_text().unwrap().to_owned() }
    }

    async fn subscribe(&self, created: &Created) -> ebbtide::client::Observation {
        let uri = format!("coap://{}{}", self.broker, created.data);
        Client::with_config(patient()).observe(&*uri).await.unwrap()
    }
}

/// The number of a topic, of which the draft's examples say nothing.
fn number(created: &Message<'_>) -> Vec<u8> {
    let mut location = created
        .options()
        .filter(|opt| opt.number == OptionNumber::LOCATION_PATH)
        .map(|opt| opt.value);
    assert_eq!(location.next(), Some(&b"ps"[..]));
    location.next().unwrap().to_vec()
}

/// Sections 2.4.3, 2.5.1, 2.5.2, 2.5.4 and 2.5.5 of the draft: each message as it is printed, but for its paths.
#[tokio::test]
async fn the_examples_of_the_draft_are_answered_as_they_are_printed() {
    let broker = open();
    let begin = b"\xa2\x00\x72living-room-sensor\x02\x6ccore.ps.data";
    let made = answer(broker, &message(Code::POST, &[(PATH, b"ps"), FORMAT], begin)).await;
    let made = Message::parse(&made).unwrap();
    let number = number(&made);
    let data = [&b"\x71/ps/data/"[..], &number].concat();
    let whole = [b"\xa3\x00\x72living-room-sensor\x01", &*data, b"\x02\x6ccore.ps.data"].concat();
    assert_eq!((made.code(), made.payload()), (Code::CREATED, &*whole));
    assert_eq!(made.option(OptionNumber::CONTENT_FORMAT).unwrap().value, FORMAT.1);

    let own = [(PATH, &b"ps"[..]), (PATH, &*number)];
    let read = answer(broker, &message(Code::GET, &own, b"")).await;
    let read = Message::parse(&read).unwrap();
    assert_eq!((read.code(), read.payload()), (Code::CONTENT, &*whole));
    assert_eq!(read.option(OptionNumber::CONTENT_FORMAT).unwrap().value, FORMAT.1);

    // {5: 1(4102444799), 6: 5, 3: 112}
    let patch = b"\xa3\x05\xc1\x1a\xf4\x86\x56\xff\x06\x05\x03\x18\x70";
    let patched = answer(broker, &message(Code::IPATCH, &[own[0], own[1], FORMAT], patch)).await;
    let patched = Message::parse(&patched).unwrap();
    let more = b"\x03\x18\x70\x05\xc1\x1a\xf4\x86\x56\xff\x06\x05";
    let all = [b"\xa6", &whole[1..], more].concat();
    assert_eq!((patched.code(), patched.payload()), (Code::CHANGED, &*all));

    // [1, 3] as application/cbor
    let cbor = (OptionNumber::CONTENT_FORMAT, &[60][..]);
    let part =
        answer(broker, &message(Code::FETCH, &[own[0], own[1], cbor], b"\x82\x01\x03")).await;
    let part = Message::parse(&part).unwrap();
    let expected = [b"\xa2\x01", &*data, b"\x03\x18\x70"].concat();
    assert_eq!((part.code(), part.payload()), (Code::CONTENT, &*expected));

    // POST replaces what it does not name.
    let post = [own[0], own[1], FORMAT];
    let posted = answer(broker, &message(Code::POST, &post, b"\xa1\x04\x6btemperature")).await;
    let posted = Message::parse(&posted).unwrap();
    let expected = [b"\xa4", &whole[1..], b"\x04\x6btemperature"].concat();
    assert_eq!((posted.code(), posted.payload()), (Code::CHANGED, &*expected));

    let delete = message(Code::DELETE, &own, b"");
    assert_eq!(answer(broker, &delete).await, b"\x60\x42\x7d\x34");
    assert_eq!(answer(broker, &delete).await[1], Code::NOT_FOUND.0);
}

/// Sections 3.1 and 3.2 of the draft.
#[tokio::test]
async fn a_topic_is_half_created_until_something_is_published_and_again_when_that_is_deleted() {
    let client = PubSub::of(open());
    let topic = client.create(&named("room")).await;
    assert_eq!(client.get(&topic.data).await.code(), Code::NOT_FOUND);
    assert_eq!(client.publish(&topic, "1").await, Code::CREATED);
    let mut subscription = client.subscribe(&topic).await;
    let next = subscription.next().await.unwrap().unwrap();
    assert_eq!((next.text().as_ref(), next.content_format()), ("1", Some(ContentFormat::TEXT)));
    assert_eq!(client.publish(&topic, "2").await, Code::CHANGED);
    assert_eq!(subscription.next().await.unwrap().unwrap().text(), "2");
    assert_eq!(client.get(&topic.data).await.text(), "2");
    assert_eq!(client.delete(&topic.data).await, Code::DELETED);
    let last = subscription.next().await.unwrap();
    assert_eq!(last.unwrap().code(), Code::NOT_FOUND);
    assert!(subscription.next().await.is_none());
    assert_eq!(client.delete(&topic.data).await, Code::NOT_FOUND);
    assert_eq!(client.get(&topic.topic).await.code(), Code::CONTENT);
    assert_eq!(client.publish(&topic, "3").await, Code::CREATED);
    let mut subscription = client.subscribe(&topic).await;
    assert_eq!(subscription.next().await.unwrap().unwrap().text(), "3");
    assert_eq!(client.delete(&topic.topic).await, Code::DELETED);
    assert_eq!(subscription.next().await.unwrap().unwrap().code(), Code::NOT_FOUND);
    assert_eq!(client.publish(&topic, "4").await, Code::NOT_FOUND);
}

/// Sections 2.3 and 2.4 of the draft.
#[tokio::test]
async fn topics_are_found_by_their_type_and_by_their_properties() {
    let client = PubSub::of(open());
    let core = client.get("/.well-known/core?rt=core.ps").await;
    assert_eq!(core.text(), "</ps>;rt=\"core.ps core.ps.coll\";ct=40");
    assert_eq!(client.get("/.well-known/core?rt=core.ps.coll").await.text(), core.text());
    assert_eq!(client.get("/ps").await.text(), "");
    let warm = client.create(&[&named("a")[..], &[(4, "temperature".into())]].concat()).await;
    // Without the resource type, of which there is one.
    let elsewhere = [(0, "b".into()), (1, "coap://192.0.2.7/b".into())];
    let far = client.create(&elsewhere).await;
    assert_eq!(far.data, "coap://192.0.2.7/b");
    let all = [format!("<{}>", warm.topic), format!("<{}>", far.topic)];
    for path in ["/ps", "/ps?rt=core.ps.conf", "/ps?rt=core.ps.c*"] {
        let found = client.get(path).await;
        assert_eq!(found.content_format(), Some(ContentFormat::LINK_FORMAT));
        assert!(all.iter().all(|link| found.text().contains(link)), "{path}: {}", found.text());
        assert_eq!(found.text().matches('<').count(), 2, "{path}");
    }
    let data = client.get("/ps?rt=core.ps.data").await;
    assert!(data.text().contains(&format!("<{}>", warm.data)), "{}", data.text());
    assert!(data.text().contains("<coap://192.0.2.7/b>"), "{}", data.text());
    assert_eq!(client.get("/ps?rt=other").await.text(), "");
    let found = |entries: Vec<(u8, Value)>| {
        let client = &client;
        async move { client.properties(Code::FETCH, "/ps", &entries).await.text().into_owned() }
    };
    assert_eq!(found(vec![(4, "temperature".into())]).await, all[0]);
    assert_eq!(found(named("b")).await, all[1]);
    assert_eq!(found(vec![(0, "a".into()), (4, "light".into())]).await, "");
}

#[tokio::test]
async fn what_is_wrong_is_refused_with_the_reason_and_changes_nothing() {
    let client = PubSub::of(open());
    let ok = named("a");
    let with = |key: u8, value: Value| [&ok[..], &[(key, value)]].concat();
    for (entries, why) in [
        (vec![], "topic-name is missing"),
        (vec![(0, "".into()), ok[1].clone()], "topic-name is a text of 1 to 1024 bytes"),
        (vec![(0, 7.into()), ok[1].clone()], "topic-name is a text"),
        (vec![ok[0].clone(), (2, "other".into())], "resource-type is the text core.ps.data"),
        (vec![ok[0].clone(), ok[0].clone(), ok[1].clone()], "topic-name is there twice"),
        (with(1, "/x".into()), "leave topic-data to the broker"),
        (with(1, "coap://<a>".into()), "leave topic-data to the broker"),
        (with(3, 65_536.into()), "topic-content-format is a number up to 65535"),
        (with(5, 4_102_444_799u64.into()), "expiration-date is seconds since 1970 with tag 1"),
        (with(5, time(1)), "expiration-date has passed"),
        (with(6, Value::from(-1)), "max-subscribers is a number"),
        (with(7, 0.into()), "observer-check is a number from 1"),
        (with(8, Value::Bytes(vec![0x80])), "initialize needs topic-content-format"),
        (with(9, 0.into()), "a key is not that of a property"),
    ] {
        let refused = client.properties(Code::POST, "/ps", &entries).await;
        assert_eq!(refused.code(), Code::BAD_REQUEST, "{why}");
        assert!(refused.text().starts_with(why), "{} for {why}", refused.text());
    }
    let (deep, long) = ([0x81; 5000], [&b"\xbb"[..], &[0xff; 8]].concat());
    for body in [&b""[..], b"\xa1", b"\x80", b"\xa0\x00", b"\xff", &deep, &long] {
        let refused = client.ask(Code::POST, "/ps", PROPERTIES, body).await;
        assert_eq!(refused.code(), Code::BAD_REQUEST, "{body:02x?}");
    }
    let json = client.ask(Code::POST, "/ps", ContentFormat::JSON, b"{}").await;
    assert_eq!(json.code(), Code::UNSUPPORTED_CONTENT_FORMAT);
    assert_eq!(client.get("/ps").await.text(), "");

    let topic = client.create(&with(3, 0.into())).await;
    let again = client.properties(Code::POST, "/ps", &ok).await;
    assert_eq!((again.code(), again.text().as_ref()), (Code::BAD_REQUEST, "topic-name is in use"));
    for (entries, why) in [
        (vec![(0, "b".into())], "topic-name cannot be changed"),
        (vec![(1, "/ps/data/0".into())], "topic-data cannot be changed"),
        (vec![(5, time(1))], "expiration-date has passed"),
        (vec![(8, Value::Bytes(vec![]))], "initialize is for a new topic"),
    ] {
        for code in [Code::POST, Code::IPATCH] {
            let refused = client.properties(code, &topic.topic, &entries).await;
            assert_eq!((refused.code(), refused.text().as_ref()), (Code::BAD_REQUEST, why));
        }
    }
    let part = client.ask(Code::FETCH, &topic.topic, ContentFormat::CBOR, b"\x00").await;
    assert_eq!(part.code(), Code::BAD_REQUEST);
    let json = client.ask(Code::PUT, &topic.data, ContentFormat::JSON, b"1").await;
    let why = "topic-content-format is 0";
    assert_eq!((json.code(), json.text().as_ref()), (Code::UNSUPPORTED_CONTENT_FORMAT, why));
    let long = client.ask(Code::PUT, &topic.data, ContentFormat::TEXT, &[b'x'; 70_000]).await;
    assert_eq!(long.code(), Code::REQUEST_ENTITY_TOO_LARGE);
    for path in ["/ps/0", "/ps/data", "/ps/data/00000000", "/ps/data/+0000000"] {
        assert_eq!(client.get(path).await.code(), Code::NOT_FOUND, "{path}");
    }
    for path in [&topic.topic, &topic.data] {
        let uri = format!("coap://{}{path}", client.broker);
        client.publish(&topic, "1").await;
        let json = Request::get(&*uri).unwrap().accept(ContentFormat::JSON);
        assert_eq!(client.client.request(json).await.unwrap().code(), Code::NOT_ACCEPTABLE);
    }
}

/// Section 3.2.2 of the draft, RFC 7641 section 4.1.
#[tokio::test]
async fn no_more_subscribe_than_may_and_the_latest_end_when_fewer_may() {
    let client = PubSub::of(open());
    let topic = client.create(&[&named("a")[..], &[(6, 2.into())]].concat()).await;
    client.publish(&topic, "1").await;
    let mut admitted = [client.subscribe(&topic).await, client.subscribe(&topic).await];
    for subscription in &mut admitted {
        assert_eq!(subscription.next().await.unwrap().unwrap().text(), "1");
    }
    let mut third = client.subscribe(&topic).await;
    assert_eq!(third.next().await.unwrap().unwrap().text(), "1");
    assert!(third.next().await.is_none(), "it is answered once");
    client.publish(&topic, "2").await;
    for subscription in &mut admitted {
        assert_eq!(subscription.next().await.unwrap().unwrap().text(), "2");
    }
    let patched = client.properties(Code::IPATCH, &topic.topic, &[(6, 1.into())]).await;
    assert_eq!(patched.code(), Code::CHANGED);
    client.publish(&topic, "3").await;
    let [first, second] = &mut admitted;
    assert_eq!(second.next().await.unwrap().unwrap().code(), Code::NOT_FOUND);
    assert_eq!(first.next().await.unwrap().unwrap().text(), "3");
}

#[tokio::test]
async fn a_topic_may_begin_with_data_and_ends_at_its_date() {
    let client = PubSub::of(open());
    let begin = [(3, 60.into()), (8, Value::Bytes(vec![0x80]))];
    let topic = client.create(&[&named("a")[..], &begin].concat()).await;
    let mut subscription = client.subscribe(&topic).await;
    let first = subscription.next().await.unwrap().unwrap();
    assert_eq!(
        (&first.body()[..], first.content_format()),
        (&[0x80][..], Some(ContentFormat::CBOR))
    );
    // It names no format, and has that of the topic.
    let uri = format!("coap://{}{}", client.broker, topic.data);
    assert_eq!(client.client.put(&*uri, &b"\x01"[..]).await.unwrap().code(), Code::CHANGED);
    let next = subscription.next().await.unwrap().unwrap();
    assert_eq!((&next.body()[..], next.content_format()), (&[1][..], Some(ContentFormat::CBOR)));
    // A date that has passed when it arrives is refused.
    let soon = || [(5, time(crate::system::unix_seconds() + 1))];
    while client.properties(Code::IPATCH, &topic.topic, &soon()).await.code() != Code::CHANGED {}
    assert_eq!(subscription.next().await.unwrap().unwrap().code(), Code::NOT_FOUND);
    assert_eq!(client.get(&topic.topic).await.code(), Code::NOT_FOUND);
    assert_eq!(client.get("/ps").await.text(), "");
}

#[tokio::test]
async fn silent_subscribers_are_checked_as_often_as_the_topic_asks_for() {
    let client = PubSub::of(open());
    let topic = client.create(&[&named("a")[..], &[(7, 1.into())]].concat()).await;
    client.publish(&topic, "1").await;
    let mut subscription = client.subscribe(&topic).await;
    for _ in 0..3 {
        assert_eq!(subscription.next().await.unwrap().unwrap().text(), "1");
    }
}

#[tokio::test]
async fn topics_and_publications_that_were_acknowledged_survive_the_program() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("topics");
    let open = |path| Broker::open(BrokerConfig::new().state(StateFile::new(path))).unwrap();
    let first = PubSub::of(serve(open(path.clone()).router()));
    let [a, b, c] = [
        first.create(&named("a")).await,
        first.create(&named("b")).await,
        first.create(&named("c")).await,
    ];
    assert_eq!(first.publish(&a, "1").await, Code::CREATED);
    assert_eq!(first.publish(&a, "2").await, Code::CHANGED);
    assert_eq!(first.publish(&b, "1").await, Code::CREATED);
    assert_eq!(first.delete(&b.data).await, Code::DELETED);
    assert_eq!(first.delete(&c.topic).await, Code::DELETED);
    // What is on the disk now is what a power cut leaves: the first one still runs.
    let copy = folder.path().join("copy");
    std::fs::copy(&path, &copy).unwrap();
    let second = PubSub::of(serve(open(copy).router()));
    let latest = second.get(&a.data).await;
    assert_eq!((latest.text().as_ref(), latest.content_format()), ("2", Some(ContentFormat::TEXT)));
    assert_eq!(second.get(&b.data).await.code(), Code::NOT_FOUND);
    assert_eq!(second.get("/ps").await.text().matches('<').count(), 2);
    assert_eq!(second.publish(&b, "3").await, Code::CREATED);
}

#[tokio::test]
async fn a_full_broker_says_so_and_goes_on() {
    let broker = Broker::open(BrokerConfig::new().max_bytes(8 << 10)).unwrap();
    let client = PubSub::of(serve(broker.router()));
    let first = client.create(&named("first")).await;
    assert_eq!(client.publish(&first, "1").await, Code::CREATED);
    let mut codes = Vec::new();
    for n in 0..10 {
        codes.push(client.properties(Code::POST, "/ps", &named(&n.to_string())).await.code());
    }
    let kept = codes.iter().filter(|code| **code == Code::CREATED).count();
    let refused = codes.iter().filter(|code| **code == Code::SERVICE_UNAVAILABLE).count();
    assert_eq!((kept, refused), (2, 8));
    assert_eq!(client.publish(&first, "2").await, Code::CHANGED, "no more than it had");
    let large = "x".repeat(5000);
    assert_eq!(client.publish(&first, &large).await, Code::SERVICE_UNAVAILABLE);
    assert_eq!(client.get(&first.data).await.text(), "2");
    // What is deleted gives its room back.
    assert_eq!(client.delete(&first.topic).await, Code::DELETED);
    for name in ["next", "last"] {
        client.create(&named(name)).await;
    }
}
