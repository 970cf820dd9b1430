//! The slots of observers, and their identifiers.

use super::Observer;
use alloc::vec::Vec;

/// The identifier of an observer. It is not used again after the observer was removed.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Hash)]
pub struct ObserverId {
    index: u32,
    generation: u32,
}

/// Slots, each of which holds one observer after another.
#[derive(Debug, Default)]
pub(super) struct Places {
    places: Vec<Option<Observer>>,
    /// The number of former observers of each slot.
    generations: Vec<u32>,
    free: Vec<u32>,
}

impl Places {
    pub(super) fn at(&self, index: u32) -> Option<&Observer> {
        self.places.get(index as usize)?.as_ref()
    }

    /// Iterates over the present observers.
    pub(super) fn iter(&self) -> impl Iterator<Item = &Observer> {
        self.places.iter().flatten()
    }

    pub(super) fn at_mut(&mut self, index: u32) -> Option<&mut Observer> {
        self.places.get_mut(index as usize)?.as_mut()
    }

    pub(super) fn all(&self) -> impl Iterator<Item = &Observer> {
        self.places.iter().flatten()
    }

    /// The slot of an observer, unless it was removed.
    pub(super) fn find(&self, id: ObserverId) -> Option<u32> {
        let generation = self.generations.get(id.index as usize)?;
        (*generation == id.generation && self.at(id.index).is_some()).then_some(id.index)
    }

    /// The identifier of the observer in a slot.
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
            // It grows by an eighth, because doubling would leave up to half of this much memory
            // unused.
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
        assert!(size_of::<Option<super::Observer>>() <= 112, "{}", size_of::<super::Observer>());
    }
}
