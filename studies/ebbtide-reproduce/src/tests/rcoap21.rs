//! The statements of RCOAP21 on the cells of its reproduction.

use crate::{Paper, Statement, check_statements, compare, plan};
use ebbtide_sim::result::Comparison;
use ebbtide_sim::run::CellSpec;

/// One replication of some cells: what it says to the paper's statements and figures.
fn reproduced(wanted: impl Fn(&CellSpec) -> bool) -> (Vec<Statement>, Vec<Comparison>) {
    let mut campaign = plan(&[Paper::Rcoap21], Some(1), Some(1)).unwrap();
    campaign.cells.retain(wanted);
    assert!(!campaign.cells.is_empty());
    let results = campaign.run(None, None, &()).unwrap();
    let statements = check_statements(Paper::Rcoap21, &campaign, &results);
    (statements, compare(Paper::Rcoap21, &campaign, &results))
}

fn setting<'s>(spec: &'s CellSpec, key: &str) -> &'s str {
    let found = spec.settings.iter().find(|(own, _)| own == key);
    found.map_or("", |(_, value)| value)
}

#[track_caller]
fn assert_holds(statements: &[Statement], beginning: &str) {
    let own: Vec<_> = statements.iter().filter(|s| s.says.starts_with(beginning)).collect();
    assert!(!own.is_empty(), "no statement begins with '{beginning}'");
    for statement in own {
        assert!(statement.holds, "{}", statement.words(20));
    }
}

#[test]
fn messages_begin_within_five_percent_of_the_allowed_or_of_the_bottlenecks_rate() {
    let (statements, _) = reproduced(|spec| setting(spec, "delay") == "500 ms");
    assert_holds(&statements, "high start rate");
    assert_holds(&statements, "low start rate");
    assert_holds(&statements, "nothing given");
}

#[test]
fn three_flows_share_evenly_repeat_nothing_and_deliver_more_than_the_others() {
    let (statements, figures) = reproduced(|spec| {
        spec.settings.len() == 1 && ["0 s", "500 ms"].contains(&setting(spec, "interval"))
    });
    assert_holds(&statements, "three flows: they share");
    assert_holds(&statements, "three flows: rcoap makes no retransmission");
    assert_holds(&statements, "three flows: rcoap delivers more");
    // What cannot follow from the paper's description is told, not met.
    let told = figures.iter().filter(|one| one.note.contains("IPI_min")).count();
    assert_eq!(told, 3, "137, 129 and 123 packets are more than one every 400 ms");
    let contradictions = statements.iter().filter(|one| one.says.contains("against itself"));
    assert!(contradictions.clone().count() >= 5);
    assert!(contradictions.filter(|one| one.holds).count() == 0);
}

#[test]
fn the_rate_is_halved_at_a_loss_restored_within_a_round_trip_and_kept_down_after_several() {
    let (statements, _) = reproduced(|spec| !setting(spec, "drops").is_empty());
    assert_holds(&statements, "one packet lost");
    assert_holds(&statements, "two packets in a row lost");
    assert_holds(&statements, "four packets in a row lost");
    assert_holds(&statements, "after two lost");
    assert_holds(&statements, "after four lost");
}

#[test]
fn beside_tcp_it_delivers_at_least_twice_what_the_others_do() {
    let (statements, _) = reproduced(|spec| !setting(spec, "background").is_empty());
    assert_holds(&statements, "beside TCP: rcoap delivers at least twice");
}

#[test]
fn discovery_costs_less_than_a_percent_of_the_bytes() {
    let (statements, figures) = reproduced(|spec| setting(spec, "rate") == "25 kbit/s");
    assert_holds(&statements, "discovery pays");
    let share = figures.iter().find(|one| one.quantity.contains("% of the bytes")).unwrap();
    assert!(0.0 < share.measured && share.measured < 1.0, "{}", share.measured);
}
