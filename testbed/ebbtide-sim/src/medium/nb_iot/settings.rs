//! The settings of a cell of NB-IoT, which are also the keys of `[network.nb_iot]`.
//!
//! The clauses name where 3GPP has the text. One was read there: the gap between preambles (`GAP_NS`). The length of
//! a preamble, the ranges of keys with a clause, the share of missed preambles and the blocks were read in sources that
//! follow 3GPP (an implementation's headers, MathWorks, a tester's manual). Assumptions are marked.

use crate::keys::{Check, FASTEST, LONGEST, keys, require};
use crate::net::Direction;
use crate::units::{Rate, Time};
use serde::{Deserialize, Serialize};

keys! {
    /// Devices in a cell of NB-IoT. Lists have an entry for each coverage level, from normal to extreme.
    #[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
    #[serde(deny_unknown_fields, default)]
    pub struct NbIot {
        /// The shares of the devices in the coverage levels, one to three of them, in total 1.
        pub shares: Vec<f64> where 0.0..=1.0,
        /// Repetitions of a preamble: a power of two up to 128 (numRepetitionsPerPreambleAttempt, TS 36.331).
        pub preamble_repetitions: Vec<u32> where 1..=128,
        /// Repetitions of a transmission of a device (NPUSCH, TS 36.213 section 16.5.1.1).
        pub uplink_repetitions: Vec<u32> where 1..=128,
        /// Repetitions of a transmission to a device (NPDSCH, TS 36.213 section 16.4.1.3).
        pub downlink_repetitions: Vec<u32> where 1..=2048,
        /// The time between two opportunities of a level for preambles (nprach-Periodicity, TS 36.331).
        pub preamble_period: Time where Time(40_000_000)..=Time(2_560_000_000),
        /// The subcarriers of a level of which a preamble takes one at random: 12, 24, 36 or 48
        /// (nprach-NumSubcarriers, TS 36.331).
        pub subcarriers: u32 where 12..=48,
        /// Preambles that a device sends at a level before it goes to the next one (maxNumPreambleAttemptCE,
        /// TS 36.331).
        pub attempts: u32 where 1..=10,
        /// A device whose preamble failed waits for a time drawn uniformly up to this one. Its range is an
        /// assumption, not compared with TS 36.321 table 7.2-2.
        pub backoff: Time where ..=Time(524_288_000_000),
        /// The time after which a device whose preamble collided notices it
        /// (mac-ContentionResolutionTimer, TS 36.331).
        pub contention_timer: Time where ..=Time(60_000_000_000),
        /// The share of preambles that the network misses although nothing collided; at most 0.01 is required
        /// (TS 36.104 section 8.5.3.1, by a source that follows it).
        pub missed_preambles: f64 where 0.0..1.0,
        /// Bytes of the signalling that sets a connection up, in each direction, after the preamble.
        pub setup_bytes: u32 where 1..=10_000 => "bytes",
        /// The rate of all devices together towards the network, without repetitions.
        pub uplink_rate: Rate where ..=FASTEST,
        /// The rate towards all devices together, without repetitions.
        pub downlink_rate: Rate where ..=FASTEST,
        /// The time without traffic after which a connection is released.
        pub inactivity: Time where ..=LONGEST,
        /// The time between two instants at which a device without a connection listens for its paging: 1.28 s to
        /// 10.24 s with DRX, 20.48 s to 10485.76 s with eDRX (TS 36.304 section 7, TS 24.008 table 10.5.5.32).
        pub paging_cycle: Time where Time(1_000_000)..=LONGEST,
        /// The time after a release for which a device still listens for paging (T3324, whose range is an assumption);
        /// from then on it sleeps (PSM) until it sends. Without it devices always listen.
        #[serde(skip_serializing_if = "Option::is_none")]
        pub active_time: Option<Time> where ..=LONGEST,
        /// Packets that may wait at a device, and for it in the network; further packets are dropped.
        pub queue: u32 where 1..=10_000 => "packets",
    }
}

impl Default for NbIot {
    /// A device of category NB1 where a preamble is missed as often as TS 36.104 allows. The choices of
    /// an operator are assumptions: levels, repetitions, preambles, backoff, timers, cycle. So are the bytes of
    /// signalling.
    fn default() -> Self {
        Self {
            shares: vec![1.0],
            preamble_repetitions: vec![1],
            uplink_repetitions: vec![1],
            downlink_repetitions: vec![1],
            preamble_period: Time(320_000_000),
            subcarriers: 12,
            attempts: 10,
            backoff: Time(1_024_000_000),
            contention_timer: Time(1_000_000_000),
            missed_preambles: 0.01,
            setup_bytes: 60,
            // The largest blocks of category NB1 are 1000 bits up and 680 down (TS 36.306 table 4.1C-1 and 4.1C-2), one
            // at a time. At these rates one takes 16 ms up and 26.7 ms down. A published derivation for the way down
            // adds up assignment, block, acknowledgement and the gaps between them (1 + 4 + 4 + 12 + 2 + 3) to 26 ms,
            // which would be 26.2 kbit/s.
            uplink_rate: Rate(62_500),
            downlink_rate: Rate(25_500),
            inactivity: Time(20_000_000_000),
            paging_cycle: Time(2_560_000_000),
            active_time: None,
            queue: 16,
        }
    }
}

/// A preamble of format 1 without repetitions: four groups of a prefix of .27 ms and five symbols of .27 ms (TS 36.211
/// section 10.1.6.1, by a source that follows it).
const PREAMBLE_NS: u64 = 6_400_000;
/// The gap after 64 repetitions, as read in TS 36.211 section 10.1.6.1.
const GAP_NS: u64 = 40_000_000;
/// From a preamble to the window of its answer: 4 subframes, or 41 after 64 repetitions and more. An assumption, not
/// compared with TS 36.321 section 5.1.4; it moves an answer by less than 1/7 of the default period of preambles.
const ANSWER_NS: [u64; 2] = [4_000_000, 41_000_000];

impl NbIot {
    /// Checks what parses but is impossible with so many flows of TCP in the background.
    pub(crate) fn check(&self, background_flows: u32) -> Check {
        let key = |key: &str| format!("network.nb_iot.{key}");
        let levels = self.shares.len();
        require(
            (1..=3).contains(&levels),
            &key("shares"),
            "must have one to three coverage levels",
        )?;
        let sum: f64 = self.shares.iter().sum();
        require((sum - 1.0).abs() < 1e-6, &key("shares"), "must be 1 in total")?;
        for (name, list) in [
            ("preamble_repetitions", &self.preamble_repetitions),
            ("uplink_repetitions", &self.uplink_repetitions),
            ("downlink_repetitions", &self.downlink_repetitions),
        ] {
            let message = "must have as many entries as network.nb_iot.shares";
            require(list.len() == levels, &key(name), message)?;
        }
        require(
            self.preamble_repetitions.iter().all(|times| times.is_power_of_two()),
            &key("preamble_repetitions"),
            "must be powers of two: 1, 2, 4, 8, 16, 32, 64 or 128",
        )?;
        require(
            self.subcarriers.is_multiple_of(12),
            &key("subcarriers"),
            "must be 12, 24, 36 or 48",
        )?;
        let longest = (0..levels).map(|level| self.preamble_ns(level)).max().unwrap_or(0);
        require(
            longest <= self.preamble_period.0,
            &key("preamble_period"),
            &format!(
                "must be at least {}, the time of a preamble with its repetitions",
                Time(longest)
            ),
        )?;
        require(
            background_flows == 0,
            "network.background.flows",
            "must be 0 with [network.nb_iot]",
        )
    }

    /// The coverage levels.
    pub(super) const fn levels(&self) -> usize {
        self.shares.len()
    }

    /// The coverage level of a device. Neighbouring numbers are spread over the levels.
    pub fn level(&self, device: u32) -> usize {
        // A fraction of 1 that is evenly spread (Knuth's multiplicative hash).
        let place = f64::from(device.wrapping_mul(2_654_435_769)) / 4_294_967_296.0;
        let mut sum = 0.0;
        let found = self.shares.iter().position(|share| {
            sum += share;
            place < sum
        });
        found.unwrap_or(self.levels() - 1)
    }

    /// The time of a preamble at a level with its repetitions, ns.
    pub fn preamble_ns(&self, level: usize) -> u64 {
        let times = u64::from(self.preamble_repetitions[level]);
        PREAMBLE_NS * times + GAP_NS * (times.saturating_sub(1) / 64)
    }

    /// The time from the end of a preamble at a level to its answer, ns.
    pub fn answer_ns(&self, level: usize) -> u64 {
        ANSWER_NS[usize::from(self.preamble_repetitions[level] >= 64)]
    }

    /// The time that so many bytes take at a level with their repetitions, ns.
    pub fn transmission_ns(&self, level: usize, direction: Direction, bytes: u32) -> u64 {
        let (rate, times) = match direction {
            Direction::Up => (self.uplink_rate, self.uplink_repetitions[level]),
            Direction::Down => (self.downlink_rate, self.downlink_repetitions[level]),
        };
        let bits = u128::from(bytes) * 8 * u128::from(times) * 1_000_000_000;
        // A rate is at least 1 bit/s.
        u64::try_from(bits.div_ceil(u128::from(rate.0.max(1)))).unwrap_or(u64::MAX)
    }
}
