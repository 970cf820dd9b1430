//! A topic with its latest publication, and its stored form.

use super::properties::Properties;
use crate::durable::{get, get_address, get_optional, put, put_address, put_optional};
use crate::room::Holding;
use bytes::Bytes;
use ebbtide::server::Subject;
use ebbtide::{Code, ContentFormat};
use std::net::IpAddr;

/// Bytes that a topic takes besides its properties, and a publication besides its payload.
const OF_TOPIC: usize = 768;
const OF_PUBLICATION: usize = 64;

/// See the [module](self).
#[derive(Clone, Debug)]
pub(super) struct Topic {
    pub(super) properties: Properties,
    /// The identity that its creator has proved; `None` without security.
    pub(super) owner: Option<Vec<u8>>,
    /// The addresses that it counts for.
    pub(super) client: IpAddr,
    /// `None` in the state HALF CREATED.
    pub(super) latest: Option<Publication>,
    pub(super) subject: Subject,
}

/// The data of a topic.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Publication {
    pub(super) format: Option<ContentFormat>,
    pub(super) payload: Bytes,
    /// The addresses that it counts for.
    pub(super) client: IpAddr,
}

impl Topic {
    pub(super) fn new(
        properties: Properties,
        owner: Option<Vec<u8>>,
        client: IpAddr,
        latest: Option<Publication>,
    ) -> Self {
        let topic = Self { properties, owner, client, latest, subject: Subject::new() };
        topic.limit_subscribers();
        topic
    }

    /// Ends the subscriptions that are too many, the latest ones first, and admits no further ones.
    pub(super) fn limit_subscribers(&self) {
        self.subject.limit(self.properties.max_subscribers(), Code::NOT_FOUND);
    }

    /// The room that it takes.
    pub(super) fn holding(&self) -> Holding {
        let owner = self.owner.as_ref().map_or(0, Vec::len);
        Holding::of_bytes(self.client, OF_TOPIC + owner + self.properties.encode().len())
    }

    pub(super) fn encode(&self) -> Vec<u8> {
        let mut out = Vec::new();
        put(&mut out, &self.properties.encode());
        put_optional(&mut out, self.owner.as_deref());
        put_address(&mut out, self.client);
        put_optional(&mut out, self.latest.as_ref().map(Publication::encode).as_deref());
        out
    }

    /// `None` if the bytes are not valid.
    pub(super) fn decode(mut stored: &[u8]) -> Option<Self> {
        let input = &mut stored;
        let properties = Properties::read(get(input)?).ok()?;
        let owner = get_optional(input)?.map(<[u8]>::to_vec);
        let client = get_address(input)?;
        let latest = match get_optional(input)? {
            Some(bytes) => Some(Publication::decode(bytes)?),
            None => None,
        };
        Some(Self::new(properties, owner, client, latest))
    }
}

impl Publication {
    /// The room that it takes.
    pub(super) fn holding(&self) -> Holding {
        Holding::of_bytes(self.client, OF_PUBLICATION + self.payload.len())
    }

    fn encode(&self) -> Vec<u8> {
        let mut out = Vec::new();
        put_optional(
            &mut out,
            self.format.map(|format| format.0.to_be_bytes()).as_ref().map(|bytes| &bytes[..]),
        );
        put_address(&mut out, self.client);
        put(&mut out, &self.payload);
        out
    }

    fn decode(mut stored: &[u8]) -> Option<Self> {
        let input = &mut stored;
        let format = match get_optional(input)? {
            Some(bytes) => Some(ContentFormat(u16::from_be_bytes(bytes.try_into().ok()?))),
            None => None,
        };
        let client = get_address(input)?;
        Some(Self { format, client, payload: Bytes::copy_from_slice(get(input)?) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_topic_is_read_as_it_was_stored_and_a_cut_one_not_at_all() {
        let properties = Properties::read(b"\xa2\x00\x61a\x02\x6ccore.ps.data").unwrap();
        let client = [192, 0, 2, 1].into();
        for format in [None, Some(ContentFormat::CBOR)] {
            let latest = Publication { format, payload: Bytes::from_static(b"\x80"), client };
            let topic = Topic::new(properties.clone(), Some(b"key".to_vec()), client, Some(latest));
            let stored = topic.encode();
            for end in 0..stored.len() {
                assert!(Topic::decode(&stored[..end]).is_none(), "{end}");
            }
            let read = Topic::decode(&stored).unwrap();
            assert_eq!((read.properties, read.owner), (topic.properties, topic.owner));
            assert_eq!((read.client, read.latest), (topic.client, topic.latest));
        }
    }
}
