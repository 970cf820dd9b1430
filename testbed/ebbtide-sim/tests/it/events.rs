//! Power cuts, cells that go away and phases, compared with what can be counted by hand.

use crate::common::run;
use ebbtide_sim::judge::Percentile;
use ebbtide_sim::record::RunRecord;
use ebbtide_sim::result::judge_phases;
use ebbtide_sim::run::Campaign;
use ebbtide_sim::scenario::{Scenario, Source};

/// Devices that report every ten seconds, twelve times, over a fast link.
fn source(rest: &str) -> Source {
    let link = "rate = \"1 Mbit/s\"\ndelay = \"20 ms\"\nbuffer = \"infinite\"\n";
    let text = format!(
        "name = \"x\"\ntitle = \"x\"\n[network.up]\n{link}[network.down]\n{link}[clients]\ncount = 40\n\
         [workload]\nkind = \"periodic\"\nperiod = \"10 s\"\nexchanges = 12\ndeadline = \"1 s\"\n{rest}"
    );
    Source::new("x.toml", text)
}

fn scenario(rest: &str) -> Scenario {
    source(rest).scenario(&[]).unwrap()
}

fn refused(rest: &str) -> String {
    source(rest).scenario(&[]).unwrap_err().to_string()
}

const CUT: &str = "[[power_cut]]\nname = \"evening\"\nat = \"35 s\"\nduration = \"30 s\"\n";

#[test]
fn devices_without_power_make_no_requests_and_report_when_it_is_back() {
    // Of the instants f, f + 10 s, f + 20 s, ... exactly three lie within the 30 s without power.
    for (rest, asked) in [("", 9), ("requests = 1\n", 10), ("requests = 3\n", 12)] {
        let record = run(&scenario(&format!("{CUT}{rest}")), "default", 1, 0);
        for client in &record.clients {
            // A device that is answered while its power fails has asked, and does not get the answer.
            assert_eq!((client.asked, client.completed + client.failed), (asked, asked));
            assert!(client.failed <= 1, "{client:?}");
        }
    }
}

#[test]
fn a_share_of_one_class_loses_power_and_the_others_do_not_notice() {
    let classes = "[[class]]\nname = \"a\"\ncount = 30\n[[class]]\nname = \"b\"\ncount = 10\n";
    let rest = format!("{CUT}share = 0.5\nclass = \"a\"\n{classes}");
    let source = Source::new("x.toml", source(&rest).text.replace("count = 40\n", ""));
    let scenario = source.scenario(&[]).unwrap();
    let without_power = |record: &RunRecord| -> Vec<u32> {
        record.clients.iter().filter(|one| one.asked < 12).map(|one| one.client).collect()
    };
    let record = run(&scenario, "default", 1, 0);
    let befallen = without_power(&record);
    assert_eq!(befallen.len(), 15);
    assert!(befallen.iter().all(|client| *client < 30), "{befallen:?}");
    // The same devices under another control, others in the next replication.
    assert_eq!(without_power(&run(&scenario, "fasor-token", 1, 0)), befallen);
    assert_ne!(without_power(&run(&scenario, "default", 1, 1)), befallen);
}

#[test]
fn a_restart_forgets_the_exchange_under_way_and_the_estimates() {
    // Round trips of 8 s: at 4 s each device waits for its first answer.
    let text = source("[[power_cut]]\nname = \"reset\"\nat = \"4 s\"\n").text;
    let text = text.replace("\"20 ms\"", "\"4 s\"").replace("periodic", "continuous");
    let record = run(&Source::new("x.toml", text).scenario(&[]).unwrap(), "default", 1, 0);
    for client in &record.clients {
        assert_eq!((client.asked, client.completed, client.failed), (12, 11, 1));
        // What was sent before counts as well: the default control repeats its first message after 2 to 3 s.
        assert!(client.retransmissions > 11, "{client:?}");
    }
}

#[test]
fn a_cell_that_is_away_loses_what_is_sent_and_copies_arrive_when_it_is_back() {
    let outage = "[[cell_outage]]\nname = \"gone\"\nat = \"41 s\"\nduration = \"9 s\"\n";
    let record = run(&scenario(outage), "default", 1, 0);
    let [up, down] = [record.totals.up, record.totals.down];
    let completed: u32 = record.clients.iter().map(|client| client.completed).sum();
    assert_eq!(completed, 40 * 12, "nobody gives up within 9 s");
    // Nine tenths of the devices ask in these 9 s.
    assert!(
        (25..=40).contains(&record.clients.iter().filter(|one| one.retransmissions > 0).count())
    );
    assert_eq!(up.sent, up.delivered + up.lost_link);
    // Each copy that is lost makes one more, on either way.
    let copies: u32 = record.clients.iter().map(|client| client.retransmissions).sum();
    assert_eq!(u64::from(copies), up.lost_link + down.lost_link);
    assert!(up.lost_link >= 25, "{up:?}");
}

#[test]
fn packets_that_wait_before_an_outage_leave_after_it() {
    // One packet of 66 bytes takes 66 ms at 8 kbit/s: 40 at once leave until 2.64 s. Those that leave from 1 s to 2 s
    // are lost, which are 15 or 16.
    let text = source("[[cell_outage]]\nname = \"gone\"\nat = \"1 s\"\nduration = \"1 s\"\n").text;
    let text = text
        .replacen("rate = \"1 Mbit/s\"", "rate = \"8 kbit/s\"", 1)
        .replace("periodic", "continuous")
        .replace("exchanges = 12", "exchanges = 1\nrequest_payload = 27")
        + "[coap]\nack_timeout = \"60 s\"\n";
    let scenario = Source::new("x.toml", text).scenario(&[]).unwrap();
    let record = run(&scenario, "default", 1, 0);
    let bytes = record.totals.delivery.carried_up / record.totals.up.sent;
    assert_eq!(bytes, 66);
    assert!([15, 16].contains(&record.totals.up.lost_link), "{:?}", record.totals.up);
}

/// Two cells, of which the devices are in the first one; a packet needs so long across either.
fn cells(delay: &str, rest: &str) -> Scenario {
    let link = |name: &str| {
        format!(
            "[[link]]\nname = \"{name}\"\nrate = \"1 Mbit/s\"\ndelay = \"{delay}\"\nbuffer = \"infinite\"\n"
        )
    };
    let text = source(&format!("{}{}{rest}", link("a"), link("b"))).text;
    let text = text.replace("count = 40\n", "count = 40\nlink = \"a\"\n");
    Source::new("x.toml", text).scenario(&[]).unwrap()
}

#[test]
fn devices_that_move_send_over_the_link_of_their_new_cell() {
    let moved = "[[device_move]]\nname = \"trip\"\nat = \"50 s\"\nto = \"b\"\n";
    let back = "[[device_move]]\nname = \"home\"\nat = \"80 s\"\nto = \"a\"\n";
    // A device asks once in each ten seconds, 12 times: five times before 50 s, eight times before 80 s.
    for (rest, before, after) in [
        (moved.to_owned(), 40 * 5, 40 * 7),
        (format!("{moved}share = 0.25\n"), 40 * 5 + 30 * 7, 10 * 7),
        (format!("{moved}{back}"), 40 * 5 + 40 * 4, 40 * 3),
        (moved.replace("\"50 s\"", "\"20 s\"") + "within = \"0 s\"\n", 40 * 2, 40 * 10),
        (moved.replace("to = \"b\"", "to = \"bottleneck\""), 40 * 5, 0),
    ] {
        // A cell into which nobody moves would be refused.
        let still = "[[device_move]]\nname = \"still\"\nat = \"0 s\"\nshare = 0.001\nto = \"b\"\n";
        let record = run(&cells("1 us", &format!("{rest}{still}")), "default", 1, 0);
        let [a, b] = [&record.totals.links[0], &record.totals.links[1]];
        assert_eq!((a.up.sent, b.up.sent), (before, after), "{rest}");
        assert_eq!((a.down.delivered, b.down.delivered), (before, after), "{rest}");
        assert_eq!(record.totals.up.sent, 480);
    }
}

#[test]
fn what_is_on_its_way_over_the_cell_that_a_device_has_left_is_lost() {
    let moved = "[[device_move]]\nname = \"trip\"\nat = \"50 s\"\nto = \"b\"\n";
    let record = run(&cells("900 ms", moved), "default", 1, 0);
    let completed: u32 = record.clients.iter().map(|client| client.completed).sum();
    assert_eq!(completed, 480, "copies get their answers in the new cell");
    let a = record.totals.links[0].down;
    // A fifth of the devices asks in the 1.84 s before it moves, and misses the answer.
    assert!((2..=16).contains(&a.lost_link), "{a:?}");
    assert_eq!(a.sent, a.delivered + a.lost_link);
    let copies: u32 = record.clients.iter().map(|client| client.retransmissions).sum();
    assert_eq!(u64::from(copies), a.lost_link);
    // The bottleneck has carried all of it.
    assert_eq!(record.totals.down.lost_link, 0);
    // The same devices move under another control.
    let other = run(&cells("900 ms", moved), "fasor-token", 1, 0);
    assert_eq!(other.totals.links[0].down.lost_link, a.lost_link);
}

#[test]
fn a_class_begins_when_it_is_to() {
    let late = "[[class]]\nname = \"campaign\"\ncount = 40\nstart = \"300 s\"\n";
    let text = source(late).text.replacen("count = 40\n", "", 1);
    for kind in ["periodic", "poisson", "synchronised", "bursts", "continuous"] {
        let text = text.replace("\"periodic\"", &format!("\"{kind}\""));
        let record = run(&Source::new("x.toml", text).scenario(&[]).unwrap(), "default", 1, 0);
        let plain = source("").text.replace("\"periodic\"", &format!("\"{kind}\""));
        let before = run(&Source::new("x.toml", plain).scenario(&[]).unwrap(), "default", 1, 0);
        let (late, early) = (record.totals.done_ns, before.totals.done_ns);
        assert_eq!(late, early + 300_000_000_000, "{kind}");
    }
}

#[test]
fn each_phase_has_the_exchanges_that_were_asked_for_in_it_and_a_judgement() {
    let phases = "[[phase]]\nname = \"before\"\n[[phase]]\nname = \"storm\"\nfrom = \"60 s\"\n\
                  [phase.require]\nin_time = 0.99\n";
    let cut = "[[power_cut]]\nname = \"evening\"\nat = \"65 s\"\nduration = \"10 s\"\nrequests = 40\n\
               return_within = \"0 s\"\n";
    let cc = ["default", "fasor-token"].map(str::to_owned).to_vec();
    let source = source(&format!("{phases}{cut}"));
    let campaign = Campaign::plan(source, Vec::new(), cc, Some(2), Some(1)).unwrap();
    let results = campaign.run(None, None, &()).unwrap();
    for (_, result) in &results.cells {
        let cell = &result.cell;
        let asked: Vec<u64> = cell.phases.iter().map(|phase| phase.outcome.asked / 2).collect();
        // Six of the twelve reports before 60 s. One of the others is missed, and forty come at once.
        assert_eq!(asked, [40 * 6, 40 * (5 + 40)]);
        assert_eq!(cell.phases[0].outcome.all.delivered, 1.0);
        // Forty requests one after another, 40 ms and more each, are not answered within 1 s.
        let check = &cell.outcome.checks[0];
        assert_eq!((check.phase.as_str(), check.met().is_met()), ("storm", false));
        assert!(
            check.text().contains("of phase storm within 1 s")
                || check.text().contains("phase storm")
        );
        assert_eq!(cell.phases[1].outcome.checks.len(), 1);
        assert_eq!(cell.phases[0].outcome.checks.len(), 0);
    }
    let cells = results.cells.iter().map(|(_, result)| &result.cell);
    let judged = judge_phases(cells, Percentile::default());
    assert!(judged[0].1.sentence.starts_with("Use default"), "{}", judged[0].1.sentence);
    assert!(judged[1].1.choose.is_none(), "{}", judged[1].1.sentence);
}

#[test]
fn events_and_phases_that_cannot_be_are_refused_by_key_and_reason() {
    for (rest, says) in [
        ("[[power_cut]]\nname = \"x\"\nat = \"1 h\"\n", "power_cut.x.at: lies outside the run"),
        ("[[cell_outage]]\nname = \"x\"\nat = \"1 h\"\nduration = \"1 s\"\n", "cell_outage.x.at"),
        ("[[device_move]]\nname = \"x\"\nat = \"1 h\"\nto = \"bottleneck\"\n", "device_move.x.at"),
        ("[[device_move]]\nname = \"x\"\nat = \"1 s\"\nto = \"y\"\n", "'y'"),
        ("[[device_move]]\nname = \"x\"\nat = \"1 s\"\n", "to"),
        (
            "[[device_move]]\nname = \"x\"\nat = \"1 s\"\nto = \"bottleneck\"\nclass = \"y\"\n",
            "no [[class]]",
        ),
        ("[[phase]]\nname = \"x\"\nfrom = \"1 h\"\n", "phase.x.from: lies outside the run"),
        ("[[cell_outage]]\nname = \"x\"\nat = \"1 s\"\n", "duration"),
        ("[[cell_outage]]\nname = \"x\"\nat = \"1 s\"\nduration = \"0 s\"\n", "duration"),
        ("[[cell_outage]]\nname = \"x\"\nat = \"1 s\"\nduration = \"1 s\"\nlink = \"y\"\n", "'y'"),
        ("[[power_cut]]\nname = \"x\"\nat = \"1 s\"\nlink = \"y\"\n", "link"),
        ("[[power_cut]]\nname = \"x\"\nat = \"1 s\"\nshare = 0\n", "share"),
        ("[[power_cut]]\nname = \"x\"\nat = \"1 s\"\nshare = 1.5\n", "share"),
        ("[[power_cut]]\nname = \"x\"\nat = \"1 s\"\nclass = \"y\"\n", "no [[class]]"),
        ("[[power_cut]]\nname = \"x\"\nat = \"1 s\"\nrequests = 65\n", "from 0 to 64"),
        (
            "[[power_cut]]\nname = \"x\"\nat = \"1 s\"\n[[power_cut]]\nname = \"x\"\nat = \"2 s\"\n",
            "earlier",
        ),
        (
            "[[phase]]\nname = \"a\"\nfrom = \"9 s\"\n[[phase]]\nname = \"b\"\nfrom = \"9 s\"\n",
            "phase.b.from",
        ),
        ("[[phase]]\nname = \"a\"\n[phase.require]\nbytes = 300\n", "whole run"),
    ] {
        let error = refused(rest);
        assert!(error.contains(says), "{rest}: {error}");
    }
    let with = |kind: &str| {
        let text = source(CUT).text.replace("\"periodic\"", kind);
        Source::new("x.toml", text).scenario(&[])
    };
    for kind in ["\"notifications\"", "\"firmware\"\nresponse_payload = 64"] {
        assert!(with(kind).unwrap_err().to_string().contains("power_cut.evening.class"), "{kind}");
    }
    let over_tcp = scenario(CUT).control_config("tcp").unwrap_err().to_string();
    assert!(over_tcp.contains("power cut"), "{over_tcp}");
}

#[test]
fn a_scenario_without_events_has_the_identity_that_it_always_had() {
    let text = serde_json::to_string(&scenario("")).unwrap();
    for word in ["power_cut", "cell_outage", "device_move", "phase", "\"start\""] {
        assert!(!text.contains(word), "{word}");
    }
}
