//! The places behind a gate that are taken.

use std::net::IpAddr;
use tokio::time::Instant;

/// See the [module](self).
#[derive(Debug, Default)]
pub(super) struct TakenPlaces {
    places: Vec<Option<TakenPlace>>,
    free: Vec<usize>,
    next: u64,
}

#[derive(Debug)]
struct TakenPlace {
    number: u64,
    client: IpAddr,
    since: Instant,
}

/// One that takes a place, and has it until [`TakenPlaces::leave`].
#[derive(Copy, Clone, Debug)]
pub(super) struct PlaceHolder {
    index: usize,
    number: u64,
}

impl TakenPlaces {
    pub(super) fn len(&self) -> usize {
        self.places.len() - self.free.len()
    }

    pub(super) fn take(&mut self, client: IpAddr, since: Instant) -> PlaceHolder {
        self.next += 1;
        let number = self.next;
        let index = self.free.pop().unwrap_or_else(|| {
            self.places.push(None);
            self.places.len() - 1
        });
        if let Some(place) = self.places.get_mut(index) {
            *place = Some(TakenPlace { number, client, since });
        }
        PlaceHolder { index, number }
    }

    /// Frees a place. Returns the client that had it; `None` if it was free already.
    pub(super) fn leave(&mut self, holder: PlaceHolder) -> Option<IpAddr> {
        let place = self.places.get_mut(holder.index)?;
        let left = place.take_if(|taken| taken.number == holder.number)?;
        self.free.push(holder.index);
        Some(left.client)
    }

    /// The places that were taken at or before this instant.
    pub(super) fn taken_before(&self, instant: Instant) -> impl Iterator<Item = PlaceHolder> {
        let taken = self.places.iter().enumerate();
        taken.filter_map(move |(index, place)| {
            let place = place.as_ref().filter(|place| place.since <= instant)?;
            Some(PlaceHolder { index, number: place.number })
        })
    }
}
