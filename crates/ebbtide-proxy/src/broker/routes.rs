//! The broker's resources.

use super::Broker;
use super::properties::{self, DATA_TYPE, FORMAT, InitialData, Properties, Update};
use super::storing::UnstoredTopic;
use super::table::{NotKept, TopicTable};
use super::topic::{Publication, Topic};
use crate::numbered::{self, owner, permit};
use crate::outcome;
use crate::room::{self, UNVERIFIED_WITHOUT_SHARE, client_of};
use crate::system;
use bytes::Bytes;
use ebbtide::server::{Call, Handler, Reply, Resource, Router, Subject, get};
use ebbtide::{Code, ContentFormat, OptionNumber, Response};
use ebbtide_core::wire::Message;
use std::time::Duration;

/// The longest publication, and the longest list of properties, in bytes.
const MAX_BODY: usize = 64 << 10;
/// The longest list of topics, in bytes.
const MAX_LIST: usize = 1 << 20;
/// Topics that are listed, or subscribers that are notified, in a step of a client's work.
const LISTED: usize = 16;
/// Requests a second of addresses that may be forged; further ones have to echo.
const UNVERIFIED: u32 = 32;
/// The resource type of topics.
const TOPIC_TYPE: &str = "core.ps.conf";
/// When a client that found no room may try again.
const LATER: Duration = Duration::from_secs(60);

pub(super) fn router(broker: &Broker) -> Router {
    let bounded = |resource: Resource| {
        let broker = broker.clone();
        resource
            .max_body(MAX_BODY)
            .max_unverified_if(UNVERIFIED_WITHOUT_SHARE, move |message, _| {
                broker.exceeds_unverified(message)
            })
            .max_unverified(UNVERIFIED)
    };
    let collection = get(answered(broker, Broker::list))
        .fetch(answered(broker, Broker::filter))
        .post(stored(broker, Broker::create))
        .attribute("rt", "core.ps core.ps.coll")
        .attribute("ct", "40");
    let topic = get(answered(broker, Broker::read))
        .fetch(answered(broker, Broker::read_part))
        .post(stored(broker, |broker, call| broker.update(call, Update::All)))
        .ipatch(stored(broker, |broker, call| broker.update(call, Update::Some)))
        .delete(stored(broker, Broker::remove));
    let (observed, full) = (broker.clone(), broker.clone());
    let data = get(answered(broker, Broker::latest))
        .put(stored(broker, Broker::publish))
        .delete(stored(broker, Broker::unpublish))
        .observable_by_existing(move |message| observed.subject(message))
        .max_body(MAX_BODY)
        .max_unverified_if(UNVERIFIED_WITHOUT_SHARE, move |message, _| {
            message.code() == Code::PUT && full.publication_exceeds_unverified(message)
        })
        // Reading costs no more than elsewhere, but a publication costs a notification to each subscriber.
        .max_unverified_if(UNVERIFIED, |message, _| message.code() != Code::GET);
    Router::new()
        .route("/ps", bounded(collection))
        .route("/ps/{number}", topic.max_body(MAX_BODY).max_unverified(UNVERIFIED).hidden())
        .route("/ps/data/{number}", data.hidden())
}

type Answer = Result<Response, Response>;

/// A handler of requests that change nothing.
fn answered(
    broker: &Broker,
    answer: fn(&Broker, &Call<'_>) -> Answer,
) -> impl Fn(&Call<'_>) -> Answer + Send + Sync + 'static {
    let broker = broker.clone();
    move |call| answer(&broker, call)
}

/// A handler of requests whose changes are stored before they are acknowledged.
struct ChangeHandler {
    broker: Broker,
    change: fn(&Broker, &Call<'_>) -> Result<Changed, Response>,
}

/// A change of the table, whose answer is sent when this version is stored.
struct Changed {
    answer: Response,
    version: u64,
    /// The number of a new topic.
    created: Option<u32>,
}

fn stored(
    broker: &Broker,
    change: fn(&Broker, &Call<'_>) -> Result<Changed, Response>,
) -> ChangeHandler {
    ChangeHandler { broker: broker.clone(), change }
}

impl Handler<ChangeHandler, ()> for ChangeHandler {
    fn call(&self, call: &Call<'_>, (): &()) -> Reply {
        let inner = &self.broker.inner;
        let Some(place) = inner.waiting.admit(client_of(call)) else {
            return Reply::now(too_fast());
        };
        let Changed { answer, version, created } = match (self.change)(&self.broker, call) {
            Ok(changed) => changed,
            Err(refusal) => return Reply::now(refusal),
        };
        if inner.durable.is_none() {
            return Reply::now(answer);
        }
        let inner = inner.clone();
        let created = created.map(|number| UnstoredTopic::new(inner.clone(), number, version));
        Reply::later(async move {
            let _place = place;
            if let Some(durable) = &inner.durable
                && let Err(refusal) = durable.settle(version).await
            {
                return refusal;
            }
            created.into_iter().for_each(UnstoredTopic::keep);
            answer
        })
    }
}

/// 4.29: more changes of this client wait to be stored than may (section 3.4).
fn too_fast() -> Response {
    Response::error(Code::TOO_MANY_REQUESTS, "too many changes wait to be stored").max_age(1)
}

fn bad(why: impl Into<String>) -> Response {
    Response::error(Code::BAD_REQUEST, why.into())
}

fn no_topic() -> Response {
    Response::error(Code::NOT_FOUND, "there is no such topic, or it has expired")
}

fn no_data() -> Response {
    Response::error(Code::NOT_FOUND, "nothing is published")
}

fn unkept(why: NotKept) -> Response {
    match why {
        NotKept::Full => outcome::unavailable(LATER, "the broker has no room for it"),
        NotKept::NameTaken => bad("topic-name is in use"),
    }
}

/// Checks the format of a request's body.
fn demand(call: &Call<'_>, format: ContentFormat) -> Result<(), Response> {
    match call.format() {
        Some(other) if other != format => {
            let why = format!("the Content-Format is {}", format.0);
            Err(Response::error(Code::UNSUPPORTED_CONTENT_FORMAT, why))
        }
        _ => Ok(()),
    }
}

/// Checks that the client takes this format.
fn offer(call: &Call<'_>, format: Option<ContentFormat>) -> Result<(), Response> {
    match call.accept() {
        Some(wanted) if Some(wanted) != format => Err(Response::new(Code::NOT_ACCEPTABLE)),
        _ => Ok(()),
    }
}

/// The number of the topic that a request names.
fn number(call: &Call<'_>) -> Result<u32, Response> {
    call.param("number").and_then(numbered::read).ok_or_else(no_topic)
}

fn topic(table: &TopicTable, number: u32) -> Result<&Topic, Response> {
    table.get(number).ok_or_else(no_topic)
}

fn representation(code: Code, properties: &Properties) -> Response {
    Response::new(code).payload(properties.encode()).format(FORMAT)
}

fn links(uris: impl Iterator<Item = impl AsRef<str>>) -> Answer {
    let mut links = String::new();
    for uri in uris {
        let uri = uri.as_ref();
        if links.len() + uri.len() + 3 > MAX_LIST {
            return Err(bad(format!("more than {MAX_LIST} bytes: ask for topics by properties")));
        }
        let separator = if links.is_empty() { "" } else { "," };
        links.extend([separator, "<", uri, ">"]);
    }
    Ok(Response::content(links).format(ContentFormat::LINK_FORMAT))
}

fn path(number: u32) -> String {
    format!("/ps/{}", numbered::segment(number))
}

/// The topic in the path of a request.
fn topic_of<'t>(table: &'t TopicTable, message: &Message<'_>) -> Option<&'t Topic> {
    let segment = core::str::from_utf8(message.path().last()?).ok()?;
    table.get(numbered::read(segment)?)
}

impl Broker {
    /// Whether a new topic or a list needs more than addresses that may be forged have left. A client that proves its
    /// address has a share of its own.
    fn exceeds_unverified(&self, message: &Message<'_>) -> bool {
        let table = self.inner.table();
        match message.code() {
            Code::POST => table.is_full_for_unverified(),
            _ => table.len() / LISTED > self.inner.work.allowance(room::UNVERIFIED).max_steps(),
        }
    }

    /// The same of a publication.
    fn publication_exceeds_unverified(&self, message: &Message<'_>) -> bool {
        let table = self.inner.table();
        let Some(topic) = topic_of(&table, message) else { return false };
        let former = topic.latest.as_ref().map(|latest| latest.client);
        if former != Some(room::UNVERIFIED) && table.is_full_for_unverified() {
            return true;
        }
        let subject = topic.subject.clone();
        // Requests of observers take it.
        drop(table);
        let max_steps = self.inner.work.allowance(room::UNVERIFIED).max_steps();
        max_steps < usize::MAX && subject.observers() / LISTED > max_steps
    }

    /// The topics, or their data (sections 2.3.4 and 2.4.1).
    fn list(&self, call: &Call<'_>) -> Answer {
        offer(call, Some(ContentFormat::LINK_FORMAT))?;
        let query: Vec<_> = call.query().filter(|argument| !argument.is_empty()).collect();
        let is_asked = |kind: &str| {
            query.iter().all(|argument| {
                let wanted = argument.strip_prefix("rt=");
                wanted.is_some_and(|wanted| match wanted.strip_suffix('*') {
                    Some(start) => kind.starts_with(start),
                    None => kind == wanted,
                })
            })
        };
        let (topics, data) = (is_asked(TOPIC_TYPE), !query.is_empty() && is_asked(DATA_TYPE));
        let table = self.inner.table();
        self.inner.work.admit(client_of(call), table.len() / LISTED)?;
        let topics = table.iter().filter(|_| topics).map(|(number, _)| path(number));
        let data =
            table.iter().filter(|_| data).map(|(_, topic)| topic.properties.data().to_owned());
        links(topics.chain(data))
    }

    /// The topics with these properties (section 2.4.2).
    fn filter(&self, call: &Call<'_>) -> Answer {
        demand(call, FORMAT)?;
        offer(call, Some(ContentFormat::LINK_FORMAT))?;
        let filter = Properties::read(call.payload()).map_err(bad)?;
        let table = self.inner.table();
        self.inner.work.admit(client_of(call), table.len() / LISTED)?;
        let found = table.iter().filter(|(_, topic)| topic.properties.fits(&filter));
        links(found.map(|(number, _)| path(number)))
    }

    /// A new topic (section 2.4.3).
    fn create(&self, call: &Call<'_>) -> Result<Changed, Response> {
        demand(call, FORMAT)?;
        let mut properties = Properties::read(call.payload()).map_err(bad)?;
        let client = client_of(call);
        let mut table = self.inner.table();
        let number = table.free_number();
        let data = format!("/ps/data/{}", numbered::segment(number));
        let initial = properties.begin(data, system::unix_seconds()).map_err(bad)?;
        let latest = initial.map(|InitialData { format, payload }| Publication {
            format: Some(format),
            payload: payload.into(),
            client,
        });
        let answer = representation(Code::CREATED, &properties)
            .option(OptionNumber::LOCATION_PATH, b"ps")
            .option(OptionNumber::LOCATION_PATH, numbered::segment(number).as_bytes());
        let topic = Topic::new(properties, owner(call), client, latest);
        table.put(number, topic).map_err(unkept)?;
        Ok(Changed { answer, version: table.version(), created: Some(number) })
    }

    /// The properties of a topic (section 2.5.1).
    fn read(&self, call: &Call<'_>) -> Answer {
        offer(call, Some(FORMAT))?;
        let table = self.inner.table();
        Ok(representation(Code::CONTENT, &topic(&table, number(call)?)?.properties))
    }

    /// Some of its properties (section 2.5.2).
    fn read_part(&self, call: &Call<'_>) -> Answer {
        demand(call, ContentFormat::CBOR)?;
        offer(call, Some(FORMAT))?;
        let keys = properties::keys(call.payload()).map_err(bad)?;
        let table = self.inner.table();
        Ok(representation(Code::CONTENT, &topic(&table, number(call)?)?.properties.part(&keys)))
    }

    /// Changes a topic. Nothing changes if that is refused.
    fn change(
        &self,
        call: &Call<'_>,
        by: impl FnOnce(&mut Topic) -> Answer,
    ) -> Result<(Changed, Topic), Response> {
        let number = number(call)?;
        let mut table = self.inner.table();
        let mut topic = topic(&table, number)?.clone();
        let answer = by(&mut topic)?;
        table.put(number, topic.clone()).map_err(unkept)?;
        Ok((Changed { answer, version: table.version(), created: None }, topic))
    }

    /// Other properties (sections 2.5.3 and 2.5.4).
    fn update(&self, call: &Call<'_>, how: Update) -> Result<Changed, Response> {
        demand(call, FORMAT)?;
        let by = Properties::read(call.payload()).map_err(bad)?;
        let (changed, topic) = self.change(call, |topic| {
            permit(topic.owner.as_ref(), call)?;
            topic.properties =
                topic.properties.updated(by, how, system::unix_seconds()).map_err(bad)?;
            Ok(representation(Code::CHANGED, &topic.properties))
        })?;
        topic.limit_subscribers();
        Ok(changed)
    }

    /// The end of a topic and its data (section 2.5.5).
    fn remove(&self, call: &Call<'_>) -> Result<Changed, Response> {
        let number = number(call)?;
        let mut table = self.inner.table();
        permit(topic(&table, number)?.owner.as_ref(), call)?;
        let removed = table.remove(number).ok_or_else(no_topic)?;
        let version = table.version();
        drop(table);
        removed.subject.changed();
        Ok(Changed { answer: Response::new(Code::DELETED), version, created: None })
    }

    /// The latest publication (section 3.3), for subscribers as well (section 3.2.2).
    fn latest(&self, call: &Call<'_>) -> Answer {
        let latest = topic(&self.inner.table(), number(call)?)?.latest.clone();
        let Publication { format, payload, .. } = latest.ok_or_else(no_data)?;
        offer(call, format)?;
        let content = Response::content(payload);
        Ok(match format {
            Some(format) => content.format(format),
            None => content,
        })
    }

    /// A publication (section 3.2.1).
    fn publish(&self, call: &Call<'_>) -> Result<Changed, Response> {
        let client = client_of(call);
        let subject = topic(&self.inner.table(), number(call)?)?.subject.clone();
        // Without the lock of the table, which requests of observers take.
        self.inner.work.admit(client, subject.observers() / LISTED)?;
        let (changed, topic) = self.change(call, |topic| {
            if !topic.properties.has_data_here() {
                return Err(no_topic());
            }
            // A publication that names no format has that of the topic.
            let format = call.format().or(topic.properties.format());
            if let Some(of_topic) = topic.properties.format().filter(|own| format != Some(*own)) {
                let why = format!("topic-content-format is {}", of_topic.0);
                return Err(Response::error(Code::UNSUPPORTED_CONTENT_FORMAT, why));
            }
            let payload = Bytes::copy_from_slice(call.payload());
            let next = Publication { format, payload, client };
            let code = if topic.latest.is_some() { Code::CHANGED } else { Code::CREATED };
            topic.latest = Some(next);
            Ok(Response::new(code))
        })?;
        topic.subject.changed();
        Ok(changed)
    }

    /// The end of the data: the topic waits for a publication (section 3.2.4).
    fn unpublish(&self, call: &Call<'_>) -> Result<Changed, Response> {
        let (changed, topic) = self.change(call, |topic| match topic.latest.take() {
            Some(_) => Ok(Response::new(Code::DELETED)),
            None => Err(no_data()),
        })?;
        topic.subject.changed();
        Ok(changed)
    }

    /// The subject that a request for topic-data observes.
    fn subject(&self, message: &Message<'_>) -> Option<Subject> {
        topic_of(&self.inner.table(), message).map(|topic| topic.subject.clone())
    }
}
