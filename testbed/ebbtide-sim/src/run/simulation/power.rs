//! Power cuts in a replication.

use super::Simulation;
use crate::record::Recorder;
use crate::run::client_timer::ClientTimer;
use crate::run::event::NetEvent;
use ebbtide_core::time::Instant;

impl<R: Recorder> Simulation<R> {
    /// The devices of a cut lose power, and with it all that they know.
    pub(super) fn power_fails(&mut self, now: Instant, cut: u16) {
        let Some(power) = &mut self.power else { return };
        let befallen = power.fails(cut);
        for (client, returns_at) in befallen {
            let Some(power) = &mut self.power else { return };
            let host = &mut self.clients.hosts[client as usize];
            let rng = power.forgets(client, host.agenda().next_number());
            let was_done = host.is_done();
            self.clients.timers[client as usize] = ClientTimer::default();
            self.engine.schedule(returns_at, NetEvent::PowerReturns { client, cut });
            self.note_class(client);
            self.clients.hosts[client as usize].lose_power(now, rng, &mut self.recorder);
            self.note_whether_done(now, client, was_done);
        }
    }

    /// A device works again, unless another cut holds it.
    pub(super) fn power_returns(&mut self, now: Instant, client: u32, cut: u16) {
        let requests = self.power.as_mut().and_then(|power| power.returns(client, cut));
        let Some(requests) = requests.filter(|_| !self.end.is_over) else { return };
        let host = &mut self.clients.hosts[client as usize];
        let was_done = host.is_done();
        host.swap_buffers(&mut self.clients.buffers);
        host.regain_power(now, requests);
        self.note_whether_done(now, client, was_done);
        self.drain(now, client);
    }

    /// The requests that are due at a device without power are not made.
    pub(super) fn misses(&mut self, now: Instant, client: u32) {
        let class = self.roster.class_of(client);
        let Some(timetable) = &mut self.clients.timetables[class] else { return };
        let host = &mut self.clients.hosts[client as usize];
        let was_done = host.is_done();
        host.skip_requests();
        if host.agenda().has_more()
            && let Some(next) = timetable.next(now, client)
        {
            self.engine.schedule(next, NetEvent::Act(client));
        }
        self.note_whether_done(now, client, was_done);
    }

    /// Counts a device that has nothing left to do now, or has something to do again.
    fn note_whether_done(&mut self, now: Instant, client: u32, was_done: bool) {
        let class = self.roster.class_of(client);
        match (was_done, self.clients.hosts[client as usize].is_done()) {
            (false, true) => self.end.note_done(now, class),
            (true, false) => self.end.note_undone(class),
            _ => {}
        }
    }
}
