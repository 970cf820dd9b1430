//! `--cc q-block`: a transfer in the Non-confirmable blocks of RFC 9177, which defines congestion
//! control of its own.

use super::units::Time;
use ebbtide_core::params::Parameters;
use ebbtide_core::q_block::QBlockParameters;
use ebbtide_core::time::Micros;

/// The name on the command line.
pub const Q_BLOCK: &str = "q-block";

/// Its source, for lists.
pub const Q_BLOCK_SOURCE: &str = "RFC 9177";

/// Its description, for lists.
pub const Q_BLOCK_ABOUT: &str =
    "no control but a transfer: all messages of the workload transfer as Q-Block1 blocks";

/// Notes for readers of its results.
pub(super) const NOTES: [&str; 1] =
    ["Q-Block: the messages of a client are the blocks of one body, \
     answered as a whole; a body that is given up counts as failed in all its messages."];

const KEYS: [&str; 3] = ["max-payloads", "non-timeout", "probing-rate"];

/// Settings of Q-Block, `q-block[:KEY=VALUE]...`. Settings that are not given follow from the
/// scenario's `coap`.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq)]
pub struct QBlock {
    max_payloads: Option<u8>,
    non_timeout: Option<Micros>,
    probing_rate: Option<u32>,
}

impl QBlock {
    /// Sets one key from text, as in `q-block:KEY=VALUE`.
    ///
    /// # Errors
    ///
    /// Returns a description of the accepted keys or values if the key does not exist or the value
    /// is outside its range.
    pub fn set(&mut self, key: &str, value: &str) -> Result<(), String> {
        let bad = |expected: &str| format!("'{key}' cannot be '{value}': it takes {expected}");
        match key {
            "max-payloads" => {
                let payloads = value.parse().ok().filter(|payloads| *payloads > 0);
                self.max_payloads = Some(payloads.ok_or_else(|| bad("a number from 1 to 255"))?);
            }
            "non-timeout" => {
                let time = Time::parse(value)
                    .filter(|time| (1_000_000..=900_000_000_000).contains(&time.0));
                let time = time.ok_or_else(|| bad("a time from 1ms to 900s"))?;
                self.non_timeout = Some(Micros::from_nanos(time.0));
            }
            "probing-rate" => {
                let rate = value.parse().ok().filter(|rate| *rate > 0);
                self.probing_rate = Some(rate.ok_or_else(|| bad("bytes a second, 1 at least"))?);
            }
            _ => return Err(format!("q-block has no setting '{key}'; it has {}", KEYS.join(", "))),
        }
        Ok(())
    }

    /// RFC 9177's parameters that follow from these parameters of RFC 7252.
    pub fn parameters(&self, base: &Parameters) -> QBlockParameters {
        let quick = QBlockParameters::new(base);
        QBlockParameters {
            max_payloads: self.max_payloads.unwrap_or(quick.max_payloads),
            non_timeout: self.non_timeout.unwrap_or(quick.non_timeout),
            probing_rate: self.probing_rate.unwrap_or(quick.probing_rate),
            ..quick
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_key_is_set_and_nothing_else() {
        let mut settings = QBlock::default();
        for (key, value) in KEYS.into_iter().zip(["20", "500ms", "1000"]) {
            settings.set(key, value).unwrap();
        }
        let quick = settings.parameters(&Parameters::DEFAULT);
        assert_eq!((quick.max_payloads, quick.probing_rate), (20, 1000));
        assert_eq!(quick.non_timeout, Micros::from_millis(500));
        let expected = QBlock::default().parameters(&Parameters::DEFAULT);
        assert_eq!(expected, QBlockParameters::DEFAULT);
    }

    #[test]
    fn a_value_out_of_range_is_refused_with_the_range() {
        let mut settings = QBlock::default();
        for (key, value, expected) in [
            ("max-payloads", "0", "1 to 255"),
            ("non-timeout", "0s", "from 1ms to 900s"),
            ("probing-rate", "-1", "1 at least"),
            ("nstart", "4", "it has max-payloads"),
        ] {
            let message = settings.set(key, value).unwrap_err();
            assert!(message.contains(expected), "{message}");
        }
        assert_eq!(settings, QBlock::default());
    }
}
