//! Classes of devices and links in a row: each class is measured by itself, and every link counts.

use crate::common::{assert_near, run};
use ebbtide_sim::record::{RunRecord, Store};
use ebbtide_sim::run::{Campaign, document};
use ebbtide_sim::scenario::{Override, Scenario, Source, parse_set};

/// A network whose links have so many bit/s, without a delay apart from those that `rest` sets.
fn source(rest: &str) -> Source {
    let text = format!(
        "name = \"x\"\ntitle = \"x\"\n{rest}\n\
         [network.up]\nrate = \"40 kbit/s\"\ndelay = \"10 ms\"\nbuffer = \"infinite\"\n\
         [network.down]\nrate = \"1 Gbit/s\"\ndelay = \"20 ms\"\nbuffer = \"infinite\"\n"
    );
    Source::new("x.toml", text)
}

fn scenario(rest: &str) -> Scenario {
    source(rest).scenario(&[]).unwrap()
}

/// What is wrong with a network.
fn refused(rest: &str) -> String {
    source(rest).scenario(&[]).unwrap_err().to_string()
}

/// Requests of 100 bytes on the wire: 28 of headers, 4 of CoAP, 6 of path, a marker, 61 of payload.
const WORKLOAD: &str = "[workload]\nkind = \"continuous\"\nexchanges = 50\n\
    request_payload = 61\nresponse_payload = 0\n[coap]\nack_timeout = \"600 s\"\n";

fn fct_s(record: &RunRecord) -> f64 {
    record.clients.iter().map(|client| client.fct.as_nanos()).max().unwrap() as f64 / 1e9
}

/// 40 clients that are always under way: their requests take the time of the tighter link, whichever
/// of the two it is, and the first of them the sum of the delays.
#[test]
fn of_two_links_in_a_row_the_tighter_one_decides_and_their_delays_add_up() {
    for (radio, tighter) in [(10_000u32, 10_000.0), (40_000, 40_000.0), (400_000, 40_000.0)] {
        let scenario = scenario(&format!(
            "{WORKLOAD}[clients]\ncount = 40\nlink = \"radio\"\n[[link]]\nname = \"radio\"\n\
             rate = \"{radio} bit/s\"\ndown_rate = \"1 Gbit/s\"\ndelay = \"30 ms\"\nbuffer = \"infinite\"\n"
        ));
        let record = run(&scenario, "default", 1, 0);
        // 2000 packets of 800 bits, and the last one's way.
        let expected = 2000.0 * 800.0 / tighter + 0.03 + 0.01 + 0.02 + 0.03;
        assert_near(fct_s(&record), expected, 0.01, &format!("{radio} bit/s"));
        let [link] = &record.totals.links[..] else { panic!("one link") };
        assert_eq!((link.name.as_str(), link.up.sent, link.up.delivered), ("radio", 2000, 2000));
        assert_eq!(link.down.delivered, 2000);
        assert_eq!(link.carried[0], (200_000, 2000 * 33));
        assert_eq!(record.totals.up.delivered, 2000);
        // One client alone takes both transmissions and all delays, fifty times.
        let alone = Scenario { clients: one(&scenario), ..scenario.clone() };
        let each = 800.0 / f64::from(radio) + 800.0 / 40_000.0 + 0.09;
        assert_near(fct_s(&run(&alone, "default", 1, 0)), 50.0 * each, 0.001, "alone");
    }
}

fn one(scenario: &Scenario) -> ebbtide_sim::scenario::Clients {
    ebbtide_sim::scenario::Clients { count: 1, ..scenario.clients.clone() }
}

/// In a tree each class passes its own branch and the trunk, there and back.
#[test]
fn in_a_tree_each_class_passes_its_own_links_only() {
    let scenario = scenario(&format!(
        "{WORKLOAD}\
         [[link]]\nname = \"street\"\nto = \"town\"\nrate = \"1 Gbit/s\"\ndelay = \"100 ms\"\nbuffer = 2000\n\
         [[link]]\nname = \"town\"\nrate = \"1 Gbit/s\"\ndelay = \"10 ms\"\nbuffer = 2000\n\
         [[link]]\nname = \"hill\"\nrate = \"1 Gbit/s\"\ndelay = \"1 ms\"\nbuffer = 2000\n\
         [[class]]\nname = \"a\"\ncount = 1\nlink = \"street\"\n\
         [[class]]\nname = \"b\"\ncount = 1\nlink = \"hill\"\n\
         [[class]]\nname = \"c\"\ncount = 1\n\
         [class.access]\ndelay = \"500 ms\"\nrate = \"8 kbit/s\"\n"
    ));
    let record = run(&scenario, "default", 1, 0);
    let sent: Vec<(&str, u64, u64)> = record
        .totals
        .links
        .iter()
        .map(|link| (link.name.as_str(), link.up.sent, link.down.sent))
        .collect();
    assert_eq!(sent, [("street", 50, 50), ("town", 50, 50), ("hill", 50, 50)]);
    // 30 ms and a transmission on the bottleneck for all; at 8 kbit/s 100 and 33 bytes take 133 ms.
    for (client, delay) in [(0, 0.22), (1, 0.002), (2, 1.0 + 0.133)] {
        let fct = record.clients[client].fct.as_nanos() as f64 / 1e9;
        assert_near(fct, 50.0 * (0.03 + 0.02 + delay), 0.05, &format!("client {client}"));
    }
    let access: Vec<_> = record.totals.classes.iter().map(|class| class.access).collect();
    assert_eq!((access[0], access[1]), (None, None));
    let (up, down) = access[2].unwrap();
    assert_eq!((up.delivered, down.delivered), (50, 50));
}

#[test]
fn a_device_s_own_link_loses_its_share_of_the_packets_and_no_one_else_s() {
    let scenario = scenario(
        "[workload]\nkind = \"continuous\"\nexchanges = 400\n[coap]\nmax_retransmit = 20\n\
         [[class]]\nname = \"near\"\ncount = 5\n\
         [[class]]\nname = \"far\"\ncount = 5\naccess = { loss = 0.2 }\n",
    );
    let record = run(&scenario, "default", 1, 0);
    let (up, down) = record.totals.classes[1].access.unwrap();
    for side in [up, down] {
        assert_near(side.lost_link as f64 / side.sent as f64, 0.2, 0.1, "loss");
    }
    for client in &record.clients {
        assert_eq!(client.retransmissions > 0, client.client >= 5, "{client:?}");
        assert_eq!(client.completed, 400);
    }
}

/// Two classes with another payload, control and workload: each has what it would have alone.
#[test]
fn classes_that_do_not_meet_have_what_each_would_have_alone() {
    let network = |classes: &str| {
        // Nothing is slow enough to make one wait for the other.
        let text = format!(
            "name = \"x\"\ntitle = \"x\"\n[workload]\nkind = \"periodic\"\nperiod = \"2 s\"\n\
             exchanges = 30\n{classes}\n[network]\nerrors = \"some\"\n\
             [network.up]\nrate = \"1 Gbit/s\"\ndelay = \"10 ms\"\nbuffer = \"infinite\"\n\
             [network.down]\nrate = \"1 Gbit/s\"\ndelay = \"20 ms\"\nbuffer = \"infinite\"\n\
             [errors.some]\nkind = \"independent\"\naverage = 0.0\n"
        );
        Source::new("x.toml", text).scenario(&[]).unwrap()
    };
    let both = network(
        "[[class]]\nname = \"a\"\ncount = 3\n\
         [[class]]\nname = \"b\"\ncount = 4\ncontrol = \"fasor\"\n\
         [class.workload]\nkind = \"continuous\"\nexchanges = 7\nresponse_payload = 100\n",
    );
    let record = run(&both, "default", 1, 0);
    let alone = run(&network("[clients]\ncount = 3\n"), "default", 1, 0);
    assert_eq!(record.clients[..3], alone.clients[..]);
    let [a, b] = &record.totals.classes[..] else { panic!("two classes") };
    assert_eq!((a.name.as_str(), a.first, a.clients), ("a", 0, 3));
    assert_eq!((b.name.as_str(), b.first, b.clients), ("b", 3, 4));
    assert_eq!(a.delivery, alone.totals.delivery);
    assert_eq!((&a.rtt, &a.durations), (&alone.totals.rtt, &alone.totals.durations));
    for client in &record.clients[3..] {
        assert_eq!((client.completed, client.payload_bytes), (7, 700));
    }
    let counted = |histogram: &ebbtide_sim::record::SparseHistogram| -> u64 {
        histogram.0.iter().map(|(_, count)| count).sum()
    };
    assert_eq!(counted(&b.durations), 28);
    assert_eq!(counted(&record.totals.durations), 90 + 28);
}

#[test]
fn results_have_a_column_with_the_class_and_the_verdict_speaks_of_each() {
    let source = ebbtide_sim::scenario::load("two-bottlenecks").unwrap();
    let axes = ["meters=10", "panels=3", "exchanges=4"].map(|text| parse_set(text).unwrap());
    let cc = ["default", "fasor"].map(str::to_owned).to_vec();
    let campaign = Campaign::plan(source, axes.to_vec(), cc, Some(2), None).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let store = Store::open(folder.path()).unwrap();
    let results = campaign.run(Some(&store), None, &()).unwrap();
    let read = campaign.run(Some(&store), None, &()).unwrap();
    assert_eq!(read.reused, 4);
    for ((_, one), (_, other)) in results.cells.iter().zip(&read.cells) {
        assert_eq!(format!("{:?}", one.cell), format!("{:?}", other.cell), "what files hold");
    }
    let document = document(&campaign, &results);
    for cell in document["cells"].as_array().unwrap() {
        let classes = cell["classes"].as_array().unwrap();
        let asked: Vec<(&str, u64)> = classes
            .iter()
            .map(|class| (class["class"].as_str().unwrap(), class["asked"].as_u64().unwrap()))
            .collect();
        assert_eq!(asked, [("meters", 2 * 10 * 4), ("panels", 2 * 3 * 10)]);
        assert_eq!(cell["asked"].as_u64().unwrap(), 80 + 60);
        assert_eq!(cell["links"][0]["name"], "radio");
    }
    let sentences = document["settings"][0]["classes"].as_array().unwrap();
    assert!(sentences.iter().all(|class| !class["sentence"].as_str().unwrap().is_empty()));
    use parquet::file::reader::{FileReader, SerializedFileReader};
    let file = std::fs::read_dir(folder.path().join("runs")).unwrap().next().unwrap().unwrap();
    let reader = SerializedFileReader::new(std::fs::File::open(file.path()).unwrap()).unwrap();
    let rows = reader.get_row_iter(None).unwrap().map(|row| row.unwrap().to_string());
    let meters = rows.filter(|row| row.contains("class: \"meters\"")).count();
    assert_eq!(meters, 10);
}

#[test]
fn keys_of_classes_and_links_are_set_by_name() {
    let source = ebbtide_sim::scenario::load("two-bottlenecks").unwrap();
    let set = |key: &str, value: &str| {
        source.scenario(&[Override { key: key.into(), value: value.into() }])
    };
    let changed = set("class.panels.workload.period", "3 s").unwrap();
    let panels = &changed.classes()[1];
    assert_eq!(
        (panels.scenario.workload.clocked().unwrap().period.0, panels.first),
        (3_000_000_000, 60)
    );
    assert_eq!(set("link.radio.loss", "0.1").unwrap().link[0].loss, 0.1);
    let error = set("class.panel.count", "3").unwrap_err().to_string();
    assert!(error.contains("did you mean 'panels'?"), "{error}");
    let error = set("class.panels.count", "0").unwrap_err().to_string();
    assert!(error.contains("--set: class.panels.count=0") && error.contains("1 to"), "{error}");
}

#[test]
fn an_impossible_class_is_refused_by_file_line_and_name() {
    let class = |rest: &str| format!("{WORKLOAD}[[class]]\nname = \"a\"\n{rest}\n");
    let link = |name: &str, to: &str| {
        format!("[[link]]\nname = \"{name}\"\nto = \"{to}\"\nrate = \"1 kbit/s\"\nbuffer = 100\n")
    };
    // The class begins in line 10, and its keys follow.
    for (rest, expected) in [
        (class("count = 0"), "x.toml:12: class.a.count: must be from 1 to 1000000"),
        (class("cuont = 3"), "did you mean 'count'?"),
        (class("count = 1\ncontrol = \"fasr\""), "x.toml:13: class.a.control"),
        (
            class("count = 1\nlink = \"radoi\"") + &link("radio", "bottleneck"),
            "did you mean 'radio'?",
        ),
        (
            class("count = 1\n[class.workload]\nkind = \"mixed\""),
            "x.toml:14: class.a.workload.kind",
        ),
        (
            class("count = 1\n[class.workload]\nexchanges = 0"),
            "x.toml:14: class.a.workload.exchanges",
        ),
        (
            class("count = 1\n[class.workload]\nrequest_payload = 5000"),
            "class.a.workload.request_payload",
        ),
        (
            class("count = 1\n[class.access]\nloss = 1.5"),
            "x.toml:14: class.a.access.loss: must be from 0 to 1",
        ),
        (
            class("count = 1\n[class.access]\nbuffer = 3"),
            "class.a.access.buffer: must hold at least one packet",
        ),
        (
            class("count = 1") + &class("count = 2")[WORKLOAD.len()..],
            "class.a.name: is the name of an earlier class",
        ),
        (format!("{WORKLOAD}[[class]]\nname = \"a b\"\ncount = 1\n"), "letters, digits"),
        (
            class("count = 2") + "[clients]\ncount = 3\n",
            "clients.count: is the number of devices of all classes, 2",
        ),
        (
            class("count = 2") + &link("radio", "bottleneck"),
            "link.radio: nothing is attached to this link",
        ),
        (
            class("count = 2\nlink = \"p\"") + &link("p", "q") + &link("q", "p"),
            "link.p.to: leads in a circle: p, q and again p",
        ),
        (
            class("count = 2\nlink = \"p\"") + &link("p", "p"),
            "link.p.to: leads in a circle: p and again p",
        ),
        (
            class("count = 2\nlink = \"p\"") + &link("p", "qq"),
            "there is no [[link]] with the name 'qq'; there are p, bottleneck",
        ),
        (class("count = 2") + &link("bottleneck", "bottleneck"), "link.bottleneck.name"),
        (
            class("count = 2\nlink = \"p\"")
                + &link("p", "bottleneck")
                + "[link.queue]\nkind = \"codel\"\ntarget = 0\n",
            "link.p.queue.target",
        ),
    ] {
        let error = refused(&rest);
        assert!(error.contains(expected), "{error}\nexpected: {expected}");
        assert!(error.starts_with("x.toml"), "{error}");
    }
}

#[test]
fn the_sentence_on_drops_is_about_the_bottleneck_and_the_clients_packets() {
    let rest = format!(
        "{WORKLOAD}max_retransmit = 1\n[clients]\ncount = 5\nlink = \"radio\"\n\
         [[link]]\nname = \"radio\"\nrate = \"10 kbit/s\"\nbuffer = 4321\n\
         [[cross]]\nname = \"video\"\nrate = \"200 kbit/s\"\npacket = 300\n"
    );
    let text = source(&rest).text.replacen("buffer = \"infinite\"", "buffer = 987", 1);
    let text = text.replace("ack_timeout = \"600 s\"", "ack_timeout = \"1 s\"");
    let source = Source::new("x.toml", text);
    let campaign =
        Campaign::plan(source, Vec::new(), vec!["default".to_owned()], Some(1), None).unwrap();
    let results = campaign.run(None, None, &()).unwrap();
    let cell = &results.cells[0].1.cell;
    let (_, cross) = &cell.cross[0];
    let sent = cell.packets.up.sent + cell.packets.down.sent - cross.sent;
    let dropped = cell.packets.up.dropped_queue - cross.dropped_queue;
    assert!(dropped > 0 && cell.links[0].up.dropped_queue == 0, "{cell:?}");
    assert_near(cell.outcome.dropped, dropped as f64 / sent as f64, 1e-9, "share of the clients");
    let verdict = ebbtide_sim::result::judge_cells([cell].into_iter(), Default::default());
    assert!(verdict.sentence.contains("'s buffer of 987 bytes drops"), "{}", verdict.sentence);
}

#[test]
fn a_client_takes_its_time_between_requests_and_not_before_the_first() {
    let rest = "[workload]\nkind = \"continuous\"\nexchanges = 2\n[clients]\ncount = 3\nprocessing = \"10 s\"\n";
    let campaign =
        Campaign::plan(source(rest), Vec::new(), vec!["default".to_owned()], Some(1), None)
            .unwrap();
    let results = campaign.run(None, None, &()).unwrap();
    let cell = &results.cells[0].1.cell;
    assert!(cell.fct_limit_s > 10.0 && cell.fct_limit_s < 10.2, "{}", cell.fct_limit_s);
    assert!(cell.multiple().unwrap() >= 1.0, "{:?}", cell.multiple());
}

#[test]
fn a_class_with_its_own_control_is_judged_without_one_to_use() {
    let rest = format!(
        "{WORKLOAD}[[class]]\nname = \"a\"\ncount = 2\n\
         [[class]]\nname = \"b\"\ncount = 2\ncontrol = \"default\"\n"
    );
    let cc = ["default", "cocoa"].map(str::to_owned).to_vec();
    let campaign = Campaign::plan(source(&rest), Vec::new(), cc, Some(2), None).unwrap();
    let results = campaign.run(None, None, &()).unwrap();
    let cells = results.cells.iter().map(|(_, result)| &result.cell);
    let classes = ebbtide_sim::result::judge_classes(cells, Default::default());
    assert!(classes[0].1.choose.is_some());
    assert_eq!(classes[1].1.choose, None);
    let sentence = &classes[1].1.sentence;
    assert!(sentence.starts_with("Class b always uses default; "), "{sentence}");
    assert!(!sentence.contains("Use "), "{sentence}");
}
