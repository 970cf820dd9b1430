//! TCP that shares the bottleneck with the clients, and packets that are lost on purpose.

use crate::common::{assert_near, controls, run, scenario};
use ebbtide_core::time::Instant;
use ebbtide_sim::judge::{Demand, figures};
use ebbtide_sim::net::{Delay, Direction, Fate, Link, Loss, LossModel, TargetedLoss};
use ebbtide_sim::random::Streams;
use ebbtide_sim::record::{BackgroundFlow, RunRecord};
use ebbtide_sim::run::{Details, Recorder, simulate_with};
use ebbtide_sim::scenario::{Override, Source, load};

/// For 50 s.
const TWICE_A_SECOND: [(&str, &str); 3] =
    [("workload", "periodic"), ("exchanges", "100"), ("period", "500 ms")];

/// A client that asks twice a second for 50 s, and what else is set.
fn beside(settings: &[(&str, &str)]) -> RunRecord {
    let mut all = vec![("clients", "1")];
    all.extend(TWICE_A_SECOND);
    all.extend(settings);
    run(&scenario("rcoap-wifi", &all), "default", 1, 0)
}

fn rate(flow: &BackgroundFlow, bytes: u64) -> f64 {
    bytes as f64 * 8e9 / (flow.end_ns - flow.start_ns) as f64
}

#[test]
fn a_load_within_the_capacity_is_carried_at_the_offered_rate() {
    for offered in [20_000.0, 100_000.0, 400_000.0] {
        let text = format!("{} bit/s", offered as u64);
        let record = beside(&[
            ("network.background.flows", "1"),
            ("network.background.rate", &text),
            ("network.background.start", "2 s"),
        ]);
        let [flow] = record.totals.background[..] else { panic!("one flow") };
        assert_eq!(flow.start_ns, 2_000_000_000);
        assert_near(rate(&flow, flow.offered), offered, 0.02, "offered");
        assert_near(rate(&flow, flow.delivered), offered, 0.03, "delivered");
        assert_eq!((flow.retransmissions, flow.unnecessary), (0, 0));
        assert_eq!(record.clients[0].completed, 100);
    }
}

#[test]
fn a_flow_that_offers_more_than_the_link_fills_it_and_one_that_stops_is_delivered_whole() {
    let record = beside(&[
        ("network.background.flows", "1"),
        ("network.background.rate", "5 Mbit/s"),
        ("buffer", "infinite"),
    ]);
    let [flow] = record.totals.background[..] else { panic!("one flow") };
    // A segment carries 536 of 576 bytes; the client's 106 twice a second take little.
    let share = rate(&flow, flow.delivered) / (1e6 * 536.0 / 576.0);
    assert!((0.93..1.0).contains(&share), "{share}");
    assert!(flow.offered > 4 * flow.delivered);
    let record = beside(&[
        ("network.background.flows", "3"),
        ("network.background.rate", "150 kbit/s"),
        ("network.background.stagger", "5 s"),
        ("network.background.stop", "25 s"),
    ]);
    for (index, flow) in record.totals.background.iter().enumerate() {
        let seconds = 25 - 5 * index as u64;
        // A write every 500 bytes, the first one at once.
        assert_eq!(flow.offered, (150_000 * seconds / 8).div_ceil(500) * 500, "{flow:?}");
        assert_eq!(flow.delivered, flow.offered);
        assert!(flow.end_ns < 25_500_000_000, "{flow:?}");
    }
}

/// Counts the packets of the client at the bottleneck, and those that its queue drops.
#[derive(Default)]
struct OfTheClient {
    sent: u64,
    dropped: u64,
}

impl Recorder for OfTheClient {
    fn at_link(&mut self, _: Instant, packet: &Details<'_>) {
        if packet.tagged.client == 0 {
            self.sent += 1;
            self.dropped += u64::from(packet.fate == Fate::Dropped);
        }
    }
}

#[test]
fn the_verdict_counts_the_drops_of_the_clients_only() {
    let mut settings = vec![("clients", "1"), ("buffer", "2500")];
    settings.extend(TWICE_A_SECOND);
    settings.extend([("network.background.flows", "3"), ("network.background.rate", "5 Mbit/s")]);
    let scenario = scenario("rcoap-wifi", &settings);
    let control = controls(&scenario, "default");
    let (record, own) = simulate_with(&scenario, &control, 1, 0, OfTheClient::default()).unwrap();
    let of_all = record.totals.up.dropped_queue + record.totals.down.dropped_queue;
    assert!(of_all > own.dropped + 20, "TCP fills the buffer: {of_all} drops");
    let dropped = figures(&[record], &Demand::default()).dropped;
    let expected = own.dropped as f64 / own.sent as f64;
    assert!((dropped - expected).abs() < 1e-3, "{dropped}, not {expected}");
}

#[test]
fn flows_delay_the_clients_by_the_queue_that_they_keep() {
    let median = |flows: &str| {
        let record = beside(&[
            ("network.background.flows", flows),
            ("network.background.rate", "5 Mbit/s"),
            ("buffer", "57600"),
        ]);
        let durations = &record.totals.durations.0;
        let half: u64 = durations.iter().map(|(_, count)| count).sum::<u64>() / 2;
        let mut below = 0;
        let median = durations.iter().find(|(_, count)| {
            below += count;
            below > half
        });
        let overflows = record.totals.up.dropped_queue;
        (median.unwrap().0 as f64 / 1e6, overflows, record)
    };
    let (alone, _, _) = median("0");
    let (shared, dropped, record) = median("2");
    assert_near(alone, 0.130, 0.02, "an idle round trip");
    // A full buffer is 461 ms long; Reno leaves it half full at least.
    assert!((0.25..0.65).contains(&shared), "{shared}");
    assert!(dropped > 0, "two flows that offer ten times the rate fill the buffer");
    assert!(record.totals.background.iter().all(|flow| flow.retransmissions > 0));
}

#[test]
fn flows_go_by_wire_or_by_radio() {
    let frames = |wireless: &str| {
        let record = beside(&[
            ("network.background.flows", "1"),
            ("network.background.rate", "100 kbit/s"),
            ("network.background.wireless", wireless),
        ]);
        record.totals.wifi.unwrap().total().frames.accepted
    };
    let (wired, radio) = (frames("false"), frames("true"));
    assert_eq!(wired, 200, "the client's requests and their responses");
    // 50 s x 100 kbit/s are 1166 full segments.
    assert!(radio > 200 + 1166, "{radio}");
}

#[test]
fn the_same_flows_run_without_a_wifi_cell() {
    let settings = [
        ("clients", "10"),
        ("exchanges", "20"),
        ("network.background.flows", "2"),
        ("network.background.rate", "20 kbit/s"),
    ];
    let (one, other) = (
        run(&scenario("nb-iot", &settings), "fasor", 3, 1),
        run(&scenario("nb-iot", &settings), "fasor", 3, 1),
    );
    assert_eq!(one, other);
    assert_eq!(one.totals.background.len(), 2);
    assert!(one.totals.background.iter().all(|flow| flow.delivered > 10_000));
    assert!(one.clients.iter().all(|client| client.completed == 20));
}

/// Which packets upwards were lost: client, and its how-many-eth it was.
#[derive(Default)]
struct Lost {
    sent: [u32; 4],
    lost: Vec<(u32, u32, Instant)>,
}

impl Recorder for Lost {
    fn at_link(&mut self, _: Instant, packet: &Details<'_>) {
        if packet.direction == Direction::Up {
            let client = packet.tagged.client;
            let number = self.sent[client as usize];
            self.sent[client as usize] += 1;
            if let Fate::Lost { left } = packet.fate {
                self.lost.push((client, number, left));
            }
        }
    }
}

#[test]
fn just_the_packets_that_are_named_are_lost() {
    let drops = "[1 of client 1 skipping 10, 2 of client 0 after 20 s]";
    let settings = [&TWICE_A_SECOND[..], &[("network.up.drops", drops)]].concat();
    let scenario = scenario("rcoap-wifi", &settings);
    let (record, seen) =
        simulate_with(&scenario, &controls(&scenario, "default"), 1, 0, Lost::default()).unwrap();
    let of = |client: u32| seen.lost.iter().filter(move |lost| lost.0 == client);
    assert_eq!(of(1).map(|lost| lost.1).collect::<Vec<_>>(), [10]);
    let pair: Vec<_> = of(0).map(|lost| (lost.1, lost.2)).collect();
    assert_eq!(pair.len(), 2);
    assert_eq!(pair[1].0, pair[0].0 + 1, "in a row");
    assert!(pair.iter().all(|(_, left)| left.as_nanos() >= 20_000_000_000));
    assert!(pair[0].1.as_nanos() < 20_600_000_000, "the first one after that");
    assert_eq!((of(2).count(), record.totals.up.lost_link), (0, 3));
    assert!(record.clients.iter().all(|client| client.completed == 100));
}

#[test]
fn targeted_losses_count_only_matching_packets_and_leave_the_luck_of_others_alone() {
    let link = |targets: &[TargetedLoss]| {
        let stream = |what| Streams::new(5, 0).stream(what);
        let model = LossModel::Independent(ebbtide_sim::random::Probability::new(0.2));
        let loss = Loss::new(model, stream("packets"), stream("states"));
        let mut link = Link::new(1_000_000, None, Delay::fixed(0), loss, stream("delay"));
        link.add_losses(targets.iter().copied());
        let lost = (0..1000u32).filter(|n| {
            let at = Instant::from_nanos(u64::from(*n) * 1_000_000);
            matches!(link.send_of(Some(n % 2), at, 10), Fate::Lost { .. })
        });
        lost.collect::<Vec<_>>()
    };
    let chance = link(&[]);
    let aim = TargetedLoss {
        count: 3,
        client: Some(1),
        skip: 5,
        after: Instant::from_nanos(100_000_000),
    };
    let mut expected: Vec<u32> = chance.iter().copied().chain([111, 113, 115]).collect();
    expected.sort_unstable();
    expected.dedup();
    assert_eq!(link(&[aim]), expected);
}

#[test]
fn impossible_background_traffic_is_refused_by_its_key() {
    let changes = |settings: &[(&str, &str)]| -> Vec<Override> {
        let change = |(key, value): &(&str, &str)| Override {
            key: (*key).to_owned(),
            value: (*value).to_owned(),
        };
        settings.iter().map(change).collect()
    };
    let refused = |name: &str, settings: &[(&str, &str)], parts: &[&str]| {
        let message = load(name).unwrap().scenario(&changes(settings)).unwrap_err().to_string();
        assert!(parts.iter().all(|part| message.contains(part)), "{message}");
    };
    let flows = ("network.background.flows", "2");
    let wifi = |key: &str, value: &str, parts: &[&str]| {
        refused("rcoap-wifi", &[flows, (&format!("network.background.{key}"), value)], parts);
    };
    wifi("rate", "2 Gbit/s", &["rate", "1 bit/s to 1 Gbit/s"]);
    wifi("write", "0", &["write", "1 to 16384 bytes"]);
    wifi("window", "100", &["window", "4096 to 16777216 bytes"]);
    wifi("flows", "1001", &["flows", "at most 1000"]);
    let many = ("network.background.flows", "1000");
    let window = |bytes| [many, ("network.background.window", bytes)];
    refused(
        "rcoap-wifi",
        &window("268436"),
        &["background.window=268436: must be at most 268435 bytes", "background.flows = 1000"],
    );
    assert!(load("rcoap-wifi").unwrap().scenario(&changes(&window("268435"))).is_ok());
    let late = [flows, ("network.background.start", "9 s"), ("network.background.stop", "9 s")];
    refused("rcoap-wifi", &late, &["stop", "after the last flow begins"]);
    refused("nb-iot", &[flows, ("network.background.wireless", "true")], &["[network.wifi]"]);
    refused("nb-iot", &[flows, ("network.mtu", "99")], &["100 bytes", "network.mtu"]);
    refused("lln-cloud", &[flows], &["network.mesh"]);
    let drops = |value: &str, parts: &[&str]| {
        refused("rcoap-wifi", &[("network.up.drops", value)], parts);
    };
    drops("[some]", &["'some'", "2 of client 0 after 20 s"]);
    drops("[0]", &["network.up.drops", "1 packet at least"]);
    drops("[1 of client 3]", &["client that does not exist", "0 to 2"]);
}

/// A wired network of one client whose links carry 1 Mbit/s each way, and what else there is.
fn wired(rest: &str) -> RunRecord {
    let text = format!(
        "name = \"x\"\ntitle = \"x\"\n[workload]\nkind = \"periodic\"\nperiod = \"500 ms\"\n\
         exchanges = 100\n[network.up]\nrate = \"1 Mbit/s\"\ndelay = \"10 ms\"\nbuffer = 20000\n\
         [network.down]\nrate = \"1 Mbit/s\"\ndelay = \"10 ms\"\nbuffer = 20000\n{rest}"
    );
    run(&Source::new("x.toml", text).scenario(&[]).unwrap(), "default", 1, 0)
}

const ONE: &str = "[clients]\ncount = 1\n";
const RADIO: &str = "[[link]]\nname = \"radio\"\nrate = \"200 kbit/s\"\nbuffer = 20000\n\
    [clients]\ncount = 1\nlink = \"radio\"\n";

#[test]
fn flows_from_the_server_fill_the_link_to_the_devices() {
    let flows = "[network.background]\nflows = 1\nrate = \"5 Mbit/s\"\ndirection = \"down\"\n";
    let record = wired(&format!("{ONE}{flows}"));
    let [flow] = record.totals.background[..] else { panic!("one flow") };
    // Segments of 1280 bytes carry 1240 of payload.
    let share = rate(&flow, flow.delivered) / (1e6 * 1240.0 / 1280.0);
    assert!((0.9..1.0).contains(&share), "{share}");
    assert!(record.totals.down.busy_ns > 5 * record.totals.up.busy_ns);
    // At a link before the bottleneck they share that link, too.
    let record = wired(&format!("{RADIO}{flows}link = \"radio\"\n"));
    let [flow] = record.totals.background[..] else { panic!("one flow") };
    let share = rate(&flow, flow.delivered) / (2e5 * 1240.0 / 1280.0);
    assert!((0.85..1.0).contains(&share), "{share}");
}

/// Segments that a flow brings within 30 s and more over a path of 100 ms each way, with a window of a hundred and
/// after 5 s maybe a loss; and its windows, one each round trip.
fn over_a_long_path(congestion: &str, loss: bool) -> (f64, f64) {
    let text = format!(
        "name = \"x\"\ntitle = \"x\"\n[clients]\ncount = 1\n[workload]\nkind = \"periodic\"\nperiod = \"10 s\"\n\
         exchanges = 4\n[network.up]\nrate = \"1 Gbit/s\"\ndelay = \"100 ms\"\nbuffer = \"infinite\"\ndrops = [{}]\n\
         [network.down]\nrate = \"1 Gbit/s\"\ndelay = \"100 ms\"\nbuffer = \"infinite\"\n\
         [network.background]\nflows = 1\nrate = \"100 Mbit/s\"\nwrite = 16384\nwindow = {}\n\
         [control.tcp]\ncongestion = \"{congestion}\"\n",
        if loss { "\"1 after 5 s\"" } else { "" },
        100 * 1240,
    );
    let record = run(&Source::new("x.toml", text).scenario(&[]).unwrap(), "default", 1, 0);
    let [flow] = record.totals.background[..] else { panic!("one flow") };
    assert_eq!(flow.retransmissions > 0, loss);
    (flow.delivered as f64 / 1240.0, (flow.end_ns - flow.start_ns) as f64 / 2e8)
}

#[test]
fn a_scaled_window_is_carried_each_round_trip_and_cubic_fills_it_again_as_its_curve_says() {
    let (whole, windows) = over_a_long_path("cubic", false);
    // Without a loss only the window counts.
    let missing = |congestion| whole - over_a_long_path(congestion, true).0;
    let (cubic, reno) = (missing("cubic"), missing("reno"));
    let found = format!("{whole} in {windows}; missing {cubic} and {reno}");
    // Less the rise at the beginning, of about ten round trips.
    assert!((0.92..1.0).contains(&(whole / windows / 100.0)), "{found}");
    // RFC 9438 section 4.2: C (K - t)^3 segments are missing at t, with K = cbrt(W (1 - beta) / C)
    // = 4.22 s; added up to K, over a round trip: C K^4 / 4 / 0.2 s = 158. The recovery itself costs
    // up to two windows.
    assert!((158.0..358.0).contains(&cubic), "{found}");
    // Reno lacks 50 and gains one each round trip or, with delayed acknowledgements, each second one:
    // 1250 to 2500, and the recovery, which waits for acknowledgements that are delayed as well.
    assert!((1250.0..3000.0).contains(&reno), "{found}");
}

#[test]
fn cross_traffic_goes_at_its_rate_on_its_link_alone() {
    let cross =
        "[[cross]]\nname = \"video\"\nlink = \"radio\"\nrate = \"80 kbit/s\"\npacket = 1000\n";
    let record = wired(&format!("{RADIO}{cross}"));
    let [video] = &record.totals.cross[..] else { panic!("one source") };
    let seconds = record.totals.done_ns as f64 / 1e9;
    assert_near(video.bytes as f64 * 8.0 / seconds, 80_000.0, 0.01, "rate");
    assert_eq!((video.name.as_str(), video.delivered), ("video", video.sent));
    assert_eq!(record.totals.links[0].up.sent, video.sent + 100);
    assert_eq!((record.totals.up.sent, record.clients[0].completed), (100, 100));
}

#[test]
fn cross_traffic_that_pauses_sends_for_its_share_of_the_time() {
    let cross = "[[cross]]\nname = \"others\"\ndirection = \"down\"\nrate = \"400 kbit/s\"\n\
        packet = 100\non = \"100 ms\"\noff = \"300 ms\"\n";
    let record = wired(&format!("{ONE}{cross}"));
    let seconds = record.totals.done_ns as f64 / 1e9;
    let rate = record.totals.cross[0].bytes as f64 * 8.0 / seconds;
    // 125 periods of 400 ms: a quarter of the time, give or take.
    assert_near(rate, 100_000.0, 0.2, "rate");
    assert_eq!(record.totals.down.sent, record.totals.cross[0].sent + 100);
    assert_eq!(record.totals.up.sent, 100);
}

#[test]
fn more_cross_traffic_than_the_link_carries_fills_its_buffer() {
    let cross = "[[cross]]\nname = \"flood\"\nrate = \"4 Mbit/s\"\npacket = 1200\n";
    let record = wired(&format!("{ONE}{cross}"));
    let [flood] = &record.totals.cross[..] else { panic!("one source") };
    assert_near(flood.dropped_queue as f64 / flood.sent as f64, 0.75, 0.02, "dropped");
    // Short packets still find room behind long ones, and wait for the whole buffer: 160 ms.
    let longest = record.totals.rtt.0.iter().map(|(micros, _)| *micros).max().unwrap();
    assert!((150_000..250_000).contains(&longest), "{longest}");
}

#[test]
fn impossible_cross_traffic_is_refused_by_name() {
    let refused = |cross: &str| {
        let text = format!("{}\n{cross}", load("nb-iot").unwrap().text);
        Source::new("x.toml", text).scenario(&[]).unwrap_err().to_string()
    };
    let cross = |rest: &str| format!("[[cross]]\nname = \"a\"\nrate = \"1 kbit/s\"\n{rest}\n");
    for (rest, expected) in [
        (
            "link = \"up\"",
            "cross.a.link: there is no [[link]] with the name 'up'; there are bottleneck",
        ),
        ("packet = 20", "cross.a.packet: must be from 29 to 296 bytes"),
        ("packet = 200\non = \"1 s\"", "on and off"),
        ("packet = 200\nstart = \"2 s\"\nstop = \"1 s\"", "cross.a.stop: must be after start"),
        ("direction = \"sideways\"", "up"),
    ] {
        let error = refused(&cross(rest));
        assert!(error.contains(expected), "{error}");
    }
}
