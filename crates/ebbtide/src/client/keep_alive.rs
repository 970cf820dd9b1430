//! The keep-alive of an observation: a check of the path to the server after a silence.

use super::pending::Pending;
use super::session::Session;
use ebbtide_core::time::Instant;
use std::task::{Context, Poll};
use std::time::Duration;

/// The shortest silence after which the path is checked, in retransmission timeouts of the path. On a slow path
/// the checks would otherwise take a large part of it.
const TIMEOUTS: u32 = 4;

/// The next check.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(super) enum NextCheck {
    /// At this instant, unless the server is heard until then.
    At(Instant),
    /// The client registers now: the registration is the check, or the last check has failed.
    Renew,
}

/// See the [module](self).
#[derive(Debug)]
pub(super) struct KeepAlive {
    /// The silence after which the path is checked.
    span: Option<Duration>,
    /// When the last check began.
    checked: Option<Instant>,
    /// The ping that was not answered yet.
    ping: Option<Pending>,
}

impl KeepAlive {
    pub(super) const fn new(span: Option<Duration>) -> Self {
        Self { span, checked: None, ping: None }
    }

    /// The next check of a path by datagrams; begins it if it is due.
    pub(super) fn poll(
        &mut self,
        session: &Session,
        now: Instant,
        cx: &mut Context<'_>,
    ) -> Option<NextCheck> {
        let shared = session.socket()?;
        let span = self.span?;
        if let Some(ping) = &self.ping {
            match ping.poll_answer(cx) {
                Poll::Pending => return None,
                Poll::Ready(answer) => {
                    let answered = answer.is_some_and(|answer| answer.is_reset());
                    self.ping = None;
                    if !answered {
                        return Some(NextCheck::Renew);
                    }
                }
            }
        }
        let (heard, timeout) = {
            let state = shared.lock();
            let metrics = state.endpoint.metrics(session.id);
            (state.endpoint.last_heard(session.id), metrics.and_then(|metrics| metrics.rto))
        };
        let timeout = timeout.map_or(Duration::ZERO, |timeout| timeout.to_duration());
        let last = heard.max(self.checked).unwrap_or(now);
        let due = last + span.max(timeout * TIMEOUTS);
        if now < due {
            return Some(NextCheck::At(due));
        }
        self.checked = Some(now);
        if !session.is_secured() {
            // A server of plain CoAP knows an observer by its address, which may have changed on the way: a ping
            // would be answered, and notifications would go to the old address.
            return Some(NextCheck::Renew);
        }
        // A record from a new address moves the session and its observations (RFC 9146).
        match session.ping() {
            Ok(ping) => self.ping = Some(ping),
            Err(_) => return Some(NextCheck::At(now + span)),
        }
        self.poll(session, now, cx)
    }
}
