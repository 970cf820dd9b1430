//! Where observers are, and how they are named.

use super::Observer;
use alloc::vec::Vec;

/// The identifier of an observer. When the observer is gone, no other receives its identifier.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Hash)]
pub struct ObserverId {
    index: u32,
    generation: u32,
}

/// Places that one observer after the other has.
#[derive(Debug, Default)]
pub(super) struct Places {
    places: Vec<Option<Observer>>,
    /// How many observers had each place before.
    generations: Vec<u32>,
    free: Vec<u32>,
}

impl Places {
    pub(super) fn at(&self, index: u32) -> Option<&Observer> {
        self.places.get(index as usize)?.as_ref()
    }

    /// Those that are there.
    pub(super) fn iter(&self) -> impl Iterator<Item = &Observer> {
        self.places.iter().flatten()
    }

    pub(super) fn at_mut(&mut self, index: u32) -> Option<&mut Observer> {
        self.places.get_mut(index as usize)?.as_mut()
    }

    pub(super) fn all(&self) -> impl Iterator<Item = &Observer> {
        self.places.iter().flatten()
    }

    /// Where an observer is, unless it is gone.
    pub(super) fn find(&self, id: ObserverId) -> Option<u32> {
        let generation = self.generations.get(id.index as usize)?;
        (*generation == id.generation && self.at(id.index).is_some()).then_some(id.index)
    }

    /// The name of the observer in a place.
    pub(super) fn name(&self, index: u32) -> ObserverId {
        let generation = self.generations.get(index as usize).copied().unwrap_or_default();
        ObserverId { index, generation }
    }

    pub(super) fn add(&mut self, observer: Observer) -> u32 {
        if let Some(index) = self.free.pop()
            && let Some(place) = self.places.get_mut(index as usize)
        {
            *place = Some(observer);
            return index;
        }
        let len = self.places.len();
        if len == self.places.capacity() {
            // By an eighth: doubling would leave up to half of so much memory unused.
            self.places.reserve_exact(len / 8 + 16);
            self.generations.reserve_exact(len / 8 + 16);
        }
        self.places.push(Some(observer));
        self.generations.push(0);
        len as u32
    }

    pub(super) fn remove(&mut self, index: u32) {
        if let Some(place) = self.places.get_mut(index as usize)
            && place.take().is_some()
            && let Some(generation) = self.generations.get_mut(index as usize)
        {
            *generation = generation.wrapping_add(1);
            self.free.push(index);
        }
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn an_observer_is_small_since_there_are_many() {
        assert!(size_of::<Option<super::Observer>>() <= 96, "{}", size_of::<super::Observer>());
    }
}
