//! The work that clients may cause where it grows with what others have left, such as a look-up among all registrations.

use crate::system;
use ebbtide::{Code, Response};
use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::{Mutex, PoisonError};
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

impl ClientWork {
    /// Counts a request of so many steps.
    ///
    /// # Errors
    ///
    /// The answer, if the client has to wait before.
    pub(crate) fn admit(&self, client: IpAddr, steps: usize) -> Result<(), Response> {
        let counted = (steps as u64).saturating_sub(UNCOUNTED);
        if counted == 0 {
            return Ok(());
        }
        let now = system::now();
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if known.len() >= CLIENTS {
            known.retain(|_, until| *until > now);
        }
        let until = known.get(&client).map_or(now, |until| now.max(*until));
        let is_early = until > now + AHEAD;
        if is_early || known.len() >= CLIENTS {
            let wait = u32::try_from((until - now).as_secs()).unwrap_or(u32::MAX).max(1);
            let refusal = Response::error(Code::TOO_MANY_REQUESTS, "it takes much work");
            return Err(refusal.max_age(wait));
        }
        known.insert(client, until + Duration::from_millis(counted * 1000 / PER_SECOND));
        Ok(())
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
        for host in 0..10_000_u32 {
            let _ = work.admit(IpAddr::V4(host.into()), large);
        }
        assert_eq!(work.0.lock().unwrap().len(), CLIENTS);
    }
}
