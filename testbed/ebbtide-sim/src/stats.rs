//! Statistics of measured values.

use serde::{Deserialize, Serialize};

/// Seven order statistics; the unit is that of the quantity.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Summary {
    /// Smallest value.
    pub min: f64,
    /// 10th percentile.
    pub p10: f64,
    /// 25th percentile.
    pub p25: f64,
    /// Median.
    pub median: f64,
    /// 75th percentile.
    pub p75: f64,
    /// 90th percentile.
    pub p90: f64,
    /// Largest value.
    pub max: f64,
}

/// A quantile of sorted values by linear interpolation between order statistics (the default of
/// NumPy and R, type 7). NaN if there are no values.
pub fn quantile(sorted: &[f64], share: f64) -> f64 {
    let Some(last) = sorted.len().checked_sub(1) else { return f64::NAN };
    let position = share.clamp(0.0, 1.0) * last as f64;
    // Non-negative and at most `last`.
    let low = position.floor() as usize;
    let high = (low + 1).min(last);
    let fraction = position - low as f64;
    sorted[low] + (sorted[high] - sorted[low]) * fraction
}

/// The seven order statistics of unsorted values.
pub fn summary(values: &mut [f64]) -> Summary {
    values.sort_unstable_by(f64::total_cmp);
    seven(|share| quantile(values, share))
}

/// The seven order statistics of values that occur several times, in ascending order.
pub fn weighted_summary(values: &[(f64, u64)]) -> Summary {
    let total: u64 = values.iter().map(|(_, count)| count).sum();
    seven(|share| {
        let target = share * total.saturating_sub(1) as f64;
        let mut below = 0;
        for (value, count) in values {
            below += count;
            if below as f64 > target {
                return *value;
            }
        }
        values.last().map_or(f64::NAN, |(value, _)| *value)
    })
}

/// The seven shares that every summary holds.
fn seven(quantile: impl Fn(f64) -> f64) -> Summary {
    Summary {
        min: quantile(0.0),
        p10: quantile(0.10),
        p25: quantile(0.25),
        median: quantile(0.50),
        p75: quantile(0.75),
        p90: quantile(0.90),
        max: quantile(1.0),
    }
}

/// The mean and the half-width of its 95 % confidence interval by Student's t; the half-width is
/// zero for fewer than two values.
pub fn mean_and_half_width(values: &[f64]) -> (f64, f64) {
    let n = values.len();
    if n == 0 {
        return (f64::NAN, 0.0);
    }
    let mean = values.iter().sum::<f64>() / n as f64;
    if n < 2 {
        return (mean, 0.0);
    }
    let squares: f64 = values.iter().map(|value| (value - mean) * (value - mean)).sum();
    let deviation = (squares / (n - 1) as f64).sqrt();
    (mean, t95(n - 1) * deviation / (n as f64).sqrt())
}

/// The 97.5 % quantile of Student's t with this many degrees of freedom. Own arithmetic, because a library's is
/// iterative with logarithms of the system's, whose last digit is not the same on every machine; a test
/// compares it with that of `statrs`.
fn t95(freedom: usize) -> f64 {
    const TABLE: [f64; 30] = [
        12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228, 2.201, 2.179, 2.160,
        2.145, 2.131, 2.120, 2.110, 2.101, 2.093, 2.086, 2.080, 2.074, 2.069, 2.064, 2.060, 2.056,
        2.052, 2.048, 2.045, 2.042,
    ];
    match freedom {
        0 => f64::INFINITY,
        1..=30 => TABLE[freedom - 1],
        _ => expansion(freedom as f64),
    }
}

/// The expansion in powers of one over the degrees of freedom (Abramowitz and Stegun, 26.7.5), for which three terms
/// suffice from 30 on.
fn expansion(freedom: f64) -> f64 {
    /// The 97.5 % quantile of the normal distribution.
    const Z: f64 = 1.959_963_984_540_054;
    let square = Z * Z;
    let first = Z * (square + 1.0) / 4.0;
    let second = Z * ((5.0 * square + 16.0) * square + 3.0) / 96.0;
    let third = Z * (((3.0 * square + 19.0) * square + 17.0) * square - 15.0) / 384.0;
    Z + (first + (second + third / freedom) / freedom) / freedom
}

/// Jain's fairness index: 1 if all values are equal, 1/n if one value is the whole sum. 1 if there
/// are no values.
pub fn jain(values: &[f64]) -> f64 {
    let sum: f64 = values.iter().sum();
    let squares: f64 = values.iter().map(|value| value * value).sum();
    if squares == 0.0 { 1.0 } else { sum * sum / (values.len() as f64 * squares) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use statrs::distribution::{ContinuousCDF, StudentsT};

    #[test]
    fn quantiles_of_students_t_are_those_of_statrs() {
        for freedom in 1..2000_usize {
            let exact = StudentsT::new(0.0, 1.0, freedom as f64).unwrap().inverse_cdf(0.975);
            let bound = if freedom <= 30 { 5.1e-4 } else { 2e-6 };
            assert!(
                (t95(freedom) - exact).abs() < bound,
                "{freedom}: {} for {exact}",
                t95(freedom)
            );
        }
    }

    #[test]
    fn quantiles_interpolate_as_numpy_does() {
        let values = [1.0, 2.0, 3.0, 4.0];
        assert_eq!(quantile(&values, 0.5), 2.5);
        assert_eq!(quantile(&values, 0.1), 1.3);
        assert_eq!(quantile(&values, 1.0), 4.0);
        assert!(quantile(&[], 0.5).is_nan());
    }

    #[test]
    fn the_interval_of_a_known_sample_is_that_of_the_textbook() {
        let (mean, half) = mean_and_half_width(&[4.0, 6.0, 8.0]);
        assert_eq!(mean, 6.0);
        // s = 2, t(2) = 4.303: 4.303 * 2 / sqrt(3).
        assert!((half - 4.9687).abs() < 1e-3, "{half}");
    }

    #[test]
    fn fairness_is_one_for_equals_and_a_share_for_a_monopoly() {
        assert_eq!(jain(&[5.0, 5.0, 5.0]), 1.0);
        assert_eq!(jain(&[1.0, 0.0, 0.0, 0.0]), 0.25);
    }
}
