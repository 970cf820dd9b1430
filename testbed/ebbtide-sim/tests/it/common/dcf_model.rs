//! Saturation throughput of the IEEE 802.11 DCF in one cell, by two published fixed points.
//!
//! [`bianchi`] is Bianchi, Performance Analysis of the IEEE 802.11 Distributed Coordination Function
//! (IEEE JSAC 18(3), 2000), equations 7, 9 and 13, as printed, with the durations of 802.11b:
//!
//! * Ts is data, SIFS, ACK, DIFS. Tc is data and EIFS: the paper's stations wait for DIFS after a
//!   collision (its equation 14), the standard's for EIFS (section 9.2.3.4). Propagation takes no time.
//! * A frame is repeated without end, and the window stays at CWmax from the fifth repetition on.
//! * The counter of every station that waits goes down by one per *slot*, also per one with a
//!   transmission in it: after DIFS all begin with the next number.
//!
//! The standard does not count the slot in which somebody begins to transmit (section 9.2.5.2). So in
//! the slot after a busy time only those who were just transmitting and drew zero can be on the air.
//! [`refined`] has that and the retry limit, as Tinnirello, Bianchi and Xiao, Refinements on IEEE
//! 802.11 Distributed Coordination Function Modeling Approaches (IEEE TVT 59(3), 2010): busy times are
//! a slot longer, and a success is followed by another one of the same station with probability
//! 1 / (CWmin + 1).

#![expect(clippy::disallowed_methods, reason = "a closed form to compare with, not a result")]

use ebbtide_sim::medium::wifi::Dcf;

/// What a station finds.
#[derive(Copy, Clone, Debug)]
pub(crate) struct Point {
    /// The chance that its transmission collides.
    pub(crate) collides: f64,
    /// Frames per second that get through, all stations together.
    pub(crate) frames_per_s: f64,
}

/// Seconds: a slot, a success, a collision.
fn durations(dcf: &Dcf, bytes: u32) -> (f64, f64, f64) {
    let seconds = |ns: u64| ns as f64 / 1e9;
    let data = dcf.data_airtime(dcf.frame_bytes(bytes));
    (seconds(dcf.slot.0), seconds(dcf.exchange(dcf.frame_bytes(bytes))), seconds(data + dcf.eifs()))
}

/// Solves `tau = f(p)` together with `p = 1 - (1 - tau)^(n - 1)` (equation 9): both sides are
/// monotonic, so bisection finds the one solution.
fn solve(stations: u32, tau_of: impl Fn(f64) -> f64) -> (f64, f64) {
    let (mut low, mut high) = (0.0, 1.0);
    for _ in 0..200 {
        let p = (low + high) / 2.0;
        let found = 1.0 - (1.0 - tau_of(p)).powi(stations as i32 - 1);
        if found > p { low = p } else { high = p }
    }
    (tau_of(low), low)
}

/// Chances that somebody transmits, and that exactly one does.
fn chances(stations: u32, tau: f64) -> (f64, f64) {
    let n = stations as i32;
    (1.0 - (1.0 - tau).powi(n), f64::from(n) * tau * (1.0 - tau).powi(n - 1))
}

/// The published model.
pub(crate) fn bianchi(stations: u32, dcf: &Dcf, bytes: u32) -> Point {
    let w = f64::from(dcf.cw_min) + 1.0;
    let m = (f64::from(dcf.cw_max) + 1.0) / w;
    let m = m.log2().round() as i32;
    // Equation 7; its sum form has no 0 / 0 at p = 1/2.
    let tau_of = |p: f64| {
        let sum: f64 = (0..m).map(|i| (2.0 * p).powi(i)).sum();
        2.0 / (1.0 + w + p * w * sum)
    };
    let (tau, collides) = solve(stations, tau_of);
    let (slot, success, collision) = durations(dcf, bytes);
    let (any, one) = chances(stations, tau);
    let mean = (1.0 - any) * slot + one * success + (any - one) * collision;
    Point { collides, frames_per_s: one / mean }
}

/// The model that counts slots as the standard does, with its retry limit.
pub(crate) fn refined(stations: u32, dcf: &Dcf, bytes: u32) -> Point {
    let first = f64::from(dcf.cw_min) + 1.0;
    let zero = 1.0 / first;
    let windows = (0..dcf.retry_limit).map(|stage| {
        let cw = (first * 2f64.powi(stage.into()) - 1.0).min(dcf.cw_max.into());
        (i32::from(stage), cw)
    });
    let windows: Vec<(i32, f64)> = windows.collect();
    // Transmissions in slots of the model per frame, and the slots between them. Who draws b waits
    // for b - 1 of them, the slot after the busy time being part of it; who draws 0 after a success
    // does not wait but transmits within the same busy time. Who draws 0 after a collision is taken to
    // transmit in the next slot.
    let tau_of = |p: f64| {
        let (mut attempts, mut slots) = (0.0, 0.0);
        for (stage, cw) in &windows {
            let chance = p.powi(*stage);
            let wait = if *stage == 0 { (cw - 1.0) / 2.0 } else { cw / 2.0 - cw / (cw + 1.0) };
            attempts += chance;
            slots += chance * (wait + 1.0);
        }
        attempts / slots
    };
    let (tau, collides) = solve(stations, tau_of);
    let (slot, success, collision) = durations(dcf, bytes);
    let (any, one) = chances(stations, tau);
    let burst = 1.0 / (1.0 - zero);
    let mean =
        (1.0 - any) * slot + one * (success * burst + slot) + (any - one) * (collision + slot);
    Point { collides, frames_per_s: one * burst / mean }
}
