//! The option PM in the testbed: both ends measure the losses that the links have.

use crate::common::{run, scenario};

#[test]
fn both_ends_measure_the_losses_of_the_links_under_retransmissions() {
    let lossy = [
        ("clients", "5"),
        ("exchanges", "400"),
        ("errors", "low"),
        ("errors.low.average", "0.1"),
        ("coap.pm_block", "16"),
    ];
    let record = run(&scenario("nb-iot", &lossy), "ebb", 1, 0);
    let measured = record.totals.measured.expect("both ends have the option");
    for (blocks, link) in [(measured.up, record.totals.up), (measured.down, record.totals.down)] {
        assert!(blocks.sent > link.sent * 9 / 10, "all but the first and the last block of each");
        let estimate = 1.0 - blocks.arrived as f64 / blocks.sent as f64;
        let truth = link.lost_link as f64 / link.sent as f64;
        // Five times 32 messages of about 2200 are not in these blocks; their losses differ by chance.
        assert!((estimate - truth).abs() < 0.01, "{estimate} {truth}");
        assert!((0.08..0.12).contains(&truth), "{truth}");
    }
}

#[test]
fn nothing_is_measured_and_no_byte_is_added_without_the_option() {
    let record = run(&scenario("nb-iot", &[("clients", "2"), ("exchanges", "40")]), "ebb", 1, 0);
    assert_eq!(record.totals.measured, None);
    let with = [("clients", "2"), ("exchanges", "40"), ("coap.pm_block", "64")];
    let longer = run(&scenario("nb-iot", &with), "ebb", 1, 0);
    assert!(longer.totals.up.bytes > record.totals.up.bytes);
}
