//! The natural logarithm from additions, multiplications and divisions alone, so that it has the same
//! last bit on every machine.

/// The natural logarithm of a positive number; that of the smallest one for others.
pub(super) fn ln(value: f64) -> f64 {
    let value = value.max(f64::MIN_POSITIVE);
    let bits = value.to_bits();
    // The exponent has eleven bits.
    let exponent = ((bits >> 52) & 0x7ff) as i32 - 1023;
    let fraction = f64::from_bits((bits & 0x000f_ffff_ffff_ffff) | 0x3ff0_0000_0000_0000);
    // ln f = 2 artanh s, with s up to a third.
    let s = (fraction - 1.0) / (fraction + 1.0);
    let square = s * s;
    let series = (0..20).rev().fold(0.0, |sum, n| sum * square + 1.0 / f64::from(2 * n + 1));
    f64::from(exponent) * std::f64::consts::LN_2 + 2.0 * s * series
}

#[cfg(test)]
mod tests {
    use super::ln;

    #[test]
    #[expect(
        clippy::disallowed_methods,
        reason = "the platform's logarithm is what it is compared with"
    )]
    fn it_is_that_of_the_platform_to_fourteen_digits() {
        for value in [1e-300, 1e-9, 0.3, 0.999, 1.0, 1.5, 2.0, 10.0, 12_345.678, 1e200] {
            let expected: f64 = f64::ln(value);
            assert!((ln(value) - expected).abs() <= 1e-14 * expected.abs().max(1.0), "{value}");
        }
    }
}
