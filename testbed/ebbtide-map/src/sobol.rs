//! Sobol's sequence: points that fill a cube evenly, whatever their number.
//!
//! The first n points of a longer map equal those of a shorter one, so a map can be extended
//! without losing results. Direction numbers by S. Joe and F. Y. Kuo (2008).

use ebbtide_sim::random::Streams;
use rand_core::Rng;

/// The number of coordinates of a point.
pub(super) const DIMENSIONS: usize = 18;

/// Degree and coefficients of a primitive polynomial, and the first direction numbers, of every
/// coordinate but the first.
const DIRECTIONS: [(u32, u32, &[u32]); DIMENSIONS - 1] = [
    (1, 0, &[1]),
    (2, 1, &[1, 3]),
    (3, 1, &[1, 3, 1]),
    (3, 2, &[1, 1, 1]),
    (4, 1, &[1, 1, 3, 3]),
    (4, 4, &[1, 3, 5, 13]),
    (5, 2, &[1, 1, 5, 5, 17]),
    (5, 4, &[1, 1, 5, 5, 5]),
    (5, 7, &[1, 1, 7, 11, 19]),
    (5, 11, &[1, 1, 5, 1, 1]),
    (5, 13, &[1, 1, 1, 3, 11]),
    (5, 14, &[1, 3, 5, 5, 31]),
    (6, 1, &[1, 3, 3, 9, 7, 49]),
    (6, 13, &[1, 1, 1, 15, 21, 21]),
    (6, 16, &[1, 3, 1, 13, 27, 49]),
    (6, 19, &[1, 1, 1, 15, 7, 5]),
    (6, 22, &[1, 3, 1, 15, 13, 25]),
];

/// A point; each coordinate is a fraction of 2^32.
pub(super) type Point = [u32; DIMENSIONS];

/// The sequence with a digital shift derived from the seed. Another seed gives another draw of the
/// same evenness.
pub(super) struct Sobol {
    directions: [[u32; 32]; DIMENSIONS],
    shift: Point,
}

impl Sobol {
    /// The sequence of a stratum; each has a shift of its own.
    pub(super) fn new(seed: u64, stratum: usize) -> Self {
        let name = match stratum {
            0 => "map/shift".to_owned(),
            more => format!("map/shift/{more}"),
        };
        let mut rng = Streams::new(seed, 0).stream(&name);
        let mut shift = Point::default();
        shift.fill_with(|| rng.next_u32());
        let mut directions = [[0; 32]; DIMENSIONS];
        for (bit, direction) in directions[0].iter_mut().enumerate() {
            *direction = 1 << (31 - bit);
        }
        for (own, (degree, coefficients, first)) in directions[1..].iter_mut().zip(DIRECTIONS) {
            let degree = degree as usize;
            for bit in 0..32 {
                own[bit] = if bit < degree {
                    first[bit] << (31 - bit)
                } else {
                    let before = own[bit - degree];
                    (1..degree).fold(before ^ (before >> degree), |value, k| {
                        let is_set = (coefficients >> (degree - 1 - k)) & 1 == 1;
                        if is_set { value ^ own[bit - k] } else { value }
                    })
                };
            }
        }
        Self { directions, shift }
    }

    /// The point with this number, from 0.
    pub(super) fn point(&self, number: u32) -> Point {
        let gray = number ^ (number >> 1);
        let mut point = self.shift;
        for (coordinate, directions) in point.iter_mut().zip(&self.directions) {
            for (bit, direction) in directions.iter().enumerate() {
                if (gray >> bit) & 1 == 1 {
                    *coordinate ^= direction;
                }
            }
        }
        point
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_coordinate_of_the_first_2_to_the_k_points_falls_once_into_each_interval() {
        for seed in 0..3 {
            let sobol = Sobol::new(seed, seed as usize);
            for k in [1u32, 4, 8] {
                for dimension in 0..DIMENSIONS {
                    let mut seen: Vec<u32> =
                        (0..1 << k).map(|n| sobol.point(n)[dimension] >> (32 - k)).collect();
                    seen.sort_unstable();
                    let all: Vec<u32> = (0..1 << k).collect();
                    assert_eq!(seen, all, "coordinate {dimension} of 2^{k} points, seed {seed}");
                }
            }
        }
    }

    #[test]
    fn another_seed_gives_other_points() {
        assert_ne!(Sobol::new(1, 0).point(5), Sobol::new(2, 0).point(5));
        assert_ne!(Sobol::new(1, 0).point(5), Sobol::new(1, 1).point(5));
    }
}
