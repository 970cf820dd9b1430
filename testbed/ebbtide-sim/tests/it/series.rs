//! Series over time: what lies between two packets as well.

use ebbtide_sim::run::Campaign;
use ebbtide_sim::scenario::Source;

/// 40 clients that all send 100 bytes at once every 100 s, on a link of 8 kbit/s: each time the
/// queue fills at once and is empty 4 s later.
const SCENARIO: &str = "name = \"x\"\ntitle = \"x\"\n\
    [network.up]\nrate = \"8 kbit/s\"\ndelay = \"0 s\"\nbuffer = \"infinite\"\n\
    [network.down]\nrate = \"1 Gbit/s\"\ndelay = \"0 s\"\nbuffer = \"infinite\"\n\
    [clients]\ncount = 40\n[coap]\nack_timeout = \"600 s\"\n\
    [workload]\nkind = \"synchronised\"\nexchanges = 3\nperiod = \"100 s\"\n\
    request_payload = 61\nresponse_payload = 0\n";

#[test]
fn a_queue_drains_at_the_rate_of_the_link_and_is_empty_until_the_next_packets() {
    let source = Source::new("x.toml", SCENARIO);
    let cc = vec!["default".to_owned()];
    let campaign = Campaign::plan(source, Vec::new(), cc, Some(1), Some(1)).unwrap();
    let results = campaign.run(None, None, &()).unwrap();
    let queue = &results.cells[0].1.cell.series[0].queue_up;
    // A regular grid from the beginning.
    let width = queue[1].0 - queue[0].0;
    for (place, (at, _)) in queue.iter().enumerate() {
        assert!((at - place as f64 * width).abs() < 1e-9, "{at}");
    }
    let peak = queue.iter().map(|(_, bytes)| *bytes).fold(0.0, f64::max);
    assert!((3800.0..=4000.0).contains(&peak), "{peak}");
    for (at, bytes) in queue {
        let since = at % 100.0;
        // Between the bursts nothing waits; a stretch that has a packet shows its longest queue.
        if (4.0..100.0 - width).contains(&since) {
            assert_eq!(*bytes, 0.0, "at {at} s");
        }
        if (width..3.5).contains(&since) {
            let expected = 4000.0 - 1000.0 * since;
            assert!((bytes - expected).abs() < 200.0, "{bytes} at {at} s, expected {expected}");
        }
    }
    assert_eq!(queue.last().unwrap().1, 0.0);
}
