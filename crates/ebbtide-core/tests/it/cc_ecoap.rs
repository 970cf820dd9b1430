//! `ecoap` and `ecoap-rpl` beside the authors' programs, and what these do not show.

use crate::common::path::Path;

/// What the programs of github.com/ECOAP/examples at 8f67b93 (`ecoap_local_control_simple_cc.py`,
/// `…_rpl_cc.py`) set for their devices, in milliseconds: a round trip, or `-` for an exchange
/// without an answer, and then the four timeouts with the lowest draws and with the highest; for
/// `ecoap-rpl` minimum, maximum and growth before them.
const SERIES: &str = include_str!("ecoap_series.txt");
/// The program cuts its average to whole milliseconds with each round trip, and keeps nine tenths of that error.
const TOLERANCE_MS: f64 = 10.0;

fn lines(control: &str) -> impl Iterator<Item = Vec<&str>> {
    SERIES
        .lines()
        .map(|line| line.split(' ').collect::<Vec<_>>())
        .filter(move |words| words[0] == control)
        .map(|words| words[1..].to_vec())
}

/// Compares four timeouts in seconds with the program's in milliseconds.
fn assert_close(ours: &[f64], theirs: &[&str], tolerance: f64, line: &[&str]) {
    for (number, (ours, theirs)) in (1..).zip(ours.iter().zip(theirs)) {
        let apart = (ours * 1e3 - theirs.parse::<f64>().unwrap()).abs();
        assert!(apart <= tolerance * f64::from(number), "{line:?}, try {number}: ours {ours}");
    }
}

#[test]
fn the_timeouts_of_ecoap_are_those_of_its_program() {
    let (mut lowest, mut highest) = (Path::new("ecoap"), Path::new("ecoap").drawing_highest());
    let mut compared = 0;
    for line in lines("ecoap") {
        for path in [&mut lowest, &mut highest] {
            match line[0].parse::<f64>() {
                Ok(milliseconds) => path.sample(milliseconds / 1e3, 0),
                Err(_) => drop(path.unanswered()),
            }
        }
        assert_close(&lowest.unanswered(), &line[1..5], TOLERANCE_MS, &line);
        assert_close(&highest.unanswered(), &line[5..], 2.0 * TOLERANCE_MS, &line);
        compared += 1;
    }
    assert_eq!(compared, 121);
}

#[test]
fn the_timeouts_of_ecoap_rpl_are_those_of_its_program() {
    let mut compared = 0;
    for line in lines("ecoap-rpl") {
        let text = format!("ecoap-rpl:min={}ms:max={}ms:growth={}", line[0], line[1], line[2]);
        assert_close(&Path::new(&text).unanswered(), &line[3..7], 1.0, &line);
        assert_close(&Path::new(&text).drawing_highest().unanswered(), &line[7..], 1.0, &line);
        compared += 1;
    }
    assert_eq!(compared, 5);
}

#[test]
fn until_an_exchange_ends_ecoap_waits_as_rfc_7252() {
    assert_eq!(Path::new("ecoap").unanswered(), [2.0, 4.0, 8.0, 16.0, 32.0]);
    assert_eq!(Path::new("ecoap").drawing_highest().next_timeout(), 3.0);
}

#[test]
fn a_round_trip_does_not_change_the_range_of_ecoap_rpl() {
    let mut path = Path::new("ecoap-rpl").drawing_highest();
    path.sample(0.1, 0);
    assert_eq!(path.next_timeout(), 3.0);
}

#[test]
fn a_maximum_below_the_minimum_leaves_the_minimum() {
    let mut path = Path::new("ecoap-rpl:min=5s:max=2s").drawing_highest();
    assert_eq!(path.next_timeout(), 5.0);
}
