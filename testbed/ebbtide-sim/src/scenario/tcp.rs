//! `--cc tcp`: CoAP over TCP instead of UDP.

use super::units::Time;
use ebbtide_core::time::Duration;
use std::fmt;

/// Settings of the TCP of simulated hosts, `tcp[:KEY=VALUE]...`.
///
/// The TCP is smoltcp's: a minimal RFC 5681 and RFC 6298 TCP, which differs from Linux's. The
/// notes of its results list the differences that no setting changes.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct Tcp {
    /// Nagle's algorithm (RFC 9293 section 3.7.4).
    pub nagle: bool,
    /// How long an acknowledgement waits to be sent with data (RFC 9293 section 3.8.6.3); zero:
    /// not at all.
    pub delayed_ack: Time,
    /// Whether acknowledgements are delayed only once the application exchanges requests and
    /// responses, as in Linux; otherwise from the first segment on.
    pub quick_ack: bool,
    /// The congestion control.
    pub congestion: TcpCongestion,
    /// The first timeout of a SYN and of a SYN-ACK (RFC 6298 section 2.1).
    pub initial_rto: Time,
    /// The maximum to which that timeout is doubled.
    pub syn_rto_max: Time,
    /// Retransmissions of a SYN or SYN-ACK before the connection is given up.
    pub syn_retries: u8,
    /// Retransmissions of data before the connection is given up, counted as in Linux
    /// ([`Self::patience`]).
    pub data_retries: u8,
    /// The tick of the hosts' timers, at which several timers expire together as in Linux; zero:
    /// each timer expires when it is due.
    pub tick: Time,
}

/// The congestion control of a simulated TCP.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum TcpCongestion {
    /// Reno (RFC 5681).
    Reno,
    /// CUBIC (RFC 9438).
    Cubic,
    /// None: only the receiver's window limits the sender.
    None,
}

/// The name on the command line.
pub const TCP: &str = "tcp";

/// Its source, for lists.
pub const TCP_SOURCE: &str = "RFC 8323, RFC 5681, RFC 6298";

/// Its description, for lists.
pub const TCP_ABOUT: &str = "no control but a transport: CoAP over TCP, smoltcp's Reno or CUBIC";

/// The differences between the simulated TCP and the papers' Linux that no setting changes;
/// printed with every result of it.
pub(super) const DIFFERENCES: [&str; 2] = [
    "The simulated TCP is smoltcp's, a minimal RFC 5681 and RFC 6298 TCP; it is not Linux's. Its \
     timers expire as Linux's do: tick.",
    "RTO: at least 1 s and at most 60 s (Linux: 200 ms above the smoothed round trip, at most \
     120 s); a SYN's is set apart: initial-rto, syn-rto-max.",
];

const KEYS: [&str; 9] = [
    "nagle",
    "delayed-ack",
    "quick-ack",
    "congestion",
    "initial-rto",
    "syn-rto-max",
    "syn-retries",
    "data-retries",
    "tick",
];

const SECOND: u64 = 1_000_000_000;
/// The accepted timeouts of a SYN.
const SYN_RTO: std::ops::RangeInclusive<u64> = SECOND / 10..=3600 * SECOND;

/// Linux can be built with 100 to 1000 ticks a second.
const TICK: std::ops::RangeInclusive<u64> = SECOND / 1000..=SECOND / 100;

impl Default for Tcp {
    /// Linux's defaults: an initial RTO of 1 s, 6 retransmissions of a SYN and 15 of data, delayed
    /// acknowledgements of 200 ms on a path of that length.
    fn default() -> Self {
        Self {
            nagle: true,
            delayed_ack: Time(SECOND / 5),
            quick_ack: true,
            congestion: TcpCongestion::Reno,
            initial_rto: Time(SECOND),
            syn_rto_max: Time(120 * SECOND),
            syn_retries: 6,
            data_retries: 15,
            tick: Time(SECOND / 250),
        }
    }
}

impl Tcp {
    /// How long data is retransmitted without an answer before its connection is given up.
    ///
    /// Linux (`tcp_retries2`) converts the number of retransmissions into the time that they would
    /// take if the first timeout were 200 ms, with each further timeout doubled up to 120 s: 924.6
    /// s for 15. RFC 9293 section 3.8.3 requires at least 100 s, which corresponds to 8.
    pub fn patience(&self) -> Duration {
        /// `TCP_RTO_MIN`.
        const RTO_MIN: u64 = SECOND / 5;
        /// `TCP_RTO_MAX`.
        const RTO_MAX: u64 = 120 * SECOND;
        let timeouts = std::iter::successors(Some(RTO_MIN), |last| Some((last * 2).min(RTO_MAX)));
        Duration::from_nanos(timeouts.take(usize::from(self.data_retries) + 1).sum())
    }

    /// Sets one key from text, as in `tcp:KEY=VALUE`.
    ///
    /// # Errors
    ///
    /// Returns a description of the accepted keys or values if the key does not exist or the value
    /// is outside its range.
    pub fn set(&mut self, key: &str, value: &str) -> Result<(), String> {
        let bad = |expected: &str| format!("'{key}' cannot be '{value}': it takes {expected}");
        let time = |range: std::ops::RangeInclusive<u64>| {
            Time::parse(value).filter(|time| range.contains(&time.0))
        };
        let count = || value.parse().map_err(|_| bad("a whole number from 0 to 255"));
        let switch = || match value {
            "on" | "true" => Ok(true),
            "off" | "false" => Ok(false),
            _ => Err(bad("on or off")),
        };
        match (key, value) {
            ("nagle", _) => self.nagle = switch()?,
            ("quick-ack", _) => self.quick_ack = switch()?,
            ("delayed-ack", "off") => self.delayed_ack = Time(0),
            ("delayed-ack", _) => {
                let expected = "a time up to 500 ms such as 200ms, or off";
                self.delayed_ack = time(0..=SECOND / 2).ok_or_else(|| bad(expected))?;
            }
            ("congestion", "reno") => self.congestion = TcpCongestion::Reno,
            ("congestion", "cubic") => self.congestion = TcpCongestion::Cubic,
            ("congestion", "none") => self.congestion = TcpCongestion::None,
            ("congestion", _) => return Err(bad("reno, cubic or none")),
            ("initial-rto", _) => {
                self.initial_rto = time(SYN_RTO).ok_or_else(|| bad("a time from 100ms to 1h"))?;
            }
            ("syn-rto-max", _) => {
                self.syn_rto_max = time(SYN_RTO).ok_or_else(|| bad("a time from 100ms to 1h"))?;
            }
            ("syn-retries", _) => self.syn_retries = count()?,
            ("data-retries", _) => self.data_retries = count()?,
            ("tick", "off") => self.tick = Time(0),
            ("tick", _) => {
                let expected = "a time from 1ms to 10ms, or off";
                self.tick = time(TICK).ok_or_else(|| bad(expected))?;
            }
            _ => return Err(format!("tcp has no setting '{key}'; it has {}", KEYS.join(", "))),
        }
        Ok(())
    }
}

impl fmt::Display for TcpCongestion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Reno => "reno",
            Self::Cubic => "cubic",
            Self::None => "none",
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_key_is_set_and_nothing_else() {
        let mut tcp = Tcp::default();
        let values = ["off", "off", "off", "none", "2s", "60s", "40", "8", "1ms"];
        for (key, value) in KEYS.into_iter().zip(values) {
            tcp.set(key, value).unwrap();
        }
        let expected = Tcp {
            nagle: false,
            delayed_ack: Time(0),
            quick_ack: false,
            congestion: TcpCongestion::None,
            initial_rto: Time(2 * SECOND),
            syn_rto_max: Time(60 * SECOND),
            syn_retries: 40,
            data_retries: 8,
            tick: Time(SECOND / 1000),
        };
        assert_eq!(tcp, expected);
    }

    #[test]
    fn retransmissions_of_data_are_taken_for_a_time_as_linux_takes_them() {
        // Documentation/networking/ip-sysctl.rst: 924.6 s for 15; section 4.2.3.5 of RFC 1122: 8.
        for (retries, millis) in [(0, 200), (8, 102_200), (9, 204_600), (15, 924_600)] {
            let tcp = Tcp { data_retries: retries, ..Tcp::default() };
            assert_eq!(tcp.patience(), Duration::from_millis(millis), "{retries}");
        }
    }

    #[test]
    fn a_value_out_of_range_is_refused_with_the_range() {
        let mut tcp = Tcp::default();
        for (key, value, expected) in [
            ("initial-rto", "99ms", "from 100ms to 1h"),
            ("syn-rto-max", "61min", "from 100ms to 1h"),
            ("delayed-ack", "501ms", "up to 500 ms"),
            ("congestion", "bbr", "reno, cubic or none"),
            ("nagle", "maybe", "on or off"),
            ("syn-retries", "256", "0 to 255"),
            ("data-retries", "-1", "0 to 255"),
            ("tick", "11ms", "from 1ms to 10ms, or off"),
            ("window", "1", "it has nagle, delayed-ack"),
        ] {
            let error = tcp.set(key, value).unwrap_err();
            assert!(error.contains(expected), "{error}");
        }
        assert_eq!(tcp, Tcp::default());
    }
}
