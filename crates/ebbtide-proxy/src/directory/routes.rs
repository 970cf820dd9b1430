//! The directory's resources.

use super::endpoint::{
    BaseSource, BaseUri, EndpointName, Parameters, RegisteredEndpoint, interface,
};
use super::lookup::{Lookup, LookupKind};
use super::{Directory, NotKept};
use crate::numbered::{self, owner, permit};
use crate::outcome;
use crate::room::{UNVERIFIED_AT_HALF, client_of};
use crate::web_link::{self, WebLink};
use ebbtide::server::{Call, Resource, Router, get, post};
use ebbtide::{Code, ContentFormat, OptionNumber, Request, Response, Scheme};
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
    let bounded = |resource: Resource| {
        let directory = directory.clone();
        resource
            .max_body(MAX_LINKS)
            .max_unverified_if(UNVERIFIED_AT_HALF, move |_, _| directory.table().is_half_full())
            .max_unverified(UNVERIFIED)
    };
    let listed =
        |resource: Resource, kind: &str| resource.attribute("rt", kind).attribute("ct", "40");
    Router::new()
        .route("/rd", listed(bounded(registration), "core.rd"))
        .route("/rd/{number}", bounded(existing).hidden())
        // A forged address would be sent a request, and one to which nobody listens would keep a place until it ends.
        .route("/.well-known/rd", simple.max_body(MAX_LINKS).max_unverified(0).hidden())
        .route(
            "/rd-lookup/ep",
            listed(directory.lookup(LookupKind::Endpoints), "core.rd-lookup-ep"),
        )
        .route(
            "/rd-lookup/res",
            listed(directory.lookup(LookupKind::Resources), "core.rd-lookup-res"),
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

    /// A look-up (RFC 9176 section 6), which can be observed.
    fn lookup(&self, kind: LookupKind) -> Resource {
        let directory = self.clone();
        let subject = match kind {
            LookupKind::Endpoints => &self.inner.endpoints,
            LookupKind::Resources => &self.inner.resources,
        };
        let find = move |call: &Call<'_>| {
            if call.accept().is_some_and(|format| format != ContentFormat::LINK_FORMAT) {
                return Response::new(Code::NOT_ACCEPTABLE);
            }
            let query: Vec<_> = call.query().collect();
            let lookup = match Lookup::read(query.iter().map(AsRef::as_ref)) {
                Ok(lookup) => lookup,
                Err(why) => return bad(why),
            };
            let viewer = interface(call.remote());
            let found = {
                let table = directory.table();
                let steps = table.work(&lookup);
                if let Err(refusal) = directory.inner.work.admit(client_of(call), steps) {
                    return refusal;
                }
                // Link-local addresses mean something on their link alone (RFC 9176 section 6.1).
                let seen = table.candidates(&lookup).filter(|(_, endpoint)| {
                    endpoint.base.interface.is_none() || endpoint.base.interface == viewer
                });
                lookup.find(kind, seen)
            };
            match found {
                Ok(links) => Response::content(web_link::text(&links))
                    .format(ContentFormat::LINK_FORMAT)
                    .max_age(FRESH),
                Err(why) => bad(why),
            }
        };
        get(find).observable(subject).max_unverified(UNVERIFIED)
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
