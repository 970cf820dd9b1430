//! The work that clients may cause where it grows with what others have left, such as a look-up among all registrations.

use crate::system;
use ebbtide::{Code, Response};
use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::time::Instant;

/// Steps of a client in a second, each of which takes some microseconds: about a twentieth of a core.
const PER_SECOND: u64 = 16_384;
/// Steps of one request that are not counted.
const UNCOUNTED: u64 = 256;
/// How far a client may be ahead of its pace.
const AHEAD: Duration = Duration::from_secs(1);
/// Clients whose work is remembered.
const CLIENTS: usize = 4096;

/// See the [module](self): by client, when its pace has caught up with it.
#[derive(Debug, Default)]
pub(crate) struct ClientWork(Mutex<BTreeMap<IpAddr, Instant>>);

/// The work that a client may cause now.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(crate) enum Allowance {
    /// As much as there is.
    Any,
    /// The steps that are not counted, and more after this time.
    Little { wait: Duration },
}

impl Allowance {
    /// The steps of a request that it allows.
    pub(crate) fn max_steps(self) -> usize {
        match self {
            Self::Any => usize::MAX,
            Self::Little { .. } => UNCOUNTED as usize,
        }
    }
}

/// The time that the counted steps of a request take at the pace of a client; `None` if there are none.
fn time_of(steps: usize) -> Option<Duration> {
    let counted = (steps as u64).checked_sub(UNCOUNTED).filter(|counted| *counted > 0)?;
    Some(Duration::from_millis(counted.saturating_mul(1000) / PER_SECOND))
}

impl ClientWork {
    fn lock(&self) -> MutexGuard<'_, BTreeMap<IpAddr, Instant>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The allowance of a client. To count the steps of a request is work as well, so this comes first.
    pub(crate) fn allowance(&self, client: IpAddr) -> Allowance {
        let (now, mut known) = (system::now(), self.lock());
        if known.len() >= CLIENTS {
            known.retain(|_, until| *until > now);
        }
        let wait =
            known.get(&client).map_or(Duration::ZERO, |until| until.saturating_duration_since(now));
        match wait > AHEAD || known.len() >= CLIENTS {
            true => Allowance::Little { wait },
            false => Allowance::Any,
        }
    }

    /// Counts a request of so many steps, or of more than its client is allowed.
    ///
    /// # Errors
    ///
    /// The answer, if the client has to wait before.
    pub(crate) fn count(
        &self,
        client: IpAddr,
        steps: usize,
        allowed: Allowance,
    ) -> Result<(), Response> {
        let Some(time) = time_of(steps) else { return Ok(()) };
        if let Allowance::Little { wait } = allowed {
            let wait = u32::try_from(wait.as_secs()).unwrap_or(u32::MAX).max(1);
            let refusal = Response::error(Code::TOO_MANY_REQUESTS, "it takes much work");
            return Err(refusal.max_age(wait));
        }
        let now = system::now();
        let mut known = self.lock();
        let until = known.entry(client).or_insert(now);
        *until = now.max(*until) + time;
        Ok(())
    }

    /// As [`Self::allowance`] and [`Self::count`], where the number of steps is known.
    pub(crate) fn admit(&self, client: IpAddr, steps: usize) -> Result<(), Response> {
        self.count(client, steps, self.allowance(client))
    }

    /// Counts a notification of so many steps, and returns how long it has to wait: if it were refused, that would end
    /// the observation.
    pub(crate) fn delay(&self, client: IpAddr, steps: usize) -> Duration {
        let Some(time) = time_of(steps) else { return Duration::ZERO };
        let wait = match self.allowance(client) {
            Allowance::Any => Duration::ZERO,
            Allowance::Little { wait } => wait.saturating_sub(AHEAD),
        };
        let now = system::now();
        let mut known = self.lock();
        if known.len() >= CLIENTS && !known.contains_key(&client) {
            return AHEAD;
        }
        let until = known.entry(client).or_insert(now);
        *until = now.max(*until) + time;
        wait
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ebbtide::OptionNumber;

    #[tokio::test(start_paused = true)]
    async fn what_costs_much_has_a_pace_for_each_client_and_what_costs_little_has_none() {
        let work = ClientWork::default();
        let [greedy, modest] = [1, 2].map(|host| IpAddr::from([192, 0, 2, host]));
        let large = 3 * PER_SECOND as usize;
        assert!(work.admit(greedy, large).is_ok());
        let refused = work.admit(greedy, large).unwrap_err();
        assert_eq!(refused.code(), Code::TOO_MANY_REQUESTS);
        assert_eq!(refused.options().get_uint(OptionNumber::MAX_AGE), Some(2));
        assert!(work.admit(greedy, 256).is_ok() && work.admit(modest, large).is_ok());
        tokio::time::sleep(Duration::from_secs(2)).await;
        assert!(work.admit(greedy, large).is_ok() && work.admit(greedy, large).is_err());
        // Nobody need count further than that.
        assert_eq!(work.allowance(greedy).max_steps(), UNCOUNTED as usize);
        assert_eq!(work.allowance(modest), Allowance::Any);
        for host in 0..10_000_u32 {
            let _ = work.admit(IpAddr::V4(host.into()), large);
        }
        assert_eq!(work.0.lock().unwrap().len(), CLIENTS);
    }

    #[tokio::test(start_paused = true)]
    async fn notifications_wait_for_the_pace_of_their_client_one_after_the_other() {
        let work = ClientWork::default();
        let client = IpAddr::from([192, 0, 2, 1]);
        let second = PER_SECOND as usize + UNCOUNTED as usize;
        let delays: Vec<_> = (0..5).map(|_| work.delay(client, second).as_secs()).collect();
        assert_eq!(delays, [0, 0, 1, 2, 3]);
        assert_eq!(work.delay(client, 256), Duration::ZERO);
        assert_eq!(work.delay(IpAddr::from([192, 0, 2, 2]), second), Duration::ZERO);
    }
}
