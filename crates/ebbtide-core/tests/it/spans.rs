//! Spans in four bytes: exact while they are short, monotone throughout, saturating at the ends.

use crate::common;
use ebbtide_core::time::{Duration, Instant, Micros};
use proptest::prelude::*;

/// The step of a span that is not exact, in microseconds.
const STEP: u64 = 64;

/// Microseconds of every size up to the longest span, with many near the end of the exact ones.
fn micros() -> impl Strategy<Value = u64> {
    prop_oneof![
        0..=Micros::MAX.as_micros(),
        Micros::EXACT - 200..Micros::EXACT + 200,
        0..100_000_000u64,
        (0..38u32).prop_map(|power| (1u64 << power).min(Micros::MAX.as_micros())),
    ]
}

proptest! {
    #[test]
    fn a_span_is_exact_below_the_limit_and_at_most_a_step_short_above(micros in micros()) {
        let read = Micros::from_u64(micros).as_micros();
        if micros < Micros::EXACT {
            prop_assert_eq!(read, micros);
        } else {
            prop_assert!(read <= micros && micros - read < STEP, "{} became {}", micros, read);
        }
        // A span that was read is written without another loss.
        prop_assert_eq!(Micros::from_u64(read).as_micros(), read);
    }

    #[test]
    fn the_order_of_spans_is_the_order_of_their_microseconds(one in micros(), other in micros()) {
        let (short, long) = (one.min(other), one.max(other));
        prop_assert!(Micros::from_u64(short) <= Micros::from_u64(long));
        if long - short >= STEP || long < Micros::EXACT && short < long {
            prop_assert!(Micros::from_u64(short) < Micros::from_u64(long));
        }
    }

    #[test]
    fn arithmetic_is_that_of_whole_microseconds(
        one in micros(),
        other in micros(),
        numerator: u32,
        denominator: u32,
    ) {
        let most = u128::from(Micros::MAX.as_micros());
        let (a, b) = (Micros::from_u64(one), Micros::from_u64(other));
        let (x, y) = (u128::from(a.as_micros()), u128::from(b.as_micros()));
        let encoded = |exact: u128| Micros::from_u64(exact.min(most) as u64);
        prop_assert_eq!(a.saturating_add(b), encoded(x + y));
        prop_assert_eq!(a.saturating_sub(b), encoded(x.saturating_sub(y)));
        let scaled = x * u128::from(numerator) / u128::from(denominator.max(1));
        prop_assert_eq!(a.scale(numerator, denominator), encoded(scaled));
    }

    #[test]
    fn a_span_survives_the_other_types_of_time(micros in micros()) {
        let span = Micros::from_u64(micros);
        prop_assert_eq!(Micros::from_duration(span.to_duration()), span);
        prop_assert_eq!(Micros::from_nanos(span.as_nanos()), span);
        prop_assert_eq!((Instant::ZERO + span).micros_since(Instant::ZERO), span);
    }

    #[test]
    fn a_random_span_lies_between_its_ends(low in micros(), high in micros(), seed: u64) {
        let (low, high) = (low.min(high), low.max(high));
        let (low, high) = (Micros::from_u64(low), Micros::from_u64(high));
        let drawn = Micros::uniform(low, high, &mut common::seeded(seed));
        prop_assert!((low..=high).contains(&drawn), "{:?}", drawn);
    }
}

#[test]
fn a_day_and_the_longest_span_are_what_they_say() {
    let day = Micros::from_millis(86_400_000);
    assert_eq!(day.to_duration(), Duration::from_secs(86_400));
    assert_eq!(Micros::MAX.as_micros(), (1 << 37) - STEP);
    assert_eq!(Micros::from_u64(u64::MAX), Micros::MAX);
    assert_eq!(Micros::MAX.saturating_add(Micros::new(1)), Micros::MAX);
    assert_eq!(format!("{day:?}"), "86400.000000s");
    assert_eq!(size_of::<Micros>(), 4);
}

#[test]
fn a_random_span_of_hours_reaches_both_ends_of_its_range() {
    let (low, high) = (Micros::from_millis(3_600_000), Micros::from_millis(86_400_000));
    let mut rng = common::seeded(1);
    let drawn: Vec<Micros> = (0..1000).map(|_| Micros::uniform(low, high, &mut rng)).collect();
    let hours = |span: Micros| span.as_micros() / 3_600_000_000;
    assert_eq!(drawn.iter().copied().map(hours).min(), Some(1));
    assert_eq!(drawn.iter().copied().map(hours).max(), Some(23));
}
