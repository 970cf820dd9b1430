//! The two sides of the traffic, and the place of the capture.

use super::error::FitError;
use super::read::{CapturedDatagram, Contents};
use super::taken_at::TakenAt;
use ebbtide_core::wire::Type;
use std::collections::BTreeMap;
use std::net::SocketAddr;

/// The two sides of the traffic, and the interfaces at which each was seen.
#[derive(Debug)]
pub(super) struct Sides {
    /// The hosts that begin exchanges: those that send requests or, where there are only notifications,
    /// those.
    initiators: BTreeMap<SocketAddr, u32>,
    /// Whether the exchanges are notifications.
    pub(super) are_notifications: bool,
    /// Whether the devices are the hosts that answer, because they are more than those that ask.
    pub(super) is_from_server: bool,
    /// The hosts on the other side.
    pub(super) servers: u32,
    /// The interface next to the initiators.
    pub(super) near: Option<usize>,
    /// The interface next to the hosts that answer.
    pub(super) far: Option<usize>,
    /// Whether the place was named, or else is a guess from the times.
    pub(super) is_place_certain: bool,
    /// The difference of the clocks of two interfaces, ns, if it is so large that only one of them was used.
    pub(super) clocks_differ_ns: Option<u64>,
}

/// Clocks of interfaces that differ by less are taken to be the same, ns.
const SAME_CLOCK_NS: i64 = 1_000_000;

impl Sides {
    pub(super) fn found_in(
        contents: &Contents,
        taken_at: Option<TakenAt>,
    ) -> Result<Self, FitError> {
        let all = &contents.datagrams;
        // Requests and notifications decide who is who.
        let requests = all.iter().filter(|d| d.code.is_request()).count();
        let notifications = all.iter().filter(|d| opens_notification(d)).count();
        let are_notifications = notifications > requests;
        let mut score: BTreeMap<SocketAddr, i64> = BTreeMap::new();
        for datagram in all {
            let opens = if are_notifications {
                opens_notification(datagram)
            } else {
                datagram.code.is_request()
            };
            let answers = matches!(datagram.kind, Type::Acknowledgement | Type::Reset)
                || (!are_notifications && datagram.code.is_response());
            let sign = i64::from(opens) - i64::from(answers && !opens);
            *score.entry(datagram.from).or_default() += sign;
            *score.entry(datagram.to).or_default() -= sign;
        }
        let mut initiators = BTreeMap::new();
        let mut answering = 0_u32;
        for (address, score) in score {
            if score > 0 {
                let number = u32::try_from(initiators.len()).unwrap_or(u32::MAX);
                initiators.insert(address, number);
            } else {
                answering += 1;
            }
        }
        let asking = u32::try_from(initiators.len()).unwrap_or(u32::MAX);
        let is_from_server = answering > asking || (are_notifications && answering >= asking);
        let servers = if is_from_server { asking } else { answering };
        let mut sides = Self {
            initiators,
            are_notifications,
            is_from_server,
            servers,
            near: None,
            far: None,
            is_place_certain: true,
            clocks_differ_ns: None,
        };
        sides.check_directions(all)?;
        sides.find_places(contents, taken_at)?;
        Ok(sides)
    }

    /// Whether a message goes from the initiators to the hosts that answer.
    pub(super) fn is_outward(&self, datagram: &CapturedDatagram) -> bool {
        self.initiators.contains_key(&datagram.from)
    }

    /// The device at one end of a message that opens an exchange.
    pub(super) fn device(&self, opening: &CapturedDatagram) -> SocketAddr {
        if self.is_from_server { opening.to } else { opening.from }
    }

    /// Whether a message opens an exchange, or is a copy of one that does.
    pub(super) fn opens(&self, datagram: &CapturedDatagram) -> bool {
        if self.are_notifications {
            opens_notification(datagram)
        } else {
            datagram.code.is_request()
        }
    }

    fn check_directions(&self, all: &[CapturedDatagram]) -> Result<(), FitError> {
        let (outward, back): (Vec<_>, Vec<_>) = all.iter().partition(|d| self.is_outward(d));
        if outward.is_empty() {
            return Err(FitError::OneDirection("answers but no requests", back.len()));
        }
        if back.is_empty() {
            return Err(FitError::OneDirection("requests but no answers", outward.len()));
        }
        Ok(())
    }

    fn find_places(
        &mut self,
        contents: &Contents,
        taken_at: Option<TakenAt>,
    ) -> Result<(), FitError> {
        let mut counts = vec![0_u64; contents.interfaces.len()];
        for datagram in &contents.datagrams {
            if let Some(count) = counts.get_mut(datagram.interface) {
                *count += 1;
            }
        }
        let mut used: Vec<usize> = (0..counts.len()).filter(|number| counts[*number] > 0).collect();
        used.sort_by_key(|number| std::cmp::Reverse(counts[*number]));
        used.truncate(2);
        used.sort_unstable();
        let named = |name: &str| {
            let is_it = |number: &&usize| {
                contents.interfaces.get(**number).and_then(Option::as_deref) == Some(name)
            };
            used.iter().find(is_it).copied()
        };
        // The near side of a command from the server is the server's.
        let (near, far) =
            if self.is_from_server { ("server", "clients") } else { ("clients", "server") };
        let (near, far) = (named(near), named(far));
        match (taken_at, &used[..]) {
            (None | Some(TakenAt::Link), [_, _]) if near.is_some() && far.is_some() => {
                (self.near, self.far) = (near, far);
            }
            (None | Some(TakenAt::Link), [one, other]) => {
                let all = &contents.datagrams;
                let first = match self.transits(all, *one, *other) {
                    // The clocks of the interfaces may differ, which does not change the sum.
                    Some((out, back)) => out.saturating_add(back) >= 0,
                    None => self.seen_first(all, *one, *other),
                };
                (self.near, self.far) =
                    if first { (Some(*one), Some(*other)) } else { (Some(*other), Some(*one)) };
                self.is_place_certain = false;
            }
            (Some(TakenAt::Link), _) => return Err(FitError::OnePlace),
            (Some(place), _) => {
                let is_near = (place == TakenAt::Clients) != self.is_from_server;
                let own = if is_near { near } else { far };
                let most = used.iter().copied().max_by_key(|number| counts[*number]);
                *(if is_near { &mut self.near } else { &mut self.far }) = own.or(most);
            }
            (None, _) if near.is_some() => self.near = near,
            (None, _) if far.is_some() => self.far = far,
            (None, _) => {
                let only = used.first().copied();
                self.is_place_certain = false;
                if self.is_near_answering(&contents.datagrams) {
                    self.far = only;
                } else {
                    self.near = only;
                }
            }
        }
        if let (Some(near), Some(far)) = (self.near, self.far)
            && let Some((out, back)) = self.transits(&contents.datagrams, near, far)
            && out.min(back) < -SAME_CLOCK_NS
        {
            // Nothing arrives before it leaves.
            self.clocks_differ_ns = Some(out.abs_diff(back) / 2);
            self.far = None;
        }
        Ok(())
    }

    /// Short times of the way there, from the first place to the second, and of the way back, ns; negative ones show
    /// that clocks differ.
    fn transits(&self, all: &[CapturedDatagram], near: usize, far: usize) -> Option<(i64, i64)> {
        type SideKey = (SocketAddr, SocketAddr, u64);
        let mut seen: BTreeMap<SideKey, [Option<u64>; 2]> = BTreeMap::new();
        let mut times = [Vec::new(), Vec::new()];
        for datagram in all {
            let is_far = datagram.interface == far;
            if !is_far && datagram.interface != near {
                continue;
            }
            let both = seen.entry((datagram.from, datagram.to, datagram.hash)).or_default();
            if both[usize::from(is_far)].is_some() {
                continue;
            }
            both[usize::from(is_far)] = Some(datagram.at);
            if let [Some(near), Some(far)] = *both {
                let is_outward = self.is_outward(datagram);
                let (left, arrived) = if is_outward { (near, far) } else { (far, near) };
                let time = i128::from(arrived) - i128::from(left);
                times[usize::from(!is_outward)].push(i64::try_from(time).ok()?);
            }
        }
        let [out, back] = times.map(|mut times| {
            times.sort_unstable();
            times.get(times.len() / 20).copied()
        });
        Some((out?, back?))
    }

    /// Whether outward messages are seen at `one` before they are seen at `other`.
    fn seen_first(&self, all: &[CapturedDatagram], one: usize, other: usize) -> bool {
        let mut waiting: BTreeMap<(SocketAddr, u64), usize> = BTreeMap::new();
        let mut balance = 0_i64;
        for datagram in all.iter().filter(|d| self.is_outward(d)) {
            let place = datagram.interface;
            if place != one && place != other {
                continue;
            }
            match waiting.insert((datagram.from, datagram.hash), place) {
                Some(before) if before != place => balance += if before == one { 1 } else { -1 },
                _ => {}
            }
        }
        balance >= 0
    }

    /// Whether answers follow their requests so fast, compared with the time between answers and the next
    /// requests, that the capture was taken where the answers come from.
    fn is_near_answering(&self, all: &[CapturedDatagram]) -> bool {
        let mut asked: BTreeMap<(SocketAddr, u16), u64> = BTreeMap::new();
        let mut answered: BTreeMap<SocketAddr, u64> = BTreeMap::new();
        let (mut forward, mut backward) = (Vec::new(), Vec::new());
        for datagram in all {
            if self.opens(datagram) && self.is_outward(datagram) {
                asked.insert((datagram.from, datagram.id), datagram.at);
                if let Some(at) = answered.remove(&datagram.from) {
                    backward.push(datagram.at.saturating_sub(at));
                }
            } else if let Some(at) = asked.remove(&(datagram.to, datagram.id)) {
                forward.push(datagram.at.saturating_sub(at));
                answered.insert(datagram.to, datagram.at);
            }
        }
        forward.sort_unstable();
        backward.sort_unstable();
        let early = |times: &[u64]| times.get(times.len() / 10).copied();
        match (early(&forward), early(&backward)) {
            // Less than a tenth of the way back: the way is there.
            (Some(forward), Some(backward)) => {
                forward.saturating_mul(10) < backward && forward < 50_000_000
            }
            (Some(forward), None) => forward < 1_000_000,
            _ => false,
        }
    }
}

/// Whether a message is a notification (RFC 7641) that is not the answer to the registration.
fn opens_notification(datagram: &CapturedDatagram) -> bool {
    datagram.is_notification && matches!(datagram.kind, Type::Confirmable | Type::NonConfirmable)
}
