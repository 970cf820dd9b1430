//! Work that the task of a socket does beside its own: futures whose polls are brief. They need no
//! task of their own, and what they send leaves in one batch.

use ebbtide_core::time::Instant;
use std::collections::VecDeque;
use std::sync::Arc;

/// The work under way at a socket.
#[derive(Debug, Default)]
pub(super) struct BriefWorks {
    places: Vec<Place>,
    free: Vec<u32>,
    woken: Vec<Arc<dyn BriefTask>>,
    /// When which work is late. All may take equally long, so the first is the earliest.
    late: VecDeque<(Instant, PlaceId)>,
}

#[derive(Debug, Default)]
struct Place {
    /// How much work has had this place before.
    generation: u32,
    task: Option<Arc<dyn BriefTask>>,
}

#[derive(Copy, Clone, Debug)]
pub(super) struct PlaceId {
    index: u32,
    generation: u32,
}

/// Work of any type.
pub(super) trait BriefTask: core::fmt::Debug + Send + Sync {
    /// Goes on with the work. Returns its place if it is over.
    fn poll(self: Arc<Self>, now: Instant) -> Option<PlaceId>;

    fn on_late(&self, now: Instant);

    /// Drops the work, unless it is being polled: then it goes with the socket.
    fn cancel(&self);
}

impl BriefWorks {
    /// Takes a place for the task that `create` creates, whose work is late at this instant.
    pub(super) fn begin(
        &mut self,
        late: Instant,
        create: impl FnOnce(PlaceId) -> Arc<dyn BriefTask>,
    ) -> Arc<dyn BriefTask> {
        let index = self.free.pop().unwrap_or_else(|| {
            self.places.push(Place::default());
            // As many as requests that wait for their answers, which are bounded.
            (self.places.len() - 1) as u32
        });
        let generation = self.places.get(index as usize).map_or(0, |place| place.generation);
        let place = PlaceId { index, generation };
        let task = create(place);
        if let Some(place) = self.places.get_mut(index as usize) {
            place.task = Some(task.clone());
        }
        self.late.push_back((late, place));
        task
    }

    fn get(&self, id: PlaceId) -> Option<&Arc<dyn BriefTask>> {
        let place = self.places.get(id.index as usize)?;
        place.task.as_ref().filter(|_| place.generation == id.generation)
    }

    /// Frees the place of work that is over.
    pub(super) fn end(&mut self, id: PlaceId) {
        let Some(place) = self.places.get_mut(id.index as usize) else { return };
        if place.generation == id.generation && place.task.take().is_some() {
            place.generation = place.generation.wrapping_add(1);
            self.free.push(id.index);
        }
    }

    /// A task was woken.
    pub(super) fn push_woken(&mut self, task: Arc<dyn BriefTask>) {
        self.woken.push(task);
    }

    /// The work that was woken, for `last`, which is empty.
    pub(super) fn swap_woken(&mut self, last: &mut Vec<Arc<dyn BriefTask>>) {
        core::mem::swap(&mut self.woken, last);
    }

    /// When the next work is late.
    pub(super) fn next_late(&mut self) -> Option<Instant> {
        while let Some(&(at, id)) = self.late.front() {
            if self.get(id).is_some() {
                return Some(at);
            }
            self.late.pop_front();
        }
        None
    }

    /// Work that is late now, which it is once.
    pub(super) fn pop_late(&mut self, now: Instant) -> Option<Arc<dyn BriefTask>> {
        self.next_late().filter(|at| *at <= now)?;
        let (_, id) = self.late.pop_front()?;
        self.get(id).cloned()
    }

    /// All work, to be cancelled while the socket is not locked.
    pub(super) fn take_all(&mut self) -> Vec<Arc<dyn BriefTask>> {
        let Self { places, .. } = core::mem::take(self);
        places.into_iter().filter_map(|place| place.task).collect()
    }
}
