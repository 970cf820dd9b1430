//! What befalls a server and its devices.

use super::application::Database;
use super::devices::{Protection, address, protection};
use super::world::{CONNECTED, DEVICES, Life, SECOND, SERVER, millis};
use ebbtide::server::StateStore;
use ebbtide_sim::random::uniform;
use ebbtide_testnet::TestNetwork;
use rand_chacha::ChaCha8Rng;
use std::io;
use std::ops::RangeInclusive;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tempfile::TempDir;
use tokio::time::{advance, sleep};

const STEPS: u32 = 10;
/// A server stores changes within this time.
const STORED_EVERY: Duration = Duration::from_millis(100);

/// What works of a disk.
#[derive(Copy, Clone, Debug, Default, PartialEq)]
enum Works {
    #[default]
    All,
    Reading,
    Nothing,
}

/// What a kill does to a disk.
#[derive(Copy, Clone, Debug, PartialEq)]
enum Wreck {
    Nothing,
    /// The last change that was appended is there in part, or not at all.
    Tears,
    /// A byte is another one.
    Damages,
}

/// A disk that replaces files whole, by renaming, and that may keep a part of what is appended.
#[derive(Clone, Debug)]
pub(super) struct Disk {
    network: TestNetwork,
    contents: Arc<Mutex<Contents>>,
    /// Of the real disk, for what has no other place than files.
    folder: Arc<TempDir>,
}

#[derive(Debug, Default)]
struct Contents {
    works: Works,
    state: Option<Vec<u8>>,
    longest: usize,
    /// When the state was stored, and whether it could not be stored again since.
    stored: Duration,
    is_stale: bool,
    /// Where the change begins that was appended last, and when the state before it was stored.
    last_change: Option<(usize, Duration)>,
    /// The times that servers which were killed had not stored.
    unstored: Vec<RangeInclusive<Duration>>,
}

impl Disk {
    pub(super) fn new(network: &TestNetwork) -> Self {
        let folder = Arc::new(tempfile::tempdir().unwrap());
        Self { network: network.clone(), contents: Arc::default(), folder }
    }

    fn contents(&self) -> MutexGuard<'_, Contents> {
        self.contents.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn sequence_numbers(&self) -> PathBuf {
        self.folder.path().join("numbers")
    }

    pub(super) fn mend(&self) {
        self.contents().works = Works::All;
    }

    /// The server was killed.
    fn left(&self, wreck: Wreck, random: &mut ChaCha8Rng) {
        let mut guard = self.contents();
        let contents = &mut *guard;
        let now = self.network.elapsed();
        let mut since = match contents.is_stale {
            true => contents.stored,
            false => contents.stored.max(now.saturating_sub(STORED_EVERY)),
        };
        let state = contents.state.as_mut().filter(|state| !state.is_empty());
        match (wreck, state, contents.last_change) {
            (Wreck::Tears, Some(state), Some((begin, stored))) => {
                let end = state.len() as u64 - 1;
                state.truncate(uniform(random, begin as u64, end) as usize);
                since = stored;
            }
            (Wreck::Damages, Some(state), _) => {
                let at = uniform(random, 0, state.len() as u64 - 1) as usize;
                state[at] ^= 1 << uniform(random, 0, 7);
                since = Duration::ZERO;
            }
            _ => {}
        }
        let unstored = since..=now;
        contents.unstored.push(unstored);
    }

    /// Whether the server that followed does not know what was sent at this time.
    pub(super) fn has_lost(&self, at: Duration) -> bool {
        self.contents().unstored.iter().any(|span| span.contains(&at))
    }

    /// Bytes of the longest state so far.
    pub(super) fn longest(&self) -> usize {
        self.contents().longest
    }
}

impl Contents {
    fn keep(&mut self, now: Duration, state: Vec<u8>) {
        self.longest = self.longest.max(state.len());
        self.state = Some(state);
        self.stored = now;
        self.is_stale = false;
    }
}

impl StateStore for Disk {
    fn load(&self) -> io::Result<Option<Vec<u8>>> {
        let contents = self.contents();
        match contents.works {
            Works::Nothing => Err(io::ErrorKind::Other.into()),
            Works::All | Works::Reading => Ok(contents.state.clone()),
        }
    }

    fn save(&self, state: &[u8]) -> io::Result<()> {
        let mut contents = self.contents();
        if contents.works != Works::All {
            contents.is_stale = true;
            return Err(io::ErrorKind::StorageFull.into());
        }
        contents.last_change = None;
        contents.keep(self.network.elapsed(), state.to_vec());
        Ok(())
    }

    fn append(&self, changes: &[u8]) -> io::Result<bool> {
        let mut contents = self.contents();
        let Some(mut state) = contents.state.clone() else { return Ok(false) };
        if contents.works != Works::All {
            contents.is_stale = true;
            // A full disk takes a part.
            state.extend_from_slice(&changes[..changes.len() / 2]);
            contents.state = Some(state);
            return Err(io::ErrorKind::StorageFull.into());
        }
        contents.last_change = Some((state.len(), contents.stored));
        state.extend_from_slice(changes);
        contents.keep(self.network.elapsed(), state);
        Ok(true)
    }
}

pub(super) struct Misfortunes<'w> {
    network: &'w TestNetwork,
    database: &'w Database,
    disk: &'w Disk,
    random: ChaCha8Rng,
}

impl<'w> Misfortunes<'w> {
    pub(super) const fn new(
        network: &'w TestNetwork,
        database: &'w Database,
        disk: &'w Disk,
        random: ChaCha8Rng,
    ) -> Self {
        Self { network, database, disk, random }
    }

    /// One after another. Returns the server's life at the end.
    pub(super) async fn befall(mut self, mut life: Life) -> Life {
        for _ in 0..STEPS {
            sleep(millis(&mut self.random, 100, 30_000)).await;
            let number = uniform(&mut self.random, 0, DEVICES as u64 - 1) as usize;
            let device = address(number);
            match uniform(&mut self.random, 0, 9) {
                0..=1 => life = self.restart(life).await,
                2 => self.disk.contents().works = Works::Reading,
                3 => self.disk.contents().works = Works::Nothing,
                4 => self.disk.mend(),
                5 => self.network.cut(SERVER, device.ip()),
                6 => self.network.unplug(device.ip()),
                // Without a session a new address is another client.
                7 if protection(number) == Protection::Dtls => drop(self.network.rebind(device)),
                7 => {}
                // As after a suspension. What is under way before it is lost, since no network
                // keeps packets for so long.
                8 => {
                    self.network.unplug(SERVER);
                    sleep(SECOND).await;

                    advance(millis(&mut self.random, 1, 3_600_000)).await;
                    sleep(SECOND).await;
                    self.network.restore();
                }
                _ => {
                    let year = 31_536_000;
                    let shown = uniform(&mut self.random, 0, 60 * year);
                    self.network.set_system_clock(Duration::from_secs(shown));
                }
            }
            if uniform(&mut self.random, 0, 2) == 0 {
                self.network.restore();
            }
        }
        life
    }

    async fn restart(&mut self, life: Life) -> Life {
        life.kill(self.network).await;
        let wreck = match uniform(&mut self.random, 0, 7) {
            0 => Wreck::Damages,
            1..=3 => Wreck::Tears,
            _ => Wreck::Nothing,
        };
        self.disk.left(wreck, &mut self.random);
        loop {
            sleep(millis(&mut self.random, 0, 20_000)).await;
            if let Some(life) = Life::start(self.network, self.database, self.disk) {
                return life;
            }
            if uniform(&mut self.random, 0, 1) == 0 {
                self.disk.mend();
            }
            sleep(SECOND).await;
        }
    }
}

/// What befalls connections, for good: they die in the middle of transfers, or carry nothing any more.
pub(super) async fn break_connections(network: TestNetwork, mut random: ChaCha8Rng) {
    loop {
        sleep(millis(&mut random, 100, 20_000)).await;
        let number = DEVICES + uniform(&mut random, 0, CONNECTED as u64 - 1) as usize;
        let device = address(number).ip();
        match uniform(&mut random, 0, 3) {
            0..=1 => network.reset_connections(SERVER, device),
            2 => network.silence_connections(SERVER, device),
            _ => network.cut(SERVER, device),
        }
    }
}
