//! Requests that wait, with equal shares for their clients.

use std::collections::BTreeMap;
use std::net::IpAddr;

/// Waiting requests. The clients take turns; of one client, the most urgent request is first, then the oldest.
#[derive(Debug)]
pub(crate) struct FairQueue<T> {
    clients: BTreeMap<IpAddr, ClientQueue<T>>,
    /// The clients in the order in which it is their turn.
    turns: BTreeMap<u64, IpAddr>,
    next: u64,
    length: usize,
    /// How many requests have had their turn.
    served: u64,
}

#[derive(Debug)]
struct ClientQueue<T> {
    turn: u64,
    waiting: BTreeMap<Rank, T>,
}

/// The order of a client's own requests: a smaller number is more urgent (RFC 9218 section 4.1).
#[derive(Copy, Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Rank {
    urgency: u8,
    arrival: u64,
}

/// The client of a waiting request, and the request's urgency.
#[derive(Copy, Clone, Debug)]
pub(crate) struct Applicant {
    /// The client: an address, or the prefix that one host has.
    pub(crate) client: IpAddr,
    /// From 0, the most urgent, to 7 (RFC 9218 section 4.1).
    pub(crate) urgency: u8,
}

/// The place of a request in the queue.
#[derive(Copy, Clone, Debug)]
pub(crate) struct Place {
    client: IpAddr,
    rank: Rank,
}

impl<T> Default for FairQueue<T> {
    fn default() -> Self {
        Self { clients: BTreeMap::new(), turns: BTreeMap::new(), next: 0, length: 0, served: 0 }
    }
}

impl<T> FairQueue<T> {
    pub(crate) fn len(&self) -> usize {
        self.length
    }

    pub(crate) fn push(&mut self, applicant: Applicant, waiter: T) -> Place {
        let Applicant { client, urgency } = applicant;
        let arrival = self.number();
        let turns = &mut self.turns;
        let queue = self.clients.entry(client).or_insert_with(|| {
            turns.insert(arrival, client);
            ClientQueue { turn: arrival, waiting: BTreeMap::new() }
        });
        let rank = Rank { urgency, arrival };
        queue.waiting.insert(rank, waiter);
        self.length += 1;
        Place { client, rank }
    }

    /// The number of clients whose requests wait.
    pub(crate) fn clients(&self) -> usize {
        self.clients.len()
    }

    /// Whether a request of this client waits.
    pub(crate) fn has(&self, client: IpAddr) -> bool {
        self.clients.contains_key(&client)
    }

    /// The request whose turn it is, of the clients that may have one, and its client.
    pub(crate) fn pop(&mut self, may: impl Fn(IpAddr) -> bool) -> Option<(IpAddr, T)> {
        let (former, client) = self.turns.iter().find(|(_, client)| may(**client))?;
        let (former, client) = (*former, *client);
        self.turns.remove(&former);
        let turn = self.number();
        let queue = self.clients.get_mut(&client)?;
        let (_, waiter) = queue.waiting.pop_first()?;
        self.length -= 1;
        self.served += 1;
        if queue.waiting.is_empty() {
            self.clients.remove(&client);
        } else {
            queue.turn = turn;
            self.turns.insert(turn, client);
        }
        Some((client, waiter))
    }

    /// Removes a request that no longer waits.
    pub(crate) fn remove(&mut self, place: Place) -> Option<T> {
        let queue = self.clients.get_mut(&place.client)?;
        let waiter = queue.waiting.remove(&place.rank)?;
        self.length -= 1;
        if queue.waiting.is_empty() {
            self.turns.remove(&queue.turn);
            self.clients.remove(&place.client);
        }
        Some(waiter)
    }

    /// How many requests leave the queue before a further one of this client, if it is its last.
    pub(crate) fn ahead(&self, client: IpAddr) -> usize {
        let own = self.clients.get(&client).map_or(0, |queue| queue.waiting.len());
        ((own + 1) * self.clients.len().max(1)).min(self.length)
    }

    /// How many requests have had their turn so far.
    pub(crate) fn served(&self) -> u64 {
        self.served
    }

    fn number(&mut self) -> u64 {
        self.next += 1;
        self.next
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(client: u8, urgency: u8) -> Applicant {
        Applicant { client: IpAddr::from([192, 0, 2, client]), urgency }
    }

    fn drained(queue: &mut FairQueue<&'static str>) -> Vec<&'static str> {
        std::iter::from_fn(|| queue.pop(|_| true)).map(|(_, name)| name).collect()
    }

    #[test]
    fn a_client_with_many_requests_does_not_delay_one_with_few() {
        let mut queue = FairQueue::default();
        for name in ["a1", "a2", "a3"] {
            queue.push(of(1, 3), name);
        }
        queue.push(of(2, 3), "b1");
        assert_eq!(queue.ahead(of(3, 3).client), 2, "one of each client");
        assert_eq!(queue.ahead(of(1, 3).client), 4);
        assert_eq!(drained(&mut queue), ["a1", "b1", "a2", "a3"]);
    }

    #[test]
    fn urgency_orders_the_requests_of_one_client_and_takes_nothing_from_others() {
        let mut queue = FairQueue::default();
        queue.push(of(1, 3), "late");
        queue.push(of(2, 3), "other");
        queue.push(of(1, 0), "first");
        assert_eq!(drained(&mut queue), ["first", "other", "late"]);
    }

    #[test]
    fn a_client_that_may_not_have_a_turn_keeps_its_place_in_the_order() {
        let mut queue = FairQueue::default();
        queue.push(of(1, 3), "a");
        queue.push(of(2, 3), "b");
        let other = |client: IpAddr| client != of(1, 3).client;
        assert_eq!(queue.pop(other), Some((of(2, 3).client, "b")));
        assert!(queue.pop(other).is_none() && queue.has(of(1, 3).client));
        queue.push(of(2, 3), "later");
        assert_eq!(drained(&mut queue), ["a", "later"]);
    }

    #[test]
    fn a_request_that_is_removed_leaves_nothing_behind() {
        let mut queue = FairQueue::default();
        let places = [1, 2].map(|client| queue.push(of(client, 3), "x"));
        assert!(places.into_iter().all(|place| queue.remove(place).is_some()));
        assert!(places.into_iter().all(|place| queue.remove(place).is_none()));
        assert_eq!((queue.len(), queue.clients.len(), queue.turns.len()), (0, 0, 0));
        queue.push(of(1, 3), "again");
        assert_eq!(drained(&mut queue), ["again"]);
    }
}
