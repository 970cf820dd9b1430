//! Look-ups of endpoints and of resources (RFC 9176 section 6).

use super::endpoint::RegisteredEndpoint;
use crate::numbered;
use crate::web_link::{LinkAttribute, WebLink};

/// The longest result of a look-up, in bytes.
const MAX_RESULT: usize = 1 << 20;

/// The links that a look-up returns.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(super) enum LookupKind {
    Endpoints,
    Resources,
}

/// A look-up with its criteria.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Lookup {
    criteria: Vec<Criterion>,
    page: Option<usize>,
    count: Option<usize>,
}

/// A criterion: `name=value`, where the value may end with `*` for any ending, or a name alone.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Criterion {
    name: String,
    value: Option<String>,
}

/// A registration with its number.
type Numbered<'t> = (u32, &'t RegisteredEndpoint);

impl Lookup {
    /// Reads the arguments of a query.
    ///
    /// # Errors
    ///
    /// The reason for the client.
    pub(super) fn read<'q>(arguments: impl Iterator<Item = &'q str>) -> Result<Self, String> {
        let mut lookup = Self::default();
        for argument in arguments.filter(|argument| !argument.is_empty()) {
            let number = |value: &str| {
                value.parse().map_err(|_| format!("'{argument}' is not a number from 0 on"))
            };
            match argument.split_once('=') {
                Some(("page", value)) => lookup.page = Some(number(value)?),
                Some(("count", value)) => lookup.count = Some(number(value)?),
                Some((name, value)) => {
                    let value = Some(value.to_owned());
                    lookup.criteria.push(Criterion { name: name.to_owned(), value });
                }
                None => {
                    let name = argument.to_owned();
                    lookup.criteria.push(Criterion { name, value: None });
                }
            }
        }
        if lookup.page.is_some() && lookup.count.is_none() {
            return Err("page needs count".to_owned());
        }
        Ok(lookup)
    }

    /// The links that match, of registrations that the client may see.
    ///
    /// # Errors
    ///
    /// The reason for the client, if their text is too long.
    pub(super) fn find<'t>(
        &self,
        kind: LookupKind,
        all: impl Iterator<Item = Numbered<'t>>,
    ) -> Result<Vec<WebLink>, String> {
        let found = all.flat_map(|numbered| match kind {
            LookupKind::Endpoints => self.endpoint(numbered).into_iter().collect(),
            LookupKind::Resources => self.resources(numbered),
        });
        let first = self.page.unwrap_or(0).saturating_mul(self.count.unwrap_or(0));
        let mut left = MAX_RESULT;
        let fits = |link: WebLink| {
            left = left.checked_sub(link.written_length() + 1)?;
            Some(link)
        };
        let links = found.skip(first).take(self.count.unwrap_or(usize::MAX)).map(fits);
        links.collect::<Option<Vec<_>>>().ok_or_else(|| {
            format!("more than {MAX_RESULT} bytes: ask for pages, as in page=0&count=100")
        })
    }

    /// The number of its criteria.
    pub(super) fn criteria(&self) -> usize {
        self.criteria.len()
    }

    /// The names and values of its criteria.
    pub(super) fn values(&self) -> impl Iterator<Item = (&str, &str)> {
        self.criteria.iter().filter_map(|known| Some((&*known.name, known.value.as_deref()?)))
    }

    fn endpoint(&self, numbered: Numbered<'_>) -> Option<WebLink> {
        let own = endpoint_link(numbered);
        // RFC 9176 section 6.2: an endpoint's link matches a criterion "if any of its resource links matches it".
        let links: Vec<_> = match self.criteria.is_empty() {
            true => Vec::new(),
            false => resolved(numbered.1).collect(),
        };
        let fits = |criterion: &Criterion| {
            criterion.fits(&own) || links.iter().any(|link| criterion.fits(link))
        };
        self.criteria.iter().all(fits).then_some(own)
    }

    fn resources(&self, numbered: Numbered<'_>) -> Vec<WebLink> {
        let own = endpoint_link(numbered);
        // "A resource link also matches a search criterion if its endpoint would match the criterion".
        let open: Vec<_> = self.criteria.iter().filter(|criterion| !criterion.fits(&own)).collect();
        let links = resolved(numbered.1);
        links.filter(|link| open.iter().all(|criterion| criterion.fits(link))).collect()
    }
}

/// The path of a registration.
pub(super) fn path(number: u32) -> String {
    format!("/rd/{}", numbered::segment(number))
}

/// The link of an endpoint (RFC 9176 section 6.4).
fn endpoint_link((number, endpoint): Numbered<'_>) -> WebLink {
    let mut attributes = vec![LinkAttribute::quoted("ep", &endpoint.name.name)];
    if let Some(sector) = &endpoint.name.sector {
        attributes.push(LinkAttribute::quoted("d", sector));
    }
    attributes.push(LinkAttribute::quoted("base", &endpoint.base.text));
    attributes.push(LinkAttribute::quoted("rt", "core.rd-ep"));
    attributes.extend(endpoint.attributes.iter().cloned());
    WebLink { target: path(number), attributes }
}

/// The links of an endpoint, as URIs (RFC 9176 section 6.1).
fn resolved(endpoint: &RegisteredEndpoint) -> impl Iterator<Item = WebLink> {
    endpoint.links.iter().map(|link| {
        let attributes = link.attributes.iter().map(|attribute| match attribute.name.as_str() {
            "anchor" => LinkAttribute::quoted("anchor", &endpoint.base.resolve(&attribute.value())),
            _ => attribute.clone(),
        });
        WebLink { target: endpoint.base.resolve(&link.target), attributes: attributes.collect() }
    })
}

impl Criterion {
    fn fits(&self, link: &WebLink) -> bool {
        if self.name == "href" {
            return self.fits_value(&link.target);
        }
        link.attributes.iter().filter(|attribute| attribute.name == self.name).any(|attribute| {
            let value = attribute.value();
            let is_list = matches!(self.name.as_str(), "rt" | "if" | "rel" | "rev" | "ct");
            self.fits_value(&value) || is_list && value.split(' ').any(|one| self.fits_value(one))
        })
    }

    fn fits_value(&self, value: &str) -> bool {
        match self.value.as_deref() {
            None => true,
            Some(wanted) => match wanted.strip_suffix('*') {
                Some(start) => value.starts_with(start),
                None => value == wanted,
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::endpoint::{BaseSource, BaseUri, EndpointName};
    use super::*;
    use crate::web_link;

    /// The endpoints of the examples (RFC 9176 sections 6.3 and 6.4).
    fn endpoint(name: &str, base: &str, kind: &str, links: &str) -> RegisteredEndpoint {
        RegisteredEndpoint {
            name: EndpointName { name: name.to_owned(), sector: None },
            lifetime: 60,
            base: BaseUri {
                text: base.to_owned(),
                named_by: BaseSource::Parameter,
                interface: None,
            },
            attributes: vec![LinkAttribute::quoted("et", kind)],
            links: web_link::parse(links).unwrap(),
            owner: None,
            client: [192, 0, 2, 1].into(),
        }
    }

    fn all() -> [RegisteredEndpoint; 2] {
        let links = "</sensors>;ct=40;title=\"Sensor Index\",</sensors/temp>;rt=temperature-c;if=\"a sensor\",\
                     <http://www.example.com/sensors/t123>;rel=describedby;anchor=\"/sensors/temp\"";
        [
            endpoint("sensor1", "coap://sensor1.example.com", "platform", links),
            endpoint("sensor2", "coap://[2001:db8:3::123]:61616", "other", "</temp>;rt=light"),
        ]
    }

    fn find(kind: LookupKind, query: &[&str]) -> String {
        let all = all();
        let lookup = Lookup::read(query.iter().copied()).unwrap();
        let all = all.iter().enumerate().map(|(n, endpoint)| (n as u32 + 1, endpoint));
        web_link::text(&lookup.find(kind, all).unwrap())
    }

    #[test]
    fn a_result_that_is_too_long_is_refused_and_returned_in_pages() {
        let links = vec![format!("</{}>", "x".repeat(1000)); 60].join(",");
        let one = endpoint("a", "coap://a", "b", &links);
        let found = |query: &[&str]| {
            let lookup = Lookup::read(query.iter().copied()).unwrap();
            lookup.find(LookupKind::Resources, (1..=20).map(|number| (number, &one)))
        };
        assert_eq!(
            found(&[]).unwrap_err(),
            "more than 1048576 bytes: ask for pages, as in page=0&count=100"
        );
        let pages: Vec<_> = ["page=0", "page=1", "page=2"]
            .iter()
            .map(|page| found(&[page, "count=500"]).unwrap())
            .collect();
        assert_eq!(pages.iter().map(Vec::len).collect::<Vec<_>>(), [500, 500, 200]);
        let text = web_link::text(&pages[0]);
        let length: usize = pages[0].iter().map(|link| link.written_length() + 1).sum();
        assert_eq!(length, text.len() + 1);
    }

    #[test]
    fn resources_are_returned_as_uris_and_otherwise_as_they_were_registered() {
        assert_eq!(
            find(LookupKind::Resources, &["et=platform"]),
            "<coap://sensor1.example.com/sensors>;ct=40;title=\"Sensor Index\",\
             <coap://sensor1.example.com/sensors/temp>;rt=temperature-c;if=\"a sensor\",\
             <http://www.example.com/sensors/t123>;rel=describedby;anchor=\"coap://sensor1.example.com/sensors/temp\""
        );
        assert_eq!(
            find(LookupKind::Resources, &["rt=light"]),
            "<coap://[2001:db8:3::123]:61616/temp>;rt=light"
        );
    }

    #[test]
    fn endpoints_are_returned_with_their_attributes() {
        assert_eq!(
            find(LookupKind::Endpoints, &["et=other"]),
            "</rd/00000002>;ep=\"sensor2\";base=\"coap://[2001:db8:3::123]:61616\";rt=\"core.rd-ep\";et=\"other\""
        );
    }

    #[test]
    fn all_criteria_must_match_the_link_or_its_endpoint() {
        let count = |kind, query: &[&str]| find(kind, query).matches('<').count();
        for (query, resources, endpoints) in [
            (&[][..], 4, 2),
            (&["rt=temp*"], 1, 1),
            (&["if=sensor"], 1, 1),
            (&["if=sens"], 0, 0),
            (&["rt=temperature-c", "et=platform"], 1, 1),
            (&["rt=temperature-c", "et=other"], 0, 0),
            (&["ep=sensor1", "ct"], 1, 1),
            (&["href=coap://sensor1.example.com/sens*"], 2, 1),
            (&["href=/rd/00000001"], 3, 1),
            (&["anchor=coap://sensor1.example.com/sensors/temp"], 1, 1),
            (&["rt=core.rd-ep"], 4, 2),
        ] {
            assert_eq!(count(LookupKind::Resources, query), resources, "{query:?}");
            assert_eq!(count(LookupKind::Endpoints, query), endpoints, "{query:?}");
        }
    }

    #[test]
    fn pages_have_the_links_of_their_place() {
        let page = |page: &str| find(LookupKind::Resources, &["count=3", page]);
        assert_eq!(page("page=0").matches('<').count(), 3);
        assert_eq!(page("page=1"), "<coap://[2001:db8:3::123]:61616/temp>;rt=light");
        assert_eq!(page("page=18446744073709551615"), "");
        assert_eq!(find(LookupKind::Resources, &["count=0"]), "");
        for wrong in ["page=1", "count=x", "page=-1"] {
            assert!(Lookup::read([wrong].into_iter()).is_err(), "{wrong}");
        }
    }
}
