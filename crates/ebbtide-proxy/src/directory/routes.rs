//! The directory's resources.

use super::endpoint::{
    BaseSource, BaseUri, EndpointName, Parameters, RegisteredEndpoint, interface,
};
use super::lookup::{Lookup, LookupKind};
use super::{Directory, NotKept};
use crate::numbered::{self, owner, permit};
use crate::outcome;
use crate::room::{self, UNVERIFIED_WITHOUT_SHARE, client_of};
use crate::web_link::{self, WebLink};
use ebbtide::server::{Call, Handler, Reply, Resource, Router, get, post};
use ebbtide::{Code, ContentFormat, OptionNumber, Request, Response, Scheme};
use ebbtide_core::wire::Message;
use std::borrow::Cow;
use std::net::IpAddr;
use std::time::Duration;

/// The longest list of links that is registered, in bytes.
const MAX_LINKS: usize = 64 << 10;
/// Requests a second of addresses that may be forged; further ones have to echo (RFC 9176 section 5 demands that
/// devices can).
const UNVERIFIED: u32 = 32;
/// How long a registrant may take to list its resources.
const FETCH: Duration = Duration::from_secs(60);
/// How long look-ups are fresh, seconds.
const FRESH: u32 = 5;

pub(super) fn router(directory: &Directory) -> Router {
    let this = || directory.clone();
    let (register, simple, update, remove) = (this(), this(), this(), this());
    let registration = post(move |call: Call<'static>| {
        let directory = register.clone();
        async move { answer(directory.register(&call).await) }
    });
    let simple = post(move |call: Call<'static>| {
        let directory = simple.clone();
        async move { answer(directory.register_simply(&call).await) }
    });
    let existing = post(move |call: Call<'static>| {
        let directory = update.clone();
        async move { answer(directory.update(&call).await) }
    })
    .delete(move |call: Call<'static>| {
        let directory = remove.clone();
        async move { answer(directory.remove(&call).await) }
    });
    let full = this();
    let registration =
        registration.max_unverified_if(UNVERIFIED_WITHOUT_SHARE, move |message, _| {
            full.table().is_full_for_unverified() && !full.replaces_unverified(message)
        });
    let bounded = |resource: Resource| resource.max_body(MAX_LINKS).max_unverified(UNVERIFIED);
    let listed =
        |resource: Resource, kind: &str| resource.attribute("rt", kind).attribute("ct", "40");
    Router::new()
        .route("/rd", listed(bounded(registration), "core.rd"))
        .route("/rd/{number}", bounded(existing).hidden())
        // A forged address would be sent a request, and one to which nobody listens would keep a place until it ends.
        .route("/.well-known/rd", simple.max_body(MAX_LINKS).max_unverified(0).hidden())
        .route(
            "/rd-lookup/ep",
            listed(LookupHandler::resource(directory, LookupKind::Endpoints), "core.rd-lookup-ep"),
        )
        .route(
            "/rd-lookup/res",
            listed(LookupHandler::resource(directory, LookupKind::Resources), "core.rd-lookup-res"),
        )
}

fn answer(answered: Result<Response, Response>) -> Response {
    answered.unwrap_or_else(|refusal| refusal)
}

fn bad(why: impl Into<String>) -> Response {
    Response::error(Code::BAD_REQUEST, why.into())
}

fn gone() -> Response {
    Response::error(Code::NOT_FOUND, "there is no such registration, or it has expired")
}

/// The arguments of a query.
fn arguments<'m>(message: &Message<'m>) -> impl Iterator<Item = Cow<'m, str>> {
    let query = message.options().filter(|opt| opt.number == OptionNumber::URI_QUERY);
    query.map(|opt| String::from_utf8_lossy(opt.value))
}

fn parameters(call: &Call<'_>) -> Result<Parameters, Response> {
    let query: Vec<_> = call.query().collect();
    Parameters::read(query.iter().map(AsRef::as_ref)).map_err(bad)
}

fn links(format: Option<ContentFormat>, body: &[u8]) -> Result<Vec<WebLink>, Response> {
    if format.is_some_and(|format| format != ContentFormat::LINK_FORMAT) {
        return Err(Response::error(
            Code::UNSUPPORTED_CONTENT_FORMAT,
            "links have Content-Format 40",
        ));
    }
    let text = std::str::from_utf8(body).map_err(|_| bad("the links are not UTF-8"))?;
    web_link::parse(text).map_err(bad)
}

/// The number of the registration that a request names.
fn number(call: &Call<'_>) -> Result<u32, Response> {
    call.param("number").and_then(numbered::read).ok_or_else(gone)
}

/// The sender's address as a base URI.
fn own_base(call: &Call<'_>) -> Result<BaseUri, Response> {
    let scheme = call.peer().uri("/").map(|uri| uri.scheme());
    match scheme {
        Ok(scheme @ (Scheme::Coap | Scheme::Coaps)) => {
            Ok(BaseUri::of_address(scheme.name(), scheme.default_port(), call.remote()))
        }
        // The port of a connection is the client's alone (RFC 9176 section 5).
        _ => Err(bad("over a connection, name the base, as in base=coap://192.0.2.7")),
    }
}

impl Directory {
    /// Keeps an endpoint, in the place of the registration `updated` if there is a number, and
    /// waits until it is stored. Returns its number.
    async fn keep(
        &self,
        endpoint: RegisteredEndpoint,
        updated: Option<u32>,
    ) -> Result<u32, Response> {
        let refusal = |why: NotKept| match why {
            NotKept::Full => outcome::unavailable(FETCH, "the directory has no place for it"),
            NotKept::NotOwner => outcome::not_owner(),
            NotKept::Gone => gone(),
        };
        let (number, version) = self.inner.put(endpoint, updated).map_err(refusal)?;
        self.settle(version).await?;
        Ok(number)
    }

    async fn settle(&self, version: u64) -> Result<(), Response> {
        match &self.inner.durable {
            Some(durable) => durable.settle(version).await,
            None => Ok(()),
        }
    }

    fn name(&self, read: &mut Parameters, call: &Call<'_>) -> Result<EndpointName, Response> {
        let name = read.name.take().ok_or_else(|| bad("name the endpoint, as in ep=node1"))?;
        let name = EndpointName { name, sector: read.sector.take() };
        let table = self.table();
        let known = table.number(&name).and_then(|number| table.get(number));
        permit(known.and_then(|known| known.owner.as_ref()), call)?;
        drop(table);
        Ok(name)
    }

    /// Whether a registration takes the place of one that counts for the addresses that may be forged.
    fn replaces_unverified(&self, message: &Message<'_>) -> bool {
        let query: Vec<_> = arguments(message).collect();
        let read = Parameters::read(query.iter().map(AsRef::as_ref)).ok();
        let Some(Parameters { name: Some(name), sector, .. }) = read else { return false };
        let table = self.table();
        let known = table.number(&EndpointName { name, sector });
        known.and_then(|number| table.get(number)).is_some_and(|it| it.client == room::UNVERIFIED)
    }

    /// Registration (RFC 9176 section 5).
    async fn register(&self, call: &Call<'_>) -> Result<Response, Response> {
        let mut read = parameters(call)?;
        let links = links(call.format(), call.payload())?;
        let base = match read.base.take() {
            Some(base) => BaseUri::of_parameter(base, call.remote()).map_err(bad)?,
            None => own_base(call)?,
        };
        let name = self.name(&mut read, call)?;
        let lifetime = RegisteredEndpoint::lifetime_of(&read);
        let (owner, client) = (owner(call), client_of(call));
        let attributes = read.attributes;
        let endpoint =
            RegisteredEndpoint { name, lifetime, base, attributes, links, owner, client };
        let number = self.keep(endpoint, None).await?;
        let created = Response::new(Code::CREATED).option(OptionNumber::LOCATION_PATH, b"rd");
        Ok(created.option(OptionNumber::LOCATION_PATH, numbered::segment(number).as_bytes()))
    }

    /// Simple registration (RFC 9176 section 5.1): the links are those of the sender's `/.well-known/core`.
    async fn register_simply(&self, call: &Call<'_>) -> Result<Response, Response> {
        let mut read = parameters(call)?;
        if read.base.is_some() || !call.payload().is_empty() {
            return Err(bad("a simple registration has neither a base nor links"));
        }
        let base = own_base(call)?;
        let name = self.name(&mut read, call)?;
        let client = client_of(call);
        let busy = || outcome::unavailable(Duration::from_secs(5), "too many devices are asked");
        let _place = self.inner.fetches.admit(client).ok_or_else(busy)?;
        let links = fetch(call).await?;
        let lifetime = RegisteredEndpoint::lifetime_of(&read);
        let (owner, attributes) = (owner(call), read.attributes);
        let endpoint =
            RegisteredEndpoint { name, lifetime, base, attributes, links, owner, client };
        self.keep(endpoint, None).await?;
        Ok(Response::new(Code::CHANGED))
    }

    /// Update (RFC 9176 section 5.3.1).
    async fn update(&self, call: &Call<'_>) -> Result<Response, Response> {
        if !call.payload().is_empty() {
            return Err(bad("an update has no links: register again to change them"));
        }
        let read = parameters(call)?;
        let number = number(call)?;
        let mut endpoint = {
            let table = self.table();
            let known = table.get(number).ok_or_else(gone)?;
            permit(known.owner.as_ref(), call)?;
            known.clone()
        };
        let is_same = |given: &Option<String>, known: Option<&String>| {
            given.is_none() || given.as_ref() == known
        };
        if !is_same(&read.name, Some(&endpoint.name.name))
            || !is_same(&read.sector, endpoint.name.sector.as_ref())
        {
            return Err(bad("an update cannot change ep and d"));
        }
        endpoint.lifetime = read.lifetime.unwrap_or(endpoint.lifetime);
        match read.base {
            Some(base) => {
                endpoint.base = BaseUri::of_parameter(base, call.remote()).map_err(bad)?;
            }
            None if endpoint.base.named_by == BaseSource::Address => {
                endpoint.base = own_base(call)?;
            }
            None => {}
        }
        // "overriding any previously stored endpoint attributes of the same key"
        endpoint
            .attributes
            .retain(|known| read.attributes.iter().all(|attribute| attribute.name != known.name));
        endpoint.attributes.extend(read.attributes);
        self.keep(endpoint, Some(number)).await?;
        Ok(Response::new(Code::CHANGED))
    }

    /// Removal (RFC 9176 section 5.3.2).
    async fn remove(&self, call: &Call<'_>) -> Result<Response, Response> {
        let number = number(call)?;
        let version = {
            let mut table = self.table();
            permit(table.get(number).ok_or_else(gone)?.owner.as_ref(), call)?;
            table.remove(number);
            table.version()
        };
        self.inner.notify();
        self.settle(version).await?;
        Ok(Response::new(Code::DELETED))
    }
}

/// Look-ups (RFC 9176 section 6), which can be observed.
#[derive(Clone)]
struct LookupHandler {
    directory: Directory,
    kind: LookupKind,
}

impl Handler<LookupHandler, ()> for LookupHandler {
    fn call(&self, call: &Call<'_>, (): &()) -> Reply {
        if call.accept().is_some_and(|format| format != ContentFormat::LINK_FORMAT) {
            return Reply::now(Response::new(Code::NOT_ACCEPTABLE));
        }
        let lookup = match lookup(&call.message()) {
            Ok(lookup) => lookup,
            Err(why) => return Reply::now(bad(why)),
        };
        let viewer = interface(call.remote());
        if !call.is_notification() {
            return Reply::now(self.answer(&lookup, client_of(call), viewer));
        }
        let delay = self.delay(&lookup, client_of(call));
        if delay.is_zero() {
            return Reply::now(self.found(&lookup, viewer));
        }
        let this = self.clone();
        Reply::later(async move {
            tokio::time::sleep(delay).await;
            this.found(&lookup, viewer)
        })
    }
}

fn lookup(message: &Message<'_>) -> Result<Lookup, String> {
    let query: Vec<_> = arguments(message).collect();
    Lookup::read(query.iter().map(AsRef::as_ref))
}

impl LookupHandler {
    fn resource(directory: &Directory, kind: LookupKind) -> Resource {
        let this = Self { directory: directory.clone(), kind };
        let subject = match kind {
            LookupKind::Endpoints => &directory.inner.endpoints,
            LookupKind::Resources => &directory.inner.resources,
        };
        let costly = this.clone();
        get(this)
            .observable(subject)
            .max_unverified_if(UNVERIFIED_WITHOUT_SHARE, move |message, _| {
                costly.exceeds_unverified(message)
            })
            .max_unverified(UNVERIFIED)
    }

    /// Whether addresses that may be forged have used up the work for such a look-up. A client that proves its address
    /// has a share of its own.
    fn exceeds_unverified(&self, message: &Message<'_>) -> bool {
        let max = self.directory.inner.work.allowance(room::UNVERIFIED).max_steps();
        if max == usize::MAX {
            return false;
        }
        let Ok(lookup) = lookup(message) else { return false };
        let table = self.directory.table();
        table.work(&lookup, &table.candidates(&lookup, max), max) > max
    }

    /// The answer to a request.
    fn answer(&self, lookup: &Lookup, client: IpAddr, viewer: Option<u32>) -> Response {
        let work = &self.directory.inner.work;
        let allowed = work.allowance(client);
        let max = allowed.max_steps();
        let table = self.directory.table();
        let candidates = table.candidates(lookup, max);
        match work.count(client, table.work(lookup, &candidates, max), allowed) {
            Ok(()) => self.links(lookup, viewer, table.passed(&candidates)),
            Err(refusal) => refusal,
        }
    }

    /// How long a notification has to wait.
    fn delay(&self, lookup: &Lookup, client: IpAddr) -> Duration {
        let table = self.directory.table();
        let candidates = table.candidates(lookup, usize::MAX);
        let steps = table.work(lookup, &candidates, usize::MAX);
        self.directory.inner.notified.delay(client, steps)
    }

    fn found(&self, lookup: &Lookup, viewer: Option<u32>) -> Response {
        let table = self.directory.table();
        let candidates = table.candidates(lookup, usize::MAX);
        self.links(lookup, viewer, table.passed(&candidates))
    }

    fn links<'t>(
        &self,
        lookup: &Lookup,
        viewer: Option<u32>,
        passed: impl Iterator<Item = (u32, &'t RegisteredEndpoint)>,
    ) -> Response {
        // Link-local addresses mean something on their link alone (RFC 9176 section 6.1).
        let seen = passed.filter(|(_, endpoint)| {
            endpoint.base.interface.is_none() || endpoint.base.interface == viewer
        });
        match lookup.find(self.kind, seen) {
            Ok(links) => Response::content(web_link::text(&links))
                .format(ContentFormat::LINK_FORMAT)
                .max_age(FRESH),
            Err(why) => bad(why),
        }
    }
}

/// Asks the sender of a request for its resources.
async fn fetch(call: &Call<'_>) -> Result<Vec<WebLink>, Response> {
    let failed =
        |why: String| Response::error(Code::BAD_GATEWAY, format!("/.well-known/core: {why}"));
    let peer = call.peer();
    let uri = peer.uri("/.well-known/core").map_err(|error| failed(error.to_string()))?;
    let request = Request::get(uri).map_err(|error| failed(error.to_string()))?;
    let request = request.accept(ContentFormat::LINK_FORMAT).timeout(FETCH).max_body(MAX_LINKS);
    let response = peer.request(request).await.map_err(|error| outcome::failed(&error))?;
    if !response.is_success() {
        return Err(failed(response.code().to_string()));
    }
    if response.body().len() > MAX_LINKS {
        return Err(failed(format!("more than {MAX_LINKS} bytes")));
    }
    links(response.content_format(), response.body())
}
