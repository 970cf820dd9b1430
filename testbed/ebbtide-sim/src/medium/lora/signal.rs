//! How strong the frames of devices are at gateways: places, path loss, and what a receiver needs. Levels are in
//! thousandths of a decibel.

use super::settings::Lora;
use crate::random::{Streams, uniform};
use rand_chacha::ChaCha8Rng;
use rand_core::Rng;

/// The power at which devices transmit unless the network server reduces it, dBm: that of the SX1276 at 29 mA.
const FULL_POWER: f64 = 13.0;
/// How much stronger gateways transmit, in first and in second windows: 14 and 27 dBm in EU863-870 (ETSI EN 300 220-2
/// annex B, bands M and P).
pub(super) const GATEWAY_GAIN: [i32; 2] = [1_000, 14_000];
/// The noise in a channel of 125 kHz: -174 dBm/Hz at room temperature, 51 dB for the bandwidth, and
/// 6 dB of the receiver (Semtech, AN1200.13, section 4), dBm.
const NOISE: f64 = -117.0;
/// The level of devices whose places are not modelled: every gateway hears them at every spreading factor.
const HEARD_BY_ALL: i32 = 100_000;

/// The least signal-to-noise ratio at which a frame can be read: -7.5 dB with SF7 and 2.5 dB less with each further
/// factor (SX1276/77/78/79 data sheet, table 13).
pub const fn required_snr(spreading_factor: u8) -> i32 {
    -7_500 - 2_500 * (spreading_factor as i32 - 7)
}

/// The signals of devices at full power above the noise at each gateway, device by device.
pub(super) fn levels(settings: &Lora, devices: u32, streams: &Streams) -> Vec<i32> {
    let count = settings.gateways as usize;
    let Some(radius) = settings.radius else {
        return vec![HEARD_BY_ALL; devices as usize * count];
    };
    let radius = radius as u64;
    let mut places = streams.stream("lora/gateways");
    // The first one stands in the middle.
    let gateways: Vec<Position> = (0..count)
        .map(
            |index| {
                if index == 0 { Position::default() } else { Position::draw(&mut places, radius) }
            },
        )
        .collect();
    let mut places = streams.stream("lora/devices");
    let devices = (0..devices).map(|_| Position::draw(&mut places, radius));
    devices
        .flat_map(|device| {
            gateways.iter().map(move |gateway| (device, gateway)).collect::<Vec<_>>()
        })
        .map(|(device, gateway)| {
            let loss = path_loss(settings, device.squared_distance(gateway));
            ((FULL_POWER - NOISE - loss) * 1000.0).round() as i32
        })
        .collect()
}

/// A place in the plane, m.
#[derive(Copy, Clone, Default)]
struct Position {
    x: i64,
    y: i64,
}

impl Position {
    /// A place drawn uniformly from the disc around the middle.
    fn draw(places: &mut ChaCha8Rng, radius: u64) -> Self {
        loop {
            // Below 2^53: a radius has at most six digits.
            let mut one = || uniform(places, 0, 2 * radius) as i64 - radius as i64;
            let place = Self { x: one(), y: one() };
            if place.squared_distance(&Self::default()) <= radius * radius {
                return place;
            }
        }
    }

    const fn squared_distance(&self, other: &Self) -> u64 {
        let (x, y) = (self.x - other.x, self.y - other.y);
        (x * x + y * y).unsigned_abs()
    }
}

/// The path loss over a distance, whose square is given in m², of at least a metre, dB.
fn path_loss(settings: &Lora, squared_distance: u64) -> f64 {
    const LOG2_OF_1000: f64 = 9.965_784_284_662_087;
    let log2_of_km = log2(squared_distance.max(1)) / 2.0 - LOG2_OF_1000;
    let decades = log2_of_km * std::f64::consts::LOG10_2;
    settings.path_loss + 10.0 * settings.path_loss_exponent * decades
}

/// The binary logarithm in steps of 2^-16, by repeated squaring: the last bit of the standard library's differs between
/// machines.
fn log2(number: u64) -> f64 {
    let whole = number.ilog2();
    // From 1 to below 2, as a multiple of 2^-63.
    let mut rest = u128::from(number) << (63 - whole);
    let mut steps = u64::from(whole);
    for _ in 0..16 {
        rest = (rest * rest) >> 63;
        let bit = u64::from(rest >= 1 << 64);
        rest >>= bit;
        steps = 2 * steps + bit;
    }
    steps as f64 / 65_536.0
}

/// A deviation drawn from the normal distribution (as the sum of twelve uniform ones), in the unit of its `deviation`.
pub(super) fn normal(rng: &mut impl Rng, deviation: i64) -> i32 {
    let sum: i64 = (0..12).map(|_| i64::from(rng.next_u32())).sum();
    // At most six deviations.
    (((sum - (6 << 32)) * deviation) >> 32) as i32
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[expect(clippy::disallowed_methods, reason = "compared within a bound")]
    fn logarithms_are_those_of_the_standard_library_within_a_step() {
        for number in [1, 2, 3, 1000, 65_537, 1_000_000, 123_456_789_012, u64::MAX] {
            let error = (number as f64).log2() - log2(number);
            assert!((-1e-9..2.0 / 65_536.0).contains(&error), "{number}: {error}");
        }
    }

    #[test]
    fn deviations_have_the_mean_and_the_variance_of_the_law() {
        let mut rng = Streams::new(1, 0).stream("x");
        let drawn: Vec<f64> = (0..20_000).map(|_| f64::from(normal(&mut rng, 3_000))).collect();
        let mean = drawn.iter().sum::<f64>() / 20_000.0;
        let variance = drawn.iter().map(|one| (one - mean) * (one - mean)).sum::<f64>() / 20_000.0;
        assert!(mean.abs() < 60.0 && (variance / 9e6 - 1.0).abs() < 0.03, "{mean}, {variance}");
    }

    #[test]
    fn the_path_loss_is_that_of_the_measurements_in_oulu() {
        let settings = Lora::default();
        for (metres, expected) in [(1000, 128.95), (10_000, 152.15), (100, 105.75)] {
            let loss = path_loss(&settings, metres * metres);
            assert!((loss - expected).abs() < 0.01, "{metres} m: {loss} dB");
        }
    }
}
