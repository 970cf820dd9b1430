//! Messages to exchanges: the copies of each message that opens one, and the answers.

use super::read::CapturedDatagram;
use super::sides::Sides;
use ebbtide_core::params::Parameters;
use ebbtide_core::wire::Type;
use std::collections::BTreeMap;
use std::net::SocketAddr;

/// A message that is answered, as it was seen at one place.
#[derive(Debug)]
pub(super) struct CapturedExchange {
    /// The device that takes part.
    pub(super) device: SocketAddr,
    /// The instants and the numbers of the datagrams of its copies, in order.
    pub(super) copies: Vec<usize>,
    /// The datagrams that answer copies.
    pub(super) answers: Vec<usize>,
    /// When its response, or its acknowledgement if that is all, was seen first.
    pub(super) ended: Option<u64>,
    /// The datagram with the first response.
    pub(super) response: Option<usize>,
}

/// A message that is answered is not sent again except by copies that cross the answer: what comes
/// this long after the copy before it, and longer than the exchange took, is another message with the same ID.
const CROSSING_NS: u64 = 1_000_000_000_000;

/// The exchanges at a place, in the order of their first messages.
pub(super) fn exchanges(
    all: &[CapturedDatagram],
    sides: &Sides,
    interface: usize,
) -> Vec<CapturedExchange> {
    let mut list: Vec<CapturedExchange> = Vec::new();
    let mut by_id: BTreeMap<(SocketAddr, SocketAddr, u16), usize> = BTreeMap::new();
    let mut by_token: BTreeMap<(SocketAddr, SocketAddr, &[u8]), usize> = BTreeMap::new();
    for (number, datagram) in all.iter().enumerate() {
        if datagram.interface != interface {
            continue;
        }
        let (from, to) = (datagram.from, datagram.to);
        if sides.opens(datagram) && sides.is_outward(datagram) {
            let key = (from, to, datagram.id);
            let known = by_id.get(&key).copied().filter(|known| {
                list.get(*known).is_some_and(|own| {
                    let ends = own.copies.first().zip(own.copies.last());
                    ends.is_some_and(|(first, last)| {
                        let (first, last) = (&all[*first], &all[*last]);
                        let longest =
                            own.ended.map_or(Parameters::LONGEST_SPAN.as_nanos(), |ended| {
                                CROSSING_NS.max(ended.saturating_sub(first.at))
                            });
                        datagram.at.saturating_sub(last.at) <= longest
                            && (last.payload, last.code) == (datagram.payload, datagram.code)
                    })
                })
            });
            let place = known.unwrap_or_else(|| {
                list.push(CapturedExchange {
                    device: sides.device(datagram),
                    copies: Vec::new(),
                    answers: Vec::new(),
                    ended: None,
                    response: None,
                });
                list.len() - 1
            });
            list[place].copies.push(number);
            by_id.insert(key, place);
            by_token.insert((from, to, datagram.token.as_slice()), place);
            continue;
        }
        if sides.is_outward(datagram) {
            continue;
        }
        let is_answer = matches!(datagram.kind, Type::Acknowledgement | Type::Reset);
        let place = if is_answer {
            by_id.get(&(to, from, datagram.id))
        } else if datagram.code.is_response() {
            by_token.get(&(to, from, datagram.token.as_slice()))
        } else {
            None
        };
        let Some(own) = place.and_then(|place| list.get_mut(*place)) else { continue };
        let is_non = all[own.copies[0]].kind == Type::NonConfirmable;
        // A separate response (RFC 7252 section 5.2.2) leaves when the server has it, not when the
        // request arrives: it measures no round trip.
        if is_answer || is_non {
            own.answers.push(number);
        }
        let is_response = datagram.code.is_response();
        if is_response && own.response.is_none() {
            own.response = Some(number);
            own.ended = Some(datagram.at);
        } else if own.ended.is_none() && sides.are_notifications {
            own.ended = Some(datagram.at);
        }
    }
    list
}
