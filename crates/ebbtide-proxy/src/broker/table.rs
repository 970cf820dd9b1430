//! The topics of a broker: found by their number, by their name, and by when something is to be done for them.

use super::topic::{Publication, Topic};
use crate::durable::Changes;
use crate::numbered;
use crate::room::{FairRoom, PLACE};
use crate::system;
use ebbtide::server::Subject;
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;
use tokio::time::Instant;

/// Tasks in one turn, between which other requests have theirs.
pub(super) const AT_ONCE: usize = 1024;

/// See the [module](self).
#[derive(Debug)]
pub(super) struct TopicTable {
    topics: BTreeMap<u32, KeptTopic>,
    names: BTreeMap<String, u32>,
    /// When topics expire, or their subscribers are to be checked.
    due: BTreeSet<(Instant, u32)>,
    room: FairRoom,
    /// The topics that have changed since they were taken to be stored.
    changed: BTreeSet<u32>,
    version: u64,
}

#[derive(Debug)]
struct KeptTopic {
    topic: Topic,
    due: Instant,
    /// The version of its last change; 0 since the start.
    version: u64,
}

/// Why a topic is not kept.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(super) enum NotKept {
    /// There is no room for it.
    Full,
    /// Another one has its name.
    NameTaken,
}

/// A task for a topic.
#[derive(Debug)]
pub(super) enum Due {
    /// It has expired, and is not in the table any more.
    Expired(Subject),
    /// Its subscribers have not been notified for as long as observer-check allows.
    Silent(Subject),
}

/// When something is to be done for a topic that its subscribers have heard of now.
fn due(topic: &Topic, now: Instant, unix: u64) -> Instant {
    let check = topic.properties.observer_check();
    let left = topic.properties.expires().map(|expires| expires.saturating_sub(unix));
    // A date far away is looked at again with each check.
    let left = left.and_then(|left| u32::try_from(left).ok()).unwrap_or(u32::MAX);
    now + Duration::from_secs(check.min(left).into())
}

impl TopicTable {
    pub(super) fn new(max_bytes: usize) -> Self {
        Self {
            topics: BTreeMap::new(),
            names: BTreeMap::new(),
            due: BTreeSet::new(),
            room: FairRoom::new(max_bytes / PLACE),
            changed: BTreeSet::new(),
            version: 0,
        }
    }

    pub(super) fn version(&self) -> u64 {
        self.version
    }

    pub(super) fn get(&self, number: u32) -> Option<&Topic> {
        self.topics.get(&number).map(|kept| &kept.topic)
    }

    /// All topics in the order of their numbers.
    pub(super) fn iter(&self) -> impl Iterator<Item = (u32, &Topic)> {
        self.topics.iter().map(|(number, kept)| (*number, &kept.topic))
    }

    /// A number that no topic has.
    pub(super) fn free_number(&self) -> u32 {
        numbered::free(&self.topics)
    }

    /// Keeps a topic, in the place of the one with this number, from now on.
    ///
    /// # Errors
    ///
    /// If it cannot be kept; then nothing changes.
    pub(super) fn put(&mut self, number: u32, topic: Topic) -> Result<(), NotKept> {
        self.restore(number, topic)?;
        self.change(number);
        if let Some(kept) = self.topics.get_mut(&number) {
            kept.version = self.version;
        }
        Ok(())
    }

    /// See [`FairRoom::set_restoring`].
    pub(super) fn set_restoring(&mut self, is_restoring: bool) {
        self.room.set_restoring(is_restoring);
    }

    /// Keeps a stored topic.
    pub(super) fn restore(&mut self, number: u32, topic: Topic) -> Result<(), NotKept> {
        let name = topic.properties.name();
        if self.names.get(name).is_some_and(|named| *named != number) {
            return Err(NotKept::NameTaken);
        }
        let former = self.get(number);
        let (had, has) = (former.map(Topic::holding), Some(topic.holding()));
        let published = |topic: &Topic| topic.latest.as_ref().map(Publication::holding);
        let (had_data, has_data) = (former.and_then(published), published(&topic));
        if !self.room.replace(had, has) {
            return Err(NotKept::Full);
        }
        if !self.room.replace(had_data, has_data) {
            self.room.replace(has, had);
            return Err(NotKept::Full);
        }
        self.take_out(number);
        let due = due(&topic, system::now(), system::unix_seconds());
        self.names.insert(topic.properties.name().to_owned(), number);
        self.due.insert((due, number));
        self.topics.insert(number, KeptTopic { topic, due, version: 0 });
        Ok(())
    }

    fn take_out(&mut self, number: u32) -> Option<Topic> {
        let KeptTopic { topic, due, .. } = self.topics.remove(&number)?;
        self.names.remove(topic.properties.name());
        self.due.remove(&(due, number));
        Some(topic)
    }

    fn change(&mut self, number: u32) {
        self.version += 1;
        self.changed.insert(number);
    }

    pub(super) fn remove(&mut self, number: u32) -> Option<Topic> {
        let topic = self.take_out(number)?;
        self.room.replace(Some(topic.holding()), None);
        self.room.replace(topic.latest.as_ref().map(Publication::holding), None);
        self.change(number);
        Some(topic)
    }

    /// Removes a topic that has not changed since this version. Returns its subject.
    pub(super) fn take_back(&mut self, number: u32, version: u64) -> Option<Subject> {
        let is_same = self.topics.get(&number)?.version == version;
        is_same.then(|| self.remove(number))?.map(|topic| topic.subject)
    }

    /// See [`FairRoom::is_full_for_unverified`].
    pub(super) fn is_full_for_unverified(&self) -> bool {
        self.room.is_full_for_unverified()
    }

    /// The number of topics.
    pub(super) fn len(&self) -> usize {
        self.topics.len()
    }

    /// The next tasks that are due, at most [`AT_ONCE`].
    pub(super) fn take_due(&mut self, now: Instant, unix: u64) -> Vec<Due> {
        let mut found = Vec::new();
        while let Some((_, number)) =
            self.due.first().copied().filter(|(at, _)| *at <= now && found.len() < AT_ONCE)
        {
            self.due.pop_first();
            let Some(kept) = self.topics.get_mut(&number) else { continue };
            if kept.topic.properties.expires().is_some_and(|expires| expires <= unix) {
                found.extend(self.remove(number).map(|topic| Due::Expired(topic.subject)));
                continue;
            }
            kept.due = due(&kept.topic, now, unix);
            self.due.insert((kept.due, number));
            found.push(Due::Silent(kept.topic.subject.clone()));
        }
        found
    }

    /// The changes since the last call, in their stored form.
    pub(super) fn take_changes(&mut self) -> Changes {
        let changed = core::mem::take(&mut self.changed);
        let stored =
            |number: u32| (number.to_be_bytes().to_vec(), self.get(number).map(Topic::encode));
        Changes { stored: changed.into_iter().map(stored).collect(), version: self.version }
    }
}
