//! The lists that the page shows, in JSON.

use super::Explorer;
use crate::ask::{Ask, BodyForm, StoredUse};
use crate::cell::Applicant;
use crate::forward::URGENCY;
use crate::gateway::CellStatus;
use crate::options::{Forwarded, HOPS};
use crate::system;
use crate::target::{NamedBy, Target};
use crate::time_limit::TimerStart;
use crate::timeline::TimelineEntry;
use crate::web_link::{self, LinkAttribute, WebLink};
use bytes::Bytes;
use ebbtide::{Code, ContentFormat, OptionNumber, Options};
use ebbtide_core::sharing_prefix;
use ebbtide_core::time::Micros;
use serde_json::{Value, json};
use std::net::SocketAddr;
use std::time::Duration;

/// The most registered devices, and devices whose paths are listed.
const DEVICES: usize = 256;

fn milliseconds(span: Duration) -> u64 {
    u64::try_from(span.as_millis()).unwrap_or(u64::MAX)
}

impl Explorer {
    /// The devices that are known.
    pub(super) fn devices(&self) -> Value {
        let named = |uri: String, from: &str| json!({ "uri": uri, "name": uri, "from": from });
        let given = self.devices.iter().map(|uri| named(uri.to_string(), "named"));
        let backends = self.gateway.inner.backends.uris().map(|uri| named(uri, "a backend"));
        let registered = self.directory.iter().flat_map(|directory| {
            let endpoints = directory.endpoints(DEVICES).into_iter();
            endpoints.map(|(name, base)| json!({ "uri": base, "name": name, "from": "registered" }))
        });
        let devices: Vec<_> = given.chain(backends).chain(registered).collect();
        json!({ "devices": devices })
    }

    /// The links of a device: those that it has registered, or the answer of its `/.well-known/core`.
    pub(super) async fn links(&self, from: SocketAddr, query: &str) -> Result<Value, String> {
        let of = query.strip_prefix("of=").ok_or("of=URI is missing")?;
        let of = decoded(of).ok_or("the URI is not valid")?;
        let base = of.trim_end_matches('/');
        let registered = self.directory.as_ref().and_then(|directory| directory.links_of(base));
        let (links, from) = match registered {
            Some(links) => (links, "as registered"),
            None => (self.discover(from, base).await?, "as the device says"),
        };
        let attribute = |attribute: &LinkAttribute| json!([attribute.name, attribute.value()]);
        let link = |link: &WebLink| {
            let attributes: Vec<_> = link.attributes.iter().map(attribute).collect();
            json!({ "target": web_link::resolve(base, &link.target), "attributes": attributes })
        };
        Ok(json!({ "from": from, "links": links.iter().map(link).collect::<Vec<_>>() }))
    }

    async fn discover(&self, from: SocketAddr, base: &str) -> Result<Vec<WebLink>, String> {
        let told = |response: ebbtide::Response| response.text().into_owned();
        let mut target = Target::parse(base).map_err(told)?;
        target.path = vec![".well-known".to_owned(), "core".to_owned()];
        target.query.clear();
        let inner = &self.gateway.inner;
        if self.devices.iter().any(|uri| Target::of_uri(uri).is_same_server(&target))
            || inner.backends.has_server(&target)
        {
            target.named_by = NamedBy::Operator;
        }
        let mut options = Options::new();
        options.push_uint(OptionNumber::ACCEPT, ContentFormat::LINK_FORMAT.0.into());
        let applicant = Applicant { client: sharing_prefix(from.ip()), urgency: URGENCY };
        let deadline = system::now() + inner.deadline;
        let forwarded = Forwarded { options, hop_limit: HOPS - 1 };
        let (code, payload, body) = (Code::GET, Bytes::new(), BodyForm::Held);
        let (freshness, arriving) = (StoredUse::Stored, None);
        let ask = Ask {
            applicant,
            target,
            code,
            forwarded,
            payload,
            deadline,
            freshness,
            body,
            arriving,
        };
        let answer = self.gateway.answer(ask, TimerStart::AtOnce).await.response;
        if !answer.is_success() {
            return Err(format!("{} {}", answer.code(), answer.text()));
        }
        web_link::parse(&answer.text())
    }

    /// The load of each cell, and what is known of the paths to devices.
    pub(super) fn paths(&self) -> Value {
        let upstream = &self.gateway.inner.upstream;
        let cell = |cell: CellStatus| {
            let CellStatus { name, in_flight, waiting, budget, mean_round_trip: mean } = cell;
            let mean = mean.map(milliseconds);
            json!({ "name": name, "in_flight": in_flight, "budget": budget, "waiting": waiting,
                    "round_trip": mean, "timeout": null })
        };
        let cells = self.gateway.cells().into_iter().map(cell);
        let devices = upstream.cells.addresses(DEVICES).into_iter().filter_map(|address| {
            let known = upstream.client.metrics(address)?;
            let span = |span: Micros| milliseconds(span.to_duration());
            Some(json!({ "name": address.to_string(), "in_flight": null, "budget": null, "waiting": null,
                         "round_trip": known.srtt.map(span), "timeout": known.rto.map(span) }))
        });
        json!({ "paths": cells.chain(devices).collect::<Vec<_>>() })
    }

    /// The latest exchanges.
    pub(super) fn exchanges(&self) -> Value {
        let latest = self.gateway.inner.upstream.timeline.latest();
        let first = latest.iter().map(|entry| entry.began).min();
        let entry = |TimelineEntry { request, answer, began, waited, took }: TimelineEntry| {
            let began = first.map_or(0, |first| milliseconds(began.duration_since(first)));
            json!({ "request": request, "answer": answer, "began": began,
                    "waited": milliseconds(waited), "took": milliseconds(took) })
        };
        json!({ "exchanges": latest.into_iter().map(entry).collect::<Vec<_>>() })
    }
}

/// A text without percent-encoding.
fn decoded(text: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((&byte, behind)) = rest.split_first() {
        rest = behind;
        if byte != b'%' {
            bytes.push(byte);
            continue;
        }
        let (digits, behind) = rest.split_at_checked(2)?;
        bytes.push(u8::from_str_radix(core::str::from_utf8(digits).ok()?, 16).ok()?);
        rest = behind;
    }
    String::from_utf8(bytes).ok()
}
