//! Stored answers (RFC 7252 section 5.6).

use crate::ask::CacheKey;
use bytes::Bytes;
use ebbtide::{Code, OptionNumber, Response};
use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::time::Instant;

/// The freshness of an answer that does not state it (RFC 7252 section 5.10.5).
const MAX_AGE: u32 = 60;
/// Bytes that an entry takes besides key, body and options.
const OVERHEAD: usize = 256;

/// Answers by request, with a maximum number of bytes; the one that was used longest ago gives way.
#[derive(Debug)]
pub(crate) struct Cache {
    table: Mutex<CacheTable>,
    max_bytes: usize,
}

#[derive(Debug, Default)]
struct CacheTable {
    entries: BTreeMap<CacheKey, Entry>,
    /// The keys in the order of their last use.
    uses: BTreeMap<u64, CacheKey>,
    next: u64,
    bytes: usize,
}

#[derive(Debug)]
struct Entry {
    response: Response,
    etag: Option<Bytes>,
    fresh_until: Instant,
    used: u64,
    bytes: usize,
}

/// The stored answer to a request.
#[derive(Debug)]
pub(crate) enum Found {
    /// A fresh answer, with its remaining Max-Age.
    Fresh(Response),
    /// An answer that the server may confirm by its ETag.
    Stale(Bytes),
    Nothing,
}

pub(crate) fn etag(response: &Response) -> Option<Bytes> {
    response.options().get(OptionNumber::ETAG).map(|opt| Bytes::copy_from_slice(opt.value))
}

fn max_age(response: &Response) -> Option<u32> {
    response.options().get_uint(OptionNumber::MAX_AGE)
}

impl Cache {
    pub(crate) fn new(max_bytes: usize) -> Self {
        Self { table: Mutex::default(), max_bytes }
    }

    fn lock(&self) -> MutexGuard<'_, CacheTable> {
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn find(&self, key: &CacheKey, now: Instant) -> Found {
        let mut table = self.lock();
        table.touch(key);
        let Some(entry) = table.entries.get(key) else { return Found::Nothing };
        if entry.fresh_until > now {
            return Found::Fresh(entry.aged(now));
        }
        entry.etag.clone().map_or(Found::Nothing, Found::Stale)
    }

    /// Stores a server's answer, if it may be stored, and `is_current` says that no change has overtaken it.
    pub(crate) fn store(
        &self,
        key: CacheKey,
        response: &Response,
        now: Instant,
        is_current: impl FnOnce() -> bool,
    ) {
        // Errors may be stored as well (RFC 7252 sections 5.9.2 and 5.9.3); one that does not ask for it would outlive
        // its reason.
        let age = match (response.code(), max_age(response)) {
            (Code::CONTENT, age) => age.unwrap_or(MAX_AGE),
            (code, Some(age)) if matches!(code.class(), 4 | 5) => age,
            _ => return,
        };
        let etag = etag(response);
        let options: usize = response.options().iter().map(|opt| opt.value.len()).sum();
        let bytes = OVERHEAD + 2 * key.0.len() + options + response.body().len();
        let mut table = self.lock();
        // Under the lock: a change makes requests outdated first, and then removes what is stored.
        if !is_current() {
            return;
        }
        table.remove(&key);
        if age == 0 && etag.is_none() || bytes > self.max_bytes / 4 {
            return;
        }
        let used = table.number();
        let fresh_until = now + Duration::from_secs(age.into());
        table.uses.insert(used, key.clone());
        table.bytes += bytes;
        table
            .entries
            .insert(key, Entry { response: response.clone(), etag, fresh_until, used, bytes });
        while table.bytes > self.max_bytes {
            let Some((_, oldest)) = table.uses.pop_first() else { break };
            table.remove(&oldest);
        }
    }

    /// The server has confirmed the stored answer by a 2.03 (section 5.9.1.3). Returns it; `None` if it is gone.
    pub(crate) fn confirm(
        &self,
        key: &CacheKey,
        valid: &Response,
        now: Instant,
    ) -> Option<Response> {
        let mut table = self.lock();
        let entry = table.entries.get_mut(key).filter(|entry| entry.etag == etag(valid))?;
        let age = max_age(valid).unwrap_or(MAX_AGE);
        entry.fresh_until = now + Duration::from_secs(age.into());
        Some(entry.aged(now))
    }

    /// A request that may have changed a resource has succeeded: its stored answers are no longer used
    /// (sections 5.9.1.1, 5.9.1.2 and 5.9.1.4).
    pub(crate) fn invalidate(&self, uri: &CacheKey) {
        let mut table = self.lock();
        while let Some(key) = {
            let next = table.entries.range(uri..).next().map(|(key, _)| key);
            next.filter(|key| key.0.starts_with(&uri.0)).cloned()
        } {
            table.remove(&key);
        }
    }
}

impl Entry {
    /// The answer with the Max-Age that remains.
    fn aged(&self, now: Instant) -> Response {
        let left = self.fresh_until.saturating_duration_since(now).as_secs();
        self.response.clone().max_age(u32::try_from(left).unwrap_or(u32::MAX))
    }
}

impl CacheTable {
    fn number(&mut self) -> u64 {
        self.next += 1;
        self.next
    }

    fn touch(&mut self, key: &CacheKey) {
        let number = self.number();
        if let Some(entry) = self.entries.get_mut(key)
            && let Some(key) = self.uses.remove(&entry.used)
        {
            entry.used = number;
            self.uses.insert(number, key);
        }
    }

    fn remove(&mut self, key: &CacheKey) {
        if let Some(entry) = self.entries.remove(key) {
            self.uses.remove(&entry.used);
            self.bytes -= entry.bytes;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(text: &str) -> CacheKey {
        CacheKey(text.as_bytes().to_vec())
    }

    fn fresh(cache: &Cache, key: &CacheKey, now: Instant) -> Option<(String, Option<u32>)> {
        match cache.find(key, now) {
            Found::Fresh(response) => Some((response.text().into_owned(), max_age(&response))),
            _ => None,
        }
    }

    #[test]
    fn an_answer_is_used_until_its_max_age_has_passed_and_then_confirmed_by_its_etag() {
        let (cache, now) = (Cache::new(1 << 20), crate::system::now());
        cache.store(key("a"), &Response::content("1").max_age(10).etag(b"e"), now, || true);
        let later = now + Duration::from_secs(4);
        assert_eq!(fresh(&cache, &key("a"), later), Some(("1".into(), Some(6))));
        let late = now + Duration::from_secs(10);
        assert!(matches!(cache.find(&key("a"), late), Found::Stale(etag) if etag == "e"[..]));
        let valid = Response::new(Code::VALID).etag(b"f");
        assert!(cache.confirm(&key("a"), &valid, late).is_none(), "another version");
        let confirmed =
            cache.confirm(&key("a"), &Response::new(Code::VALID).etag(b"e").max_age(5), late);
        assert_eq!(confirmed.unwrap().text(), "1");
        assert_eq!(fresh(&cache, &key("a"), late), Some(("1".into(), Some(5))));
    }

    #[test]
    fn without_a_max_age_it_is_fresh_for_a_minute_and_an_error_is_not_stored() {
        let (cache, now) = (Cache::new(1 << 20), crate::system::now());
        cache.store(key("a"), &Response::content("1"), now, || true);
        cache.store(key("b"), &Response::new(Code::NOT_FOUND), now, || true);
        cache.store(key("c"), &Response::content("1").max_age(0), now, || true);
        cache.store(key("d"), &Response::new(Code::NOT_FOUND).max_age(5), now, || true);
        cache.store(key("e"), &Response::new(Code::CHANGED).max_age(5), now, || true);
        let found = ["a", "b", "c", "d", "e"].map(|text| fresh(&cache, &key(text), now).is_some());
        assert_eq!(found, [true, false, false, true, false]);
        assert_eq!(fresh(&cache, &key("a"), now + Duration::from_secs(60)), None);
    }

    #[test]
    fn its_bytes_are_bounded_and_what_was_used_longest_ago_goes() {
        let (cache, now) = (Cache::new(100_000), crate::system::now());
        for n in 0..1000 {
            cache.store(key(&n.to_string()), &Response::content(vec![0; 1000]), now, || true);
            assert!(fresh(&cache, &key("0"), now).is_some(), "the first one is used all the time");
        }
        let table = cache.lock();
        assert!(table.bytes <= 100_000 && table.entries.len() > 50, "{}", table.bytes);
        assert_eq!(table.entries.len(), table.uses.len());
        assert_eq!(table.bytes, table.entries.values().map(|entry| entry.bytes).sum::<usize>());
        drop(table);
        cache.store(key("large"), &Response::content(vec![0; 50_000]), now, || true);
        assert!(fresh(&cache, &key("large"), now).is_none(), "it would displace too many");
    }

    #[test]
    fn a_change_removes_the_answers_of_its_uri_alone() {
        let (cache, now) = (Cache::new(1 << 20), crate::system::now());
        for text in ["a\0one", "a\0two", "ab\0one"] {
            cache.store(key(text), &Response::content("1"), now, || true);
        }
        cache.invalidate(&key("a\0"));
        let found =
            ["a\0one", "a\0two", "ab\0one"].map(|text| fresh(&cache, &key(text), now).is_some());
        assert_eq!(found, [false, false, true]);
    }
}
